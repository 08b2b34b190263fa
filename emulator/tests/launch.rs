//! Kernels launched through cudarc.

#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::float_cmp,
    reason = "small whole numbers, exact in every type used"
)]

mod common;

use common::{cu, fresh, kinds, with};
use cudarc::driver::{CudaContext, CudaFunction, CudaModule, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use gridcall_emulator::{Config, Device, Failure, Order, ReportKind};
use std::sync::Arc;

const AXPY: &str = include_str!("../../ptx/tests/corpus/axpy.nvrtc13.sm_75.ptx");

fn load(context: &Arc<CudaContext>, ptx: &str, kernel: &str) -> CudaFunction {
    let module = context.load_module(Ptx::from_src(ptx)).unwrap();
    module.load_function(kernel).unwrap()
}

#[test]
fn axpy_computes() {
    let (device, context) = fresh();
    let axpy = load(&context, AXPY, "axpy");
    let stream = context.default_stream();
    let n = 100_000u64;
    let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let x_dev = stream.clone_htod(&x).unwrap();
    let mut y_dev = stream.clone_htod(&vec![1.0f32; n as usize]).unwrap();
    let mut launch = stream.launch_builder(&axpy);
    launch.arg(&2.0f32).arg(&x_dev).arg(&mut y_dev).arg(&n);
    // SAFETY: the arguments are those of the kernel, and the arrays have `n` elements.
    unsafe { launch.launch(LaunchConfig::for_num_elems(n as u32)) }.unwrap();
    let y = stream.clone_dtoh(&y_dev).unwrap();
    assert!(y.iter().zip(&x).all(|(y, x)| *y == 2.0 * x + 1.0));
    assert_eq!(device.reports(), []);
}

const FUNCTIONS: &str = include_str!("../../kernels/functions.ptx");
const FAULTS: &str = include_str!("ptx/faults.ptx");
const CLUSTERS: &str = include_str!("../../ptx/tests/corpus/bounds_cluster.nvrtc13.sm_90.ptx");
const STRUCTS: &str = include_str!("../../ptx/tests/corpus/struct_param.nvrtc13.sm_90.ptx");
const CONSTANTS: &str = include_str!("../../ptx/tests/corpus/const_symbol.nvrtc13.sm_90.ptx");
const COOPERATIVE: &str = include_str!("../../ptx/tests/corpus/coop_grid.nvrtc13.sm_90.ptx");

fn shape(grid: (u32, u32, u32), block: (u32, u32, u32), shared_mem_bytes: u32) -> LaunchConfig {
    LaunchConfig {
        grid_dim: grid,
        block_dim: block,
        shared_mem_bytes,
    }
}

/// Launches with words as parameters and gives the code.
fn launch(
    context: &Arc<CudaContext>,
    kernel: &CudaFunction,
    config: LaunchConfig,
    words: &[u64],
) -> u32 {
    let stream = context.default_stream();
    let mut launch = stream.launch_builder(kernel);
    for word in words {
        launch.arg(word);
    }
    // SAFETY: the tests pass as many words as the kernel has parameters, none larger, and memory of
    // theirs or what the emulator is to refuse.
    match unsafe { launch.launch(config) } {
        Ok(_) => 0,
        Err(error) => error.0 as u32,
    }
}

fn synchronize(context: &Arc<CudaContext>) -> u32 {
    match context.synchronize() {
        Ok(()) => 0,
        Err(error) => error.0 as u32,
    }
}

const ONE: LaunchConfig = LaunchConfig {
    grid_dim: (1, 1, 1),
    block_dim: (1, 1, 1),
    shared_mem_bytes: 0,
};

#[test]
fn shapes_over_the_limits_are_refused_and_nothing_else_suffers() {
    let (device, context) = fresh();
    let empty = load(&context, STRUCTS, "empty_kernel");
    for (grid, block) in [
        ((0, 1, 1), (1, 1, 1)),
        ((1, 1, 1), (0, 1, 1)),
        ((1, 1, 1), (1025, 1, 1)),
        ((1, 1, 1), (1, 1, 65)),
        ((1, 1, 1), (512, 4, 1)),
        ((1, 65536, 1), (1, 1, 1)),
        ((1, 1, 65536), (1, 1, 1)),
        ((1 << 31, 1, 1), (1, 1, 1)),
    ] {
        assert_eq!(
            launch(&context, &empty, shape(grid, block, 0), &[]),
            1,
            "{grid:?} {block:?}"
        );
        assert_eq!(synchronize(&context), 0);
        assert_eq!(launch(&context, &empty, ONE, &[]), 0);
        assert_eq!(synchronize(&context), 0);
    }
    assert_eq!(kinds(&device)[0], ReportKind::InvalidLaunch);
    assert_eq!(
        launch(
            &context,
            &empty,
            shape((1_000_000, 1, 1), (1, 1, 1), 0),
            &[]
        ),
        0
    );
    assert_eq!(synchronize(&context), 0);
}

#[test]
fn dynamic_shared_memory_beyond_48_kib_is_opted_into() {
    use cudarc::driver::sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as DYNAMIC;
    let (_device, context) = fresh();
    let empty = load(&context, STRUCTS, "empty_kernel");
    let with_shared = |bytes| launch(&context, &empty, shape((1, 1, 1), (1, 1, 1), bytes), &[]);
    assert_eq!(with_shared(48 * 1024), 0);
    assert_eq!(with_shared(48 * 1024 + 1), 1);
    assert!(empty.set_attribute(DYNAMIC, 232_449).is_err());
    empty.set_attribute(DYNAMIC, 232_448).unwrap();
    assert_eq!(with_shared(232_448), 0);
    assert_eq!(synchronize(&context), 0);
    let holds = load(&context, FAULTS, "static_shared");
    let with_shared = |bytes| launch(&context, &holds, shape((1, 1, 1), (1, 1, 1), bytes), &[]);
    assert_eq!(with_shared(49152 - 40000), 0);
    assert_eq!(with_shared(49152 - 40000 + 1), 1);
    assert!(holds.set_attribute(DYNAMIC, 232_448).is_err());
    holds.set_attribute(DYNAMIC, 232_448 - 40000).unwrap();
}

#[test]
fn launch_bounds_hold() {
    let (device, context) = fresh();
    let mut memory = context.default_stream().alloc_zeros::<f32>(512).unwrap();
    let pointer = device_pointer(&mut memory);
    let bounds = load(&context, CLUSTERS, "bounds2");
    assert_eq!(
        launch(
            &context,
            &bounds,
            shape((1, 1, 1), (512, 1, 1), 0),
            &[pointer]
        ),
        1
    );
    assert_eq!(
        launch(
            &context,
            &bounds,
            shape((1, 1, 1), (256, 1, 1), 0),
            &[pointer]
        ),
        0
    );
    let required = load(&context, FAULTS, "required");
    assert_eq!(
        launch(&context, &required, shape((1, 1, 1), (64, 1, 1), 0), &[]),
        1
    );
    assert_eq!(
        launch(&context, &required, shape((1, 1, 1), (32, 2, 1), 0), &[]),
        0
    );
    assert_eq!(synchronize(&context), 0);
    assert!(
        device.reports()[0].message.contains("launch bounds"),
        "{}",
        device.reports()[0]
    );
}

fn device_pointer<T>(memory: &mut cudarc::driver::CudaSlice<T>) -> u64 {
    use cudarc::driver::DevicePtrMut;
    let stream = memory.stream().clone();
    let (pointer, _guard) = memory.device_ptr_mut(&stream);
    pointer
}

#[test]
fn clusters_divide_the_grid() {
    let (_device, context) = fresh();
    let mut memory = context.default_stream().alloc_zeros::<f32>(32).unwrap();
    let pointer = device_pointer(&mut memory);
    let cluster = load(&context, CLUSTERS, "cluster2");
    assert_eq!(
        launch(
            &context,
            &cluster,
            shape((3, 1, 1), (32, 1, 1), 0),
            &[pointer]
        ),
        912
    );
    assert_eq!(
        launch(
            &context,
            &cluster,
            shape((4, 1, 1), (32, 1, 1), 0),
            &[pointer]
        ),
        0
    );
    assert_eq!(synchronize(&context), 0);
}

/// As a driver does (580, H200).
#[test]
fn a_kernel_whose_blocks_are_clusters_is_given_clusters() {
    const INVALID_VALUE: u32 = 1;
    const INVALID_CLUSTER_SIZE: u32 = 912;
    let (_device, context) = fresh();
    let stream = context.default_stream();
    let ptx = include_str!("../../kernels/clusters.ptx");
    let counted = load(&context, ptx, "counted_square");
    let mut runs = stream.alloc_zeros::<u32>(24).unwrap();
    let mut dims = stream.alloc_zeros::<u32>(4).unwrap();
    let pointers = [device_pointer(&mut runs), device_pointer(&mut dims)];
    let run = |grid, block| launch(&context, &counted, shape(grid, block, 0), &pointers);
    assert_eq!(run((3, 2, 1), (8, 4, 1)), 0);
    assert_eq!(stream.clone_dtoh(&runs).unwrap(), [1; 24]);
    assert_eq!(stream.clone_dtoh(&dims).unwrap(), [6, 4, 3, 2]);
    // One thread stands for the block that is required, and no other does.
    assert_eq!(run((3, 2, 1), (1, 1, 1)), 0);
    assert_eq!(stream.clone_dtoh(&runs).unwrap(), [2; 24]);
    for block in [(8, 1, 1), (8, 8, 1), (32, 1, 1)] {
        assert_eq!(run((3, 2, 1), block), INVALID_VALUE, "{block:?}");
    }
    assert_eq!(run((1, 40_000, 1), (8, 4, 1)), INVALID_VALUE);
    // Of one that is compiled for clusters otherwise, the grid is one of blocks.
    let pair = load(&context, ptx, "pair");
    assert_eq!(
        launch(
            &context,
            &pair,
            shape((3, 1, 1), (32, 1, 1), 128),
            &pointers
        ),
        INVALID_CLUSTER_SIZE
    );
}

#[test]
fn cooperative_grids_must_fit() {
    let (_device, context) = with(&Config::default().multiprocessors(2));
    let stream = context.default_stream();
    let coop = load(&context, COOPERATIVE, "coop_grid");
    let n = 1000i32;
    let mut host = vec![0.0f32; 2000];
    host[..1000]
        .iter_mut()
        .enumerate()
        .for_each(|(i, x)| *x = i as f32);
    let mut buffer = stream.clone_htod(&host).unwrap();
    let mut run = |blocks| {
        let mut launch = stream.launch_builder(&coop);
        launch.arg(&mut buffer).arg(&n).arg(&3i32);
        // SAFETY: the arguments are those of the kernel, and the array has `2 * n` elements.
        let outcome = unsafe { launch.launch_cooperative(shape((blocks, 1, 1), (256, 1, 1), 0)) };
        outcome.err().map_or(0, |error| error.0 as u32)
    };
    assert_eq!(run(1000), 720);
    assert_eq!(run(8), 0);
    let result = stream.clone_dtoh(&buffer).unwrap();
    let mut expected = host;
    for k in 0..3 {
        let (to, from) = if k % 2 == 1 { (0, 1000) } else { (1000, 0) };
        for i in 0..1000 {
            expected[to + i] = 0.5 * expected[from + (i + 1) % 1000];
        }
    }
    assert_eq!(result, expected);
}

/// A fault: the launch succeeds, what follows fails for good, a fresh context works again.
#[track_caller]
fn assert_fault(kernel: &str, words: impl FnOnce(u64) -> Vec<u64>, code: u32, explained: &str) {
    let (device, context) = fresh();
    let mut memory = context.default_stream().alloc_zeros::<u32>(1024).unwrap();
    let words = words(device_pointer(&mut memory));
    let function = load(&context, FAULTS, kernel);
    assert_eq!(launch(&context, &function, ONE, &words), 0);
    assert_eq!(synchronize(&context), code);
    assert_eq!(launch(&context, &function, ONE, &words), code);
    assert_eq!(synchronize(&context), code);
    let reports = device.take_reports();
    assert_eq!(reports.len(), 1, "{reports:?}");
    let report = &reports[0];
    assert_eq!(report.code, Some(code));
    assert_eq!(report.kernel.as_deref(), Some(kernel));
    let words = report.to_string();
    for part in [explained, "PTX line", "thread (0,0,0)"] {
        assert!(words.contains(part), "`{part}` is not in `{words}`");
    }
    drop((function, memory, context));
    let again = CudaContext::new(device.ordinal()).unwrap();
    let stream = again.default_stream();
    let data = stream.clone_htod(&[1u8]).unwrap();
    assert_eq!(stream.clone_dtoh(&data).unwrap(), [1]);
}

#[test]
fn one_element_past_the_end() {
    assert_fault(
        "store_at",
        |p| vec![p + 4096],
        700,
        "0 bytes past the end of allocation #1, 4096 bytes",
    );
}

#[test]
fn one_element_before_the_start() {
    assert_fault(
        "store_at",
        |p| vec![p - 4],
        700,
        "4 bytes before allocation #1",
    );
}

#[test]
fn far_out_of_bounds() {
    assert_fault(
        "store_at",
        |p| vec![p + (1 << 33)],
        700,
        "no allocation is near",
    );
}

#[test]
fn a_null_pointer() {
    assert_fault("store_at", |_| vec![0], 700, "a null pointer");
}

#[test]
fn a_host_pointer() {
    let host = Box::new(0u32);
    let address = (&raw const *host) as u64;
    assert_fault("store_at", |_| vec![address], 700, "pageable host memory");
}

#[test]
fn a_misaligned_vector() {
    assert_fault("load_four", |p| vec![p + 4], 716, "load_four");
}

#[test]
fn a_trap() {
    assert_fault("traps", |_| vec![], 719, "traps");
}

#[test]
fn memory_that_was_freed() {
    let (device, context) = fresh();
    let store = load(&context, FAULTS, "store_at");
    let mut memory = context.default_stream().alloc_zeros::<u32>(16).unwrap();
    let pointer = device_pointer(&mut memory);
    drop(memory);
    assert_eq!(launch(&context, &store, ONE, &[pointer]), 0);
    assert_eq!(synchronize(&context), 700);
    assert_eq!(kinds(&device), [ReportKind::UseAfterFree]);
    let words = device.reports()[0].to_string();
    assert!(
        words.contains("freed memory, once allocation #1, 64 bytes"),
        "{words}"
    );
}

#[test]
fn memory_that_was_never_written() {
    let (device, context) = fresh();
    let copy = load(&context, FAULTS, "copy_words");
    let stream = context.default_stream();
    // SAFETY: that it is not written before it is read is what the test is about.
    let mut memory = unsafe { stream.alloc::<u32>(16) }.unwrap();
    let pointer = device_pointer(&mut memory);
    assert_eq!(launch(&context, &copy, ONE, &[pointer, pointer, 1]), 0);
    assert_eq!(synchronize(&context), 719);
    assert_eq!(kinds(&device), [ReportKind::Fault]);
}

#[test]
fn kernels_on_two_streams_without_a_wait() {
    for order in [Order::Lazy, Order::Eager, Order::Random(5)] {
        let (device, context) = with(&Config::default().order(order));
        let copy = load(&context, FAULTS, "copy_words");
        let stream = context.default_stream();
        let mut memory = stream.clone_htod(&[1u32; 300]).unwrap();
        let pointer = device_pointer(&mut memory);
        stream.synchronize().unwrap();
        // SAFETY: the streams only live to the end of the scope.
        let (a, b) = (context.new_stream().unwrap(), context.new_stream().unwrap());
        for (stream, offset) in [(&a, 400u64), (&b, 800)] {
            let mut launch = stream.launch_builder(&copy);
            let to = pointer + offset;
            launch.arg(&pointer).arg(&to).arg(&100u32);
            // SAFETY: the arguments are those of the kernel, within the array of 300 words.
            unsafe { launch.launch(LaunchConfig::for_num_elems(100)) }.unwrap();
        }
        assert_eq!(synchronize(&context), 0);
        assert_eq!(device.reports(), []);
        for (stream, offset) in [(&a, 400u64), (&b, 796)] {
            let mut launch = stream.launch_builder(&copy);
            let to = pointer + offset;
            launch.arg(&pointer).arg(&to).arg(&100u32);
            // SAFETY: as above.
            unsafe { launch.launch(LaunchConfig::for_num_elems(100)) }.unwrap();
        }
        assert_eq!(synchronize(&context), 0);
        assert_eq!(kinds(&device), [ReportKind::Conflict]);
        let words = device.reports()[0].to_string();
        assert!(words.contains("bytes 796..800 of allocation #1"), "{words}");
    }
}

#[test]
fn a_kernel_that_waits_for_the_host_gets_on() {
    let config = Config::default().idle(std::time::Duration::from_millis(2));
    let (_device, context) = with(&config);
    let wait = load(&context, FAULTS, "wait_for");
    let mut pinned = std::ptr::null_mut();
    assert_eq!(cu!(cuMemHostAlloc(&raw mut pinned, 8, 0)), 0);
    let words = pinned.cast::<std::sync::atomic::AtomicU32>();
    // SAFETY: the first of two words of the driver's memory, which live until they are freed below.
    let flag = unsafe { &*words };
    // SAFETY: the second of them.
    let out = unsafe { &*words.wrapping_add(1) };
    assert_eq!(
        launch(&context, &wait, ONE, &[pinned as u64, pinned as u64 + 4]),
        0
    );
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            flag.store(3, std::sync::atomic::Ordering::Release);
        });
        assert_eq!(synchronize(&context), 0);
    });
    assert_eq!(out.load(std::sync::atomic::Ordering::Acquire), 3);
    // Without anyone waiting, too.
    assert_eq!(
        launch(&context, &wait, ONE, &[pinned as u64, pinned as u64 + 4]),
        0
    );
    flag.store(4, std::sync::atomic::Ordering::Release);
    while out.load(std::sync::atomic::Ordering::Acquire) == 3 {
        std::thread::yield_now();
    }
    assert_eq!(cu!(cuMemFreeHost(pinned)), 0);
}

