//! Are functions of the device read from variables of their module, and called by no kernel of
//! another?

#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "what is taken from one module is taken at once, for one reason"
)]

use std::sync::Arc;

use gridcall::{
    ArgumentError, DeviceFn, DevicePointerMut, KernelArg, LaunchErrorKind, Module, Symbol,
    SymbolErrorKind, cover,
    cudarc::driver::{CudaContext, CudaStream},
    kernel,
};

use crate::support::ramp;

const FUNCTIONS: &str = include_str!("../../kernels/functions.ptx");

type Op = fn(f32) -> f32;

/// As in `functions.cu`.
#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct Line {
    slope: f32,
    offset: f64,
}

#[kernel(ptx = "../kernels/functions.ptx", cuda = "../kernels/functions.cu")]
unsafe extern "C" {
    #[name("op_square")]
    static OP_SQUARE: DeviceFn<fn(f32) -> f32>;
    #[name("op_halve")]
    static OP_HALVE: DeviceFn<fn(f32) -> f32>;
    #[name("op_counted")]
    static OP_COUNTED: DeviceFn<Op>;
    #[name("op_deep")]
    static OP_DEEP: DeviceFn<fn(f32) -> f32>;
    #[name("op_none")]
    static OP_NONE: DeviceFn<fn(f32) -> f32>;
    #[name("op_chosen")]
    static mut OP_CHOSEN: DeviceFn<fn(f32) -> f32>;
    #[name("op_table")]
    static mut OP_TABLE: [DeviceFn<fn(f32) -> f32>; 3];
    #[name("math::op")]
    static OP_OF_MATH: DeviceFn<fn(f32) -> f32>;
    #[name("fold_add")]
    static FOLD_ADD: DeviceFn<fn(f32, f32) -> f32>;
    #[name("on_line")]
    static ON_LINE: DeviceFn<fn(Line, f32) -> f64>;
    #[name("test_below")]
    static TEST_BELOW: DeviceFn<fn(i16, bool) -> bool>;
    #[name("count_calls")]
    static COUNT: DeviceFn<fn(*mut u32, u64)>;
    #[name("calls")]
    static mut CALLS: u32;

    /// y ← op(x)
    #[requires(x.len() >= n, y.len() >= n)]
    safe fn map(op: DeviceFn<fn(f32) -> f32>, x: &[f32], y: &mut [f32], n: u32);
    /// y ← op(y)
    #[requires(y.len() >= n)]
    safe fn map_in_place(op: DeviceFn<fn(f32) -> f32>, y: &mut [f32], n: u32);
    #[requires(x.len() >= n, y.len() >= n)]
    safe fn zip(x: &[f32], y: &mut [f32], n: u32, fold: DeviceFn<fn(f32, f32) -> f32>);
    #[requires(y.len() >= block.threads(), grid.blocks() == 1)]
    safe fn draw(on: DeviceFn<fn(Line, f32) -> f64>, line: Line, y: &mut [f64]);
    #[requires(y.len() >= block.threads(), grid.blocks() == 1)]
    safe fn compare(test: DeviceFn<fn(i16, bool) -> bool>, limit: i16, strict: bool, y: &mut [u8]);
    unsafe fn tally(count: DeviceFn<fn(*mut u32, u64)>, counter: *mut u32);
    #[requires(y.len() >= n)]
    safe fn map_chosen(y: &mut [f32], n: u32);
    #[requires(y.len() >= n, which < 3)]
    safe fn map_table(y: &mut [f32], n: u32, which: u32);
    #[instances(T = { f32 => "map" })]
    #[requires(x.len() >= n, y.len() >= n)]
    safe fn map_any<T>(op: DeviceFn<fn(T) -> T>, x: &[T], y: &mut [T], n: u32);
}

/// Of a module that is known only when the program runs.
mod later {
    use gridcall::{DeviceFn, kernel};

    #[kernel]
    unsafe extern "C" {
        pub(super) static op_square: DeviceFn<fn(f32) -> f32>;
        pub(super) static mut op_chosen: DeviceFn<fn(f32) -> f32>;
        pub(super) static mut op_table: [DeviceFn<fn(f32) -> f32>; 3];

        #[requires(x.len() >= n, y.len() >= n)]
        pub(super) safe fn map(op: DeviceFn<fn(f32) -> f32>, x: &[f32], y: &mut [f32], n: u32);
        #[requires(y.len() >= n)]
        pub(super) safe fn map_chosen(y: &mut [f32], n: u32);
    }
}

