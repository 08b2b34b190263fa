//! Several devices in one process: copies between them, and access of one to the other's memory.

mod common;

use std::sync::Arc;

use common::cu;
use cudarc::driver::{
    CudaContext, CudaSlice, CudaStream, DevicePtrMut, LaunchConfig, PushKernelArg, sys,
};
use cudarc::nvrtc::Ptx;
use gridcall_emulator::{Config, Device, install_with};

const FAULTS: &str = include_str!("ptx/faults.ptx");

fn contexts() -> (Arc<CudaContext>, Arc<CudaContext>) {
    install_with(&Config::default().devices(2)).unwrap();
    (CudaContext::new(0).unwrap(), CudaContext::new(1).unwrap())
}

fn address<T>(memory: &mut CudaSlice<T>, stream: &CudaStream) -> u64 {
    let (pointer, _guard) = memory.device_ptr_mut(stream);
    pointer
}

/// One test, as the devices are the whole process's.
#[test]
fn two_devices() {
    let (first, second) = contexts();
    assert_eq!(CudaContext::device_count().unwrap(), 2);
    assert_ne!(first.uuid().unwrap().bytes, second.uuid().unwrap().bytes);
    assert_ne!(first.cu_ctx(), second.cu_ctx());
    assert!(Device::at(1).is_some() && Device::at(2).is_none());

    // Streams of one's own: behind the drop of its event, cudarc copies in the default stream of the
    // source's context.
    let (one, two) = (first.new_stream().unwrap(), second.new_stream().unwrap());
    let mut a = one.clone_htod(&[1u32, 2, 3]).unwrap();
    let mut b = two.alloc_zeros::<u32>(3).unwrap();
    two.memcpy_dtod(&a, &mut b).unwrap();
    assert_eq!(two.clone_dtoh(&b).unwrap(), [1, 2, 3]);

    let mut can = 0;
    assert_eq!(cu!(cuDeviceCanAccessPeer(&raw mut can, 0, 1)), 0);
    assert_eq!(can, 1);
    let other = address(&mut a, &one);
    one.synchronize().unwrap();
    let store = second
        .load_module(Ptx::from_src(FAULTS))
        .unwrap()
        .load_function("store_at")
        .unwrap();
    let launch = || {
        let mut launch = two.launch_builder(&store);
        launch.arg(&other);
        let one = LaunchConfig {
            grid_dim: (1, 1, 1),
            block_dim: (1, 1, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: the parameter is the kernel's; whether it may be written to is what the test asks.
        unsafe { launch.launch(one) }.unwrap();
        second.synchronize()
    };
    second.bind_to_thread().unwrap();
    // Memory of a pool has its own list of who may use it; that of `cuMemAlloc` goes by contexts.
    let mut pool = std::ptr::null_mut();
    assert_eq!(cu!(cuDeviceGetDefaultMemPool(&raw mut pool, 0)), 0);
    let access = sys::CUmemAccessDesc {
        location: sys::CUmemLocation {
            type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
            __bindgen_anon_1: sys::CUmemLocation_st__bindgen_ty_1 { id: 1 },
        },
        flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    assert_eq!(cu!(cuMemPoolSetAccess(pool, &raw const access, 1)), 0);
    launch().unwrap();
    assert_eq!(one.clone_dtoh(&a).unwrap(), [7, 2, 3]);
    second.bind_to_thread().unwrap();
    assert_eq!(cu!(cuCtxEnablePeerAccess(first.cu_ctx(), 0)), 0);
    assert_eq!(cu!(cuCtxEnablePeerAccess(first.cu_ctx(), 0)), 704);
    assert_eq!(cu!(cuCtxDisablePeerAccess(first.cu_ctx())), 0);
    assert_eq!(cu!(cuCtxDisablePeerAccess(first.cu_ctx())), 705);
    let refused = sys::CUmemAccessDesc {
        flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_NONE,
        ..access
    };
    assert_eq!(cu!(cuMemPoolSetAccess(pool, &raw const refused, 1)), 0);
    assert_eq!(gridcall_emulator::reports(), []);
    assert_eq!(launch().unwrap_err().0 as u32, 700);
    let report = gridcall_emulator::take_reports().remove(0).to_string();
    assert!(report.contains("no peer access"), "{report}");
    // The other device is well.
    assert_eq!(one.clone_dtoh(&a).unwrap(), [7, 2, 3]);
    gridcall_emulator::reset();
    peer_copies_need_their_order();
    gridcall_emulator::reset();
    let again = CudaContext::new(1).unwrap();
    again.default_stream().alloc_zeros::<u8>(1).unwrap();
}

/// A copy between devices on a stream of one's own waits for nothing by itself; one on a default stream
/// waits for the default streams of both devices, and they for it.
fn peer_copies_need_their_order() {
    let (first, second) = (CudaContext::new(0).unwrap(), CudaContext::new(1).unwrap());
    let (one, two) = (first.default_stream(), second.default_stream());
    let own = second.new_stream().unwrap();
    for (stream, right) in [(&two, true), (&own, false), (&own, true)] {
        let mut pointers = [0; 2];
        for (pointer, stream) in pointers.iter_mut().zip([&one, &two]) {
            stream.context().bind_to_thread().unwrap();
            let queue = stream.cu_stream();
            assert_eq!(cu!(cuMemAllocAsync(pointer, 64, queue)), 0);
            assert_eq!(cu!(cuMemsetD8Async(*pointer, 1, 64, queue)), 0);
        }
        if right && !Arc::ptr_eq(stream, &two) {
            stream.join(&one).unwrap();
            stream.join(&two).unwrap();
        }
        second.bind_to_thread().unwrap();
        let ([from, to], queue) = (pointers, stream.cu_stream());
        let (from_context, to_context) = (first.cu_ctx(), second.cu_ctx());
        let code = cu!(cuMemcpyPeerAsync(
            to,
            to_context,
            from,
            from_context,
            64,
            queue
        ));
        assert_eq!(code, 0);
        if right && !Arc::ptr_eq(stream, &two) {
            one.join(stream).unwrap();
            two.join(stream).unwrap();
        }
        // Without its wait, the copy is to find what it needs.
        for (pointer, stream) in pointers.iter().zip([&one, &two]).filter(|_| right) {
            stream.context().bind_to_thread().unwrap();
            assert_eq!(cu!(cuMemFreeAsync(*pointer, stream.cu_stream())), 0);
        }
        first.synchronize().unwrap();
        second.synchronize().unwrap();
        let reports = gridcall_emulator::take_reports();
        assert_eq!(reports.is_empty(), right, "{reports:?}");
    }
}
