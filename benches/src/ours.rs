//! gridcall: through the function, through the handle with named arguments, and prepared.

use std::{error::Error, marker::PhantomData, sync::Arc};

use gridcall::{
    AsDeviceView, AsDeviceViewMut, Kernel, LaunchError, Prepared, cover, cudarc::driver::CudaStream,
};

use crate::{
    Contender,
    kernels::{empty0, empty4, empty10, empty12},
    scene::Arguments,
};

/// The function of the kernel `K`.
pub struct Function<K, A> {
    stream: Arc<CudaStream>,
    arguments: A,
    kernel: PhantomData<K>,
}

/// The handle of the kernel `K`.
pub struct Handle<K, A> {
    stream: Arc<CudaStream>,
    arguments: A,
    kernel: Kernel<K>,
}

/// A prepared launch of the kernel `K`.
pub struct Ready<K, A> {
    arguments: A,
    prepared: Prepared<'static, K>,
}

impl<K, A> Function<K, A> {
    /// Launches on `stream` with `arguments`.
    #[must_use]
    pub fn new(stream: Arc<CudaStream>, arguments: A) -> Function<K, A> {
        Function {
            stream,
            arguments,
            kernel: PhantomData,
        }
    }
}

impl<K, A> Handle<K, A> {
    /// Launches `kernel` on `stream` with `arguments`.
    #[must_use]
    pub fn new(kernel: Kernel<K>, stream: Arc<CudaStream>, arguments: A) -> Handle<K, A> {
        Handle {
            stream,
            arguments,
            kernel,
        }
    }
}

impl<R, W> Contender for Function<empty0, Arguments<R, W>> {
    fn launch(&mut self) -> Result<(), Box<dyn Error>> {
        empty0(&self.stream, cover(self.arguments.n))?;
        Ok(())
    }
}

impl<R: AsDeviceView<f32>, W: AsDeviceViewMut<f32>> Contender
    for Function<empty4, Arguments<R, W>>
{
    fn launch(&mut self) -> Result<(), Box<dyn Error>> {
        let Arguments {
            read,
            written,
            alpha,
            n,
        } = &mut self.arguments;
        empty4(&self.stream, cover(*n), &read[0], written, *alpha, *n)?;
        Ok(())
    }
}

impl<R: AsDeviceView<f32>, W: AsDeviceViewMut<f32>> Contender
    for Function<empty10, Arguments<R, W>>
{
    fn launch(&mut self) -> Result<(), Box<dyn Error>> {
        let Arguments {
            read,
            written,
            alpha,
            n,
        } = &mut self.arguments;
        empty10(
            &self.stream,
            cover(*n),
            &read[0],
            &read[1],
            &read[2],
            &read[3],
            &read[4],
            &read[5],
            &read[6],
            written,
            *alpha,
            *n,
        )?;
        Ok(())
    }
}

impl<R: AsDeviceView<f32>, W: AsDeviceViewMut<f32>> Contender
    for Function<empty12, Arguments<R, W>>
{
    fn launch(&mut self) -> Result<(), Box<dyn Error>> {
        let Arguments {
            read,
            written,
            alpha,
            n,
        } = &mut self.arguments;
        empty12(
            &self.stream,
            cover(*n),
            &read[0],
            &read[1],
            &read[2],
            &read[3],
            &read[4],
            &read[5],
            &read[6],
            &read[7],
            &read[8],
            written,
            *alpha,
            *n,
        )?;
        Ok(())
    }
}

macro_rules! ready {
    ($($kernel:ident),+) => {
        $(impl<R, W> Ready<$kernel, Arguments<R, W>> {
            /// Prepares the launch that the others make.
            ///
            /// # Errors
            ///
            /// If it is not possible.
            pub fn new(
                kernel: &Kernel<$kernel>,
                stream: &Arc<CudaStream>,
                arguments: Arguments<R, W>,
            ) -> Result<Self, LaunchError> {
                let prepared = kernel.prepare(stream, cover(arguments.n))?;
                Ok(Ready {
                    arguments,
                    prepared,
                })
            }
        })+
    };
}

ready!(empty0, empty4, empty10, empty12);

