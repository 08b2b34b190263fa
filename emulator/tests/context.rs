//! Devices, contexts and their limits, with the codes a driver answers.

mod common;

use std::cell::RefCell;
use std::ffi::CStr;
use std::ptr::null_mut;
use std::{sync::mpsc, thread};

use common::{cu, fresh, kinds, ordinal, with};
use cudarc::driver::{CudaContext, result, sys};
use gridcall_emulator::{Config, Device, Failure, ReportKind};

/// Asks for the current context when its thread ends.
struct Last(mpsc::Sender<(sys::CUresult, usize)>);

impl Drop for Last {
    fn drop(&mut self) {
        let mut current = null_mut();
        // SAFETY: `current` takes the answer.
        let code = unsafe { sys::cuCtxGetCurrent(&raw mut current) };
        let _ = self.0.send((code, current.addr()));
    }
}

#[test]
fn what_ends_with_a_thread_may_call_the_driver() {
    thread_local! {
        static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
    }
    let (_device, context) = fresh();
    let (tell, told) = mpsc::channel();
    thread::scope(|scope| {
        let ending = || {
            // Made before the thread's first call, and so destroyed after all that came with that.
            LAST.set(Some(Last(tell)));
            context.bind_to_thread().unwrap();
        };
        scope.spawn(ending);
    });
    let expected = (sys::CUresult::CUDA_SUCCESS, context.cu_ctx().addr());
    assert_eq!(told.recv(), Ok(expected));
}

#[test]
fn a_device_is_an_h200_unless_configured() {
    use sys::CUdevice_attribute as A;
    let (_device, context) = fresh();
    assert_eq!(context.compute_capability().unwrap(), (9, 0));
    assert_eq!(context.total_mem().unwrap(), 8 << 30);
    assert!(context.name().unwrap().contains("H200"));
    assert_ne!(context.uuid().unwrap().bytes, [0; 16]);
    for (attribute, value) in [
        (A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132),
        (A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152),
        (
            A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
            232_448,
        ),
        (
            A::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK,
            1024,
        ),
        (A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2_147_483_647),
        (A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535),
        (A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535),
        (A::CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32),
        (A::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1),
        (A::CU_DEVICE_ATTRIBUTE_INTEGRATED, 0),
    ] {
        assert_eq!(
            context.attribute(attribute).unwrap(),
            value,
            "{attribute:?}"
        );
    }
    let config = Config::default()
        .compute_capability(7, 5)
        .multiprocessors(3)
        .memory_bytes(1 << 20);
    let (_device, context) = with(&config);
    assert_eq!(context.compute_capability().unwrap(), (7, 5));
    assert_eq!(context.total_mem().unwrap(), 1 << 20);
    assert_eq!(
        context
            .attribute(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
            .unwrap(),
        3
    );
}

#[test]
fn every_known_attribute_has_an_answer() {
    let (device, _context) = fresh();
    for attribute in 1..=119 {
        let mut value = -1;
        // SAFETY: all numbers up to there are attributes of the header.
        let attribute = unsafe { std::mem::transmute::<u32, sys::CUdevice_attribute>(attribute) };
        let code = cu!(cuDeviceGetAttribute(
            &raw mut value,
            attribute,
            ordinal(&device)
        ));
        assert_eq!(code, 0, "{attribute:?}");
    }
}

#[test]
fn there_is_one_device_to_count() {
    gridcall_emulator::install().unwrap();
    assert_eq!(CudaContext::device_count().unwrap(), 1);
    let mut device = 0;
    assert_eq!(cu!(cuDeviceGet(&raw mut device, 1)), 101);
    assert_eq!(cu!(cuDeviceGet(&raw mut device, -1)), 101);
}

#[test]
fn a_primary_context_has_one_handle() {
    let device = Device::fresh().unwrap();
    let first = CudaContext::new(device.ordinal()).unwrap();
    let second = CudaContext::new(device.ordinal()).unwrap();
    assert_eq!(first.cu_ctx(), second.cu_ctx());
    let (mut before, mut after) = (0, 0);
    assert_eq!(cu!(cuCtxGetId(first.cu_ctx(), &raw mut before)), 0);
    let handle = first.cu_ctx() as usize;
    drop((first, second));
    let again = CudaContext::new(device.ordinal()).unwrap();
    assert_eq!(again.cu_ctx() as usize, handle);
    assert_eq!(cu!(cuCtxGetId(again.cu_ctx(), &raw mut after)), 0);
    assert_ne!(before, after);
}

#[test]
fn a_primary_context_is_active_while_it_is_retained() {
    let device = Device::fresh().unwrap();
    let ordinal = ordinal(&device);
    let state = || {
        let (mut flags, mut active) = (0, 0);
        let code = cu!(cuDevicePrimaryCtxGetState(
            ordinal,
            &raw mut flags,
            &raw mut active
        ));
        assert_eq!(code, 0);
        active
    };
    // Makes sure that the driver is initialised.
    CudaContext::device_count().unwrap();
    assert_eq!(state(), 0);
    let context = CudaContext::new(device.ordinal()).unwrap();
    assert_eq!(state(), 1);
    drop(context);
    assert_eq!(state(), 0);
    assert_eq!(cu!(cuDevicePrimaryCtxRelease_v2(ordinal)), 201);
}

#[test]
fn contexts_stack_up_on_a_thread() {
    let (_device, first) = fresh();
    let (_other, second) = fresh();
    let current = || result::ctx::get_current().unwrap();
    first.bind_to_thread().unwrap();
    assert_eq!(cu!(cuCtxPushCurrent_v2(second.cu_ctx())), 0);
    assert_eq!(current(), Some(second.cu_ctx()));
    let mut popped = null_mut();
    assert_eq!(cu!(cuCtxPopCurrent_v2(&raw mut popped)), 0);
    assert_eq!(popped, second.cu_ctx());
    assert_eq!(current(), Some(first.cu_ctx()));
    assert_eq!(cu!(cuCtxPopCurrent_v2(&raw mut popped)), 0);
    assert_eq!(current(), None);
    assert_eq!(cu!(cuCtxPopCurrent_v2(&raw mut popped)), 201);
    let mut pointer = 0;
    assert_eq!(cu!(cuMemAlloc_v2(&raw mut pointer, 1)), 201);
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(result::ctx::get_current().unwrap(), None));
    });
}

