//! Are variables of a module, declared as statics, those that its kernels see, and their uses in
//! order?

use std::thread;

use gridcall::{
    Buffer, Float4, Graph, KernelArg, Launch, LaunchErrorKind, LoadErrorKind, Module, Symbol,
    SymbolErrorKind, cover,
    cudarc::driver::{CudaContext, sys::CUstreamCaptureMode},
    kernel,
};

use crate::support::LONG;

/// As in `symbols.cu`.
#[derive(Clone, Copy, Debug, PartialEq, KernelArg)]
#[repr(C)]
struct Window {
    first: i32,
    gain: f64,
}

#[kernel(ptx = "../kernels/symbols.ptx", cuda = "../kernels/symbols.cu")]
unsafe extern "C" {
    /// The taps of the filter.
    #[name("taps")]
    static mut TAPS: [f32; 5];
    #[name("scale")]
    static mut SCALE: f32;
    #[name("window")]
    static mut WINDOW: Window;
    #[name("ramp")]
    static RAMP: [f32; 4];
    #[name("tiles")]
    static mut TILES: [Float4; 2];
    #[name("hits")]
    static mut HITS: u64;
    #[name("marks")]
    static mut MARKS: [bool; 4];
    #[name("math::offset")]
    static mut OFFSET: i32;

    #[requires(x.len() >= n, y.len() >= n)]
    safe fn filter(x: &[f32], y: &mut [f32], n: u32);
    #[requires(y.len() >= n)]
    safe fn fill_window(y: &mut [f64], n: u32);
    #[requires(y.len() >= 4, block.threads() <= 4, grid.blocks() == 1)]
    safe fn copy_ramp(y: &mut [f32]);
    #[requires(y.len() >= 8, block.threads() <= 2, grid.blocks() == 1)]
    safe fn copy_tiles(y: &mut [f32]);
    #[requires(x.len() >= n)]
    safe fn count_above(x: &[f32], n: u32, limit: f32);
    #[requires(out.len() >= 1)]
    safe fn copy_hits(out: &mut [u64]);
    #[requires(y.len() >= 4, block.threads() <= 4, grid.blocks() == 1)]
    safe fn copy_offset(y: &mut [i32]);
    #[requires(byte <= 1, block.threads() <= 4, grid.blocks() == 1)]
    safe fn mark(byte: u8);
    #[requires(y.len() >= 5, block.threads() <= 5, grid.blocks() == 1)]
    safe fn slow_taps(y: &mut [f32], cycles: i64);
    safe fn slow_hits(value: u64, cycles: i64);
    #[requires(x.len() >= 5, y.len() >= 5, block.threads() <= 5, grid.blocks() == 1)]
    safe fn add_taps(x: &[f32], y: &mut [f32]);
    #[requires(x.len() >= 1)]
    safe fn add_to_hits(x: &[u64]);
}

/// Another block over the same file.
mod beside {
    use gridcall::kernel;

    #[kernel(ptx = "../kernels/symbols.ptx")]
    unsafe extern "C" {
        #[name("taps")]
        pub(super) static mut THE_TAPS: [f32; 5];

        #[requires(y.len() >= 5, block.threads() <= 5, grid.blocks() == 1)]
        pub(super) safe fn slow_taps(y: &mut [f32], cycles: i64);
        #[requires(y.len() >= n)]
        pub(super) safe fn scale_by(y: &mut [f32], a: f32, n: u32);
    }
}

/// A block that does not say that the taps are written.
mod unaware {
    use gridcall::kernel;

    #[kernel(ptx = "../kernels/symbols.ptx")]
    unsafe extern "C" {
        #[name("taps")]
        pub(super) static TAPS: [f32; 5];

        #[requires(y.len() >= 5, block.threads() <= 5, grid.blocks() == 1)]
        pub(super) safe fn slow_taps(y: &mut [f32], cycles: i64);
    }
}

/// Of a module that is known only when the program runs.
mod later {
    use gridcall::kernel;

    #[kernel]
    unsafe extern "C" {
        pub(super) static mut taps: [f32; 5];
        pub(super) static mut hits: u64;
        pub(super) static ramp: [f32; 4];

        #[requires(y.len() >= 5, block.threads() <= 5, grid.blocks() == 1)]
        pub(super) safe fn slow_taps(y: &mut [f32], cycles: i64);
    }

    pub(super) mod wrong {
        use gridcall::kernel;

