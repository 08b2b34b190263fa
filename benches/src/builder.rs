//! cudarc's launch builder.

use std::{error::Error, sync::Arc};

use gridcall::cudarc::driver::{CudaFunction, CudaStream, LaunchConfig, PushKernelArg};

use crate::{
    Contender,
    scene::{BLOCKS, Slices, THREADS, Views},
};

/// A kernel with `PARAMS` parameters, launched with the arguments `A`.
pub struct Builder<const PARAMS: usize, A> {
    function: CudaFunction,
    stream: Arc<CudaStream>,
    arguments: A,
}

impl<const PARAMS: usize, A> Builder<PARAMS, A> {
    /// Launches `function` on `stream` with `arguments`.
    #[must_use]
    pub fn new(function: CudaFunction, stream: Arc<CudaStream>, arguments: A) -> Self {
        Builder {
            function,
            stream,
            arguments,
        }
    }
}

const CONFIG: LaunchConfig = LaunchConfig {
    grid_dim: (BLOCKS, 1, 1),
    block_dim: (THREADS, 1, 1),
    shared_mem_bytes: 0,
};

// Not generic: the builder's trait names each argument's type and its lifetime.
macro_rules! contender {
    ($arguments:ty) => {
        impl Contender for Builder<0, $arguments> {
            fn launch(&mut self) -> Result<(), Box<dyn Error>> {
                let mut launch = self.stream.launch_builder(&self.function);
                // SAFETY: `empty0` takes no parameters and does nothing.
                unsafe { launch.launch(CONFIG) }?;
                Ok(())
            }
        }

        impl Contender for Builder<4, $arguments> {
            fn launch(&mut self) -> Result<(), Box<dyn Error>> {
                let mut launch = self.stream.launch_builder(&self.function);
                launch
                    .arg(&self.arguments.read[0])
                    .arg(&mut self.arguments.written)
                    .arg(&self.arguments.alpha)
                    .arg(&self.arguments.n);
                // SAFETY: `empty4` takes these parameters and does nothing.
                unsafe { launch.launch(CONFIG) }?;
                Ok(())
            }
        }

        impl Contender for Builder<10, $arguments> {
            fn launch(&mut self) -> Result<(), Box<dyn Error>> {
                let read = &self.arguments.read;
                let mut launch = self.stream.launch_builder(&self.function);
                launch
                    .arg(&read[0])
                    .arg(&read[1])
                    .arg(&read[2])
                    .arg(&read[3])
                    .arg(&read[4])
                    .arg(&read[5])
                    .arg(&read[6])
                    .arg(&mut self.arguments.written)
                    .arg(&self.arguments.alpha)
                    .arg(&self.arguments.n);
                // SAFETY: `empty10` takes these parameters and does nothing.
                unsafe { launch.launch(CONFIG) }?;
                Ok(())
            }
        }

        impl Contender for Builder<12, $arguments> {
            fn launch(&mut self) -> Result<(), Box<dyn Error>> {
                let read = &self.arguments.read;
                let mut launch = self.stream.launch_builder(&self.function);
                launch
                    .arg(&read[0])
                    .arg(&read[1])
                    .arg(&read[2])
                    .arg(&read[3])
                    .arg(&read[4])
                    .arg(&read[5])
                    .arg(&read[6])
                    .arg(&read[7])
                    .arg(&read[8])
                    .arg(&mut self.arguments.written)
                    .arg(&self.arguments.alpha)
                    .arg(&self.arguments.n);
                // SAFETY: `empty12` takes these parameters and does nothing.
                unsafe { launch.launch(CONFIG) }?;
                Ok(())
            }
        }
    };
}

contender!(Slices);
contender!(Views);