#[test]
fn what_a_thread_has_current_may_be_destroyed() {
    let (device, context) = fresh();
    context.bind_to_thread().unwrap();
    let ordinal = ordinal(&device);
    assert_eq!(cu!(cuDevicePrimaryCtxReset_v2(ordinal)), 0);
    // The same handle is a new context.
    let mut pointer = 0;
    assert_eq!(cu!(cuMemAlloc_v2(&raw mut pointer, 1)), 0);
}

#[test]
fn limits_are_kept() {
    use sys::CUlimit as L;
    let (_device, context) = fresh();
    assert_eq!(context.get_limit(L::CU_LIMIT_STACK_SIZE).unwrap(), 1024);
    context.set_limit(L::CU_LIMIT_STACK_SIZE, 4096).unwrap();
    assert_eq!(context.get_limit(L::CU_LIMIT_STACK_SIZE).unwrap(), 4096);
    assert!(
        context
            .set_limit(L::CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 1)
            .is_err()
    );
}

#[test]
fn every_error_has_its_words() {
    gridcall_emulator::install().unwrap();
    let mut name = std::ptr::null();
    for code in [0, 1, 2, 209, 700, 716, 719, 801, 905, 919, 999] {
        // SAFETY: all of these are codes of the header.
        let code = unsafe { std::mem::transmute::<u32, sys::CUresult>(code) };
        assert_eq!(cu!(cuGetErrorName(code, &raw mut name)), 0);
        // SAFETY: the driver's texts end with a zero and live as long as the process.
        let text = unsafe { CStr::from_ptr(name) };
        assert_eq!(text.to_str().unwrap(), format!("{code:?}"));
        assert_eq!(cu!(cuGetErrorString(code, &raw mut name)), 0);
        assert!(!name.is_null());
    }
}