        #[kernel]
        unsafe extern "C" {
            pub(crate) static mut taps: [f32; 4];
            pub(crate) static mut no_such_symbol: u32;
            #[name("ramp")]
            pub(crate) static WIDE: [u128; 1];
        }
    }

    pub(super) mod unaware {
        use gridcall::kernel;

        #[kernel]
        unsafe extern "C" {
            #[requires(y.len() >= 5, block.threads() <= 5, grid.blocks() == 1)]
            pub(crate) safe fn slow_taps(y: &mut [f32], cycles: i64);
        }
    }
}

const PTX: &str = include_str!("../../kernels/symbols.ptx");

const ONE: [f32; 5] = [1.0; 5];
const TWO: [f32; 5] = [2.0; 5];

#[test]
fn kernels_see_what_the_host_writes() {
    let device = device!();
    let stream = device.default_stream();
    let x = stream.clone_htod(&[1.0_f32, 2.0, 3.0, 4.0]).unwrap();
    let mut y = stream.alloc_zeros::<f32>(4).unwrap();
    assert_eq!(SCALE.read(&stream).unwrap(), 1.0);
    TAPS.write(&stream, &[0.0, 0.0, 2.0, 1.0, 0.0]).unwrap();
    filter(&stream, cover(4), &x, &mut y, 4).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [4.0, 7.0, 10.0, 8.0]);
    SCALE.write(&stream, &0.5).unwrap();
    filter(&stream, cover(4), &x, &mut y, 4).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [2.0, 3.5, 5.0, 4.0]);
    assert_eq!(TAPS.read(&stream).unwrap(), [0.0, 0.0, 2.0, 1.0, 0.0]);
}

#[test]
fn structs_vectors_and_names_of_cpp() {
    let device = device!();
    let stream = device.default_stream();
    let window = Window {
        first: 1,
        gain: 2.5,
    };
    WINDOW.write(&stream, &window).unwrap();
    let mut y = stream.alloc_zeros::<f64>(3).unwrap();
    fill_window(&stream, cover(3), &mut y, 3).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [0.0, 2.5, 2.5]);
    // The padding, too, arrived.
    let symbol: Symbol<WINDOW> = WINDOW.load(&device).unwrap();
    let bytes = symbol.read_bytes(&stream).unwrap();
    assert_eq!(bytes[4..8], [0; 4]);
    assert_eq!(bytes[8..], 2.5_f64.to_ne_bytes());

    let tiles = [1.0, 5.0].map(|x| Float4 {
        x,
        y: x + 1.0,
        z: x + 2.0,
        w: x + 3.0,
    });
    TILES.write(&stream, &tiles).unwrap();
    let mut y = stream.alloc_zeros::<f32>(8).unwrap();
    copy_tiles(&stream, (1, 2), &mut y).unwrap();
    let expected: Vec<f32> = (1_u8..=8).map(f32::from).collect();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), expected);
    assert_eq!(TILES.read(&stream).unwrap(), tiles);

    assert_eq!(OFFSET.read(&stream).unwrap(), 7);
    OFFSET.write(&stream, &-3).unwrap();
    let mut y = stream.alloc_zeros::<i32>(4).unwrap();
    copy_offset(&stream, (1, 4), &mut y).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [-3, -2, -1, 0]);
}

#[test]
fn what_nobody_writes_is_as_the_source_says() {
    let device = device!();
    let stream = device.default_stream();
    assert_eq!(RAMP.read(&stream).unwrap(), [0.0, 1.0, 2.0, 3.0]);
    let view = RAMP.view(&device).unwrap();
    assert_eq!((view.len(), view.is_empty()), (4, false));
    let mut y = stream.alloc_zeros::<f32>(4).unwrap();
    TAPS.write(&stream, &[0.0, 0.0, 1.0, 0.0, 0.0]).unwrap();
    SCALE.write(&stream, &3.0).unwrap();
    filter(&stream, cover(4), &view, &mut y, 4).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [0.0, 3.0, 6.0, 9.0]);
}

#[test]
fn the_host_reads_what_kernels_write() {
    let device = device!();
    let [slow, fast] = [device.new_stream().unwrap(), device.new_stream().unwrap()];
    let x = slow.clone_htod(&[1.0_f32, 2.0, 3.0, 4.0]).unwrap();
    HITS.write(&slow, &40).unwrap();
    count_above(&slow, cover(4), &x, 4, 2.5).unwrap();
    assert_eq!(HITS.read(&fast).unwrap(), 42);
    slow_hits(&slow, (1, 1), 7, LONG).unwrap();
    assert_eq!(HITS.read(&fast).unwrap(), 7);
    // Kernels that write it come one after another, also on two streams.
    slow_hits(&slow, (1, 1), 10, LONG).unwrap();
    count_above(&fast, cover(4), &x, 4, 0.0).unwrap();
    let mut out = slow.alloc_zeros::<u64>(1).unwrap();
    copy_hits(&slow, (1, 1), &mut out).unwrap();
    assert_eq!(slow.clone_dtoh(&out).unwrap(), [14]);
}

