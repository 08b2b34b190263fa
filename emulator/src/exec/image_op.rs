//! Instructions on textures and surfaces, a lane at a time.

use super::access::Reach;
use super::atomic::AtomicOp;
use super::code::{Dest, Ordering, Reg};
use super::fault::FaultKind;
use super::frame::Frame;
use super::image::{AddressMode, ChannelFormat, Image, ImageShape, Sampler, Texel};
use super::local::lanes;
use super::memory::GlobalMemory;
use super::sample::{Between, along, face, mean, weights};
use super::space::Place;
use super::trouble::Trouble;
use super::types::Type;

/// How an instruction names a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Geometry {
    D1,
    D2,
    D3,
    A1,
    A2,
    Cube,
    CubeArray,
}

impl Geometry {
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "1d" => Self::D1,
            "2d" => Self::D2,
            "3d" => Self::D3,
            "a1d" => Self::A1,
            "a2d" => Self::A2,
            "cube" => Self::Cube,
            "acube" => Self::CubeArray,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::D1 => "1d",
            Self::D2 => "2d",
            Self::D3 => "3d",
            Self::A1 => "a1d",
            Self::A2 => "a2d",
            Self::Cube => "cube",
            Self::CubeArray => "acube",
        }
    }

    pub(crate) fn is_layered(self) -> bool {
        matches!(self, Self::A1 | Self::A2 | Self::CubeArray)
    }

    pub(crate) fn is_cube(self) -> bool {
        matches!(self, Self::Cube | Self::CubeArray)
    }

    /// How many coordinates there are behind the layer.
    pub(crate) fn axes(self) -> usize {
        match self {
            Self::D1 | Self::A1 => 1,
            Self::D2 | Self::A2 => 2,
            Self::D3 | Self::Cube | Self::CubeArray => 3,
        }
    }

    /// How many elements the operand has: three are written as four.
    pub(crate) fn operands(self) -> usize {
        match self.axes() + usize::from(self.is_layered()) {
            3 => 4,
            count => count,
        }
    }

    fn fits(self, shape: ImageShape) -> bool {
        match self {
            Self::D1 => matches!(shape, ImageShape::D1 | ImageShape::Linear),
            Self::D2 => matches!(shape, ImageShape::D2 | ImageShape::Rows),
            Self::D3 => shape == ImageShape::D3,
            Self::A1 => shape == ImageShape::A1,
            Self::A2 => shape == ImageShape::A2,
            Self::Cube => shape == ImageShape::Cube,
            Self::CubeArray => shape == ImageShape::CubeArray,
        }
    }
}

/// What a surface does beyond its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beyond {
    Trap,
    Clamp,
    Zero,
}