/// Declarations that are not those of the module.
mod wrong {
    use gridcall::{DeviceFn, kernel};

    #[kernel]
    unsafe extern "C" {
        pub(super) static op_square: DeviceFn<fn(f64) -> f32>;
        pub(super) static op_halve: DeviceFn<fn(f32)>;
        pub(super) static fold_add: DeviceFn<fn(f32) -> f32>;
        pub(super) static count_calls: DeviceFn<fn(*mut u32, u64) -> u32>;
        pub(super) static op_table: [DeviceFn<fn(f32) -> f32>; 2];
        pub(super) static calls: DeviceFn<fn(f32) -> f32>;

        pub(super) fn map(op: DeviceFn<fn(f32, f32) -> f32>, x: &[f32], y: &mut [f32], n: u32);
        pub(super) fn zip(x: &[f32], y: &mut [f32], n: u32, fold: u64);
        pub(super) fn compare(
            test: DeviceFn<fn(f64, bool) -> bool>,
            limit: i16,
            strict: bool,
            y: &mut [u8],
        );
    }
}

/// Maps `[1, 2, 3, 4]`.
fn mapped(stream: &Arc<CudaStream>, op: &DeviceFn<Op>) -> Vec<f32> {
    let x = stream.clone_htod(&[1.0_f32, 2.0, 3.0, 4.0]).unwrap();
    let mut y = stream.alloc_zeros::<f32>(4).unwrap();
    map(stream, cover(4), op, &x, &mut y, 4).unwrap();
    stream.clone_dtoh(&y).unwrap()
}

#[test]
fn a_kernel_calls_the_function_that_it_is_given() {
    let device = device!();
    let stream = device.default_stream();
    let square = OP_SQUARE.get(&stream).unwrap();
    assert_eq!(square.read_from(), "OP_SQUARE");
    assert_ne!(square.address(), 0);
    assert_eq!(mapped(&stream, &square), [1.0, 4.0, 9.0, 16.0]);
    let halve = OP_HALVE.get(&stream).unwrap();
    assert_eq!(mapped(&stream, &halve), [0.5, 1.0, 1.5, 2.0]);
    assert_ne!(square, halve);
    assert_eq!(halve, OP_OF_MATH.get(&stream).unwrap());
    let counted = OP_COUNTED.get(&stream).unwrap();
    assert_eq!(mapped(&stream, &counted), [2.0, 3.0, 4.0, 5.0]);
    assert_eq!(CALLS.read(&stream).unwrap(), 4);

    let mut y = stream.clone_htod(&[3.0_f32]).unwrap();
    map_in_place(&stream, cover(1), &square, &mut y, 1).unwrap();
    map_in_place {
        op: &halve.clone(),
        y: &mut y,
        n: 1,
    }
    .launch(&stream, cover(1))
    .unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [4.5]);

    let x = stream.clone_htod(&[5.0_f32]).unwrap();
    map_any(&stream, cover(1), &square, &x, &mut y, 1).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [25.0]);
}

#[test]
fn functions_take_what_kernels_take() {
    let device = device!();
    let stream = device.default_stream();
    let add = FOLD_ADD.get(&stream).unwrap();
    let x = stream.clone_htod(&ramp(100)).unwrap();
    let mut y = stream.clone_htod(&[0.5_f32; 100]).unwrap();
    zip(&stream, cover(100), &x, &mut y, 100, &add).unwrap();
    let sums = stream.clone_dtoh(&y).unwrap();
    assert!(sums.iter().zip(ramp(100)).all(|(sum, x)| *sum == x + 0.5));

    let mut y = stream.alloc_zeros::<f64>(4).unwrap();
    let line = Line {
        slope: 0.5,
        offset: 2.0,
    };
    let on = ON_LINE.get(&stream).unwrap();
    draw(&stream, (1, 4), &on, line, &mut y).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [2.0, 2.5, 3.0, 3.5]);

    let test = TEST_BELOW.get(&stream).unwrap();
    let mut y = stream.alloc_zeros::<u8>(4).unwrap();
    compare(&stream, (1, 4), &test, 2, true, &mut y).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [1, 1, 0, 0]);
    compare(&stream, (1, 4), &test, 2, false, &mut y).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [1, 1, 1, 0]);

    let counter = stream.alloc_zeros::<u32>(1).unwrap();
    let count = COUNT.get(&stream).unwrap();
    let address = {
        use gridcall::cudarc::driver::DevicePtr;
        counter.device_ptr(&stream).0
    };
    // SAFETY: the counter is alive until it was read, on the same stream.
    unsafe {
        tally(
            &stream,
            (2, 32),
            &count,
            DevicePointerMut::from_address(address),
        )
    }
    .unwrap();
    assert_eq!(stream.clone_dtoh(&counter).unwrap(), [64]);
}

