//! Allocation and copies, as a user of cudarc sees them.

mod common;

use std::ptr::null_mut;

use common::{INVALID_VALUE, SUCCESS, cu, fresh, kinds, ordinal, with};
use cudarc::driver::{CudaContext, sys};
use gridcall_emulator::{Config, Device, ReportKind};

#[test]
fn what_is_copied_in_comes_back() {
    let device = Device::fresh().unwrap();
    let context = CudaContext::new(device.ordinal()).unwrap();
    let stream = context.default_stream();
    let data = stream.clone_htod(&[1.0f32, 2.0, 3.0]).unwrap();
    let copy = stream.clone_dtod(&data).unwrap();
    assert_eq!(stream.clone_dtoh(&copy).unwrap(), [1.0, 2.0, 3.0]);
    let zeros = stream.alloc_zeros::<u64>(100).unwrap();
    assert_eq!(stream.clone_dtoh(&zeros).unwrap(), [0; 100]);
    drop((data, copy, zeros));
    context.synchronize().unwrap();
    assert_eq!(device.leaks(), []);
    assert_eq!(device.reports(), []);
}

#[test]
fn streams_and_events() {
    let device = Device::fresh().unwrap();
    let context = CudaContext::new(device.ordinal()).unwrap();
    let stream = context.new_stream().unwrap();
    let start = context
        .new_event(Some(sys::CUevent_flags::CU_EVENT_DEFAULT))
        .unwrap();
    let end = context
        .new_event(Some(sys::CUevent_flags::CU_EVENT_DEFAULT))
        .unwrap();
    start.record(&stream).unwrap();
    let data = stream.clone_htod(&[7u8; 1000]).unwrap();
    end.record(&stream).unwrap();
    assert!(start.elapsed_ms(&end).unwrap() >= 0.0);
    let other = context.new_stream().unwrap();
    let back = other.clone_dtoh(&data).unwrap();
    assert_eq!(back, [7; 1000]);
    assert_eq!(device.reports(), []);
}

#[test]
fn without_pools_cudarc_allocates_at_once() {
    let (device, context) = with(&Config::default().memory_pools(false));
    assert!(!context.has_async_alloc());
    let stream = context.default_stream();
    let data = stream.clone_htod(&[1u32, 2]).unwrap();
    assert_eq!(stream.clone_dtoh(&data).unwrap(), [1, 2]);
    drop(data);
    assert_eq!(device.leaks(), []);
    assert_eq!(device.reports(), []);
}

#[test]
fn nothing_is_allocated_for_nothing() {
    let (_device, context) = fresh();
    let stream = context.default_stream();
    let mut pointer = 77;
    assert_eq!(cu!(cuMemAlloc_v2(&raw mut pointer, 0)), INVALID_VALUE);
    assert_eq!(
        cu!(cuMemAllocAsync(&raw mut pointer, 0, stream.cu_stream())),
        SUCCESS
    );
    assert_eq!(pointer, 0);
    assert_eq!(cu!(cuMemsetD8Async(0, 0, 0, null_mut())), SUCCESS);
    assert_eq!(cu!(cuMemcpyDtoDAsync_v2(0, 0, 0, null_mut())), SUCCESS);
    assert_eq!(cu!(cuMemFree_v2(0)), SUCCESS);
    assert_eq!(cu!(cuMemFreeAsync(0, null_mut())), SUCCESS);
    let empty = stream.alloc_zeros::<f32>(0).unwrap();
    assert_eq!(stream.clone_dtoh(&empty).unwrap(), [0.0; 0]);
}

#[test]
fn addresses_are_aligned_to_512_bytes_and_no_more() {
    let (_device, _context) = fresh();
    let mut last = 0;
    for bytes in [1, 256, 1000, 4096] {
        let mut pointer = 0;
        assert_eq!(cu!(cuMemAlloc_v2(&raw mut pointer, bytes)), SUCCESS);
        assert_eq!(pointer % 1024, 512);
        assert_ne!(pointer, last);
        last = pointer;
    }
}

