//! Tensors of DLPack made by hand, of memory that cudarc owns: what another library would export.

use std::{
    ffi::c_void,
    ptr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use gridcall::{
    Order, Tensor, ViewError,
    cudarc::driver::{CudaSlice, CudaStream, DevicePtr},
    dlpack::dlpark::{
        DlpackFlags,
        ffi::{
            DLDataType, DLDevice, DLDeviceType, DLManagedTensorVersioned, DLPackVersion, DLTensor,
        },
    },
};

/// A tensor before it is exported.
pub(crate) struct Export {
    pub(crate) shape: Vec<i64>,
    /// NULL if there are none.
    pub(crate) strides: Option<Vec<i64>>,
    pub(crate) dtype: DLDataType,
    pub(crate) byte_offset: u64,
    pub(crate) device: DLDevice,
    pub(crate) read_only: bool,
}

/// How often tensors were let go.
#[derive(Clone, Default)]
pub(crate) struct Released(Arc<AtomicUsize>);

struct Owner {
    shape: Vec<i64>,
    strides: Option<Vec<i64>>,
    released: Released,
    _memory: Box<dyn Send>,
}

impl Export {
    pub(crate) fn f32(shape: &[i64]) -> Export {
        Export {
            shape: shape.to_vec(),
            strides: None,
            dtype: DLDataType::F32,
            byte_offset: 0,
            device: DLDevice {
                device_type: DLDeviceType::CUDA,
                device_id: 0,
            },
            read_only: false,
        }
    }

    pub(crate) fn strides(mut self, strides: &[i64]) -> Export {
        self.strides = Some(strides.to_vec());
        self
    }

    pub(crate) fn dtype(mut self, dtype: DLDataType) -> Export {
        self.dtype = dtype;
        self
    }

    pub(crate) fn byte_offset(mut self, bytes: u64) -> Export {
        self.byte_offset = bytes;
        self
    }

    pub(crate) fn on(mut self, device_type: DLDeviceType, device_id: i32) -> Export {
        self.device = DLDevice {
            device_type,
            device_id,
        };
        self
    }

    pub(crate) fn read_only(mut self) -> Export {
        self.read_only = true;
        self
    }

    /// Exports the memory, whose owner works on `order`, and imports it again.
    pub(crate) fn tensor<T: Send + 'static>(
        self,
        memory: CudaSlice<T>,
        order: Order,
    ) -> Result<Tensor, ViewError> {
        self.released_by(memory, order, &Released::default())
    }

    /// As [`tensor`](Export::tensor), counting when it is let go.
    pub(crate) fn released_by<T: Send + 'static>(
        self,
        memory: CudaSlice<T>,
        order: Order,
        released: &Released,
    ) -> Result<Tensor, ViewError> {
        let stream = memory.stream().clone();
        let address = memory.device_ptr(&stream).0;
        let mut owner = Box::new(Owner {
            shape: self.shape,
            strides: self.strides,
            released: released.clone(),
            _memory: Box::new(memory),
        });
        let mut flags = DlpackFlags::empty();
        flags.set(DlpackFlags::READ_ONLY, self.read_only);
        let managed = DLManagedTensorVersioned {
            version: DLPackVersion { major: 1, minor: 1 },
            manager_ctx: ptr::null_mut(),
            deleter: Some(delete),
            flags,
            dl_tensor: DLTensor {
                data: ptr::without_provenance_mut(usize::try_from(address).unwrap()),
                device: self.device,
                ndim: i32::try_from(owner.shape.len()).unwrap(),
                dtype: self.dtype,
                shape: owner.shape.as_mut_ptr(),
                strides: owner
                    .strides
                    .as_mut()
                    .map_or(ptr::null_mut(), Vec::as_mut_ptr),
                byte_offset: self.byte_offset,
            },
        };
        let managed = Box::new(DLManagedTensorVersioned {
            manager_ctx: Box::into_raw(owner).cast(),
            ..managed
        });
        // SAFETY: the tensor is what it says, of memory that its owner keeps, and all that uses the
        // memory is on streams that the tests name.
        unsafe { Tensor::from_dlpack_ptr(Box::into_raw(managed), order) }
    }
}

unsafe extern "C" fn delete(managed: *mut DLManagedTensorVersioned) {
    // SAFETY: made above, and let go once.
    let managed = unsafe { Box::from_raw(managed) };
    let owner: *mut c_void = managed.manager_ctx;
    // SAFETY: as above.
    let owner = unsafe { Box::from_raw(owner.cast::<Owner>()) };
    owner.released.0.fetch_add(1, Ordering::SeqCst);
}

impl Released {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// Waits until so many were let go, and sees that no more are.
    pub(crate) fn wait_for(&self, count: usize) {
        let start = Instant::now();
        while self.count() < count {
            assert!(start.elapsed() < Duration::from_secs(30), "never let go");
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(self.count(), count);
    }
}

/// The order of an owner who works on `stream`.
pub(crate) fn on(stream: &CudaStream) -> Order {
    // SAFETY: the tests hold their streams to the end.
    Order::Stream(unsafe { gridcall::ForeignStream::from_raw(stream.cu_stream().cast()) })
}