#[test]
fn a_kernel_that_waits_for_another_stream_gets_on() {
    let (_device, context) = fresh();
    let wait = load(&context, FAULTS, "wait_for");
    let store = load(&context, FAULTS, "store_at");
    let stream = context.default_stream();
    let mut memory = stream.alloc_zeros::<u32>(2).unwrap();
    let flag = device_pointer(&mut memory);
    stream.synchronize().unwrap();
    let (a, b) = (context.new_stream().unwrap(), context.new_stream().unwrap());
    let out = flag + 4;
    let mut first = a.launch_builder(&wait);
    first.arg(&flag).arg(&out);
    // SAFETY: two words of the test's memory.
    unsafe { first.launch(ONE) }.unwrap();
    let mut second = b.launch_builder(&store);
    second.arg(&flag);
    // SAFETY: as above.
    unsafe { second.launch(ONE) }.unwrap();
    a.synchronize().unwrap();
    assert_eq!(stream.clone_dtoh(&memory).unwrap(), [7, 7]);
}

#[test]
fn a_kernel_that_never_ends_is_stopped() {
    let (device, context) = with(&Config::default().step_budget(100_000));
    let forever = load(&context, FAULTS, "forever");
    assert_eq!(launch(&context, &forever, ONE, &[]), 0);
    assert_eq!(synchronize(&context), 702);
    assert_eq!(kinds(&device), [ReportKind::Fault]);
}

