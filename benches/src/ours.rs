//! gridcall: through the function, through the handle with named arguments, prepared, and replayed.

use std::{error::Error, marker::PhantomData, sync::Arc};

use gridcall::{
    AsDeviceView, AsDeviceViewMut, Kernel, LaunchError, Prepared, Replay, cover,
    cudarc::driver::CudaStream,
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

/// The kernel `K` as a graph of one node, with another scalar at each launch.
pub struct Replayed<K, A> {
    stream: Arc<CudaStream>,
    arguments: A,
    replay: Replay<K>,
}

impl<K, A> Replayed<K, A> {
    /// Launches `replay` on `stream` with `arguments`.
    #[must_use]
    pub fn new(replay: Replay<K>, stream: Arc<CudaStream>, arguments: A) -> Replayed<K, A> {
        Replayed {
            stream,
            arguments,
            replay,
        }
    }
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

/// The arguments of a kernel by their names.
macro_rules! named {
    ($kernel:ident, $arguments:expr,) => {
        $kernel {}
    };
    ($kernel:ident, $arguments:expr, $($array:ident $index:literal)+) => {{
        let Arguments {
            read,
            written,
            alpha,
            n,
        } = $arguments;
        $kernel {
            $($array: &read[$index],)+
            y: written,
            alpha: *alpha,
            n: *n,
        }
    }};
}

macro_rules! by_name {
    ($($kernel:ident: $($array:ident $index:literal)*;)+) => {
        $(impl<R: AsDeviceView<f32>, W: AsDeviceViewMut<f32>> Contender
            for Handle<$kernel, Arguments<R, W>>
        {
            fn launch(&mut self) -> Result<(), Box<dyn Error>> {
                let shape = cover(self.arguments.n);
                let arguments = named!($kernel, &mut self.arguments, $($array $index)*);
                self.kernel.launch(&self.stream, shape, arguments)?;
                Ok(())
            }
        }

        impl<R: AsDeviceView<f32>, W: AsDeviceViewMut<f32>> Contender
            for Ready<$kernel, Arguments<R, W>>
        {
            fn launch(&mut self) -> Result<(), Box<dyn Error>> {
                let arguments = named!($kernel, &mut self.arguments, $($array $index)*);
                self.prepared.launch(arguments)?;
                Ok(())
            }
        }

        impl<R: AsDeviceView<f32>, W: AsDeviceViewMut<f32>> Contender
            for Replayed<$kernel, Arguments<R, W>>
        {
            fn launch(&mut self) -> Result<(), Box<dyn Error>> {
                let shape = cover(self.arguments.n);
                self.arguments.alpha += 1.0;
                let arguments = named!($kernel, &mut self.arguments, $($array $index)*);
                self.replay.launch(&self.stream, shape, arguments)?;
                Ok(())
            }
        })+
    };
}

by_name! {
    empty0: ;
    empty4: x 0;
    empty10: a 0 b 1 c 2 d 3 e 4 f 5 g 6;
    empty12: a 0 b 1 c 2 d 3 e 4 f 5 g 6 h 7 i 8;
}
