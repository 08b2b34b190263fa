//! What a bulk copy moves: which bytes of global memory lie where in shared memory.

use std::ops::Range;

use super::tensor_map::{Mode, TensorMap};

/// `CU_TENSOR_MAP_DATA_TYPE_TFLOAT32` and `.._TFLOAT32_FTZ`, which are rounded when they are loaded.
const TF32: u32 = 11;
const TF32_FTZ: u32 = 12;

/// Bytes that lie beside each other in global memory, and in shared memory but for the swizzle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// The place in the tile.
    pub(crate) at: u64,
    pub(crate) global: u64,
    pub(crate) bytes: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Tile {
    /// What lies within the array.
    pub(crate) rows: Vec<Row>,
    /// The bytes that are moved to or from shared memory, those beyond the array's ends included.
    pub(crate) bytes: u64,
    /// The bytes of shared memory that the tile spans.
    pub(crate) span: u64,
    /// The bytes of a line in shared memory, and from one to the next: a swizzled line begins where the pattern
    /// of the swizzle does.
    line: u64,
    pitch: u64,
    /// Where it lies in shared memory.
    pub(crate) shared: u64,
    /// The bits of an address that are changed, and by those three places up.
    swizzle: u64,
    element: u32,
    /// The bytes of an element, and whether those beyond the array's ends are NaN.
    size: u32,
    nan: bool,
}

/// A dimension of what is copied, outside of its rows.
#[derive(Clone, Copy, Debug)]
struct Axis {
    first: i64,
    step: i64,
    count: u64,
    extent: u64,
    stride: u64,
}

impl Row {
    /// Its pieces of 16 bytes in shared memory.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        let (start, end) = (self.at, self.at + self.bytes);
        let mut at = start;
        std::iter::from_fn(move || {
            (at < end).then(|| {
                let from = at;
                at = (at / 16 * 16 + 16).min(end);
                from..at
            })
        })
    }
}

impl Tile {
    /// Bytes as they are.
    pub(crate) fn whole(global: u64, bytes: u64) -> Self {
        let row = Row {
            at: 0,
            global,
            bytes,
        };
        Self {
            rows: if bytes == 0 { Vec::new() } else { vec![row] },
            bytes,
            span: bytes,
            line: bytes,
            pitch: bytes,
            shared: 0,
            swizzle: 0,
            element: 0,
            size: 1,
            nan: false,
        }
    }

    /// Bytes that touch no global memory.
    pub(crate) fn apart(bytes: u64) -> Self {
        Self {
            rows: Vec::new(),
            ..Self::whole(0, bytes)
        }
    }

    /// What an instruction with these coordinates moves.
    ///
    /// # Errors
    ///
    /// Says why the map is not for the instruction.
    pub(crate) fn of(
        map: &TensorMap,
        coordinates: &[i64],
        offsets: &[i64],
        im2col: bool,
        stores: bool,
    ) -> Result<Self, String> {
        let rank = map.rank as usize;
        if coordinates.len() != rank {
            return Err(format!(
                "the instruction is for {} dimensions, and the tensor map has {rank}",
                coordinates.len()
            ));
        }
        let inner = coordinates[0] * i64::from(map.size());
        if map.interleave == 0 && inner % 16 != 0 {
            return Err(format!(
                "the innermost coordinate is {}, which lies at no multiple of 16 bytes",
                coordinates[0]
            ));
        }
        // Sixteen bytes are written at once, those behind the end of a row too.
        let mut map = *map;
        if stores && map.interleave == 0 {
            map.dims[0] = map.dims[0].next_multiple_of(16 / u64::from(map.size()));
        }
        let map = &map;
        let mut tile = Self {
            rows: Vec::new(),
            bytes: 0,
            span: 0,
            line: 0,
            pitch: 0,
            shared: 0,
            swizzle: [0, 1, 3, 7][map.swizzle as usize % 4] << 4,
            element: map.element,
            size: map.size(),
            nan: map.fill == 1,
        };
        match (map.mode, im2col) {
            (Mode::Tiled { tile: sizes }, false) => tile.add_box(map, coordinates, &sizes),
            (
                Mode::Im2col {
                    lower,
                    upper,
                    channels,
                    pixels,
                },
                true,
            ) => {
                let spatial = rank - 2;
                let corners = |of: &[i32; 3]| of.map(i64::from);
                tile.add_pixels(
                    map,
                    coordinates,
                    (corners(&lower), corners(&upper)),
                    (channels, pixels),
                    &offsets[..spatial.min(offsets.len())],
                )?;
            }
            (Mode::Tiled { .. }, true) => {
                return Err(
                    "the instruction is for im2col, and the tensor map for tiles".to_owned(),
                );
            }
            (Mode::Im2col { .. }, false) => {
                return Err(
                    "the instruction is for tiles, and the tensor map for im2col".to_owned(),
                );
            }
        }
        Ok(tile)
    }

