//! CUDA arrays, and copies from and to them: rows and slices between any two places.

use super::border::{Host, In, Out};
use super::codes::{Answer, Code};
use super::copy::CopyWork;
use super::entry::driver_api;
use super::node::{CopyParams, CopySide};
use super::work::Work;
use super::{Call, Driver};
use crate::exec::{ChannelFormat, Image, ImageShape};
use crate::memory::{Kind, Stage, Token};
use crate::report::{Report, ReportKind};

/// An array: device memory that only copies, textures and surfaces reach. Here it lies row behind row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Array {
    pub(crate) context: usize,
    pub(crate) token: Token,
    pub(crate) description: Description,
    format: ChannelFormat,
    base: u64,
}

/// `CUDA_ARRAY3D_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Description {
    size: [usize; 3],
    format: u32,
    channels: u32,
    pub(crate) flags: u32,
}

/// `CUDA_ARRAY_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Description2d {
    size: [usize; 2],
    format: u32,
    channels: u32,
}

/// `CUDA_MEMCPY2D`, one side of it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct CopySide2d {
    x_bytes: usize,
    y: usize,
    kind: u32,
    host: Host,
    device: u64,
    array: usize,
    pitch: usize,
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct CopyParams2d {
    from: CopySide2d,
    to: CopySide2d,
    width: usize,
    height: usize,
}

const LAYERED: u32 = 1;
pub(crate) const SURFACE: u32 = 2;
const CUBEMAP: u32 = 4;
const GATHER: u32 = 8;
/// Depth textures and sparse and deferred mappings, which belong to other interfaces.
const OTHERS: u32 = 0x10 | 0x20 | 0x40 | 0x80;

/// What a number of an array is, by `CUarray_format`.
pub(crate) fn channel_format(format: u32) -> Option<ChannelFormat> {
    Some(match format {
        0x01 => ChannelFormat::U8,
        0x02 => ChannelFormat::U16,
        0x03 => ChannelFormat::U32,
        0x08 => ChannelFormat::S8,
        0x09 => ChannelFormat::S16,
        0x0a => ChannelFormat::S32,
        0x10 => ChannelFormat::F16,
        0x20 => ChannelFormat::F32,
        _ => return None,
    })
}

impl Description {
    /// The shape, if the extents and flags are allowed.
    fn shape(&self) -> Answer<ImageShape> {
        let [width, height, depth] = self.size;
        let (layered, cube) = (self.flags & LAYERED != 0, self.flags & CUBEMAP != 0);
        if self.flags & OTHERS != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        if self.flags & !(LAYERED | SURFACE | CUBEMAP | GATHER) != 0 || width == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let shape = match (layered, cube) {
            (_, true) if width != height || depth == 0 || depth % 6 != 0 => None,
            (false, true) => (depth == 6).then_some(ImageShape::Cube),
            (true, true) => Some(ImageShape::CubeArray),
            (true, false) if depth == 0 => None,
            (true, false) if height == 0 => Some(ImageShape::A1),
            (true, false) => Some(ImageShape::A2),
            (false, false) => match (height, depth) {
                (0, 0) => Some(ImageShape::D1),
                (_, 0) => Some(ImageShape::D2),
                (0, _) => None,
                _ => Some(ImageShape::D3),
            },
        };
        let shape = shape.ok_or(Code::INVALID_VALUE)?;
        let surface = self.flags & SURFACE != 0;
        let fits = |most: [usize; 3]| width <= most[0] && height <= most[1] && depth <= most[2];
        let fits = match shape {
            ImageShape::D1 => fits([if surface { 32768 } else { 131_072 }, 0, 0]),
            ImageShape::D3 => fits([16384; 3]) || fits([8192, 8192, 32768]),
            ImageShape::A1 => fits([32768, 0, 2048]),
            ImageShape::A2 => fits([32768, 32768, 2048]),
            ImageShape::Cube | ImageShape::CubeArray => fits([32768, 32768, 2046]),
            _ if self.flags & GATHER != 0 => fits([32768, 32768, 0]),
            _ => fits([131_072, 65536, 0]),
        };
        let gathers = self.flags & GATHER == 0 || shape == ImageShape::D2;
        if fits && gathers {
            Ok(shape)
        } else {
            Err(Code::INVALID_VALUE)
        }
    }
}

impl Array {
    /// The array as kernels see it.
    pub(crate) fn image(&self) -> Answer<Image> {
        let [width, height, depth] = self.description.size;
        let texel = u64::from(self.format.bytes() * self.description.channels);
        let small = |extent: usize| u32::try_from(extent).map_err(|_| Code::INVALID_VALUE);
        let row = width as u64 * texel;
        Ok(Image {
            base: self.base,
            shape: self.description.shape()?,
            size: [small(width)?, small(height)?, small(depth)?],
            row,
            slice: row * height.max(1) as u64,
            format: self.format,
            channels: self.description.channels,
            sampler: None,
        })
    }