#[test]
fn a_write_waits_for_the_kernels_before_it() {
    let device = device!();
    let [slow, fast] = [device.new_stream().unwrap(), device.new_stream().unwrap()];
    let mut before = slow.alloc_zeros::<f32>(5).unwrap();
    let mut after = slow.alloc_zeros::<f32>(5).unwrap();
    TAPS.write(&fast, &ONE).unwrap();
    slow_taps(&slow, (1, 5), &mut before, LONG).unwrap();
    TAPS.write(&fast, &TWO).unwrap();
    slow_taps(&slow, (1, 5), &mut after, 0).unwrap();
    assert_eq!(slow.clone_dtoh(&before).unwrap(), ONE);
    assert_eq!(slow.clone_dtoh(&after).unwrap(), TWO);
}

#[test]
fn a_write_waits_for_prepared_launches() {
    let device = device!();
    let [slow, fast] = [device.new_stream().unwrap(), device.new_stream().unwrap()];
    let kernel = slow_taps::load(&device).unwrap();
    let prepared = kernel.prepare(&slow, (1, 5)).unwrap();
    let mut seen = slow.alloc_zeros::<f32>(5).unwrap();
    for (cycles, taps) in [(LONG, ONE), (0, TWO)] {
        TAPS.write(&fast, &taps).unwrap();
        let y = &mut seen;
        prepared.launch(slow_taps { y, cycles }).unwrap();
        // A launch that asks for attributes goes the same way.
        let launch = Launch::from((1, 5)).priority(0);
        let y = &mut seen;
        kernel
            .launch(&slow, launch, slow_taps { y, cycles })
            .unwrap();
        TAPS.write(&fast, &[9.0; 5]).unwrap();
        assert_eq!(slow.clone_dtoh(&seen).unwrap(), taps);
    }
}

#[test]
fn a_write_waits_for_readers_on_many_streams() {
    let device = device!();
    let stream = device.default_stream();
    TAPS.write(&stream, &ONE).unwrap();
    let readers: Vec<_> = (0..20).map(|_| device.new_stream().unwrap()).collect();
    let mut read: Vec<_> = readers
        .iter()
        .map(|reader| {
            let mut y = reader.alloc_zeros::<f32>(5).unwrap();
            slow_taps(reader, (1, 5), &mut y, LONG / 20).unwrap();
            y
        })
        .collect();
    TAPS.write(&stream, &TWO).unwrap();
    for (reader, y) in readers.iter().zip(&read) {
        assert_eq!(reader.clone_dtoh(y).unwrap(), ONE);
    }
    for (reader, y) in readers.iter().zip(&mut read) {
        slow_taps(reader, (1, 5), y, 0).unwrap();
        assert_eq!(reader.clone_dtoh(y).unwrap(), TWO);
    }
}

#[test]
fn blocks_over_one_file_share_its_variables() {
    let device = device!();
    let [first, second] = [device.new_stream().unwrap(), device.new_stream().unwrap()];
    let mut y = first.alloc_zeros::<f32>(5).unwrap();
    TAPS.write(&second, &ONE).unwrap();
    beside::slow_taps(&first, (1, 5), &mut y, LONG).unwrap();
    TAPS.write(&second, &TWO).unwrap();
    assert_eq!(first.clone_dtoh(&y).unwrap(), ONE);
    assert_eq!(beside::THE_TAPS.read(&first).unwrap(), TWO);
    beside::scale_by(&first, cover(5), &mut y, 3.0, 5).unwrap();
    assert_eq!(first.clone_dtoh(&y).unwrap(), [3.0; 5]);
    let view = beside::THE_TAPS.view(&device).unwrap();
    assert_eq!(view.address(), TAPS.view(&device).unwrap().address());
}