#[test]
fn the_stack_is_large_enough() {
    let device = device!();
    let stream = device.default_stream();
    let deep = OP_DEEP.get(&stream).unwrap();
    assert_eq!(mapped(&stream, &deep), [2.0, 4.0, 6.0, 8.0]);
}

#[test]
fn a_null_pointer_is_no_function() {
    let device = device!();
    let stream = device.default_stream();
    let error = OP_NONE.get(&stream).unwrap_err();
    assert!(matches!(
        error.kind(),
        SymbolErrorKind::NoFunction { index: 0 }
    ));
    assert_eq!(
        error.to_string(),
        "symbol `OP_NONE`: function 0 of it is null; let the CUDA code initialise it with a function, or declare it \
         `static mut` and `set` it"
    );
}

#[test]
fn a_function_of_another_module_is_refused() {
    let device = device!();
    let stream = device.default_stream();
    let one = Module::from_ptx(&device, FUNCTIONS).unwrap();
    let other = Module::from_ptx(&device, FUNCTIONS).unwrap();
    // SAFETY: the text holds what is declared.
    let (map, own, foreign) = unsafe {
        (
            later::map::load_from(&one).unwrap(),
            later::op_square.load_from(&one).unwrap(),
            later::op_square.load_from(&other).unwrap(),
        )
    };
    let (own, foreign) = (own.get(&stream).unwrap(), foreign.get(&stream).unwrap());
    assert_ne!(own, foreign);
    // The value keeps its module.
    drop((one, other));
    let x = stream.clone_htod(&[3.0_f32]).unwrap();
    let mut y = stream.alloc_zeros::<f32>(1).unwrap();
    let mut run = |op: &DeviceFn<Op>| {
        let arguments = later::map {
            op,
            x: &x,
            y: &mut y,
            n: 1,
        };
        map.launch(&stream, cover(1), arguments)
    };
    run(&own).unwrap();
    let error = run(&foreign).unwrap_err();
    let LaunchErrorKind::Argument {
        index: 0,
        name: "op",
        error: ArgumentError::OtherModule(other),
        ..
    } = error.kind()
    else {
        panic!("{error}")
    };
    assert_eq!(other.read_from(), "op_square");
    assert!(
        error.to_string().ends_with(
            "the function was read from `op_square` of the PTX on device 0, and would be called in another \
             loading of it, where its address means another function or none; read `op_square` of that module: by `get` \
             with a stream of its context, or by `load_from` of the `Module` that the kernel was taken from"
        ),
        "{error}"
    );
    // What was declared with its PTX is another loading, too.
    let square = OP_SQUARE.get(&stream).unwrap();
    let error = run(&square).unwrap_err().to_string();
    assert!(
        error.contains(
            "from `OP_SQUARE` of ../kernels/functions.ptx on device 0, and would be called in the PTX \
             on device 0"
        ),
        "{error}"
    );
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [9.0]);
}

#[test]
fn a_function_of_another_context_is_refused() {
    let device = device!();
    let stream = device.default_stream();
    let square = OP_SQUARE.get(&stream).unwrap();
    let beside = CudaContext::new(0).unwrap();
    let there = beside.default_stream();
    let x = there.clone_htod(&[3.0_f32]).unwrap();
    let mut y = there.alloc_zeros::<f32>(1).unwrap();
    let error = map(&there, cover(1), &square, &x, &mut y, 1).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("would be called in another loading of it"),
        "{error}"
    );
    let square = OP_SQUARE.get(&there).unwrap();
    map(&there, cover(1), &square, &x, &mut y, 1).unwrap();
    assert_eq!(there.clone_dtoh(&y).unwrap(), [9.0]);
}