    /// Where a copy begins and the steps from row to row and slice to slice, if all of it lies inside.
    fn start(&self, side: &CopySide, extent: [usize; 3]) -> Answer<(u64, [u64; 2])> {
        let image = self.image()?;
        let texel = (self.format.bytes() * self.description.channels) as usize;
        let [width, height, depth] = self.description.size;
        let most = [width * texel, height.max(1), depth.max(1)];
        let at = [side.x_bytes, side.y, side.z];
        let inside = (0..3).all(|axis| {
            at[axis]
                .checked_add(extent[axis])
                .is_some_and(|end| end <= most[axis])
        });
        if !inside || side.level != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let offset = at[0] as u64 + at[1] as u64 * image.row + at[2] as u64 * image.slice;
        Ok((self.base + offset, [image.row, image.slice]))
    }
}

impl CopySide2d {
    fn in_space(self) -> CopySide {
        CopySide {
            x_bytes: self.x_bytes,
            y: self.y,
            z: 0,
            level: 0,
            kind: self.kind,
            host: self.host,
            device: self.device,
            array: self.array,
            reserved: 0,
            pitch: self.pitch,
            height: 0,
        }
    }
}

impl CopyParams2d {
    fn in_space(self) -> CopyParams {
        CopyParams {
            from: self.from.in_space(),
            to: self.to.in_space(),
            width: self.width,
            height: self.height,
            depth: 1,
        }
    }
}

const HOST: u32 = 1;
const DEVICE: u32 = 2;
const ARRAY: u32 = 3;
const UNIFIED: u32 = 4;

impl Driver {
    pub(crate) fn array(&self, handle: usize) -> Answer<&Array> {
        self.arrays.get(&handle).ok_or(Code::INVALID_HANDLE)
    }

    /// One side of a copy: its first byte, and the steps from row to row and slice to slice.
    fn side(&self, side: &CopySide, extent: [usize; 3]) -> Answer<(u64, [u64; 2])> {
        let base = match side.kind {
            HOST => side.host.address(),
            DEVICE | UNIFIED => side.device,
            ARRAY if side.array == 0 => return Err(Code::INVALID_VALUE),
            ARRAY => return self.array(side.array)?.start(side, extent),
            _ => return Err(Code::INVALID_VALUE),
        };
        let [width, height, depth] = extent;
        // What is not said is as wide and as high as what is copied.
        let pitch = if side.pitch == 0 {
            width + side.x_bytes
        } else {
            side.pitch
        };
        let rows = if side.height == 0 {
            height + side.y
        } else {
            side.height
        };
        let one_row = height == 1 && depth == 1 && side.y == 0 && side.z == 0;
        if !one_row && pitch < width + side.x_bytes || depth > 1 && rows < height + side.y {
            return Err(Code::INVALID_VALUE);
        }
        let row = pitch as u64;
        let slice = row.saturating_mul(rows as u64);
        let offset = (side.y as u64)
            .saturating_mul(row)
            .saturating_add((side.z as u64).saturating_mul(slice))
            .saturating_add(side.x_bytes as u64);
        Ok((base.wrapping_add(offset), [row, slice]))
    }

    /// A copy as an operation; nothing if it copies nothing.
    pub(crate) fn copy_work(&self, params: &CopyParams) -> Answer<Option<CopyWork>> {
        let extent = [params.width, params.height, params.depth];
        if extent.contains(&0) {
            return Ok(None);
        }
        let (from, from_steps) = self.side(&params.from, extent)?;
        let (to, to_steps) = self.side(&params.to, extent)?;
        let copy = CopyWork {
            from,
            to,
            consumed: None,
            width: params.width as u64,
            height: params.height as u64,
            depth: params.depth as u64,
            from_steps,
            to_steps,
        };
        for (side, address, extent) in [
            (params.from.kind, from, copy.source_extent()),
            (params.to.kind, to, copy.target_extent()),
        ] {
            if side == DEVICE && self.memory.find_range(address, extent).is_none() {
                return Err(Code::INVALID_VALUE);
            }
        }
        Ok(Some(copy))
    }
}

impl Call {
    fn create_array(&mut self, array: Out<usize>, description: Description) -> Answer {
        let context = self.context()?;
        self.forbid_while_capturing(context)?;
        array.check()?;
        let format = channel_format(description.format).ok_or(Code::INVALID_VALUE)?;
        if !matches!(description.channels, 1 | 2 | 4) {
            return Err(Code::INVALID_VALUE);
        }
        description.shape()?;
        let [width, height, depth] = description.size;
        let texels = [width, height.max(1), depth.max(1)]
            .into_iter()
            .try_fold(1_u64, |all, extent| all.checked_mul(extent as u64))
            .ok_or(Code::INVALID_VALUE)?;
        let bytes = texels
            .checked_mul(u64::from(format.bytes() * description.channels))
            .ok_or(Code::INVALID_VALUE)?;
        let token = self.allocate(context, Kind::Array, bytes, Stage::Live)?;
        let base = self.address(token);
        let handle = self.new_handle();
        self.arrays.insert(
            handle,
            Array {
                context,
                token,
                description,
                format,
                base,
            },
        );
        array.set(handle)
    }