/// Launches with a packed buffer.
fn launch_packed(kernel: &cudarc::driver::sys::CUfunction, buffer: &[u8], size: usize) -> u32 {
    let mut size = size;
    let mut extra = [
        std::ptr::without_provenance_mut::<std::ffi::c_void>(1),
        buffer.as_ptr().cast_mut().cast(),
        std::ptr::without_provenance_mut(2),
        (&raw mut size).cast(),
        std::ptr::null_mut(),
    ];
    cu!(cuLaunchKernel(
        *kernel,
        1,
        1,
        1,
        1,
        1,
        1,
        0,
        std::ptr::null_mut(),
        std::ptr::null_mut(),
        extra.as_mut_ptr()
    ))
}

fn raw_function(
    context: &Arc<CudaContext>,
    ptx: &str,
    name: &str,
) -> cudarc::driver::sys::CUfunction {
    context.bind_to_thread().unwrap();
    let text = std::ffi::CString::new(ptx).unwrap();
    let name = std::ffi::CString::new(name).unwrap();
    let (mut module, mut function) = (std::ptr::null_mut(), std::ptr::null_mut());
    assert_eq!(
        cu!(cuModuleLoadData(&raw mut module, text.as_ptr().cast())),
        0
    );
    assert_eq!(
        cu!(cuModuleGetFunction(
            &raw mut function,
            module,
            name.as_ptr()
        )),
        0
    );
    function
}

