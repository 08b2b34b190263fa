//! Arrays, textures, surfaces and one kernel an instruction, made by bare calls of whatever driver there is.

use std::ffi::{CString, c_void};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};

use cudarc::driver::sys;

use crate::cu;

pub(crate) use sys::CUarray_format as Format;

pub(crate) const LAYERED: u32 = 1;
pub(crate) const SURFACE: u32 = 2;
pub(crate) const CUBEMAP: u32 = 4;
pub(crate) const GATHER: u32 = 8;

pub(crate) const READ_AS_INTEGER: u32 = 1;
pub(crate) const NORMALIZED: u32 = 2;
pub(crate) const SRGB: u32 = 16;

/// Zeros of a structure of the driver.
pub(crate) fn zeroed<T>() -> T {
    // SAFETY: the structures of the driver that are asked for consist of numbers, pointers and enumerations
    // that have a zero.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

/// A copy from the host to the host of nothing.
pub(crate) fn memcpy3d() -> sys::CUDA_MEMCPY3D {
    let mut copy = MaybeUninit::<sys::CUDA_MEMCPY3D>::zeroed();
    let host = sys::CUmemorytype::CU_MEMORYTYPE_HOST;
    let place = copy.as_mut_ptr();
    // SAFETY: the place is one of the structure, and so has the field.
    let (from, to) = (unsafe { &raw mut (*place).srcMemoryType }, unsafe {
        &raw mut (*place).dstMemoryType
    });
    // SAFETY: a field of a structure of ours, that nothing else points to.
    unsafe { from.write(host) };
    // SAFETY: as above.
    unsafe { to.write(host) };
    // SAFETY: all fields but these two have a zero.
    unsafe { copy.assume_init() }
}

/// Numbers that look random, the same ones everywhere.
pub(crate) struct Random(u64);

impl Random {
    /// Of a name, so that cases do not hang on each other.
    pub(crate) fn of(name: &str) -> Random {
        let mut hash = 0xcbf2_9ce4_8422_2325;
        for byte in name.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        Random(hash)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn word(&mut self) -> u32 {
        (self.next() >> 32) as u32
    }

    pub(crate) fn below(&mut self, end: u32) -> u32 {
        ((u64::from(self.word()) * u64::from(end)) >> 32) as u32
    }

    /// From 0 to 1.
    pub(crate) fn unit(&mut self) -> f32 {
        (self.word() >> 8) as f32 / 16_777_216.0
    }
}

/// A shape and a format.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec {
    pub(crate) size: [usize; 3],
    pub(crate) format: Format,
    pub(crate) channels: u32,
    pub(crate) flags: u32,
}

impl Spec {
    pub(crate) fn texel(&self) -> usize {
        width(self.format) * self.channels as usize
    }

    pub(crate) fn bytes(&self) -> usize {
        self.size
            .iter()
            .map(|extent| (*extent).max(1))
            .product::<usize>()
            * self.texel()
    }

    pub(crate) fn descriptor(&self) -> sys::CUDA_ARRAY3D_DESCRIPTOR {
        sys::CUDA_ARRAY3D_DESCRIPTOR {
            Width: self.size[0],
            Height: self.size[1],
            Depth: self.size[2],
            Format: self.format,
            NumChannels: self.channels,
            Flags: self.flags,
        }
    }
}

/// The bytes of a number.
pub(crate) fn width(format: Format) -> usize {
    match format {
        Format::CU_AD_FORMAT_UNSIGNED_INT8 | Format::CU_AD_FORMAT_SIGNED_INT8 => 1,
        Format::CU_AD_FORMAT_UNSIGNED_INT16
        | Format::CU_AD_FORMAT_SIGNED_INT16
        | Format::CU_AD_FORMAT_HALF => 2,
        _ => 4,
    }
}

/// How a texture is read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sampler {
    /// Wrap, clamp, mirror, border.
    pub(crate) address: u32,
    pub(crate) linear: bool,
    pub(crate) flags: u32,
    pub(crate) border: [f32; 4],
}

impl Sampler {
    /// Point by point, clamped.
    pub(crate) fn clamping() -> Sampler {
        Sampler {
            address: 1,
            ..Sampler::default()
        }
    }