#[test]
fn a_copy_past_the_end_is_refused_and_explained() {
    let (device, _context) = fresh();
    let mut pointer = 0;
    assert_eq!(cu!(cuMemAlloc_v2(&raw mut pointer, 100)), SUCCESS);
    let host = [0u8; 200];
    let from = host.as_ptr().cast();
    assert_eq!(cu!(cuMemcpyHtoD_v2(pointer, from, 100)), SUCCESS);
    assert_eq!(cu!(cuMemcpyHtoD_v2(pointer, from, 101)), INVALID_VALUE);
    assert_eq!(cu!(cuMemcpyHtoD_v2(pointer + 104, from, 1)), INVALID_VALUE);
    let report = device.reports().pop().unwrap();
    assert_eq!(report.kind, ReportKind::InvalidArgument);
    let words = "4 bytes past the end of allocation #1, 100 bytes";
    assert!(report.message.contains(words), "{report}");
}

#[test]
fn a_pageable_source_may_change_after_the_call() {
    let (_device, context) = fresh();
    let stream = context.new_stream().unwrap();
    let mut data = stream.alloc_zeros::<u8>(4).unwrap();
    let mut host = vec![1u8; 4];
    stream.memcpy_htod(&host, &mut data).unwrap();
    host.fill(2);
    assert_eq!(stream.clone_dtoh(&data).unwrap(), [1; 4]);
}

#[test]
fn a_pinned_source_is_read_at_its_turn() {
    let (_device, context) = fresh();
    let stream = context.new_stream().unwrap();
    let mut data = stream.alloc_zeros::<u8>(4).unwrap();
    // SAFETY: the memory is written before it is read.
    let mut pinned = unsafe { context.alloc_pinned::<u8>(4) }.unwrap();
    pinned.as_mut_slice().unwrap().fill(1);
    let pointer = pinned.as_mut_ptr().unwrap();
    stream.memcpy_htod(&pinned, &mut data).unwrap();
    // SAFETY: the test's own memory; that a copy is under way is what it is about.
    unsafe { pointer.write(9) };
    assert_eq!(stream.clone_dtoh(&data).unwrap(), [9, 1, 1, 1]);
}

#[test]
fn pinned_memory_has_one_address() {
    let (_device, _context) = fresh();
    for flags in [0, 2, 4] {
        let (mut host, mut mapped) = (null_mut(), 0);
        assert_eq!(cu!(cuMemHostAlloc(&raw mut host, 64, flags)), SUCCESS);
        assert_eq!(
            cu!(cuMemHostGetDevicePointer_v2(&raw mut mapped, host, 0)),
            SUCCESS
        );
        assert_eq!(mapped, host as u64);
        assert_eq!(cu!(cuMemFreeHost(host)), SUCCESS);
        assert_eq!(cu!(cuMemFreeHost(host)), INVALID_VALUE);
    }
}

#[test]
fn managed_memory_is_the_host_s_too() {
    let (device, context) = fresh();
    // SAFETY: the memory is written before it is read.
    let mut managed = unsafe { context.alloc_unified::<u32>(8, true) }.unwrap();
    managed.as_mut_slice().unwrap().fill(5);
    let stream = context.default_stream();
    let back = stream.clone_dtoh(&managed).unwrap();
    assert_eq!(back, [5; 8]);
    stream.memset_zeros(&mut managed).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(managed.as_slice().unwrap(), [0; 8]);
    managed.prefetch().unwrap();
    drop(managed);
    assert_eq!(device.leaks(), []);
    assert_eq!(device.reports(), []);
}

