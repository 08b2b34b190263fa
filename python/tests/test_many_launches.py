"""Nothing is kept, and nothing let go twice, over many launches of which many fail.

GRIDCALL_LEAK_LAUNCHES says how many launches, a million on a machine with a GPU.
"""

import gc
import os
import resource
import sys
import threading
import time

import gridcall_example as g
import pytest

LAUNCHES = int(os.environ.get("GRIDCALL_LEAK_LAUNCHES", "20000"))
# Bytes that may come and go with what else the libraries do.
ROOM = 4 << 20


class Interface:
    def __init__(self, array, **entries):
        self.array = array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **entries}


class Raises:
    """What raises when it is asked what it is."""

    @property
    def __cuda_array_interface__(self):
        raise RuntimeError("not today")


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def wrong_launches(array, longer):
    """Launches that fail, each for a reason of its own, with arrays of this library."""
    yield lambda: g.copy(array, array), ValueError, "overlaps"
    yield lambda: g.saxpy(1.0, array, longer), ValueError, "the launch needs"
    yield lambda: g.saxpy("one", array, array), TypeError, "real number"
    yield lambda: g.copy(array, None), TypeError, "is not a device array"
    yield lambda: g.copy(array, Raises()), RuntimeError, "not today"
    if hasattr(array, "__cuda_array_interface__"):
        yield lambda: g.scale(Interface(array, mask=True), 1.0), ValueError, "mask"
        yield lambda: g.scale(Interface(array, typestr="<i4"), 1.0), TypeError, "int32"


def words_of_torch(torch, array):
    yield lambda: g.scale(torch._neg_view(array), 1.0), ValueError, "negated lazily"
    yield lambda: g.scale(torch.ones(8), 1.0), ValueError, "host memory"
    yield lambda: g.scale(torch.zeros(8, dtype=torch.int32, device="cuda"), 1.0), TypeError, "torch.int32"
    yield lambda: g.scale(torch.zeros(8, 2, device="cuda")[:, 0], 1.0), ValueError, "not contiguous"


def launch_many(launches, x, y, fresh, wrong):
    for n in range(launches):
        g.saxpy(1.0, x, y)
        if n % 8 == 0:
            # An array that is gone when the launch returns.
            g.copy(fresh(), y)
        if n % 4 == 0:
            call, kind, text = wrong[n // 4 % len(wrong)]
            with pytest.raises(kind, match=text):
                call()


def test_constant_memory_and_references(library):
    x, y = library.array([1.0] * 8), library.array([0.0] * 8)
    longer = library.array([0.0] * 9)

    def fresh():
        return library.array([3.0] * 8)

    wrong = list(wrong_launches(x, longer))
    if library.name == "torch":
        wrong += words_of_torch(library.torch, x)
    watched = [x, y, longer, Interface, Raises]

    def state():
        library.values(y)
        gc.collect()
        references, before = [sys.getrefcount(one) for one in watched], None
        # What the last launches kept is let go by another thread, which needs Python's lock.
        while references != before:
            time.sleep(0.1)
            references, before = [sys.getrefcount(one) for one in watched], references
        return references, len(gc.get_objects())

    launch_many(LAUNCHES // 20, x, y, fresh, wrong)
    references, objects = state()
    memory = resident()
    launch_many(LAUNCHES, x, y, fresh, wrong)
    references_after, objects_after = state()
    assert references_after == references
    assert abs(objects_after - objects) < 50
    assert resident() - memory < ROOM
    # The last of the fresh arrays, and what was added since.
    last = max(n for n in range(LAUNCHES) if n % 8 == 0)
    assert library.values(y) == [3.0 + LAUNCHES - 1 - last] * 8


def test_arrays_of_unknown_libraries_are_let_go_once(library):
    x, y = library.array([1.0] * 8), library.array([0.0] * 8)
    if not hasattr(x, "__cuda_array_interface__"):
        pytest.skip("has no array interface")
    living = []

    class Counted(Interface):
        def __init__(self, array):
            super().__init__(array)
            living.append(1)

        def __del__(self):
            living.pop()

    def launches():
        for _ in range(LAUNCHES // 40):
            g.saxpy(1.0, Counted(x), y)

    threads = [threading.Thread(target=launches) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert library.values(y) == [4.0 * (LAUNCHES // 40)] * 8
    # What was still in use when it was dropped is let go by a thread of ours, or at the next drop.
    for _ in range(1000):
        if not living:
            break
        threading.Event().wait(0.005)
    assert living == []
