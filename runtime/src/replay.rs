//! A kernel that is launched as a graph of one node.

use std::fmt;

use cudarc::driver::CudaStream;

use crate::{
    call::launch_replayed,
    error::LaunchError,
    graph::Replayed,
    kernel::{Arguments, Declared, Kernel, Safe, Unsafe},
    launch::LaunchShape,
};

/// A kernel that is launched as a graph of one node; made by [`Kernel::replay`].
///
/// A launch checks and does what that of a [`Kernel`] does, and calls `cuGraphLaunch` in the place of
/// `cuLaunchKernel`, which takes the host half to three quarters of the time (H200; `benches/README.md` has
/// figures). Before it, the node is given the arguments and the shape of the launch by
/// `cuGraphExecKernelNodeSetParams`, unless it has them.
///
/// What differs:
///
/// - Launches of one `Replay` run one after another, on several streams too, and are made by one thread
///   at a time. For kernels that are to run beside themselves, make one for each stream.
/// - The first launch builds the graph, and so does one that asks for other attributes than the one
///   before. Attributes that order launches of a stream, or record events, are refused as for
///   [nodes](crate::Graph#attributes).
/// - A stream that is being captured is refused, for kernels that are not safe too.
/// - A profiler shows graphs, and their kernels if it is asked to.
/// - What is said of graphs beside those [with conditions](crate::Graph#conditions) holds for these, too.
pub struct Replay<D, S = Safe> {
    // Destroyed before the kernel is unloaded.
    graph: Replayed,
    kernel: Kernel<D, S>,
}

impl<D, S> Replay<D, S> {
    pub(crate) fn new(graph: Replayed, kernel: Kernel<D, S>) -> Self {
        Replay { graph, kernel }
    }

    #[cfg(all(test, feature = "emulator"))]
    pub(crate) fn replayed(&self) -> &Replayed {
        &self.graph
    }

    /// The kernel.
    #[must_use]
    pub fn kernel(&self) -> &Kernel<D, S> {
        &self.kernel
    }
}

impl<D: Declared<Safety = Safe>> Replay<D, Safe> {
    /// Launches the kernel on `stream`.
    ///
    /// # Errors
    ///
    /// As for [`Kernel::launch`]; if the launch asks for attributes that a node cannot have. In all
    /// these cases nothing was launched.
    #[inline(always)]
    pub fn launch<'e, A: Arguments<Declared = D>>(
        &mut self,
        stream: &CudaStream,
        launch: impl LaunchShape<'e>,
        arguments: A,
    ) -> Result<(), LaunchError> {
        self.run(stream, launch, arguments)
    }
}

impl<D: Declared<Safety = Unsafe>> Replay<D, Unsafe> {
    /// Launches the kernel on `stream`.
    ///
    /// # Safety
    ///
    /// As for [`Kernel::launch`].
    ///
    /// # Errors
    ///
    /// As for safe kernels.
    #[inline(always)]
    pub unsafe fn launch<'e, A: Arguments<Declared = D>>(
        &mut self,
        stream: &CudaStream,
        launch: impl LaunchShape<'e>,
        arguments: A,
    ) -> Result<(), LaunchError> {
        self.run(stream, launch, arguments)
    }
}

impl<D: Declared, S> Replay<D, S> {
    #[inline(always)]
    fn run<'e, A: Arguments<Declared = D>>(
        &mut self,
        stream: &CudaStream,
        launch: impl LaunchShape<'e>,
        arguments: A,
    ) -> Result<(), LaunchError> {
        self.kernel.check_context(stream)?;
        let kernel = self.kernel.loaded();
        launch_replayed(kernel, stream, launch.into(), &self.graph, arguments)
    }
}

impl<D, S> fmt::Debug for Replay<D, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay")
            .field("kernel", &self.kernel)
            .field("graph", &self.graph)
            .finish()
    }
}