#[test]
fn prepared_launches_and_descriptions_check_too() {
    let device = device!();
    let stream = device.default_stream();
    let other = Module::from_ptx(&device, FUNCTIONS).unwrap();
    // SAFETY: the text holds what is declared.
    let foreign = unsafe { later::op_square.load_from(&other) }.unwrap();
    let foreign = foreign.get(&stream).unwrap();
    let square = OP_SQUARE.get(&stream).unwrap();
    let mut y = stream.clone_htod(&[2.0_f32]).unwrap();
    let prepared = map_in_place::load(&device)
        .unwrap()
        .prepare(&stream, cover(1))
        .unwrap();
    for _ in 0..2 {
        let arguments = map_in_place {
            op: &square,
            y: &mut y,
            n: 1,
        };
        prepared.launch(arguments).unwrap();
    }
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [16.0]);
    let error = prepared
        .launch(map_in_place {
            op: &foreign,
            y: &mut y,
            n: 1,
        })
        .unwrap_err();
    assert!(matches!(
        error.kind(),
        LaunchErrorKind::Argument {
            error: ArgumentError::OtherModule(_),
            ..
        }
    ));
    let mut arguments = map_in_place {
        op: &foreign,
        y: &mut y,
        n: 1,
    };
    assert!(arguments.describe(&stream, cover(1)).is_err());
    let mut arguments = map_in_place {
        op: &square,
        y: &mut y,
        n: 1,
    };
    let shown = arguments.describe(&stream, cover(1)).unwrap().to_string();
    let expected = format!(
        "op: DeviceFn<fn(f32) -> f32> = {:#x}, y: ",
        square.address()
    );
    assert!(shown.contains(&expected), "{shown}");
}

#[test]
fn a_variable_is_set_to_functions_of_its_module() {
    let device = device!();
    let stream = device.default_stream();
    let mut y = stream.clone_htod(&[6.0_f32]).unwrap();
    let (square, halve) = (
        OP_SQUARE.get(&stream).unwrap(),
        OP_HALVE.get(&stream).unwrap(),
    );
    map_chosen(&stream, cover(1), &mut y, 1).unwrap();
    OP_CHOSEN.set(&stream, &halve).unwrap();
    assert_eq!(OP_CHOSEN.get(&stream).unwrap(), halve);
    // After what comes before it on another stream.
    let beside = device.new_stream().unwrap();
    map_chosen(&beside, cover(1), &mut y, 1).unwrap();
    OP_CHOSEN.set(&stream, &square).unwrap();
    map_chosen(&beside, cover(1), &mut y, 1).unwrap();
    assert_eq!(beside.clone_dtoh(&y).unwrap(), [18.0 * 18.0]);

    let table = OP_TABLE.get(&stream).unwrap();
    assert_eq!(table, [square.clone(), halve.clone(), square.clone()]);
    OP_TABLE
        .set(&stream, &[halve.clone(), halve, square])
        .unwrap();
    let mut y = stream.clone_htod(&[6.0_f32]).unwrap();
    map_table(&stream, cover(1), &mut y, 1, 0).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [3.0]);
    map_table(&stream, cover(1), &mut y, 1, 2).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [9.0]);
}

#[test]
fn a_variable_is_not_set_to_functions_of_another_module() {
    let device = device!();
    let stream = device.default_stream();
    let module = Module::from_ptx(&device, FUNCTIONS).unwrap();
    // SAFETY: the text holds what is declared.
    let (chosen, table, square): (Symbol<later::op_chosen>, Symbol<later::op_table>, _) = unsafe {
        (
            later::op_chosen.load_from(&module).unwrap(),
            later::op_table.load_from(&module).unwrap(),
            later::op_square.load_from(&module).unwrap(),
        )
    };
    let foreign = OP_HALVE.get(&stream).unwrap();
    let error = chosen.set(&stream, &foreign).unwrap_err();
    assert!(matches!(error.kind(), SymbolErrorKind::OtherModule(_)));
    assert!(
        error
            .to_string()
            .starts_with("symbol `op_chosen`: the function was read from `OP_HALVE` of ../kernels"),
        "{error}"
    );
    let own = square.get(&stream).unwrap();
    let error = table
        .set(&stream, &[own.clone(), own.clone(), foreign])
        .unwrap_err();
    assert!(matches!(error.kind(), SymbolErrorKind::OtherModule(_)));
    // Nothing of it was written.
    assert_eq!(table.get(&stream).unwrap()[0], own);
    assert_ne!(table.get(&stream).unwrap()[1], own);
    chosen.set(&stream, &own).unwrap();
}