impl<R, W> Contender for Handle<empty0, Arguments<R, W>> {
    fn launch(&mut self) -> Result<(), Box<dyn Error>> {
        self.kernel
            .launch(&self.stream, cover(self.arguments.n), empty0 {})?;
        Ok(())
    }
}

impl<R: AsDeviceView<f32>, W: AsDeviceViewMut<f32>> Contender for Handle<empty4, Arguments<R, W>> {
    fn launch(&mut self) -> Result<(), Box<dyn Error>> {
        let Arguments {
            read,
            written,
            alpha,
            n,
        } = &mut self.arguments;
        let arguments = empty4 {
            x: &read[0],
            y: written,
            alpha: *alpha,
            n: *n,
        };
        self.kernel.launch(&self.stream, cover(*n), arguments)?;
        Ok(())
    }
}

impl<R: AsDeviceView<f32>, W: AsDeviceViewMut<f32>> Contender for Handle<empty10, Arguments<R, W>> {
    fn launch(&mut self) -> Result<(), Box<dyn Error>> {
        let Arguments {
            read,
            written,
            alpha,
            n,
        } = &mut self.arguments;
        let arguments = empty10 {
            a: &read[0],
            b: &read[1],
            c: &read[2],
            d: &read[3],
            e: &read[4],
            f: &read[5],
            g: &read[6],
            y: written,
            alpha: *alpha,
            n: *n,
        };
        self.kernel.launch(&self.stream, cover(*n), arguments)?;
        Ok(())
    }
}

impl<R: AsDeviceView<f32>, W: AsDeviceViewMut<f32>> Contender for Handle<empty12, Arguments<R, W>> {
    fn launch(&mut self) -> Result<(), Box<dyn Error>> {
        let Arguments {
            read,
            written,
            alpha,
            n,
        } = &mut self.arguments;
        let arguments = empty12 {
            a: &read[0],
            b: &read[1],
            c: &read[2],
            d: &read[3],
            e: &read[4],
            f: &read[5],
            g: &read[6],
            h: &read[7],
            i: &read[8],
            y: written,
            alpha: *alpha,
            n: *n,
        };
        self.kernel.launch(&self.stream, cover(*n), arguments)?;
        Ok(())
    }
}

impl<R, W> Contender for Ready<empty0, Arguments<R, W>> {
    fn launch(&mut self) -> Result<(), Box<dyn Error>> {
        self.prepared.launch(empty0 {})?;
        Ok(())
    }
}

impl<R: AsDeviceView<f32>, W: AsDeviceViewMut<f32>> Contender for Ready<empty4, Arguments<R, W>> {
    fn launch(&mut self) -> Result<(), Box<dyn Error>> {
        let Arguments {
            read,
            written,
            alpha,
            n,
        } = &mut self.arguments;
        let arguments = empty4 {
            x: &read[0],
            y: written,
            alpha: *alpha,
            n: *n,
        };
        self.prepared.launch(arguments)?;
        Ok(())
    }
}

impl<R: AsDeviceView<f32>, W: AsDeviceViewMut<f32>> Contender for Ready<empty10, Arguments<R, W>> {
    fn launch(&mut self) -> Result<(), Box<dyn Error>> {
        let Arguments {
            read,
            written,
            alpha,
            n,
        } = &mut self.arguments;
        let arguments = empty10 {
            a: &read[0],
            b: &read[1],
            c: &read[2],
            d: &read[3],
            e: &read[4],
            f: &read[5],
            g: &read[6],
            y: written,
            alpha: *alpha,
            n: *n,
        };
        self.prepared.launch(arguments)?;
        Ok(())
    }
}

impl<R: AsDeviceView<f32>, W: AsDeviceViewMut<f32>> Contender for Ready<empty12, Arguments<R, W>> {
    fn launch(&mut self) -> Result<(), Box<dyn Error>> {
        let Arguments {
            read,
            written,
            alpha,
            n,
        } = &mut self.arguments;
        let arguments = empty12 {
            a: &read[0],
            b: &read[1],
            c: &read[2],
            d: &read[3],
            e: &read[4],
            f: &read[5],
            g: &read[6],
            h: &read[7],
            i: &read[8],
            y: written,
            alpha: *alpha,
            n: *n,
        };
        self.prepared.launch(arguments)?;
        Ok(())
    }
}