#[test]
fn memory_runs_out_where_it_is_configured_to() {
    let (device, context) = with(&Config::default().memory_bytes(1 << 20));
    let stream = context.default_stream();
    let half = stream.alloc_zeros::<u8>(600_000).unwrap();
    let (free, total) = context.mem_get_info().unwrap();
    assert_eq!((free, total), ((1 << 20) - 600_000, 1 << 20));
    let error = stream.alloc_zeros::<u8>(600_000).unwrap_err();
    assert_eq!(error.0, sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    drop(half);
    stream.synchronize().unwrap();
    drop(stream.alloc_zeros::<u8>(600_000).unwrap());
    assert_eq!(device.reports(), []);
}

#[test]
fn an_allocation_fails_where_the_test_wants_it() {
    let (device, context) = fresh();
    let stream = context.default_stream();
    device.fail(Failure::Allocation(2));
    assert!(stream.alloc_zeros::<u8>(1).is_ok());
    assert!(stream.alloc_zeros::<u8>(1).is_err());
    assert!(stream.alloc_zeros::<u8>(1).is_ok());
    assert_eq!(kinds(&device), [ReportKind::Injected]);
}

#[test]
fn a_reset_takes_all_away() {
    let (device, context) = fresh();
    let stream = context.default_stream();
    let data = stream.alloc_zeros::<u8>(100).unwrap();
    stream.synchronize().unwrap();
    std::mem::forget(data);
    assert_eq!(device.leaks().len(), 1);
    device.reset();
    assert_eq!(device.leaks(), []);
    assert!(context.synchronize().is_err());
    let again = CudaContext::new(device.ordinal()).unwrap();
    let stream = again.default_stream();
    assert_eq!(
        stream
            .clone_dtoh(&stream.clone_htod(&[1u8]).unwrap())
            .unwrap(),
        [1]
    );
}

#[test]
fn contexts_of_one_s_own_can_be_made_and_destroyed() {
    let device = Device::fresh().unwrap();
    CudaContext::device_count().unwrap();
    let mut context = null_mut();
    let code = cu!(cuCtxCreate_v4(
        &raw mut context,
        null_mut(),
        0,
        ordinal(&device)
    ));
    assert_eq!(code, 0);
    assert_eq!(result::ctx::get_current().unwrap(), Some(context));
    let mut pointer = 0;
    assert_eq!(cu!(cuMemAlloc_v2(&raw mut pointer, 16)), 0);
    assert_eq!(device.leaks().len(), 1);
    assert_eq!(cu!(cuCtxDestroy_v2(context)), 0);
    assert_eq!(device.leaks(), []);
    assert_eq!(result::ctx::get_current().unwrap(), None);
    assert_eq!(cu!(cuCtxSetCurrent(context)), 201);
}

#[test]
fn absent_functions_say_so() {
    gridcall_emulator::install().unwrap();
    assert_eq!(cu!(cuMipmappedArrayDestroy(std::ptr::null_mut())), 801);
    let mut table = std::ptr::null();
    let id = sys::CUuuid { bytes: [0; 16] };
    assert_eq!(cu!(cuGetExportTable(&raw mut table, &raw const id)), 500);
}

#[test]
fn functions_are_found_by_name() {
    gridcall_emulator::install().unwrap();
    CudaContext::device_count().unwrap();
    let mut function = null_mut();
    let mut status = sys::CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SUCCESS;
    let code = cu!(cuGetProcAddress_v2(
        c"cuDeviceGetCount".as_ptr(),
        &raw mut function,
        12000,
        0,
        &raw mut status
    ));
    assert_eq!(code, 0);
    // SAFETY: the function of that name has this type.
    let count = unsafe {
        std::mem::transmute::<*mut std::ffi::c_void, unsafe extern "C" fn(*mut i32) -> u32>(
            function,
        )
    };
    let mut devices = 0;
    // SAFETY: writes one number to where the pointer leads.
    assert_eq!(unsafe { count(&raw mut devices) }, 0);
    assert_eq!(devices, 1);
    let code = cu!(cuGetProcAddress_v2(
        c"cuNoSuchFunction".as_ptr(),
        &raw mut function,
        12000,
        0,
        &raw mut status
    ));
    assert_eq!(code, 0);
    assert!(function.is_null());
    assert_eq!(
        status,
        sys::CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
    );
}