#[test]
fn what_a_function_may_write_is_ordered() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let counted = OP_COUNTED.get(&stream).unwrap();
    let mut y = stream.alloc_zeros::<f32>(100_000).unwrap();
    map_in_place(&stream, cover(100_000), &counted, &mut y, 100_000).unwrap();
    // The read, on another stream, waits for the kernel.
    let beside = device.new_stream().unwrap();
    assert_eq!(CALLS.read(&beside).unwrap(), 100_000);
}

#[test]
fn a_declaration_is_compared_with_the_module() {
    let device = device!();
    let module = Module::from_ptx(&device, FUNCTIONS).unwrap();
    let line = |text: &str| FUNCTIONS[..FUNCTIONS.find(text).unwrap()].lines().count() + 1;
    let of_static = |error: Option<String>| error.unwrap();
    // SAFETY: what is wrong is not loaded.
    let errors = unsafe {
        [
            of_static(
                wrong::op_square
                    .load_from(&module)
                    .err()
                    .map(|e| e.to_string()),
            ),
            of_static(
                wrong::op_halve
                    .load_from(&module)
                    .err()
                    .map(|e| e.to_string()),
            ),
            of_static(
                wrong::fold_add
                    .load_from(&module)
                    .err()
                    .map(|e| e.to_string()),
            ),
            of_static(
                wrong::count_calls
                    .load_from(&module)
                    .err()
                    .map(|e| e.to_string()),
            ),
            of_static(
                wrong::op_table
                    .load_from(&module)
                    .err()
                    .map(|e| e.to_string()),
            ),
            of_static(wrong::calls.load_from(&module).err().map(|e| e.to_string())),
            of_static(wrong::map::load_from(&module).err().map(|e| e.to_string())),
            of_static(wrong::zip::load_from(&module).err().map(|e| e.to_string())),
            of_static(
                wrong::compare::load_from(&module)
                    .err()
                    .map(|e| e.to_string()),
            ),
        ]
    };
    let held = line("op_square = _Z6squaref") - 1;
    let expected = [
        format!(
            "it is `DeviceFn<fn(f64) -> f32>`, but the PTX:{held} initialises it with `_Z6squaref`, which the PTX:"
        ),
        "`(.b32) -> .b32`: it returns a scalar of 4 bytes".to_owned(),
        "`(.b32, .b32) -> .b32`: it takes 2 parameters, not 1".to_owned(),
        "`(.b64, .b64)`: it returns nothing".to_owned(),
        "it is `[DeviceFn<fn(f32) -> f32>; 2]` (16 bytes, align 8), but the PTX:".to_owned(),
        "it is `DeviceFn<fn(f32) -> f32>` (8 bytes, align 8), but the PTX:".to_owned(),
        "parameter 0, `op`, is `DeviceFn<fn(f32, f32) -> f32>`, but the kernel calls it at the PTX:".to_owned(),
        "parameter 3, `fold`, is `u64`, but the kernel calls it as a function at the PTX:".to_owned(),
        "`(.b32, .b32) -> .b32`: its parameter 0 is a scalar of 4 bytes, not a float of 8 bytes".to_owned(),
    ];
    for (error, expected) in errors.iter().zip(expected) {
        assert!(error.contains(&expected), "{error}\n{expected}");
    }
    assert!(
        errors[0].ends_with(
            "`(.b32) -> .b32`: its parameter 0 is a scalar of 4 bytes, not a float of 8 bytes"
        ),
        "{}",
        errors[0]
    );
    assert!(
        errors[6].ends_with("by the prototype `(.b32) -> .b32`: it takes 1 parameter, not 2"),
        "{}",
        errors[6]
    );
}