    fn add_box(&mut self, map: &TensorMap, coordinates: &[i64], sizes: &[u32; 5]) {
        let rank = map.rank as usize;
        let axis = |at: usize, stride: u64| Axis {
            first: coordinates[at],
            step: i64::from(map.element_strides[at]),
            count: u64::from(sizes[at].div_ceil(map.element_strides[at])),
            extent: map.dims[at],
            stride,
        };
        let outer = |at: usize| axis(at, map.strides[at - 1]);
        let Some(slice) = map.slice() else {
            let axes: Vec<Axis> = (1..rank).map(outer).collect();
            let inner = (coordinates[0], u64::from(sizes[0]), map.dims[0]);
            self.add_rows(&axes, inner, map);
            return;
        };
        // A slice of channels is innermost; the slices are the last dimension but one, and one is moved.
        let per = slice / self.size;
        let mut axes = vec![axis(0, u64::from(slice))];
        axes.extend((1..rank).map(outer));
        axes[rank - 2].count = 1;
        self.add_rows(&axes, (0, u64::from(per), u64::from(per)), map);
    }

    /// Rows of `inner`: the first element, how many, and how many there are.
    fn add_rows(&mut self, axes: &[Axis], inner: (i64, u64, u64), map: &TensorMap) {
        self.set_line(inner.1 * u64::from(self.size), map);
        let rows: u64 = axes.iter().map(|axis| axis.count).product();
        for row in 0..rows {
            let mut left = row;
            let mut start = Some(map.address);
            for axis in axes {
                let at = axis.first + (left % axis.count).cast_signed() * axis.step;
                left /= axis.count;
                let inside = u64::try_from(at).ok().filter(|at| *at < axis.extent);
                start = start
                    .zip(inside)
                    .map(|(start, at)| start.wrapping_add(at.wrapping_mul(axis.stride)));
            }
            self.add_row(start, inner);
        }
    }

    /// One row, of which that is copied which lies within the array.
    fn add_row(&mut self, start: Option<u64>, (first, count, extent): (i64, u64, u64)) {
        let size = u64::from(self.size);
        if let Some(start) = start {
            let before = u64::try_from(-first).unwrap_or(0).min(count);
            let from = u64::try_from(first).unwrap_or(0);
            let inside = extent.saturating_sub(from).min(count - before);
            if inside > 0 {
                self.rows.push(Row {
                    at: self.span + before * size,
                    global: start.wrapping_add(from.wrapping_mul(size)),
                    bytes: inside * size,
                });
            }
        }
        self.bytes += self.line;
        self.span += self.pitch;
    }

    /// Lines of so many bytes.
    fn set_line(&mut self, bytes: u64, map: &TensorMap) {
        self.line = bytes;
        self.pitch = match (map.interleave, map.swizzle) {
            (0, swizzle @ 1..=3) => bytes.next_multiple_of(16 << swizzle),
            _ => bytes,
        };
    }