    pub(crate) fn descriptor(&self) -> sys::CUDA_TEXTURE_DESC {
        let mut descriptor: sys::CUDA_TEXTURE_DESC = zeroed();
        descriptor.addressMode = [match self.address {
            0 => sys::CUaddress_mode::CU_TR_ADDRESS_MODE_WRAP,
            1 => sys::CUaddress_mode::CU_TR_ADDRESS_MODE_CLAMP,
            2 => sys::CUaddress_mode::CU_TR_ADDRESS_MODE_MIRROR,
            _ => sys::CUaddress_mode::CU_TR_ADDRESS_MODE_BORDER,
        }; 3];
        descriptor.filterMode = if self.linear {
            sys::CUfilter_mode::CU_TR_FILTER_MODE_LINEAR
        } else {
            sys::CUfilter_mode::CU_TR_FILTER_MODE_POINT
        };
        descriptor.flags = self.flags;
        descriptor.borderColor = self.border;
        descriptor
    }
}

thread_local! {
    /// What the last kernel was given.
    pub(crate) static ROWS: std::cell::Cell<Vec<[u32; 8]>> = const { std::cell::Cell::new(Vec::new()) };
}

/// A device with its primary context current.
pub(crate) struct Lab {
    device: i32,
}

impl Lab {
    pub(crate) fn new(device: i32) -> Lab {
        let lab = Lab { device };
        assert_eq!(cu!(cuInit(0)), 0);
        lab.enter();
        lab
    }

    fn enter(&self) {
        let mut context = null_mut();
        assert_eq!(
            cu!(cuDevicePrimaryCtxRetain(&raw mut context, self.device)),
            0
        );
        assert_eq!(cu!(cuCtxSetCurrent(context)), 0);
    }

    /// All as new, after a fault too.
    pub(crate) fn reset(&self) {
        assert_eq!(cu!(cuDevicePrimaryCtxReset_v2(self.device)), 0);
        self.enter();
    }

    pub(crate) fn attribute(&self, attribute: u32) -> i32 {
        let mut value = -1;
        // SAFETY: the attributes that are asked for have these numbers.
        let attribute = unsafe { std::mem::transmute::<u32, sys::CUdevice_attribute>(attribute) };
        assert_eq!(
            cu!(cuDeviceGetAttribute(&raw mut value, attribute, self.device)),
            0
        );
        value
    }

    pub(crate) fn try_array(&self, spec: Spec) -> Result<sys::CUarray, u32> {
        let mut array = null_mut();
        let descriptor = spec.descriptor();
        match cu!(cuArray3DCreate_v2(&raw mut array, &raw const descriptor)) {
            0 => Ok(array),
            code => Err(code),
        }
    }

    pub(crate) fn array(&self, spec: Spec, content: &[u8]) -> sys::CUarray {
        let array = self.try_array(spec).unwrap();
        assert_eq!(content.len(), spec.bytes());
        let mut copy = self.whole(spec);
        copy.srcMemoryType = sys::CUmemorytype::CU_MEMORYTYPE_HOST;
        copy.srcHost = content.as_ptr().cast();
        copy.srcPitch = spec.size[0] * spec.texel();
        copy.srcHeight = spec.size[1].max(1);
        copy.dstMemoryType = sys::CUmemorytype::CU_MEMORYTYPE_ARRAY;
        copy.dstArray = array;
        assert_eq!(cu!(cuMemcpy3D_v2(&raw const copy)), 0);
        array
    }

    pub(crate) fn read(&self, spec: Spec, array: sys::CUarray) -> Vec<u8> {
        let mut content = vec![0; spec.bytes()];
        let mut copy = self.whole(spec);
        copy.dstMemoryType = sys::CUmemorytype::CU_MEMORYTYPE_HOST;
        copy.dstHost = content.as_mut_ptr().cast();
        copy.dstPitch = spec.size[0] * spec.texel();
        copy.dstHeight = spec.size[1].max(1);
        copy.srcMemoryType = sys::CUmemorytype::CU_MEMORYTYPE_ARRAY;
        copy.srcArray = array;
        assert_eq!(cu!(cuMemcpy3D_v2(&raw const copy)), 0);
        content
    }

    fn whole(&self, spec: Spec) -> sys::CUDA_MEMCPY3D {
        let mut copy = memcpy3d();
        copy.WidthInBytes = spec.size[0] * spec.texel();
        copy.Height = spec.size[1].max(1);
        copy.Depth = spec.size[2].max(1);
        copy
    }

