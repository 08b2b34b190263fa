//! A launch of which all is checked but the arguments.

use std::{fmt, sync::Arc};

use cudarc::driver::CudaStream;

use crate::{
    attributes::Attributes,
    call::{begin, launch_prepared, resolve_examined},
    error::LaunchError,
    kernel::{Arguments, Declared, Kernel, Safe, Unsafe},
    launch::{Dims, Launch},
};

/// A kernel, a stream and a launch that were checked together; made by [`Kernel::prepare`].
///
/// A launch then checks what can still be wrong: whether an error is stored in the context, whether
/// the stream of a safe kernel is being captured, and the arguments with their contracts, those about
/// `grid` and `block` too. It borrows for `'e` the events that each launch records.
pub struct Prepared<'e, D, S = Safe> {
    kernel: Kernel<D, S>,
    stream: Arc<CudaStream>,
    dims: Dims,
    /// If a launch of the kernel, or this one, has any.
    attributes: Option<Attributes<'e>>,
}

impl<'e, D: Declared<Safety = S>, S> Prepared<'e, D, S> {
    pub(crate) fn new(
        kernel: Kernel<D, S>,
        stream: Arc<CudaStream>,
        launch: Launch<'e>,
    ) -> Result<Self, LaunchError> {
        kernel.check_context(&stream)?;
        let loaded = kernel.loaded();
        // That a capture is refused, each launch sees to.
        begin(loaded, &stream, false, launch.dynamic_shared_mem_bytes())?;
        let dims = resolve_examined::<D>(loaded, stream.context().cu_ctx(), &launch)?;
        let attributes = (launch.attributes.any() || loaded.needs.any())
            .then(|| launch.attributes.of_launch(loaded));
        Ok(Prepared {
            kernel,
            stream,
            dims,
            attributes,
        })
    }
}

impl<D: Declared<Safety = Safe>> Prepared<'_, D, Safe> {
    /// Launches the kernel with these arguments.
    ///
    /// # Errors
    ///
    /// If an argument cannot be what the kernel takes, a contract does not hold, the stream is being
    /// captured, or the driver refuses; in all these cases nothing was launched.
    #[inline(always)]
    pub fn launch<A: Arguments<Declared = D>>(&self, arguments: A) -> Result<(), LaunchError> {
        self.run(arguments)
    }
}

impl<D: Declared<Safety = Unsafe>> Prepared<'_, D, Unsafe> {
    /// Launches the kernel with these arguments.
    ///
    /// # Safety
    ///
    /// As for [`Kernel::launch`].
    ///
    /// # Errors
    ///
    /// As for safe kernels; a stream that is being captured is no error here.
    #[inline(always)]
    pub unsafe fn launch<A: Arguments<Declared = D>>(
        &self,
        arguments: A,
    ) -> Result<(), LaunchError> {
        self.run(arguments)
    }
}

impl<D, S> Prepared<'_, D, S> {
    /// The stream that it launches on.
    #[must_use]
    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    #[inline(always)]
    fn run<A: Arguments>(&self, arguments: A) -> Result<(), LaunchError> {
        let kernel = self.kernel.loaded();
        let attributes = self.attributes.as_ref();
        launch_prepared(kernel, &self.stream, self.dims, attributes, arguments)
    }
}

impl<D, S> fmt::Debug for Prepared<'_, D, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared")
            .field("kernel", &self.kernel)
            .field("dims", &self.dims)
            .field("attributes", &self.attributes)
            .finish_non_exhaustive()
    }
}
