//! A device, a stream and the kernels' arrays, prepared for launches.

use std::{error::Error, sync::Arc};

use gridcall::{
    Buffer, Tensor, TypedTensor, cover,
    cudarc::{
        driver::{
            CudaContext, CudaFunction, CudaModule, CudaSlice, CudaStream, CudaView, CudaViewMut,
        },
        nvrtc::Ptx,
    },
};

use crate::kernels::empty4;

/// Elements of each array.
const LEN: u16 = 256;
/// Blocks of each launch.
pub const BLOCKS: u32 = 1;
/// Threads of each block.
pub const THREADS: u32 = 256;

/// Whether cudarc orders the work of several streams by events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// Only the default stream is in use.
    One,
    /// There is a second stream, so each use of an array is recorded.
    Several,
}

/// One device with one launching stream.
pub struct Scene {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    /// Another stream, where several are in use.
    other: Arc<CudaStream>,
    module: Arc<CudaModule>,
}

/// What `empty12` takes. Kernels with fewer arrays take the first of those that are read, and the
/// rest.
pub struct Arguments<R, W> {
    /// Arrays that are read.
    pub read: [R; 9],
    /// The array that is written.
    pub written: W,
    /// A factor.
    pub alpha: f32,
    /// The number of elements.
    pub n: i32,
}

/// The arrays as `CudaSlice`s.
pub type Slices = Arguments<CudaSlice<f32>, CudaSlice<f32>>;
/// The arrays as `Buffer`s.
pub type Buffers = Arguments<Buffer<f32>, Buffer<f32>>;
/// The arrays as `Tensor`s.
pub type Tensors = Arguments<Tensor, Tensor>;
/// The arrays as `TypedTensor`s.
pub type TypedTensors = Arguments<TypedTensor<f32, 1>, TypedTensor<f32, 1>>;
/// The arrays as views of `CudaSlice`s.
pub type Views = Arguments<CudaView<'static, f32>, CudaViewMut<'static, f32>>;

impl Scene {
    /// Opens device 0. Each scene has a context object of its own, so that scenes with one and
    /// with several streams can stand beside each other.
    ///
    /// # Errors
    ///
    /// If there is no driver or no device, or it refuses something.
    pub fn new(streams: Streams) -> Result<Scene, Box<dyn Error>> {
        let context = gridcall::device(0)?;
        let stream = match streams {
            Streams::One => context.default_stream(),
            Streams::Several => context.new_stream()?,
        };
        let other = match streams {
            Streams::One => stream.clone(),
            Streams::Several => context.new_stream()?,
        };
        let ptx = Ptx::from_src(include_str!("../../kernels/scalars.ptx"));
        let module = context.load_module(ptx)?;
        Ok(Scene {
            context,
            stream,
            other,
            module,
        })
    }

    /// The context.
    #[must_use]
    pub fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    /// The launching stream.
    #[must_use]
    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// A kernel, as cudarc loads it.
    ///
    /// # Errors
    ///
    /// If there is none of that name.
    pub fn function(&self, name: &str) -> Result<CudaFunction, Box<dyn Error>> {
        Ok(self.module.load_function(name)?)
    }

    /// Arguments with fresh arrays.
    ///
    /// # Errors
    ///
    /// If the driver has no memory.
    pub fn slices(&self) -> Result<Slices, Box<dyn Error>> {
        let array = || self.stream.alloc_zeros::<f32>(usize::from(LEN));
        Ok(Arguments {
            read: nine(array)?,
            written: array()?,
            alpha: 2.0,
            n: i32::from(LEN),
        })
    }

    /// Arguments with fresh buffers that only the launching stream uses.
    ///
    /// # Errors
    ///
    /// If the driver has no memory.
    pub fn buffers(&self) -> Result<Buffers, Box<dyn Error>> {
        let buffer = || Buffer::zeroed(&self.stream, usize::from(LEN));
        Ok(Arguments {
            read: nine(buffer)?,
            written: buffer()?,
            alpha: 2.0,
            n: i32::from(LEN),
        })
    }

    /// Arguments with tensors of fresh arrays.
    ///
    /// # Errors
    ///
    /// If the driver has no memory.
    pub fn tensors(&self) -> Result<Tensors, Box<dyn Error>> {
        let tensor = || -> Result<Tensor, Box<dyn Error>> {
            let array = self.stream.alloc_zeros::<f32>(usize::from(LEN))?;
            Ok(Tensor::from_slice(array, &[usize::from(LEN)])?)
        };
        Ok(Arguments {
            read: nine(tensor)?,
            written: tensor()?,
            alpha: 2.0,
            n: i32::from(LEN),
        })
    }

    /// The same, with the type of their elements and their dimensions checked beforehand.
    ///
    /// # Errors
    ///
    /// If the driver has no memory.
    pub fn typed_tensors(&self) -> Result<TypedTensors, Box<dyn Error>> {
        let Arguments {
            read,
            written,
            alpha,
            n,
        } = self.tensors()?;
        let mut read = read.into_iter();
        let mut next = || Ok::<_, Box<dyn Error>>(read.next().ok_or("nine are read")?.typed()?);
        Ok(Arguments {
            read: nine(&mut next)?,
            written: written.typed()?,
            alpha,
            n,
        })
    }

    /// Arguments with fresh buffers, five of them also read by another stream, which stays alive.
    ///
    /// # Errors
    ///
    /// If the driver refuses something.
    pub fn shared_buffers(&self) -> Result<Buffers, Box<dyn Error>> {
        let buffers = self.buffers()?;
        let mut scratch = Buffer::zeroed(&self.other, usize::from(LEN))?;
        for shared in &buffers.read[..5] {
            empty4(
                &self.other,
                cover(buffers.n),
                shared,
                &mut scratch,
                buffers.alpha,
                buffers.n,
            )?;
        }
        Ok(buffers)
    }

    /// Arguments with views of fresh arrays, which are kept for the rest of the process.
    ///
    /// # Errors
    ///
    /// If the driver has no memory.
    pub fn views(&self) -> Result<Views, Box<dyn Error>> {
        let slices = Box::leak(Box::new(self.slices()?));
        Ok(Arguments {
            read: slices.read.each_ref().map(CudaSlice::as_view),
            written: slices.written.as_view_mut(),
            alpha: slices.alpha,
            n: slices.n,
        })
    }
}

fn nine<A, E>(mut make: impl FnMut() -> Result<A, E>) -> Result<[A; 9], E> {
    Ok([
        make()?,
        make()?,
        make()?,
        make()?,
        make()?,
        make()?,
        make()?,
        make()?,
        make()?,
    ])
}