#[test]
fn a_view_is_read_in_order() {
    let device = device!();
    let [slow, fast] = [device.new_stream().unwrap(), device.new_stream().unwrap()];
    let taps = TAPS.view(&device).unwrap();
    let mut y = slow.alloc_zeros::<f32>(5).unwrap();
    TAPS.write(&slow, &ONE).unwrap();
    // As an argument, and by name in the same kernel.
    add_taps(&fast, (1, 5), &taps, &mut y).unwrap();
    TAPS.write(&slow, &TWO).unwrap();
    assert_eq!(fast.clone_dtoh(&y).unwrap(), [2.0; 5]);
    // Of a kernel that does not know that it is a symbol.
    crate::kernels::slow_copy(&fast, cover(5), &taps, &mut y, 5, LONG).unwrap();
    TAPS.write(&slow, &ONE).unwrap();
    assert_eq!(fast.clone_dtoh(&y).unwrap(), TWO);
}

#[test]
fn a_kernel_cannot_write_what_it_takes_for_reading() {
    let device = device!();
    let stream = device.default_stream();
    HITS.write(&stream, &5).unwrap();
    let hits = HITS.view(&device).unwrap();
    let error = add_to_hits(&stream, (1, 1), &hits).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `add_to_hits`: argument `x` (parameter 0, &[u64]): symbol `hits`: the kernel writes it, and takes \
         a view of it as an argument as well; pass a copy of it"
    );
    let copy = stream.clone_htod(&[HITS.read(&stream).unwrap()]).unwrap();
    add_to_hits(&stream, (1, 1), &copy).unwrap();
    assert_eq!(HITS.read(&stream).unwrap(), 10);
}

#[test]
fn values_are_checked() {
    let device = device!();
    let stream = device.default_stream();
    MARKS.write(&stream, &[true, false, true, false]).unwrap();
    mark(&stream, (1, 2), 1).unwrap();
    assert_eq!(MARKS.read(&stream).unwrap(), [true, true, true, false]);
    let symbol = MARKS.load(&device).unwrap();
    let pointer = symbol.view().address();
    // SAFETY: the symbol has two bytes and more.
    unsafe { gridcall::cudarc::driver::result::memset_d8_sync(pointer + 1, 9, 1) }.unwrap();
    let error = symbol.read(&stream).unwrap_err();
    assert!(matches!(
        error.kind(),
        SymbolErrorKind::Invalid { index: 1, .. }
    ));
    assert_eq!(
        error.to_string(),
        "symbol `MARKS`: element 1 is no valid `bool`; read it with `read_bytes` to see what it is"
    );
    assert_eq!(symbol.read_bytes(&stream).unwrap(), [1, 9, 1, 0]);
}

#[test]
fn threads_use_one_symbol() {
    let device = device!();
    let stream = device.default_stream();
    TAPS.write(&stream, &ONE).unwrap();
    thread::scope(|scope| {
        for number in 0..4_u8 {
            let device = &*device;
            scope.spawn(move || {
                let stream = device.new_stream().unwrap();
                let mut y = stream.alloc_zeros::<f32>(5).unwrap();
                for round in 0..10_u8 {
                    TAPS.write(&stream, &[f32::from(10 * number + round); 5])
                        .unwrap();
                    slow_taps(&stream, (1, 5), &mut y, 1000).unwrap();
                    let seen = stream.clone_dtoh(&y).unwrap();
                    // Whoever wrote last, all of it.
                    assert!(seen.iter().all(|tap| *tap == seen[0]), "{seen:?}");
                }
            });
        }
    });
}

#[test]
fn each_context_object_has_its_own() {
    let device = device!();
    let other = CudaContext::new(0).unwrap();
    let stream = device.default_stream();
    TAPS.write(&stream, &ONE).unwrap();
    assert_eq!(TAPS.read(&other.default_stream()).unwrap(), [0.0; 5]);
}

#[test]
fn a_symbol_keeps_no_context_alive() {
    let device = device!();
    let other = CudaContext::new(0).unwrap();
    TAPS.write(&other.default_stream(), &ONE).unwrap();
    let weak = std::sync::Arc::downgrade(&other);
    drop(other);
    assert_eq!(weak.strong_count(), 0);
    drop(device);
}