#[test]
fn packed_parameters_have_their_exact_size() {
    let (device, context) = fresh();
    let kernel = raw_function(&context, FAULTS, "four_params");
    let mut memory = context.default_stream().alloc_zeros::<u32>(3).unwrap();
    let pointer = device_pointer(&mut memory);
    // One byte in front, so that the buffer is misaligned.
    let mut buffer = vec![0u8; 65];
    buffer[1..9].copy_from_slice(&pointer.to_ne_bytes());
    buffer[9..13].copy_from_slice(&1.5f32.to_ne_bytes());
    buffer[13..17].copy_from_slice(&9u32.to_ne_bytes());
    buffer[17] = 200;
    assert_eq!(launch_packed(&kernel, &buffer[1..], 17), 0);
    let words = context.default_stream().clone_dtoh(&memory).unwrap();
    assert_eq!(words, [1.5f32.to_bits(), 9, 200]);
    for size in [18, 20, 24, 32, 64] {
        assert_eq!(launch_packed(&kernel, &buffer[1..], size), 701);
    }
    assert_eq!(device.take_reports()[0].kind, ReportKind::InvalidLaunch);
    // A GPU takes these and passes a zero.
    assert_eq!(launch_packed(&kernel, &buffer[1..], 16), 1);
    assert_eq!(launch_packed(&kernel, &buffer[1..], 0), 1);
    let empty = raw_function(&context, STRUCTS, "empty_kernel");
    assert_eq!(launch_packed(&empty, &buffer, 0), 0);
    let nothing = std::ptr::null_mut;
    let code = cu!(cuLaunchKernel(
        empty,
        1,
        1,
        1,
        1,
        1,
        1,
        0,
        nothing(),
        nothing().cast(),
        nothing().cast()
    ));
    assert_eq!(code, 0);
    let code = cu!(cuLaunchKernel(
        kernel,
        1,
        1,
        1,
        1,
        1,
        1,
        0,
        nothing(),
        nothing().cast(),
        nothing().cast()
    ));
    assert_eq!(code, 1);
    assert_eq!(synchronize(&context), 0);
}