#[test]
fn registered_memory_is_known_by_its_range() {
    let (_device, _context) = fresh();
    let mut memory = vec![0u8; 4096];
    let pointer = memory.as_mut_ptr().cast();
    assert_eq!(cu!(cuMemHostRegister_v2(pointer, 4096, 0)), SUCCESS);
    assert_eq!(cu!(cuMemHostRegister_v2(pointer, 10, 0)), 712);
    let mut mapped = 0;
    assert_eq!(
        cu!(cuMemHostGetDevicePointer_v2(&raw mut mapped, pointer, 0)),
        SUCCESS
    );
    assert_eq!(mapped, pointer as u64);
    assert_eq!(cu!(cuMemsetD8_v2(mapped, 3, 4096)), SUCCESS);
    assert_eq!(cu!(cuMemHostUnregister(pointer)), SUCCESS);
    assert_eq!(cu!(cuMemHostUnregister(pointer)), 713);
    assert_eq!(memory, [3; 4096]);
}

#[test]
fn what_a_pointer_is_can_be_asked() {
    use sys::CUpointer_attribute as P;
    let (device, context) = fresh();
    let mut pointer = 0;
    assert_eq!(cu!(cuMemAlloc_v2(&raw mut pointer, 100)), SUCCESS);
    let ask = |pointer| {
        let (mut context, mut kind, mut ordinal) = (null_mut::<()>(), 9u32, -1i32);
        let (mut start, mut size) = (1u64, 1usize);
        let mut attributes = [
            P::CU_POINTER_ATTRIBUTE_CONTEXT,
            P::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
            P::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
            P::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
            P::CU_POINTER_ATTRIBUTE_RANGE_SIZE,
        ];
        let mut data = [
            (&raw mut context).cast(),
            (&raw mut kind).cast(),
            (&raw mut ordinal).cast(),
            (&raw mut start).cast(),
            (&raw mut size).cast(),
        ];
        let code = cu!(cuPointerGetAttributes(
            5,
            attributes.as_mut_ptr(),
            data.as_mut_ptr(),
            pointer
        ));
        assert_eq!(code, SUCCESS);
        (context as usize, kind, ordinal, start, size)
    };
    let (handle, ordinal) = (context.cu_ctx() as usize, ordinal(&device));
    assert_eq!(ask(pointer + 50), (handle, 2, ordinal, pointer, 100));
    assert_eq!(ask((&raw const device) as u64), (0, 0, -2, 0, 0));
    let (mut base, mut size) = (0, 0);
    assert_eq!(
        cu!(cuMemGetAddressRange_v2(
            &raw mut base,
            &raw mut size,
            pointer + 99
        )),
        SUCCESS
    );
    assert_eq!((base, size), (pointer, 100));
    assert_eq!(
        cu!(cuMemGetAddressRange_v2(
            &raw mut base,
            &raw mut size,
            pointer + 100
        )),
        500
    );
}

#[test]
fn rows_of_pitched_memory_are_aligned() {
    let (_device, _context) = fresh();
    let (mut pointer, mut pitch) = (0, 0);
    let code = cu!(cuMemAllocPitch_v2(
        &raw mut pointer,
        &raw mut pitch,
        100,
        7,
        4
    ));
    assert_eq!((code, pitch), (SUCCESS, 512));
    assert_eq!(cu!(cuMemsetD8_v2(pointer, 0, 7 * 512)), SUCCESS);
}

#[test]
fn memsets_write_elements() {
    let (_device, _context) = fresh();
    let mut pointer = 0;
    assert_eq!(cu!(cuMemAlloc_v2(&raw mut pointer, 12)), SUCCESS);
    assert_eq!(cu!(cuMemsetD8_v2(pointer, 0x11, 4)), SUCCESS);
    assert_eq!(
        cu!(cuMemsetD16Async(pointer + 4, 0x2233, 2, null_mut())),
        SUCCESS
    );
    assert_eq!(
        cu!(cuMemsetD32Async(pointer + 8, 0x4455_6677, 1, null_mut())),
        SUCCESS
    );
    assert_eq!(
        cu!(cuMemsetD32Async(pointer + 1, 0, 1, null_mut())),
        INVALID_VALUE
    );
    let mut back = [0u8; 12];
    assert_eq!(
        cu!(cuMemcpyDtoH_v2(back.as_mut_ptr().cast(), pointer, 12)),
        SUCCESS
    );
    assert_eq!(
        back,
        [
            0x11, 0x11, 0x11, 0x11, 0x33, 0x22, 0x33, 0x22, 0x77, 0x66, 0x55, 0x44
        ]
    );
}

