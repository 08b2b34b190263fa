"""Nothing is kept: a hundred thousand launches, of which many fail."""

import gc
import sys

import gridcall_example as g
import made
from made import Interface, Made
from test_protocols import wait_until

LAUNCHES = 100_000


def resident():
    """Bytes of memory that the process has; 0 where nobody says."""
    try:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * 4096
    except OSError:
        return 0


def launches(memory, out, count):
    """Launches of arrays that come and go; of each ten, seven fail. How many tensors were let go."""
    frozen = Interface(memory, data=(memory.address, True))
    ints = Interface(memory, typestr="<i4")
    tensors, failed = [], 0
    for n in range(count):
        x = memory
        try:
            match n % 10:
                case 0:
                    g.saxpy(0.0, memory, out)
                case 1:
                    g.axpy(1.0, memory, out)
                case 2:
                    tensors.append(Made(memory, (4,)))
                    g.copy(tensors[-1], out)
                case 3:  # too short
                    tensors.append(Made(memory, (3,)))
                    g.copy(tensors[-1], out)
                case 4:
                    g.copy(ints, out)
                case 5:
                    g.scale(frozen, 1.0)
                case 6:
                    tensors.append(Made(memory, (4,), version=(2, 0)))
                    g.copy(tensors[-1], out)
                case 7:
                    g.copy(object(), out)
                case 8:
                    tensors.append(Made(memory, (2, 2), (1, 2)))
                    g.copy(tensors[-1], out)
                case 9:  # of another driver's memory, or freed
                    g.copy(Interface(memory, data=(64, False)), out)
        except (TypeError, ValueError):
            failed += 1
        if len(tensors) == 300:
            wait_until(lambda: all(tensor.released == 1 for tensor in tensors))
            tensors.clear()
    assert failed == count * 7 // 10
    assert x is memory


def test_nothing_leaks():
    memory, out = g.DeviceArray([0.0] * 4), g.DeviceArray([0.0] * 4)
    launches(memory, out, LAUNCHES // 10)
    out.tolist()
    gc.collect()
    references = [sys.getrefcount(thing) for thing in (memory, out, made.Made, g.Tensor)]
    objects, before = len(gc.get_objects()), resident()
    launches(memory, out, LAUNCHES)
    out.tolist()
    gc.collect()
    assert [sys.getrefcount(thing) for thing in (memory, out, made.Made, g.Tensor)] == references
    assert len(gc.get_objects()) - objects < 100
    # What a hundred thousand lost exceptions or events would take is many times as much.
    assert resident() - before < 16 << 20