#[test]
fn a_captured_stream_is_refused() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    TAPS.write(&stream, &ONE).unwrap();
    let mut y = stream.alloc_zeros::<f32>(5).unwrap();
    let symbol = TAPS.load(&device).unwrap();
    slow_taps(&stream, (1, 5), &mut y, 0).unwrap();
    stream
        .begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED)
        .unwrap();
    let error = symbol.write(&stream, &TWO).unwrap_err();
    assert!(matches!(error.kind(), SymbolErrorKind::Capturing));
    assert_eq!(
        error.to_string(),
        "symbol `taps`: the stream is being captured into a graph, which would use the symbol at times that \
         nobody can wait for; end the capture first, or use another stream"
    );
    let error = slow_taps(&stream, (1, 5), &mut y, 0).unwrap_err();
    assert!(matches!(error.kind(), LaunchErrorKind::Capturing));
    // Nor is one that nobody writes read there, which would end the capture.
    let error = RAMP.read(&stream).unwrap_err();
    assert!(
        matches!(error.kind(), SymbolErrorKind::Capturing),
        "{error}"
    );
    let flags = gridcall::cudarc::driver::sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    drop(stream.end_capture(flags).unwrap());
    assert_eq!(symbol.read(&stream).unwrap(), ONE);
}

#[test]
fn no_node_of_a_graph_is_made_of_a_kernel_that_uses_one() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let y = Buffer::<f32>::zeroed(&stream, 5).unwrap();
    let mut y = graph.own(y).unwrap();
    let arguments = slow_taps {
        y: &mut y,
        cycles: 0,
    };
    let error = graph.add((1, 5), arguments).unwrap_err();
    assert!(
        error.to_string().ends_with(
            "symbol `taps`: it is declared `static mut`, and what a graph does when it is launched is not ordered \
             with its other uses; launch the kernel on a stream"
        ),
        "{error}"
    );
    let arguments = beside::scale_by {
        y: &mut y,
        a: 2.0,
        n: 5,
    };
    graph.add(cover(5), arguments).unwrap();
}

#[test]
fn a_block_that_does_not_know_is_refused() {
    let device = device!();
    let stream = device.default_stream();
    let mut y = stream.alloc_zeros::<f32>(5).unwrap();
    TAPS.write(&stream, &ONE).unwrap();
    let error = unaware::slow_taps(&stream, (1, 5), &mut y, 0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `slow_taps`: it takes `taps` for a variable that nobody writes, but another declaration of the \
         module says `static mut`: declare it `static mut` beside it too"
    );
    let error = unaware::TAPS.read(&stream).unwrap_err();
    assert_eq!(
        error.to_string(),
        "symbol `TAPS`: it takes `taps` for a variable that nobody writes, but another declaration of the module \
         says `static mut`: declare it `static mut` beside it too"
    );
}

#[test]
fn what_is_written_is_refused_where_a_kernel_did_not_know() {
    let device = device!();
    let stream = device.default_stream();
    let mut y = stream.alloc_zeros::<f32>(5).unwrap();
    unaware::slow_taps(&stream, (1, 5), &mut y, 0).unwrap();
    let error = TAPS.write(&stream, &ONE).unwrap_err();
    assert_eq!(
        error.to_string(),
        "symbol `TAPS`: `taps` is declared `static mut`, but kernel `slow_taps` takes it for one that nobody \
         writes: declare it `static mut` there too"
    );
    let error = slow_taps(&stream, (1, 5), &mut y, 0).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("kernel `slow_taps`: `taps` is declared `static mut`")
    );
    // Other symbols are as they were.
    HITS.write(&stream, &1).unwrap();
}

#[test]
fn symbols_of_a_module_at_run_time() {
    let device = device!();
    let [slow, fast] = [device.new_stream().unwrap(), device.new_stream().unwrap()];
    let module = Module::from_ptx(&device, PTX).unwrap();
    // SAFETY: the variable is the one declared.
    let taps = unsafe { later::taps.load_from(&module) };
    // SAFETY: as above.
    let ramp = unsafe { later::ramp.load_from(&module) };
    let taps = taps.unwrap();
    // SAFETY: the module holds the kernel that is declared.
    let kernel = unsafe { later::slow_taps::load_from(&module) }.unwrap();
    taps.write(&fast, &ONE).unwrap();
    let mut y = slow.alloc_zeros::<f32>(5).unwrap();
    let arguments = later::slow_taps {
        y: &mut y,
        cycles: LONG,
    };
    kernel.launch(&slow, (1, 5), arguments).unwrap();
    taps.write(&fast, &TWO).unwrap();
    assert_eq!(slow.clone_dtoh(&y).unwrap(), ONE);
    assert_eq!(taps.read(&slow).unwrap(), TWO);
    assert_eq!(ramp.unwrap().read(&slow).unwrap(), [0.0, 1.0, 2.0, 3.0]);
    // Another module, even of the same text, has its own.
    let other = Module::from_ptx(&device, PTX).unwrap();
    // SAFETY: the variables are those declared.
    let other = unsafe { later::taps.load_from(&other) }.unwrap();
    assert_eq!(other.read(&slow).unwrap(), [0.0; 5]);
}

