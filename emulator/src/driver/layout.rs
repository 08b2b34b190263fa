//! Our structures are laid out as those of the driver's header, which cudarc's bindings were made from.

use cudarc::driver::sys;

macro_rules! same_layout {
    ($($ours:ty = $theirs:ty),* $(,)?) => {$(
        const _: () = assert!(size_of::<$ours>() == size_of::<$theirs>());
        const _: () = assert!(align_of::<$ours>() == align_of::<$theirs>());
    )*};
}

same_layout! {
    super::allocate::Location = sys::CUmemLocation,
    super::array::CopyParams2d = sys::CUDA_MEMCPY2D,
    super::array::Description = sys::CUDA_ARRAY3D_DESCRIPTOR,
    super::array::Description2d = sys::CUDA_ARRAY_DESCRIPTOR,
    super::context::CreateParams = sys::CUctxCreateParams,
    super::device::Properties = sys::CUdevprop,
    super::graph::InstantiateParams = sys::CUDA_GRAPH_INSTANTIATE_PARAMS,
    super::graph::UpdateResult = sys::CUgraphExecUpdateResultInfo,
    super::launch::LaunchConfig = sys::CUlaunchConfig,
    super::launch::Attribute = sys::CUlaunchAttribute,
    super::node::KernelParams = sys::CUDA_KERNEL_NODE_PARAMS,
    super::node::CopyParams = sys::CUDA_MEMCPY3D,
    super::node::CopyNodeParams = sys::CUDA_MEMCPY_NODE_PARAMS,
    super::node::FillParams = sys::CUDA_MEMSET_NODE_PARAMS,
    super::node::HostParams = sys::CUDA_HOST_NODE_PARAMS,
    super::object::Resource = sys::CUDA_RESOURCE_DESC,
    super::object::TextureDescription = sys::CUDA_TEXTURE_DESC,
    super::pool::Properties = sys::CUmemPoolProps,
    super::pool::AccessDescription = sys::CUmemAccessDesc,
    [u8; 16] = sys::CUuuid,
    [u8; 8] = sys::CUgraphEdgeData,
    u32 = sys::CUresult,
    usize = sys::CUstream,
    u64 = sys::CUdeviceptr,
    super::border::HostFn = sys::CUhostFn,
    super::border::StreamFn = sys::CUstreamCallback,
    super::border::SharedBytesFn = sys::CUoccupancyB2DSize,
}