    /// The pixels of the box of an im2col map, from a pixel on.
    fn add_pixels(
        &mut self,
        map: &TensorMap,
        coordinates: &[i64],
        (lower, upper): ([i64; 3], [i64; 3]),
        (channels, pixels): (u32, u32),
        offsets: &[i64],
    ) -> Result<(), String> {
        let rank = map.rank as usize;
        // Channels are innermost; slices of them the last dimension but one, and a slice innermost.
        let (inner, first) = match map.slice() {
            None => ((coordinates[0], u64::from(channels), map.dims[0]), 1),
            Some(slice) => {
                let per = u64::from(slice / self.size);
                ((0, per, per), 0)
            }
        };
        let spatial = rank - 2;
        let end = |axis: usize| map.dims[first + axis].cast_signed() + upper[axis];
        let mut at = coordinates[first..].to_vec();
        for axis in 0..spatial {
            if at[axis] < lower[axis] || at[axis] >= end(axis) {
                return Err(format!(
                    "coordinate {} is {}, and the box of pixels begins at {} and ends before {}",
                    first + axis,
                    at[axis],
                    lower[axis],
                    end(axis)
                ));
            }
        }
        let stride = |dim: usize| match (dim.checked_sub(1), map.slice()) {
            (Some(at), _) => map.strides[at],
            (None, slice) => u64::from(slice.unwrap_or(0)),
        };
        self.set_line(inner.1 * u64::from(self.size), map);
        for _ in 0..pixels {
            let mut start = Some(map.address);
            for (axis, &pixel) in at.iter().enumerate() {
                let place = match offsets.get(axis) {
                    Some(offset) if axis < spatial => pixel + offset,
                    _ => pixel,
                };
                let inside = u64::try_from(place)
                    .ok()
                    .filter(|place| *place < map.dims[first + axis]);
                start = start.zip(inside).map(|(start, place)| {
                    start.wrapping_add(place.wrapping_mul(stride(first + axis)))
                });
            }
            self.add_row(start, inner);
            for axis in 0..spatial {
                at[axis] += i64::from(map.element_strides[first + axis]);
                if at[axis] < end(axis) {
                    break;
                }
                at[axis] = lower[axis];
                if axis + 1 == spatial {
                    let images = at.len() - 1;
                    at[images] += i64::from(map.element_strides[rank - 1]);
                }
            }
        }
        Ok(())
    }

    /// What an instruction that writes the array does not take, that one that reads it does.
    ///
    /// # Errors
    ///
    /// If it is asked for.
    pub(crate) fn check_stores(
        map: &TensorMap,
        coordinates: &[i64],
        reduces: bool,
    ) -> Result<(), String> {
        if let Mode::Im2col { lower, upper, .. } = map.mode {
            if lower != [0; 3] {
                return Err(format!(
                    "the box of pixels begins at {lower:?}, and what is stored begins at the first pixel"
                ));
            }
            if upper.iter().any(|corner| *corner > 0) {
                return Err(format!(
                    "the box of pixels ends at {upper:?}, and what is stored ends at the last pixel"
                ));
            }
        }
        if reduces && coordinates.iter().any(|at| *at < 0) {
            return Err(format!(
                "a reduction at {coordinates:?}, where no coordinate may be negative"
            ));
        }
        Ok(())
    }

    /// Where a byte of the tile lies in shared memory.
    pub(crate) fn place(&self, at: u64) -> u64 {
        let address = self.shared + at;
        address ^ (address >> 3 & self.swizzle)
    }

    /// The tile with what lies beyond the array's ends.
    pub(crate) fn background(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.span as usize];
        if self.nan {
            // The same for all types: a NaN of two bytes, over and over.
            for half in bytes.chunks_exact_mut(2) {
                half.copy_from_slice(&0x7ff7_u16.to_le_bytes());
            }
        }
        bytes
    }

    /// Whether the tile has bytes there, or only the gap between two lines.
    pub(crate) fn holds(&self, at: u64) -> bool {
        at % self.pitch < self.line
    }

    /// What becomes of elements on the way to shared memory.
    pub(crate) fn convert(&self, bytes: &mut [u8]) {
        if !matches!(self.element, TF32 | TF32_FTZ) {
            return;
        }
        for word in bytes.chunks_exact_mut(4) {
            let bits = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
            word.copy_from_slice(&round_to_tf32(bits).to_le_bytes());
        }
    }
}

/// Rounds to the nearest number of 10 bits after the point, to the even one of two.
fn round_to_tf32(bits: u32) -> u32 {
    const LOST: u32 = (1 << 13) - 1;
    const NAN: u32 = 0x7fff_e000;
    match bits & i32::MAX.cast_unsigned() {
        0x7f80_0000 => return bits,
        0x7f80_0001.. => return NAN,
        _ => {}
    }
    bits.wrapping_add((LOST >> 1) + (bits >> 13 & 1)) & !LOST
}