    pub(crate) fn array_resource(array: sys::CUarray) -> sys::CUDA_RESOURCE_DESC {
        let mut resource: sys::CUDA_RESOURCE_DESC = zeroed();
        resource.resType = sys::CUresourcetype::CU_RESOURCE_TYPE_ARRAY;
        resource.res.array.hArray = array;
        resource
    }

    pub(crate) fn try_texture(
        &self,
        resource: &sys::CUDA_RESOURCE_DESC,
        sampler: Sampler,
    ) -> Result<u64, u32> {
        let mut object = 0;
        let descriptor = sampler.descriptor();
        match cu!(cuTexObjectCreate(
            &raw mut object,
            resource,
            &raw const descriptor,
            null()
        )) {
            0 => Ok(object),
            code => Err(code),
        }
    }

    pub(crate) fn texture(&self, array: sys::CUarray, sampler: Sampler) -> u64 {
        self.try_texture(&Lab::array_resource(array), sampler)
            .unwrap()
    }

    pub(crate) fn try_surface(&self, array: sys::CUarray) -> Result<u64, u32> {
        let mut object = 0;
        let resource = Lab::array_resource(array);
        match cu!(cuSurfObjectCreate(&raw mut object, &raw const resource)) {
            0 => Ok(object),
            code => Err(code),
        }
    }

    pub(crate) fn surface(&self, array: sys::CUarray) -> u64 {
        self.try_surface(array).unwrap()
    }

    pub(crate) fn memory(&self, content: &[u8]) -> u64 {
        let mut at = 0;
        assert_eq!(cu!(cuMemAlloc_v2(&raw mut at, content.len())), 0);
        assert_eq!(
            cu!(cuMemcpyHtoD_v2(at, content.as_ptr().cast(), content.len())),
            0
        );
        at
    }

    /// Memory of the host that the driver knows.
    pub(crate) fn pinned(&self, bytes: usize) -> *mut c_void {
        let mut at = null_mut();
        assert_eq!(cu!(cuMemAllocHost_v2(&raw mut at, bytes)), 0);
        at
    }

    /// A kernel of `body`, which takes `a0` to `a3` and `b0` to `b3` of a row and gives `d0` to `d3`.
    pub(crate) fn kernel(&mut self, body: &str) -> Result<(sys::CUmodule, sys::CUfunction), u32> {
        let text = kernel_text(body);
        let text = CString::new(text).unwrap();
        let mut module = null_mut();
        let code = cu!(cuModuleLoadData(&raw mut module, text.as_ptr().cast()));
        if code != 0 {
            return Err(code);
        }
        let mut function = null_mut();
        match cu!(cuModuleGetFunction(
            &raw mut function,
            module,
            c"k".as_ptr()
        )) {
            0 => Ok((module, function)),
            code => Err(code),
        }
    }

    /// Runs `body` once for each row, all at once or one after another; `Err` with the code of the launch or of
    /// the wait behind it.
    pub(crate) fn try_rows(
        &mut self,
        body: &str,
        object: u64,
        rows: &[[u32; 8]],
        one_by_one: bool,
    ) -> Result<Vec<[u32; 4]>, u32> {
        ROWS.set(rows.to_vec());
        let (module, function) = self.kernel(body)?;
        let inputs: Vec<u8> = rows
            .iter()
            .flatten()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        let input = self.memory(&inputs);
        let output = self.memory(&vec![0xee; rows.len() * 16]);
        let launches = if one_by_one { rows.len() } else { 1 };
        for launch in 0..launches {
            let (mut object, count) = (object, rows.len() / launches);
            let (mut input, mut output) = (input + launch as u64 * 32, output + launch as u64 * 16);
            let mut count = count as u32;
            let mut parameters: [*mut c_void; 4] = [
                (&raw mut object).cast(),
                (&raw mut input).cast(),
                (&raw mut output).cast(),
                (&raw mut count).cast(),
            ];
            let (blocks, threads) = (count.div_ceil(128), count.min(128));
            let code = cu!(cuLaunchKernel(
                function,
                blocks,
                1,
                1,
                threads,
                1,
                1,
                0,
                null_mut(),
                parameters.as_mut_ptr(),
                null_mut()
            ));
            if code != 0 {
                return Err(code);
            }
        }
        let code = cu!(cuCtxSynchronize());
        if code != 0 {
            return Err(code);
        }
        let mut outputs = vec![[0_u32; 4]; rows.len()];
        assert_eq!(
            cu!(cuMemcpyDtoH_v2(
                outputs.as_mut_ptr().cast(),
                output,
                rows.len() * 16
            )),
            0
        );
        for at in [input, output] {
            assert_eq!(cu!(cuMemFree_v2(at)), 0);
        }
        assert_eq!(cu!(cuModuleUnload(module)), 0);
        Ok(outputs)
    }