#[test]
fn symbols_of_a_cubin() {
    let device = device!();
    let image = crate::modules::cubin(&device, PTX);
    if !image.starts_with(b"\x7fELF") {
        println!("not run, as this driver's linker makes no cubin");
        return;
    }
    let [slow, fast] = [device.new_stream().unwrap(), device.new_stream().unwrap()];
    // SAFETY: the driver made the image.
    let module = unsafe { Module::from_image(&device, &image) }.unwrap();
    // SAFETY: the module holds the kernel that is declared.
    let kernel = unsafe { later::slow_taps::load_from(&module) }.unwrap();
    // SAFETY: the variable is the one declared.
    let taps = unsafe { later::taps.load_from(&module) }.unwrap();
    taps.write(&fast, &ONE).unwrap();
    let mut y = slow.alloc_zeros::<f32>(5).unwrap();
    let arguments = later::slow_taps {
        y: &mut y,
        cycles: LONG,
    };
    kernel.launch(&slow, (1, 5), arguments).unwrap();
    taps.write(&fast, &TWO).unwrap();
    assert_eq!(slow.clone_dtoh(&y).unwrap(), ONE);
    // Whether such a kernel uses a symbol, nobody can tell.
    // SAFETY: the module holds the kernel that is declared.
    let error = unsafe { later::unaware::slow_taps::load_from(&module) }.unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `slow_taps`: whether it uses `taps`, which another declaration calls `static mut`, cannot be told, \
         as the module is no PTX: declare `taps` beside it too"
    );
    // SAFETY: the driver made the image.
    let module = unsafe { Module::from_image(&device, &image) }.unwrap();
    // SAFETY: the module holds the kernel that is declared.
    unsafe { later::unaware::slow_taps::load_from(&module) }.unwrap();
    // SAFETY: nothing is loaded.
    let error = unsafe { later::taps.load_from(&module) }.unwrap_err();
    assert_eq!(
        error.to_string(),
        "symbol `taps`: `taps` is declared `static mut`, and whether kernel `slow_taps` uses it cannot be told, as \
         the module is no PTX: declare it `static mut` beside that kernel too"
    );
}

#[test]
fn what_a_module_lacks_is_told() {
    let device = device!();
    let module = Module::from_ptx(&device, PTX).unwrap();
    let error = |error: gridcall::LoadError| {
        assert!(matches!(error.kind(), LoadErrorKind::Symbol { .. }));
        error.to_string()
    };
    // SAFETY: nothing is loaded.
    let found = unsafe { later::wrong::taps.load_from(&module) };
    assert_eq!(
        error(found.unwrap_err()),
        "symbol `taps`: it is `[f32; 4]` (16 bytes, align 4), but the PTX:13 declares `.const .align 4 .b8 [20]`"
    );
    // SAFETY: nothing is loaded.
    let found = unsafe { later::wrong::no_such_symbol.load_from(&module) };
    assert_eq!(
        error(found.unwrap_err()),
        "symbol `no_such_symbol`: no variable `no_such_symbol` in the PTX; it has `taps`, `scale`, `window`, \
         `ramp`, `tiles`, `hits`, `marks`, `_ZN4math6offsetE`"
    );
    // SAFETY: nothing is loaded.
    let found = unsafe { later::wrong::WIDE.load_from(&module) };
    assert_eq!(
        error(found.unwrap_err()),
        "symbol `WIDE`: it is `[u128; 1]` (16 bytes, align 16), but the PTX:16 declares `.global .align 4 .b8 [16]`"
    );
    // SAFETY: the module holds the kernel that is declared.
    unsafe { later::unaware::slow_taps::load_from(&module) }.unwrap();
    // SAFETY: nothing is loaded.
    let found = unsafe { later::taps.load_from(&module) };
    assert!(error(found.unwrap_err()).contains("but kernel `slow_taps` takes it"));
}

#[test]
fn a_launch_of_other_kernels_learns_nothing() {
    let device = device!();
    let stream = device.default_stream();
    // A kernel that uses no variable, and one whose variable nobody declares.
    let mut y = stream.alloc_zeros::<f32>(5).unwrap();
    beside::scale_by(&stream, cover(5), &mut y, 3.0, 5).unwrap();
    let mut y = stream.alloc_zeros::<f32>(4).unwrap();
    copy_ramp(&stream, (1, 4), &mut y).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [0.0, 1.0, 2.0, 3.0]);
}
