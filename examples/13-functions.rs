//! Functions of the device: the host reads their addresses from variables of the module and passes
//! them to kernels, which call them. A kernel of another module is not launched with them.
//!
//! Needs a GPU of any kind, or the emulator.

use std::{error::Error, process::ExitCode};

use gridcall::{DeviceFn, Module, cover, kernel};

/// `typedef float (*Op)(float);`
type Op = fn(f32) -> f32;

#[kernel(ptx = "../kernels/functions.ptx", cuda = "../kernels/functions.cu")]
unsafe extern "C" {
    /// `__device__ Op op_square = square;`
    #[name("op_square")]
    static SQUARE: DeviceFn<Op>;

    /// `__device__ Op op_halve = halve;`
    #[name("op_halve")]
    static HALVE: DeviceFn<Op>;

    /// `__device__ Op op_chosen = square;`
    #[name("op_chosen")]
    static mut CHOSEN: DeviceFn<Op>;

    /// y ← op(x)
    #[requires(x.len() >= n, y.len() >= n)]
    safe fn map(op: DeviceFn<Op>, x: &[f32], y: &mut [f32], n: u32);

    /// y ← `op_chosen(y)`
    #[requires(y.len() >= n)]
    safe fn map_chosen(y: &mut [f32], n: u32);
}

/// The same kernel, of a module that the program loads itself.
mod loaded {
    use gridcall::{DeviceFn, kernel};

    #[kernel]
    unsafe extern "C" {
        #[requires(x.len() >= n, y.len() >= n)]
        pub safe fn map(op: DeviceFn<super::Op>, x: &[f32], y: &mut [f32], n: u32);
    }
}

const N: u32 = 1000;

fn main() -> ExitCode {
    gridcall_examples::run(example)
}

fn example() -> Result<(), Box<dyn Error>> {
    let ctx = gridcall::device(0)?;
    let stream = ctx.default_stream();
    let host: Vec<f32> = (0_u16..1000).map(f32::from).collect();
    let x = stream.clone_htod(&host)?;
    let mut y = stream.alloc_zeros::<f32>(N as usize)?;

    // Read once, and kept: each keeps its module loaded.
    let ops = [
        ("square", SQUARE.get(&stream)?),
        ("halve", HALVE.get(&stream)?),
    ];
    for (name, op) in &ops {
        map(&stream, cover(N), op, &x, &mut y, N)?;
        println!("{name}: {:?}, ..", &stream.clone_dtoh(&y)?[..5]);
    }
    assert_eq!(stream.clone_dtoh(&y)?[9], 4.5);

    // What a kernel calls by itself is changed in order with its launches.
    map_chosen(&stream, cover(N), &mut y, N)?;
    CHOSEN.set(&stream, &ops[1].1)?;
    map_chosen(&stream, cover(N), &mut y, N)?;
    println!("half of a square: {:?}, ..", &stream.clone_dtoh(&y)?[..5]);
    assert_eq!(stream.clone_dtoh(&y)?[9], 0.5 * 4.5 * 4.5);

    // An address means something in its own module only.
    let module = Module::from_ptx(&ctx, include_str!("../kernels/functions.ptx"))?;
    // SAFETY: the text holds the kernel that is declared above.
    let other = unsafe { loaded::map::load_from(&module) }?;
    let arguments = loaded::map {
        op: &ops[0].1,
        x: &x,
        y: &mut y,
        n: N,
    };
    match other.launch(&stream, cover(N), arguments) {
        Ok(()) => Err("a function of another module was taken".into()),
        Err(refused) => {
            println!("{refused}");
            Ok(())
        }
    }
}