#[test]
fn parameters_have_offsets_and_sizes() {
    let (_device, context) = fresh();
    let kernel = raw_function(&context, STRUCTS, "struct_param");
    let expected = [
        (0, 24),
        (24, 12),
        (48, 16),
        (64, 56),
        (120, 1),
        (121, 1),
        (122, 2),
    ];
    for (index, expected) in expected.into_iter().enumerate() {
        let (mut offset, mut size) = (0, 0);
        assert_eq!(
            cu!(cuFuncGetParamInfo(
                kernel,
                index,
                &raw mut offset,
                &raw mut size
            )),
            0
        );
        assert_eq!((offset, size), expected);
    }
    let (mut offset, mut size) = (0, 0);
    assert_eq!(
        cu!(cuFuncGetParamInfo(
            kernel,
            7,
            &raw mut offset,
            &raw mut size
        )),
        1
    );
    let mut count = 0;
    assert_eq!(cu!(cuFuncGetParamCount(kernel, &raw mut count)), 0);
    assert_eq!(count, 7);
    let mut name = std::ptr::null();
    assert_eq!(cu!(cuFuncGetName(&raw mut name, kernel)), 0);
    // SAFETY: the driver's texts end with a zero and live as long as the process.
    let name = unsafe { std::ffi::CStr::from_ptr(name) };
    assert_eq!(name, c"struct_param");
}