    /// Nothing is waited for, so whatever the host has not waited for is unordered with it.
    fn destroy_array(&mut self, handle: usize) -> Answer {
        let context = self.context()?;
        self.forbid_while_capturing(context)?;
        let array = self.arrays.remove(&handle).ok_or(Code::INVALID_HANDLE)?;
        let context = self.get_context(array.context)?;
        let (device, group) = (context.device, context.group);
        let used = match (self.memory.get(array.token), self.groups.get(&group)) {
            (Some(allocation), Some(group)) => allocation.history.unordered(&group.host),
            _ => None,
        };
        if let Some(op) = used {
            let words = self.memory.get(array.token).map(crate::memory::describe);
            self.report(Report {
                kind: ReportKind::UseAfterFree,
                device: device as usize,
                code: None,
                kernel: None,
                fault: None,
                message: format!(
                    "use after free: the host destroys {}, but has not waited for {op}, which uses it: synchronise first",
                    words.unwrap_or_default()
                ),
            });
        }
        self.memory.free(array.token);
        Ok(())
    }

    /// Enqueues a copy of rows. A pageable source is consumed and a pageable destination filled when this
    /// returns.
    fn copy_rows(&mut self, params: &CopyParams, stream: usize, wait: bool) -> Answer {
        let key = self.stream(stream)?;
        let Some(mut copy) = self.copy_work(params)? else {
            return Ok(());
        };
        let pageable = |call: &mut Self, kind: u32, address: u64, extent: u64| match kind {
            HOST | UNIFIED => call.is_pageable(key, address, extent),
            _ => Ok(false),
        };
        let from_pageable = pageable(self, params.from.kind, copy.from, copy.source_extent())?;
        let to_pageable = pageable(self, params.to.kind, copy.to, copy.target_extent())?;
        let capturing = self.get_stream(key)?.capture.is_some();
        if wait {
            let context = self.get_stream(key)?.context;
            self.forbid_while_capturing(context)?;
            self.forbid_on_capturing(key)?;
        }
        if from_pageable && !capturing && !to_pageable {
            let length = usize::try_from(copy.width).map_err(|_| Code::INVALID_VALUE)?;
            let mut bytes = Vec::new();
            for slice in 0..copy.depth {
                for row in 0..copy.height {
                    let at = slice * copy.from_steps[1] + row * copy.from_steps[0];
                    bytes.extend(Host::from_number(copy.from + at)?.read(length));
                }
            }
            copy.from_steps = [copy.width, copy.width * copy.height];
            copy.consumed = Some(bytes.into());
        }
        let Some(op) = self.submit(key, Work::Copy(Box::new(copy)))? else {
            return Ok(());
        };
        if to_pageable || wait {
            self.wait_and_know(key, op)?;
        }
        Ok(())
    }
}

driver_api! {
    fn cuArray3DCreate_v2(call, array: Out<usize>, description: In<Description>) {
        let description = description.get()?;
        call.create_array(array, description)
    }

    fn cuArrayCreate_v2(call, array: Out<usize>, description: In<Description2d>) {
        let Description2d { size: [width, height], format, channels } = description.get()?;
        let size = [width, height, 0];
        call.create_array(array, Description { size, format, channels, flags: 0 })
    }

    fn cuArrayDestroy(call, array: usize) {
        call.destroy_array(array)
    }

    fn cuArray3DGetDescriptor_v2(call, description: Out<Description>, array: usize) {
        call.context()?;
        description.set(call.array(array)?.description)
    }

    fn cuArrayGetDescriptor_v2(call, description: Out<Description2d>, array: usize) {
        call.context()?;
        let Description { size: [width, height, _], format, channels, .. } = call.array(array)?.description;
        description.set(Description2d { size: [width, height], format, channels })
    }

    fn cuMemcpy2D_v2 | cuMemcpy2D_v2_ptsz(call, copy: In<CopyParams2d>) {
        let copy = copy.get()?.in_space();
        call.copy_rows(&copy, 0, true)
    }

    fn cuMemcpy2DUnaligned_v2 | cuMemcpy2DUnaligned_v2_ptsz(call, copy: In<CopyParams2d>) {
        let copy = copy.get()?.in_space();
        call.copy_rows(&copy, 0, true)
    }

    fn cuMemcpy2DAsync_v2 | cuMemcpy2DAsync_v2_ptsz(call, copy: In<CopyParams2d>, stream: usize) {
        let copy = copy.get()?.in_space();
        call.copy_rows(&copy, stream, false)
    }

    fn cuMemcpy3D_v2 | cuMemcpy3D_v2_ptsz(call, copy: In<CopyParams>) {
        let copy = copy.get()?;
        call.copy_rows(&copy, 0, true)
    }

    fn cuMemcpy3DAsync_v2 | cuMemcpy3DAsync_v2_ptsz(call, copy: In<CopyParams>, stream: usize) {
        let copy = copy.get()?;
        call.copy_rows(&copy, stream, false)
    }
}