#[test]
fn what_was_never_written_does_not_come_back_as_zeros() {
    let (_device, _context) = fresh();
    let (mut pointer, mut copy) = (0, 0);
    assert_eq!(cu!(cuMemAlloc_v2(&raw mut pointer, 4)), SUCCESS);
    assert_eq!(cu!(cuMemAlloc_v2(&raw mut copy, 4)), SUCCESS);
    assert_eq!(cu!(cuMemsetD8_v2(pointer + 1, 0, 1)), SUCCESS);
    assert_eq!(cu!(cuMemcpyDtoD_v2(copy, pointer, 4)), SUCCESS);
    let mut back = [1u8; 4];
    assert_eq!(
        cu!(cuMemcpyDtoH_v2(back.as_mut_ptr().cast(), copy, 4)),
        SUCCESS
    );
    assert_eq!(back, [0xa5, 0, 0xa5, 0xa5]);
}

#[test]
fn pools_keep_account() {
    let (device, context) = fresh();
    let stream = context.new_stream().unwrap();
    let properties = sys::CUmemPoolProps {
        allocType: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        handleTypes: sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
        location: sys::CUmemLocation {
            type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
            __bindgen_anon_1: sys::CUmemLocation_st__bindgen_ty_1 {
                id: ordinal(&device),
            },
        },
        win32SecurityAttributes: null_mut(),
        maxSize: 1000,
        usage: 0,
        gpuDirectRDMACapable: 0,
        reserved: [0; 53],
    };
    let mut pool = null_mut();
    assert_eq!(
        cu!(cuMemPoolCreate(&raw mut pool, &raw const properties)),
        SUCCESS
    );
    let used = |pool| {
        let mut used = 0u64;
        let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT;
        let code = cu!(cuMemPoolGetAttribute(
            pool,
            attribute,
            (&raw mut used).cast()
        ));
        assert_eq!(code, SUCCESS);
        used
    };
    let mut pointer = 0;
    let from_pool = |pointer: &mut u64, bytes| {
        cu!(cuMemAllocFromPoolAsync(
            pointer,
            bytes,
            pool,
            stream.cu_stream()
        ))
    };
    assert_eq!(from_pool(&mut pointer, 600), SUCCESS);
    assert_eq!(used(pool), 600);
    assert_eq!(from_pool(&mut pointer, 600), 2);
    assert_eq!(from_pool(&mut pointer, 400), SUCCESS);
    assert_eq!(cu!(cuMemFreeAsync(pointer, stream.cu_stream())), SUCCESS);
    stream.synchronize().unwrap();
    assert_eq!(used(pool), 600);
    assert_eq!(cu!(cuMemPoolDestroy(pool)), SUCCESS);
    assert_eq!(from_pool(&mut pointer, 1), 400);
    let mut default = null_mut();
    let ordinal = ordinal(&device);
    assert_eq!(
        cu!(cuDeviceGetDefaultMemPool(&raw mut default, ordinal)),
        SUCCESS
    );
    assert_eq!(cu!(cuMemPoolDestroy(default)), INVALID_VALUE);
}

#[test]
fn leaks_are_listed() {
    let (device, _context) = fresh();
    let (mut a, mut b) = (0, null_mut());
    assert_eq!(cu!(cuMemAlloc_v2(&raw mut a, 10)), SUCCESS);
    assert_eq!(cu!(cuMemHostAlloc(&raw mut b, 20, 0)), SUCCESS);
    let leaks: Vec<String> = device.leaks().iter().map(ToString::to_string).collect();
    let ordinal = device.ordinal();
    assert_eq!(
        leaks,
        [
            format!(
                "allocation #1 of device {ordinal}, 10 bytes of device memory, was never freed"
            ),
            format!(
                "allocation #2 of device {ordinal}, 20 bytes of pinned host memory, was never freed"
            ),
        ]
    );
    let _ = kinds(&device);
}