extern "C" fn none(_block: i32) -> usize {
    0
}

#[test]
fn functions_have_attributes() {
    use cudarc::driver::sys::CUfunction_attribute as A;
    let (_device, context) = fresh();
    let bounds = load(&context, CLUSTERS, "bounds2");
    let empty = load(&context, STRUCTS, "empty_kernel");
    let holds = load(&context, FAULTS, "static_shared");
    let get = |function: &CudaFunction, attribute| function.get_attribute(attribute).unwrap();
    assert_eq!(
        get(&bounds, A::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
        256
    );
    assert_eq!(
        get(&empty, A::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
        1024
    );
    assert_eq!(get(&empty, A::CU_FUNC_ATTRIBUTE_PTX_VERSION), 90);
    assert_eq!(get(&empty, A::CU_FUNC_ATTRIBUTE_BINARY_VERSION), 90);
    assert_eq!(get(&holds, A::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), 40000);
    assert_eq!(
        get(&holds, A::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES),
        9152
    );
    assert!(
        holds
            .set_attribute(A::CU_FUNC_ATTRIBUTE_NUM_REGS, 1)
            .is_err()
    );
    assert_eq!(
        empty
            .occupancy_max_active_blocks_per_multiprocessor(1024, 0, None)
            .unwrap(),
        2
    );
    assert_eq!(
        empty
            .occupancy_max_active_blocks_per_multiprocessor(32, 0, None)
            .unwrap(),
        32
    );
    assert_eq!(
        holds
            .occupancy_max_active_blocks_per_multiprocessor(32, 0, None)
            .unwrap(),
        5
    );
    let (grid, block) = empty
        .occupancy_max_potential_block_size(none, 0, 0, None)
        .unwrap();
    assert_eq!((grid, block), (2 * 132, 1024));
    let left = empty
        .occupancy_available_dynamic_smem_per_block(2, 1024)
        .unwrap();
    assert_eq!(left, 233_472 / 2 - 1024);
}

#[test]
fn constants_and_globals_have_addresses() {
    let (_device, context) = fresh();
    let module = context.load_module(Ptx::from_src(CONSTANTS)).unwrap();
    let stream = context.default_stream();
    let mut coefficients = module.get_global("coeffs", &stream).unwrap();
    let values: Vec<u8> = [0.0f32, 0.0, 1.0, 0.0, 0.0]
        .iter()
        .flat_map(|x| x.to_ne_bytes())
        .collect();
    stream.memcpy_htod(&values, &mut coefficients).unwrap();
    let counter = module.get_global("counter", &stream).unwrap();
    assert_eq!(stream.clone_dtoh(&counter).unwrap(), 7u32.to_ne_bytes());
    let conv = module.load_function("conv1d").unwrap();
    let x = stream.clone_htod(&[1.0f32, -2.0, 3.0, -4.0]).unwrap();
    let mut y = stream.alloc_zeros::<f32>(4).unwrap();
    let mut launch = stream.launch_builder(&conv);
    launch.arg(&x).arg(&mut y).arg(&4i32);
    // SAFETY: the arguments are those of the kernel.
    unsafe { launch.launch(LaunchConfig::for_num_elems(4)) }.unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [1.0, -4.0, 12.0, -32.0]);
    assert_eq!(stream.clone_dtoh(&counter).unwrap(), 9u32.to_ne_bytes());
    assert!(module.get_global("nothing", &stream).is_err());
}

/// Loads the module once more, and gives what a variable holds as an address.
fn address_in(context: &Arc<CudaContext>, ptx: &str, variable: &str) -> (Arc<CudaModule>, u64) {
    let module = context.load_module(Ptx::from_src(ptx)).unwrap();
    let stream = context.default_stream();
    let held = module.get_global(variable, &stream).unwrap();
    let held = stream.clone_dtoh(&held).unwrap();
    (module, u64::from_ne_bytes(held.try_into().unwrap()))
}

#[test]
fn functions_are_called_by_addresses_from_variables() {
    let (device, context) = fresh();
    let stream = context.default_stream();
    let (module, square) = address_in(&context, FUNCTIONS, "op_square");
    let map = module.load_function("map").unwrap();
    let x = stream.clone_htod(&[1.0f32, 2.0, 3.0, 4.0]).unwrap();
    let y = stream.alloc_zeros::<f32>(4).unwrap();
    let run = |op: u64| {
        let mut launch = stream.launch_builder(&map);
        launch.arg(&op).arg(&x).arg(&y).arg(&4u32);
        // SAFETY: the arguments are those of the kernel, or what the emulator is to stop.
        unsafe { launch.launch(LaunchConfig::for_num_elems(4)) }.unwrap();
        stream.synchronize().map_err(|error| error.0 as u32)
    };
    run(square).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [1.0, 4.0, 9.0, 16.0]);
    let (_, counted) = address_in(&context, FUNCTIONS, "op_counted");
    assert_ne!(counted, square);
    assert_eq!(device.reports(), []);

    assert_eq!(run(counted), Err(718));
    let reports = device.take_reports();
    let told = &reports[0].message;
    assert!(
        told.contains("the address of a function of another module"),
        "{told}"
    );
    assert!(told.contains("`map`"), "{told}");
}

