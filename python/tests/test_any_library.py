"""Arrays of any library and any mix of them, in place and out of place."""

import gridcall_example as g
import pytest
from made import Interface


def test_in_place(library):
    y = library.array([1.0, 2.0, 3.0])
    g.scale(y, 2.0)
    assert library.values(y) == [2.0, 4.0, 6.0]


def test_a_mix_of_two_libraries(library, other):
    x = library.array([1.0, 2.0, 3.0])
    y = other.array([10.0, 20.0, 30.0])
    g.saxpy(2.0, x, y)
    assert other.values(y) == [12.0, 24.0, 36.0]
    out = library.array([0.0, 0.0, 0.0])
    g.copy(y, out)
    assert library.values(out) == [12.0, 24.0, 36.0]
    assert library.values(x) == [1.0, 2.0, 3.0]


def test_nothing_is_an_array_too(library):
    g.copy(library.array([]), library.array([]))


def test_what_is_no_array():
    array = g.DeviceArray([1.0])
    for wrong in (None, 3, [1.0], "x"):
        with pytest.raises(TypeError, match="is not a device array"):
            g.copy(wrong, array)


def test_too_short_an_array_is_told(library):
    with pytest.raises(
        ValueError, match=r"kernel `copy`: the launch needs `input.len\(\) >= n`, but input.len\(\) is 2 and n is 3"
    ):
        g.copy(library.array([1.0, 2.0]), library.array([0.0, 0.0, 0.0]))


def test_one_array_as_both_is_told(library):
    x = library.array([1.0, 2.0])
    with pytest.raises(ValueError, match=r"argument `out` \(parameter 1, &mut \[f32\]\): the array overlaps argument"):
        g.copy(x, x)
    assert library.values(x) == [1.0, 2.0]


def test_another_element_type_is_told():
    array = g.DeviceArray([1.0, 2.0])
    with pytest.raises(
        TypeError,
        match=r"kernel `copy`: argument `input` \(parameter 0, &\[f32\]\): expected elements of f32, the array holds int32",
    ):
        g.copy(Interface(array, typestr="<i4"), array)


def test_strides_are_told_or_do_not_matter():
    memory = g.DeviceArray([float(n) for n in range(10)])
    out = g.DeviceArray([0.0] * 8)
    sliced = Interface(memory, shape=(2, 4), strides=(20, 4))
    with pytest.raises(ValueError, match=r"not contiguous: shape \[2, 4\], strides \[5, 1\]"):
        g.copy(sliced, out)
    odd = Interface(memory, shape=(1, 2, 1, 4), strides=(4, 16, 12, 4))
    g.copy(odd, out)
    assert out.tolist() == [float(n) for n in range(8)]


def test_read_only_arrays_are_read_and_not_written():
    array = g.DeviceArray([1.0, 2.0])
    frozen = Interface(array, data=(array.address, True))
    out = g.DeviceArray([0.0, 0.0])
    g.copy(frozen, out)
    assert out.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match=r"argument `y` .*the kernel writes to it, but its owner lends it read-only"):
        g.scale(frozen, 2.0)


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ({"mask": True}, "it has a mask"),
        ({"stream": 0}, "does not allow stream 0"),
        ({"version": 1}, "of version 1"),
        ({"typestr": ">f4"}, "byte order"),
        ({"data": (64, False)}, "knows no memory at its address 0x40"),
    ],
)
def test_what_the_interface_does_not_allow(entries, text):
    array = g.DeviceArray([1.0, 2.0])
    with pytest.raises(ValueError, match=f"kernel `scale`: argument `y` .*{text}"):
        g.scale(Interface(array, **entries), 2.0)


def test_matrices_lie_as_they_like():
    memory = g.DeviceArray([float(n) for n in range(6)])
    out = g.DeviceArray([0.0] * 6)
    matrix = Interface(memory, shape=(2, 3))
    transposed = Interface(memory, shape=(2, 3), strides=(4, 8))
    g.add(matrix, transposed, Interface(out, shape=(2, 3)))
    assert out.tolist() == [0.0, 3.0, 6.0, 4.0, 7.0, 10.0]
    row = Interface(memory, shape=(2, 3), strides=(0, 4))
    flipped = Interface(memory, shape=(2, 3), strides=(-12, -4), data=(memory.address + 20, False))
    g.add(row, flipped, Interface(out, shape=(2, 3)))
    assert out.tolist() == [5.0, 5.0, 5.0, 2.0, 2.0, 2.0]
    with pytest.raises(ValueError, match="several of its indices may be one element"):
        g.add(matrix, matrix, Interface(out, shape=(2, 3), strides=(0, 4)))
    with pytest.raises(ValueError, match=r"the kernel takes 2 dimensions, the array has 1: shape \[6\]"):
        g.add(memory, matrix, Interface(out, shape=(2, 3)))


def test_many_objects_come_and_go():
    y = g.DeviceArray([0.0])
    for n in range(1, 2001):
        g.saxpy(1.0, g.DeviceArray([1.0]), y)
    assert y.tolist() == [2000.0]
