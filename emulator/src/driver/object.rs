//! Texture and surface objects: numbers that stand for an array or memory, and a way to read it.

use std::collections::HashMap;

use super::array::{Array, SURFACE, channel_format};
use super::border::{Host, In, Out};
use super::codes::{Answer, Code};
use super::entry::driver_api;
use super::{Call, Driver};
use crate::exec::{AddressMode, ChannelFormat, Image, ImageShape, Sampler};

/// The objects of all contexts, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    textures: HashMap<u64, Texture>,
    surfaces: HashMap<u64, Surface>,
    /// What numbers stood for that are no more.
    destroyed: HashMap<u64, &'static str>,
}

#[derive(Debug)]
struct Texture {
    context: usize,
    resource: Resource,
    description: TextureDescription,
    image: Image,
}

#[derive(Debug)]
struct Surface {
    context: usize,
    resource: Resource,
    image: Image,
}

/// `CUDA_RESOURCE_DESC`: what the union holds is read as words.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resource {
    kind: u32,
    of: [u64; 16],
    flags: u32,
}

/// `CUDA_TEXTURE_DESC`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextureDescription {
    address: [u32; 3],
    filter: u32,
    flags: u32,
    max_anisotropy: u32,
    mipmap_filter: u32,
    mipmap_bias: f32,
    mipmap_clamp: [f32; 2],
    border: [f32; 4],
    reserved: [i32; 12],
}

const OF_ARRAY: u32 = 0;
const OF_MIPMAPS: u32 = 1;
const OF_LINEAR: u32 = 2;
const OF_ROWS: u32 = 3;

const READ_AS_INTEGER: u32 = 0x01;
const NORMALIZED: u32 = 0x02;
const SRGB: u32 = 0x10;
/// No trilinear optimisation, and seamless cubes: neither changes what is read here.
const HINTS: u32 = 0x20 | 0x40;

/// The alignment of textures of memory, and of their rows.
const ALIGN: u64 = 512;
const PITCH_ALIGN: u64 = 32;

impl Objects {
    /// What a texture object stands for; in words what a number is that is none.
    pub(crate) fn texture(&self, context: usize, number: u64) -> Result<Image, String> {
        match self.textures.get(&number) {
            Some(texture) if texture.context == context => Ok(texture.image),
            Some(_) => Err("a texture object of another context".to_owned()),
            None if self.surfaces.contains_key(&number) => {
                Err("a surface object, not a texture object".to_owned())
            }
            None => Err(self.unknown(number, "texture")),
        }
    }

    /// As [`texture`](Self::texture).
    pub(crate) fn surface(&self, context: usize, number: u64) -> Result<Image, String> {
        match self.surfaces.get(&number) {
            Some(surface) if surface.context == context => Ok(surface.image),
            Some(_) => Err("a surface object of another context".to_owned()),
            None if self.textures.contains_key(&number) => {
                Err("a texture object, not a surface object".to_owned())
            }
            None => Err(self.unknown(number, "surface")),
        }
    }

    fn unknown(&self, number: u64, wanted: &str) -> String {
        match self.destroyed.get(&number) {
            Some(what) => format!("a {what} object that was destroyed"),
            None => format!("no {wanted} object"),
        }
    }

    /// Takes away what belongs to a context.
    pub(crate) fn forget(&mut self, context: usize) {
        self.textures
            .retain(|_, texture| texture.context != context);
        self.surfaces
            .retain(|_, surface| surface.context != context);
    }
}

impl Driver {
    fn of_array(&self, resource: &Resource) -> Answer<&Array> {
        let handle = usize::try_from(resource.of[0]).map_err(|_| Code::INVALID_VALUE)?;
        if handle == 0 {
            return Err(Code::INVALID_VALUE);
        }
        self.array(handle)
    }

    /// What a texture of a resource reads, without how.
    fn image_of(&self, resource: &Resource) -> Answer<Image> {
        let [at, format, ..] = resource.of;
        let known = |format: u64, channels: u64| -> Answer<(ChannelFormat, u32)> {
            let known = u32::try_from(format).ok().and_then(channel_format);
            match (known, u32::try_from(channels)) {
                (Some(known), Ok(channels @ (1 | 2 | 4))) => Ok((known, channels)),
                _ => Err(Code::INVALID_VALUE),
            }
        };
        let small = |extent: u64| u32::try_from(extent).map_err(|_| Code::INVALID_VALUE);
        match resource.kind {
            OF_ARRAY => self.of_array(resource)?.image(),
            OF_MIPMAPS => Err(Code::NOT_SUPPORTED),
            OF_LINEAR => {
                let (format, channels) = known(format & 0xffff_ffff, format >> 32)?;
                let bytes = resource.of[2];
                let width = bytes / u64::from(format.bytes() * channels);
                if at == 0 || !at.is_multiple_of(ALIGN) || width > 1 << 28 {
                    return Err(Code::INVALID_VALUE);
                }
                Ok(Image {
                    base: at,
                    shape: ImageShape::Linear,
                    size: [u32::try_from(width).map_err(|_| Code::INVALID_VALUE)?, 0, 0],
                    row: bytes,
                    slice: bytes,
                    format,
                    channels,
                    sampler: None,
                })
            }
            OF_ROWS => {
                let (format, channels) = known(format & 0xffff_ffff, format >> 32)?;
                let [_, _, width, height, pitch, ..] = resource.of;
                let fits = width <= 131_072 && height <= 65_000 && pitch <= 2_097_120;
                let aligned = at.is_multiple_of(ALIGN) && pitch.is_multiple_of(PITCH_ALIGN);
                if at == 0 || !fits || !aligned {
                    return Err(Code::INVALID_VALUE);
                }
                Ok(Image {
                    base: at,
                    shape: ImageShape::Rows,
                    size: [small(width)?, small(height)?, 0],
                    row: pitch,
                    slice: pitch * height,
                    format,
                    channels,
                    sampler: None,
                })
            }
            _ => Err(Code::INVALID_VALUE),
        }
    }
}