/// What is asked of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Query {
    Width,
    Height,
    Depth,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum ImageKind {
    /// `tex`
    Sample { geometry: Geometry, integer: bool },
    /// `tld4`: one number of each of the four texels around.
    Gather { geometry: Geometry, channel: usize },
    /// `txq`
    TextureQuery(Query),
    /// `suq`
    SurfaceQuery(Query),
    /// `suld.b`, numbers of a type.
    Load {
        geometry: Geometry,
        ty: Type,
        beyond: Beyond,
    },
    /// `sust.b`
    Store {
        geometry: Geometry,
        ty: Type,
        beyond: Beyond,
    },
    /// `sust.p`
    StoreTexel { geometry: Geometry, beyond: Beyond },
    /// `sured.b`, and `sured.p`, which counts texels.
    Reduce {
        geometry: Geometry,
        op: AtomicOp,
        beyond: Beyond,
        texels: bool,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct ImageOp {
    pub(crate) kind: ImageKind,
    pub(crate) object: Reg,
    /// The layer, if there is one, and the coordinates.
    pub(crate) at: Vec<Reg>,
    /// Texels added to the coordinates.
    pub(crate) offset: Vec<Reg>,
    pub(crate) to: Vec<Dest>,
    pub(crate) from: Vec<Reg>,
}

/// A place of a surface: its address, if it is not beyond the ends.
type Target = Option<u64>;

impl ImageOp {
    pub(crate) fn run<M: GlobalMemory>(
        &self,
        frame: &mut Frame,
        active: u32,
        reach: &mut Reach<'_, M>,
    ) -> Result<(), Trouble> {
        let mut known: Option<(u64, Image)> = None;
        for lane in lanes(active) {
            let object = frame.lane(self.object, lane);
            let image = match known {
                Some((same, image)) if same == object => image,
                _ => self
                    .image(reach, object)
                    .map_err(|trouble| trouble.by(lane))?,
            };
            known = Some((object, image));
            self.run_lane(frame, lane, &image, reach)
                .map_err(|trouble| match trouble.lane {
                    Some(_) => trouble,
                    None => trouble.by(lane),
                })?;
        }
        Ok(())
    }

    fn image<M: GlobalMemory>(
        &self,
        reach: &mut Reach<'_, M>,
        object: u64,
    ) -> Result<Image, Trouble> {
        let (geometry, found) = match self.kind {
            ImageKind::Sample { geometry, .. } | ImageKind::Gather { geometry, .. } => {
                (Some(geometry), reach.memory.texture(object))
            }
            ImageKind::TextureQuery(_) => (None, reach.memory.texture(object)),
            ImageKind::SurfaceQuery(_) => (None, reach.memory.surface(object)),
            ImageKind::Load { geometry, .. }
            | ImageKind::Store { geometry, .. }
            | ImageKind::StoreTexel { geometry, .. }
            | ImageKind::Reduce { geometry, .. } => (Some(geometry), reach.memory.surface(object)),
        };
        let image = found.map_err(|words| {
            Trouble::new(
                FaultKind::IllegalAddress,
                format!("the number {object:#x} is {words}"),
            )
        })?;
        let misfit = |words: String| Trouble::new(FaultKind::IllegalAddress, words);
        if let Some(geometry) = geometry
            && !geometry.fits(image.shape)
        {
            return Err(misfit(format!(
                "an instruction with `.{}` on {}",
                geometry.name(),
                words(image.shape)
            )));
        }
        if let ImageKind::Sample {
            geometry: Geometry::D1,
            integer,
        } = self.kind
            && integer != (image.shape == ImageShape::Linear)
        {
            return Err(misfit(if integer {
                "integer coordinates, as of `tex1Dfetch`, on an array of one dimension: a GPU reads zeros".to_owned()
            } else {
                "floating-point coordinates, as of `tex1D`, on linear memory: a GPU reads zeros"
                    .to_owned()
            }));
        }
        Ok(image)
    }

    fn run_lane<M: GlobalMemory>(
        &self,
        frame: &mut Frame,
        lane: usize,
        image: &Image,
        reach: &mut Reach<'_, M>,
    ) -> Result<(), Trouble> {
        let local_end = frame.local_end;
        let at: Vec<u32> = self
            .at
            .iter()
            .map(|reg| frame.lane(*reg, lane) as u32)
            .collect();
        match self.kind {
            ImageKind::Sample { geometry, integer } => {
                let offset = self.offset(frame, lane);
                let sampler = image.sampler.unwrap_or(PLAIN);
                let mut read = |x, y, z| read(reach, local_end, lane, image, &sampler, x, y, z);
                let texel = if integer {
                    fetch(geometry, image, &at, offset, &mut read)?
                } else {
                    let around = Around::of(geometry, image, &sampler, &at, offset);
                    around.mean(image, &sampler, &mut read)?
                };
                self.give(frame, lane, texel.words());
            }
            ImageKind::Gather { geometry, channel } => {
                let offset = self.offset(frame, lane);
                let sampler = image.sampler.unwrap_or(PLAIN);
                let linear = Sampler {
                    linear: true,
                    ..sampler
                };
                let around = Around::of(geometry, image, &linear, &at, offset);
                let mut words = [0; 4];
                // Counter-clockwise from below the left.
                for (word, corner) in words.iter_mut().zip([2, 3, 1, 0]) {
                    let mut read = |x, y, z| read(reach, local_end, lane, image, &sampler, x, y, z);
                    *word = around.texel(corner, image, &sampler, &mut read)?.words()[channel];
                }
                self.give(frame, lane, words);
            }
            ImageKind::TextureQuery(query) => {
                self.give(frame, lane, [answer(image, query, true), 0, 0, 0]);
            }
            ImageKind::SurfaceQuery(query) => {
                self.give(frame, lane, [answer(image, query, false), 0, 0, 0]);
            }
            ImageKind::Load {
                geometry,
                ty,
                beyond,
            } => {
                let element = ty.bytes() as usize;
                let size = element * self.to.len();
                let mut bytes = [0; 16];
                let bytes = &mut bytes[..size];
                if let Some(address) = target(geometry, image, &at, size as u32, beyond)? {
                    reach
                        .load_bytes(local_end, lane, Place::Global(address), ORDER, bytes)
                        .map_err(|trouble| trouble.at(lane, address))?;
                }
                for (to, piece) in self.to.iter().zip(bytes.chunks_exact(element)) {
                    let mut wide = [0; 8];
                    wide[..element].copy_from_slice(piece);
                    frame.set_lane(*to, lane, u128::from(u64::from_le_bytes(wide)));
                }
            }
            ImageKind::Store {
                geometry,
                ty,
                beyond,
            } => {
                let element = ty.bytes() as usize;
                let size = element * self.from.len();
                let mut bytes = [0; 16];
                for (piece, from) in bytes.chunks_exact_mut(element).zip(&self.from) {
                    piece.copy_from_slice(&frame.lane(*from, lane).to_le_bytes()[..element]);
                }
                if let Some(address) = target(geometry, image, &at, size as u32, beyond)? {
                    reach
                        .store_bytes(
                            local_end,
                            lane,
                            Place::Global(address),
                            ORDER,
                            &bytes[..size],
                        )
                        .map_err(|trouble| trouble.at(lane, address))?;
                }
            }
            ImageKind::StoreTexel { geometry, beyond } => {
                let size = image.texel_bytes();
                let mut bytes = [0; 16];
                let element = image.format.bytes() as usize;
                for (piece, from) in bytes.chunks_exact_mut(element).zip(&self.from) {
                    image.pack(frame.lane(*from, lane) as u32, piece);
                }
                let at = in_bytes(geometry, &at, size);
                if let Some(address) = target(geometry, image, &at, size, beyond)? {
                    let bytes = &bytes[..size as usize];
                    reach
                        .store_bytes(local_end, lane, Place::Global(address), ORDER, bytes)
                        .map_err(|trouble| trouble.at(lane, address))?;
                }
            }
            ImageKind::Reduce {
                geometry,
                op,
                beyond,
                texels,
            } => {
                let size = op.ty.bytes();
                let whole = matches!(image.format, ChannelFormat::U32 | ChannelFormat::S32);
                if size != image.texel_bytes() || !whole {
                    return Err(Trouble::new(
                        FaultKind::IllegalAddress,
                        format!(
                            "a reduction of an integer of {size} bytes on elements of another kind, {} bytes of {:?}: a GPU does nothing",
                            image.texel_bytes(),
                            image.format
                        ),
                    ));
                }
                let ty = match (texels, image.format) {
                    (true, ChannelFormat::S32) => Type::S32,
                    _ => op.ty,
                };
                let op = AtomicOp { ty, ..op };
                let at = if texels {
                    in_bytes(geometry, &at, image.texel_bytes())
                } else {
                    at
                };
                let value = frame.lane_wide(self.from[0], lane);
                if let Some(address) = target(geometry, image, &at, size, beyond)? {
                    reach
                        .update(local_end, lane, Place::Global(address), size, &mut |old| {
                            op.eval(old, value, 0)
                        })
                        .map_err(|trouble| trouble.at(lane, address))?;
                }
            }
        }
        Ok(())
    }

    fn offset(&self, frame: &Frame, lane: usize) -> [i32; 3] {
        let mut offset = [0; 3];
        for (offset, reg) in offset.iter_mut().zip(&self.offset) {
            *offset = frame.lane(*reg, lane) as i32;
        }
        offset
    }

    fn give(&self, frame: &mut Frame, lane: usize, words: [u32; 4]) {
        for (to, word) in self.to.iter().zip(words) {
            frame.set_lane(*to, lane, u128::from(word));
        }
    }
}

/// Where an access of a surface goes; the coordinate along a row counts bytes.
fn target(
    geometry: Geometry,
    image: &Image,
    at: &[u32],
    size: u32,
    beyond: Beyond,
) -> Result<Target, Trouble> {
    let mut rest = at.iter().map(|word| word.cast_signed());
    let layer = if geometry.is_layered() {
        rest.next()
    } else {
        None
    };
    let mut place = [0; 3];
    for (place, at) in place.iter_mut().zip(rest.take(geometry.axes())) {
        *place = i64::from(at);
    }
    let [width, height, depth] = image.size.map(|extent| i64::from(extent.max(1)));
    if let Some(layer) = layer {
        // Its lower half counts.
        place[2] = i64::from(layer & 0xffff);
    }
    let row = width * i64::from(image.texel_bytes());
    let size = i64::from(size);
    if place[0] % size != 0 {
        return Err(Trouble::new(
            FaultKind::Misaligned,
            format!(
                "an access of {size} bytes of a surface at byte {} of a row, which is no multiple of {size}: the coordinate along a row counts bytes",
                place[0]
            ),
        ));
    }
    let most = [row - size, height - 1, depth - 1];
    let inside = (0..3).all(|axis| (0..=most[axis]).contains(&place[axis]));
    if !inside {
        match beyond {
            Beyond::Trap => {
                return Err(Trouble::new(
                    FaultKind::IllegalAddress,
                    format!(
                        "an access of {size} bytes of a surface at byte {}, row {}, slice {}, beyond its {height} rows of {row} bytes in {depth} slices",
                        place[0], place[1], place[2]
                    ),
                ));
            }
            Beyond::Zero => return Ok(None),
            Beyond::Clamp => {
                for (place, most) in place.iter_mut().zip(most) {
                    *place = (*place).clamp(0, most.max(0));
                }
            }
        }
    }
    let [x, y, z] = place.map(|at| at as u64);
    Ok(Some(image.base + x + y * image.row + z * image.slice))
}

/// Ordinary accesses.
const ORDER: Ordering = Ordering {
    strong: false,
    fence: false,
    masked: false,
    copied: false,
};

/// How a texture is read of which nothing is said.
const PLAIN: Sampler = Sampler {
    address: [AddressMode::Clamp; 3],
    linear: false,
    normalized: false,
    as_integer: true,
    srgb: false,
    border: [0.0; 4],
};

fn words(shape: ImageShape) -> &'static str {
    match shape {
        ImageShape::Linear => "linear memory",
        ImageShape::Rows => "rows in memory",
        ImageShape::D1 => "an array of one dimension",
        ImageShape::D2 => "an array of two dimensions",
        ImageShape::D3 => "an array of three dimensions",
        ImageShape::A1 => "layers of one dimension",
        ImageShape::A2 => "layers of two dimensions",
        ImageShape::Cube => "a cube",
        ImageShape::CubeArray => "layers of cubes",
    }
}

/// Coordinates of which the first counts texels, with it in bytes.
fn in_bytes(geometry: Geometry, at: &[u32], texel: u32) -> Vec<u32> {
    let mut at = at.to_vec();
    if let Some(x) = at.get_mut(usize::from(geometry.is_layered())) {
        let bytes = i64::from(x.cast_signed()) * i64::from(texel);
        *x = bytes.clamp(i64::from(i32::MIN), i64::from(i32::MAX - 15)) as i32 as u32;
        *x -= *x % texel;
    }
    at
}

/// What a texture says of itself; surfaces differ where there is nothing to say.
fn answer(image: &Image, query: Query, texture: bool) -> u32 {
    let [width, height, depth] = image.size;
    match (query, image.shape) {
        (Query::Width, _) => width,
        (Query::Height, ImageShape::A1) => depth,
        (Query::Height, ImageShape::D1 | ImageShape::Linear) => u32::from(texture),
        (Query::Height, _) => height,
        (Query::Depth, ImageShape::A1) => 0,
        (Query::Depth, ImageShape::Cube) if texture => 0,
        (Query::Depth, ImageShape::CubeArray) if texture => depth / 6,
        (Query::Depth, _) => depth,
    }
}

#[expect(clippy::too_many_arguments, reason = "who reads, and what")]
fn read<M: GlobalMemory>(
    reach: &mut Reach<'_, M>,
    local_end: u32,
    lane: usize,
    image: &Image,
    sampler: &Sampler,
    x: u32,
    y: u32,
    z: u32,
) -> Result<Texel, Trouble> {
    let mut bytes = [0; 16];
    let bytes = &mut bytes[..image.texel_bytes() as usize];
    let address = image.address(x, y, z);
    reach
        .load_bytes(local_end, lane, Place::Global(address), ORDER, bytes)
        .map_err(|trouble| trouble.at(lane, address))?;
    Ok(image.texel(bytes, sampler))
}

type Read<'r> = &'r mut dyn FnMut(u32, u32, u32) -> Result<Texel, Trouble>;

/// The texel of whole coordinates; zeros beyond the ends, whatever the mode.
fn fetch(
    geometry: Geometry,
    image: &Image,
    at: &[u32],
    offset: [i32; 3],
    read: Read<'_>,
) -> Result<Texel, Trouble> {
    let layered = geometry.is_layered();
    let mut place = [0; 3];
    for axis in 0..geometry.axes() {
        let word = at[axis + usize::from(layered)].cast_signed();
        let at = i64::from(word) + i64::from(offset[axis]);
        if !(0..i64::from(image.size[axis].max(1))).contains(&at) {
            return Ok(Texel::Bits([0; 4]));
        }
        place[axis] = at as u32;
    }
    if layered {
        if at[0] >= image.size[2] {
            return Ok(Texel::Bits([0; 4]));
        }
        place[2] = at[0];
    }
    read(place[0], place[1], place[2])
}

/// The layer that a number leads to: the last one for all beyond.
fn layer(number: u32, layers: u32) -> u32 {
    number.min(layers.saturating_sub(1))
}

/// The texels around a point.
struct Around {
    axes: Vec<Between>,
    /// Of the layer or the face.
    slice: u32,
}

impl Around {
    fn of(
        geometry: Geometry,
        image: &Image,
        sampler: &Sampler,
        at: &[u32],
        offset: [i32; 3],
    ) -> Self {
        let layered = usize::from(geometry.is_layered());
        let at_axis = |axis: usize| f32::from_bits(at[axis + layered]);
        if geometry.is_cube() {
            let (face, on) = face([at_axis(0), at_axis(1), at_axis(2)]);
            let cube = if layered == 1 {
                layer(at[0], image.size[2] / 6)
            } else {
                0
            };
            let sampler = Sampler {
                normalized: true,
                ..*sampler
            };
            let axes = (0..2)
                .map(|axis| {
                    let mode = sampler.address[axis];
                    along(on[axis], offset[axis], image.size[axis], mode, &sampler)
                })
                .collect();
            return Self {
                axes,
                slice: cube * 6 + face,
            };
        }
        let mut axes: Vec<Between> = (0..geometry.axes())
            .map(|axis| {
                let mode = sampler.address[axis];
                along(at_axis(axis), offset[axis], image.size[axis], mode, sampler)
            })
            .collect();
        // It is read as one row, at its edge: half of the border beside it is mixed in.
        if geometry == Geometry::D1 && sampler.address[1] == AddressMode::Border {
            axes.push(along(0.0, 0, 1, AddressMode::Border, sampler));
        }
        let slice = if layered == 1 {
            layer(at[0], image.size[2])
        } else {
            0
        };
        Self { axes, slice }
    }

    /// A texel around, the first axis changing fastest.
    fn texel(
        &self,
        corner: usize,
        image: &Image,
        sampler: &Sampler,
        read: Read<'_>,
    ) -> Result<Texel, Trouble> {
        let mut place = [0, 0, self.slice];
        for (axis, between) in self.axes.iter().enumerate() {
            let at = if corner >> axis & 1 == 1 {
                between.second
            } else {
                between.first
            };
            match at {
                Some(at) => place[axis] = at,
                None => return Ok(image.border(sampler)),
            }
        }
        read(place[0], place[1], place[2])
    }

    fn mean(&self, image: &Image, sampler: &Sampler, read: Read<'_>) -> Result<Texel, Trouble> {
        if !sampler.linear {
            return self.texel(0, image, sampler, read);
        }
        let axes: Vec<u32> = self.axes.iter().map(|between| between.weight).collect();
        let count = 1 << axes.len();
        let weights = weights(&axes);
        let mut texels = [Texel::Bits([0; 4]); 8];
        for (corner, texel) in texels[..count].iter_mut().enumerate() {
            *texel = self.texel(corner, image, sampler, read)?;
        }
        Ok(mean(&texels[..count], &weights[..count]))
    }
}
