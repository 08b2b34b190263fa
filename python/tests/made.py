"""Tensors of DLPack made by hand, of memory that another object owns: what any library could export."""

import ctypes

CUDA, CPU, PINNED, MANAGED = 2, 1, 3, 13
FLOAT, INT, UINT, BFLOAT, COMPLEX, BOOL, FP8, FP4 = 2, 0, 1, 4, 5, 6, 10, 17
READ_ONLY = 1


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Legacy(ctypes.Structure):
    _fields_ = [("dl_tensor", DLTensor), ("manager_ctx", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("dl_tensor", DLTensor),
    ]


NAMES = {Legacy: b"dltensor", Versioned: b"dltensor_versioned"}
DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_name = ctypes.pythonapi.PyCapsule_GetName
_name.restype, _name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]

# Exported tensors by their addresses, as their exporter keeps them until the deleter is called.
_exported = {}


@DELETER
def _delete(address):
    _exported.pop(address).released += 1


def name(capsule):
    return _name(capsule)


def read(capsule):
    """The struct in a capsule that nobody took."""
    for struct, its_name in NAMES.items():
        if name(capsule) == its_name:
            return struct.from_address(_pointer(capsule, its_name))
    raise AssertionError(f"the capsule is named {name(capsule)}")


class Made:
    """An object that exports the memory of `owner`, as the arguments say, by the newer protocol."""

    def __init__(
        self,
        owner,
        shape,
        strides=None,
        *,
        struct=Versioned,
        dtype=(FLOAT, 32, 1),
        device=(CUDA, 0),
        byte_offset=0,
        flags=0,
        version=(1, 3),
        deleter=_delete,
        data=None,
        named=None,
    ):
        self.owner, self.released, self.asked, self.named = owner, 0, [], named
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        self.strides = strides and (ctypes.c_int64 * len(strides))(*strides)
        tensor = DLTensor(
            owner.address if data is None else data,
            *device,
            len(shape),
            *dtype,
            self.shape,
            self.strides,
            byte_offset,
        )
        deleter = ctypes.cast(deleter, ctypes.c_void_p) if deleter else None
        if struct is Legacy:
            self.struct = Legacy(tensor, None, deleter)
        else:
            self.struct = Versioned(*version, None, deleter, flags, tensor)

    def __dlpack_device__(self):
        tensor = self.struct.dl_tensor
        return tensor.device_type, tensor.device_id

    def capsule(self):
        address = ctypes.addressof(self.struct)
        _exported[address] = self
        return _new(address, self.named or NAMES[type(self.struct)], None)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        self.asked.append({"stream": stream, "max_version": max_version})
        self.given = self.capsule()
        return self.given


class OldMade(Made):
    """As exporters were before DLPack 1.0."""

    def __dlpack__(self, stream=None):
        self.asked.append({"stream": stream})
        self.given = self.capsule()
        return self.given


class Interface:
    """What an object says of itself: the interface of `array` with other entries."""

    def __init__(self, array, **entries):
        self.array = array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **entries}


class FreedInOrder(Interface):
    """An interface of a library that is known to reuse memory in the order of its streams: nothing is kept, and nobody asks the
    device whether it is done, so that a missing wait shows."""

    __module__ = "torch"

    def is_neg(self):
        return False

    def is_conj(self):
        return False