impl TextureDescription {
    /// How a texture is read.
    fn sampler(&self, image: &Image) -> Answer<Sampler> {
        let mut address = [AddressMode::Clamp; 3];
        for (mode, number) in address.iter_mut().zip(self.address) {
            *mode = match number {
                0 => AddressMode::Wrap,
                1 => AddressMode::Clamp,
                2 => AddressMode::Mirror,
                3 => AddressMode::Border,
                _ => return Err(Code::INVALID_VALUE),
            };
        }
        let linear = match self.filter {
            0 => false,
            1 => true,
            _ => return Err(Code::INVALID_VALUE),
        };
        Ok(Sampler {
            address,
            linear,
            normalized: self.flags & NORMALIZED != 0,
            as_integer: self.flags & READ_AS_INTEGER != 0,
            srgb: self.flags & SRGB != 0,
            border: self.border,
        }
        .of(image))
    }
}

impl Call {
    fn create_texture(
        &mut self,
        resource: &Resource,
        description: &TextureDescription,
    ) -> Answer<u64> {
        let context = self.context()?;
        self.forbid_while_capturing(context)?;
        let mut image = self.image_of(resource)?;
        let known = READ_AS_INTEGER | NORMALIZED | SRGB | HINTS;
        if description.flags & !known != 0 {
            return Err(Code::INVALID_VALUE);
        }
        image.sampler = Some(description.sampler(&image)?);
        let number = self.new_id() << 8 | 1;
        self.objects.textures.insert(
            number,
            Texture {
                context,
                resource: *resource,
                description: *description,
                image,
            },
        );
        Ok(number)
    }

    fn create_surface(&mut self, resource: &Resource) -> Answer<u64> {
        let context = self.context()?;
        self.forbid_while_capturing(context)?;
        if resource.kind != OF_ARRAY {
            return Err(Code::INVALID_VALUE);
        }
        let array = self.of_array(resource)?;
        if array.description.flags & SURFACE == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let image = array.image()?;
        let number = self.new_id() << 8 | 2;
        self.objects.surfaces.insert(
            number,
            Surface {
                context,
                resource: *resource,
                image,
            },
        );
        Ok(number)
    }
}

driver_api! {
    fn cuTexObjectCreate(call, object: Out<u64>, resource: In<Resource>, description: In<TextureDescription>, view: In<Host>) {
        object.check()?;
        if !view.is_null() {
            return Err(Code::NOT_SUPPORTED);
        }
        let (resource, description) = (resource.get()?, description.get()?);
        let number = call.create_texture(&resource, &description)?;
        object.set(number)
    }

    fn cuTexObjectDestroy(call, object: u64) {
        let context = call.context()?;
        call.forbid_while_capturing(context)?;
        if object == 0 {
            return Ok(());
        }
        if call.objects.textures.remove(&object).is_some() {
            call.objects.destroyed.insert(object, "texture");
            return Ok(());
        }
        Err(Code::INVALID_VALUE)
    }

    fn cuTexObjectGetResourceDesc(call, resource: Out<Resource>, object: u64) {
        call.context()?;
        resource.set(call.objects.textures.get(&object).ok_or(Code::INVALID_VALUE)?.resource)
    }

    fn cuTexObjectGetTextureDesc(call, description: Out<TextureDescription>, object: u64) {
        call.context()?;
        description.set(call.objects.textures.get(&object).ok_or(Code::INVALID_VALUE)?.description)
    }

    fn cuSurfObjectCreate(call, object: Out<u64>, resource: In<Resource>) {
        object.check()?;
        let resource = resource.get()?;
        let number = call.create_surface(&resource)?;
        object.set(number)
    }

    fn cuSurfObjectDestroy(call, object: u64) {
        let context = call.context()?;
        call.forbid_while_capturing(context)?;
        if object == 0 {
            return Ok(());
        }
        if call.objects.surfaces.remove(&object).is_some() {
            call.objects.destroyed.insert(object, "surface");
            return Ok(());
        }
        Err(Code::INVALID_VALUE)
    }

    fn cuSurfObjectGetResourceDesc(call, resource: Out<Resource>, object: u64) {
        call.context()?;
        resource.set(call.objects.surfaces.get(&object).ok_or(Code::INVALID_VALUE)?.resource)
    }
}