#[test]
fn what_is_no_function_is_not_called() {
    for (variable, told) in [
        (
            "op_none",
            "call of 0x0, which is the address of no function",
        ),
        (
            "fold_add",
            "call of `_Z3addff` by a prototype that does not fit it",
        ),
    ] {
        let (device, context) = fresh();
        let stream = context.default_stream();
        let (module, op) = address_in(&context, FUNCTIONS, variable);
        let map = module.load_function("map").unwrap();
        let x = stream.alloc_zeros::<f32>(1).unwrap();
        let mut launch = stream.launch_builder(&map);
        launch.arg(&op).arg(&x).arg(&x).arg(&1u32);
        // SAFETY: the emulator is to stop it.
        unsafe { launch.launch(LaunchConfig::for_num_elems(1)) }.unwrap();
        assert_eq!(stream.synchronize().unwrap_err().0 as u32, 718);
        let reports = device.take_reports();
        assert!(reports[0].message.contains(told), "{}", reports[0].message);
    }
}

#[test]
fn modules_are_refused_with_the_driver_s_codes() {
    let (device, context) = fresh();
    let load = |text: &str| match context.load_module(Ptx::from_src(text)) {
        Ok(_) => 0,
        Err(error) => error.0 as u32,
    };
    let head = |version: &str, target: &str| {
        format!(
            ".version {version}\n.target {target}\n.address_size 64\n.visible .entry k() {{ ret; }}\n"
        )
    };
    assert_eq!(load(&head("8.0", "sm_90")), 0);
    assert_eq!(load(&head("8.0", "sm_90a")), 0);
    assert_eq!(load(&head("99.0", "sm_90")), 222);
    assert_eq!(load("this is no PTX"), 200);
    assert_eq!(load(""), 200);
    assert_eq!(load(&head("8.8", "sm_100")), 218);
    assert_eq!(load(&head("8.8", "sm_100a")), 218);
    assert_eq!(
        load(&head("8.0", "sm_90").replace("ret;", "no.such.thing %r1;")),
        218
    );
    assert!(
        kinds(&device)
            .iter()
            .all(|kind| *kind == ReportKind::InvalidImage)
    );
    let module = context.load_module(Ptx::from_src(AXPY)).unwrap();
    assert_eq!(module.load_function("sxapy").unwrap_err().0 as u32, 500);
}