    pub(crate) fn rows(&mut self, body: &str, object: u64, rows: &[[u32; 8]]) -> Vec<[u32; 4]> {
        self.try_rows(body, object, rows, false)
            .unwrap_or_else(|code| panic!("{body}: {code}"))
    }

    /// What `body` reads of an array that holds `content`.
    pub(crate) fn sample(
        &mut self,
        spec: Spec,
        content: &[u8],
        sampler: Sampler,
        body: &str,
        rows: &[[u32; 8]],
    ) -> Vec<[u32; 4]> {
        let array = self.array(spec, content);
        let given = self.sample_of(&Lab::array_resource(array), sampler, body, rows);
        drop_array(array);
        given
    }

    /// What `body` reads of a texture of `resource`.
    pub(crate) fn sample_of(
        &mut self,
        resource: &sys::CUDA_RESOURCE_DESC,
        sampler: Sampler,
        body: &str,
        rows: &[[u32; 8]],
    ) -> Vec<[u32; 4]> {
        let texture = self.try_texture(resource, sampler).unwrap();
        let given = self.rows(body, texture, rows);
        drop_texture(texture);
        given
    }

    /// What an array that held `content` holds when `body` has written to it by a surface.
    pub(crate) fn written(
        &mut self,
        spec: Spec,
        content: &[u8],
        body: &str,
        rows: &[[u32; 8]],
        one_by_one: bool,
    ) -> Vec<u32> {
        let array = self.array(spec, content);
        let surface = self.surface(array);
        self.try_rows(body, surface, rows, one_by_one)
            .unwrap_or_else(|code| panic!("{body}: {code}"));
        let held = self.read(spec, array);
        drop_surface(surface);
        drop_array(array);
        words(&held)
    }
}

pub(crate) fn drop_array(array: sys::CUarray) {
    assert_eq!(cu!(cuArrayDestroy(array)), 0);
}

pub(crate) fn drop_texture(texture: u64) {
    assert_eq!(cu!(cuTexObjectDestroy(texture)), 0);
}

pub(crate) fn drop_surface(surface: u64) {
    assert_eq!(cu!(cuSurfObjectDestroy(surface)), 0);
}

pub(crate) fn free(at: u64) {
    assert_eq!(cu!(cuMemFree_v2(at)), 0);
}

/// Bytes as words, the last one filled up.
pub(crate) fn words(bytes: &[u8]) -> Vec<u32> {
    bytes
        .chunks(4)
        .map(|chunk| {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            u32::from_le_bytes(word)
        })
        .collect()
}

fn kernel_text(body: &str) -> String {
    format!(
        ".version 8.1
.target sm_75
.address_size 64
.visible .entry k(.param .u64 po, .param .u64 pin, .param .u64 pout, .param .u32 pn)
{{
    .reg .pred p;
    .reg .b32 i, n, t, a<4>, b<4>, d<4>;
    .reg .b64 o, at, q<4>;
    ld.param.u64 o, [po];
    ld.param.u32 n, [pn];
    mov.u32 i, %ctaid.x;
    mov.u32 t, %ntid.x;
    mul.lo.u32 i, i, t;
    mov.u32 t, %tid.x;
    add.u32 i, i, t;
    setp.ge.u32 p, i, n;
    @p ret;
    ld.param.u64 at, [pin];
    mad.wide.u32 at, i, 32, at;
    ld.global.v4.b32 {{a0, a1, a2, a3}}, [at];
    ld.global.v4.b32 {{b0, b1, b2, b3}}, [at+16];
    mov.b64 q0, {{b0, b1}};
    mov.b64 q1, {{b2, b3}};
    mov.b32 d0, 0xdddddddd;
    mov.b32 d1, d0;
    mov.b32 d2, d0;
    mov.b32 d3, d0;
    {body}
    ld.param.u64 at, [pout];
    mad.wide.u32 at, i, 16, at;
    st.global.v4.b32 [at], {{d0, d1, d2, d3}};
    ret;
}}
"
    )
}