#[test]
fn the_log_of_a_refusal_is_handed_out() {
    let (_device, context) = fresh();
    context.bind_to_thread().unwrap();
    let text = std::ffi::CString::new(
        ".version 8.0\n.target sm_90\n.address_size 64\n.entry k() { nonsense; }",
    )
    .unwrap();
    let mut log = vec![b'x'; 512];
    let mut options = [
        cudarc::driver::sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
        cudarc::driver::sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ];
    let mut values = [log.as_mut_ptr().cast::<std::ffi::c_void>(), 512 as *mut _];
    let mut module = std::ptr::null_mut();
    let code = cu!(cuModuleLoadDataEx(
        &raw mut module,
        text.as_ptr().cast(),
        2,
        options.as_mut_ptr(),
        values.as_mut_ptr()
    ));
    assert_eq!(code, 218);
    let length = values[1] as usize;
    let words = std::str::from_utf8(&log[..length]).unwrap();
    assert!(words.contains("line 4"), "{words}");
    assert_eq!(log[length], 0);
}

#[test]
fn launches_fail_where_the_test_wants_them_to() {
    let (device, context) = fresh();
    let empty = load(&context, STRUCTS, "empty_kernel");
    device.fail(Failure::Launch(1));
    assert_eq!(launch(&context, &empty, ONE, &[]), 701);
    assert_eq!(launch(&context, &empty, ONE, &[]), 0);
    assert_eq!(synchronize(&context), 0);
    device.fail(Failure::Late(2));
    assert_eq!(launch(&context, &empty, ONE, &[]), 0);
    assert_eq!(synchronize(&context), 0);
    assert_eq!(launch(&context, &empty, ONE, &[]), 0);
    assert_eq!(synchronize(&context), 719);
    device.reset();
    let context = CudaContext::new(device.ordinal()).unwrap();
    device.fail(Failure::Load(1));
    assert!(context.load_module(Ptx::from_src(AXPY)).is_err());
}

#[test]
fn tests_have_devices_of_their_own() {
    let sick = Device::fresh().unwrap();
    let (well, context) = fresh();
    let other = CudaContext::new(sick.ordinal()).unwrap();
    let traps = load(&other, FAULTS, "traps");
    assert_eq!(launch(&other, &traps, ONE, &[]), 0);
    assert_eq!(synchronize(&other), 719);
    assert_eq!(synchronize(&context), 0);
    assert_eq!((sick.reports().len(), well.reports().len()), (1, 0));
}

#[test]
fn lines_that_ran_are_counted() {
    let (device, context) = with(&Config::default().coverage(true));
    let store = load(&context, FAULTS, "store_at");
    let mut memory = context.default_stream().alloc_zeros::<u32>(1).unwrap();
    let pointer = device_pointer(&mut memory);
    for _ in 0..3 {
        assert_eq!(launch(&context, &store, ONE, &[pointer]), 0);
    }
    assert_eq!(synchronize(&context), 0);
    assert_eq!(device.coverage().line("store_at.ptx", 13), Some(3));
    assert!(device.coverage().lcov().contains("DA:13,3"));
}

#[test]
fn what_the_emulator_does_not_know_is_listed_and_refused() {
    let ptx = ".version 8.0\n.target sm_90a\n.address_size 64\n\
               .visible .entry knows() { ret; }\n\
               .visible .entry not() { wgmma.fence.sync.aligned; ret; }\n";
    let unknown = gridcall_emulator::unsupported(ptx).unwrap();
    assert_eq!(unknown.len(), 1);
    assert_eq!((unknown[0].kernel.as_str(), unknown[0].line), ("not", 5));
    let (device, context) = fresh();
    let not = load(&context, ptx, "not");
    assert_eq!(launch(&context, &not, ONE, &[]), 801);
    assert_eq!(launch(&context, &load(&context, ptx, "knows"), ONE, &[]), 0);
    assert_eq!(synchronize(&context), 0);
    assert_eq!(kinds(&device), [ReportKind::Unsupported]);
    assert!(device.reports()[0].message.contains("wgmma.fence"));
}
