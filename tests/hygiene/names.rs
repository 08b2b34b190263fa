//! Names of the user's that could meet names of the generated code.

#![allow(dead_code, reason = "that it compiles is the test")]

use std::sync::Arc;

use gridcall::cudarc::driver::{CudaContext, CudaSlice, CudaStream};
use gridcall::{Kernel, KernelArg, LoadError, cover, kernel};

/// Parameters are called what the generated function calls its own.
mod parameters {
    use gridcall::kernel;

    #[kernel(ptx = "../kernels/vector.ptx")]
    unsafe extern "C" {
        #[name("saxpy")]
        #[requires(params.len() >= launch, end.len() >= launch)]
        pub safe fn one(launch: u32, stream: f32, params: &[f32], end: &mut [f32]);
        #[name("saxpy")]
        #[requires(view2.len() >= call, holds.len() >= call)]
        pub safe fn two(call: u32, args: f32, view2: &[f32], holds: &mut [f32]);
        #[name("saxpy")]
        #[requires(r#type.len() >= self_, r#fn.len() >= self_)]
        pub safe fn three(self_: u32, guard2: f32, r#type: &[f32], r#fn: &mut [f32]);
        #[name("saxpy")]
        #[requires(block.len() >= grid)]
        pub unsafe fn four(grid: u32, context: f32, block: &[f32], shared_mem_bytes: &mut [f32]);
        #[name("saxpy")]
        #[requires(y.len() >= r#n, r#x.len() >= n)]
        #[may_alias(x, y)]
        pub unsafe fn five(n: u32, a: f32, x: &[f32], r#y: &mut [f32]);
        #[name("saxpy")]
        pub unsafe fn r#move(saxpy: u32, four: f32, result: &[f32], core: &mut [f32]);
    }
}

/// Names of the prelude mean something else here.
mod shadowed {
    use gridcall::kernel;

    type Result<T> = std::result::Result<T, String>;
    struct Option;
    struct Some;
    struct Ok;
    struct Err;
    struct Sized;
    trait Into {}
    #[allow(non_camel_case_types)]
    struct u8;
    #[allow(non_camel_case_types)]
    struct bool;
    #[allow(non_camel_case_types)]
    struct str;
    #[allow(non_camel_case_types)]
    struct usize;
    mod core {}
    mod std {
        pub(super) use ::std::result;
    }
    mod gridcall {
        pub(super) use ::gridcall::kernel;
    }
    use ::std::string::String;

    #[kernel(ptx = "../kernels/vector.ptx")]
    unsafe extern "C" {
        #[requires(x.len() >= n, y.len() >= n, n > 1, block.x == 256)]
        pub safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);
    }

    #[kernel(ptx = "../kernels/scalars.ptx")]
    unsafe extern "C" {
        pub unsafe fn maybe(x: ::core::option::Option<&[f32]>, out: &mut [f32], n: i32);
    }

    fn uses() -> (Result<Option>, Some, Ok, Err, Sized) {
        (Result::Ok(Option), Some, Ok, Err, Sized)
    }
}

/// Statics are called what the generated code calls its own, and two blocks declare others.
mod statics {
    use gridcall::kernel;

    #[kernel(ptx = "../kernels/symbols.ptx")]
    unsafe extern "C" {
        #[name("taps")]
        pub static mut CELL: [f32; 5];
        #[name("scale")]
        pub(super) static mut stream: f32;
    }

    #[kernel(ptx = "../kernels/symbols.ptx")]
    unsafe extern "C" {
        #[cfg(any())]
        static mut NO_SUCH_SYMBOL: Unknown;
        #[name("ramp")]
        static r#static: [f32; COUNT];
    }

    const COUNT: usize = 4;

    fn in_a_body() -> usize {
        #[kernel(ptx = "../kernels/symbols.ptx")]
        unsafe extern "C" {
            static window: Window;
        }

        #[derive(Clone, Copy, gridcall::KernelArg)]
        #[repr(C)]
        struct Window {
            first: i32,
            gain: f64,
        }
        size_of_val(&window) + size_of_val(&r#static)
    }
}

/// Constants, statics and variables of the device are called what the generated code might call what is its
/// own: in a pattern, such a name is no new variable.
macro_rules! beside_items {
    ($($name:ident)+) => {$(
        mod $name {
            use gridcall::{AsDeviceView, AsDeviceViewMut, KernelArg, kernel};

            mod constants {
                use super::*;

                #[allow(non_upper_case_globals)]
                const $name: u8 = 0;

                declarations!();
            }

            mod variables {
                use super::*;

                #[kernel(ptx = "../kernels/symbols.ptx")]
                unsafe extern "C" {
                    #[name("scale")]
                    static mut $name: f32;
                }

                declarations!();
            }
        }
    )+};
}

macro_rules! declarations {
    () => {
        #[kernel(ptx = "../kernels/vector.ptx")]
        unsafe extern "C" {
            #[requires(x.len() >= n, y.len() >= n, grid.x > 0)]
            safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);
        }

        #[kernel(ptx = "../kernels/structs.ptx")]
        unsafe extern "C" {
            safe fn julia(out: &mut [u32], g: Grid);
        }

        #[derive(Clone, Copy, KernelArg)]
        #[repr(C)]
        struct Grid {
            x0: f32,
            dx: f32,
            n: i32,
        }

        #[derive(Clone, Copy, KernelArg)]
        #[repr(u8)]
        enum Mode {
            Nearest,
        }

        #[derive(AsDeviceView, AsDeviceViewMut)]
        struct Samples<A>(A);
    };
}

beside_items!(
    params call end arrays offset value to index array view view0 view1 view2 view3 guard guard0 guard1 guard2
    guard3 address error layout result field kernel
);

/// Declarations in function bodies see the types beside them.
fn in_a_body() -> fn(&Arc<CudaContext>) -> Result<Kernel<julia>, LoadError> {
    julia::load
}

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct Grid {
    x0: f32,
    dx: f32,
    n: i32,
}

#[kernel(ptx = "../kernels/structs.ptx")]
unsafe extern "C" {
    safe fn julia(out: &mut [u32], g: Grid);
}

fn body(stream: &CudaStream, out: &mut CudaSlice<u32>) -> Result<(), gridcall::LaunchError> {
    #[derive(Clone, Copy, KernelArg)]
    #[repr(C)]
    struct Local {
        x0: f32,
        dx: f32,
        n: i32,
    }

    #[kernel(ptx = "../kernels/structs.ptx")]
    unsafe extern "C" {
        #[name("julia")]
        #[requires(out.len() >= g.n * g.n)]
        safe fn local(out: &mut [u32], g: Local);
    }

    #[kernel(ptx = "../kernels/structs.ptx")]
    #[name("julia")]
    unsafe fn path(out: &mut [u32], g: self::Grid);

    let g = Grid {
        x0: 0.0,
        dx: 0.0,
        n: 1,
    };
    // SAFETY: never called; that it compiles is the test.
    unsafe { path(stream, cover(1), out, g) }?;
    local(
        stream,
        cover(1),
        out,
        Local {
            x0: 0.0,
            dx: 0.0,
            n: 1,
        },
    )
}

/// Declarations written by macros, with the pieces from inside and outside.
macro_rules! declare {
    ($ptx:literal, $name:ident, $entry:literal, $count:ident: $integer:ty, $least:expr) => {
        #[kernel(ptx = $ptx)]
        unsafe extern "C" {
            #[name($entry)]
            #[requires(x.len() >= $count, y.len() >= $count, $count >= $least)]
            pub safe fn $name($count: $integer, a: f32, x: &[f32], y: &mut [f32]);
        }
    };
    ($($name:ident),+) => {$(
        #[kernel(ptx = concat!("../kernels/", "vector", ".ptx"))]
        #[name("scale")]
        #[requires(y.len() >= n)]
        unsafe fn $name(y: &mut [f32], a: f32, n: i32);
    )+};
}

declare!("../kernels/vector.ptx", unsigned, "saxpy", count: u32, 1 + 1);
declare!("../kernels/vector.ptx", signed, "axpy", n: i32, -1);
declare!(first, second);

fn uses_of_macros(
    stream: &CudaStream,
    y: &mut CudaSlice<f32>,
) -> Result<(), gridcall::LaunchError> {
    // SAFETY: one element is enough for a count of one.
    unsafe { first(stream, cover(1), y, 1.0, 1) }?;
    let arguments = second {
        y: &mut *y,
        a: 1.0,
        n: 1,
    };
    // SAFETY: as above.
    unsafe { arguments.launch(stream, cover(1)) }?;
    let x = y.clone();
    unsigned {
        count: 1,
        a: 1.0,
        x: &x,
        y,
    }
    .launch(stream, cover(1))
}

/// A struct that borrows, and pointers.
mod lifetimes {
    use gridcall::{DevicePointer, KernelArg, cover, kernel};

    #[derive(Clone, Copy, KernelArg)]
    #[repr(C)]
    struct Table<'a, T: Copy> {
        data: DevicePointer<'a, T>,
        len: u32,
    }

    #[kernel(ptx = "../kernels/structs.ptx")]
    #[requires(t.len <= 10, out.len() >= t.len)]
    unsafe fn look(t: Table<'_, f32>, out: &mut [f32]);

    #[kernel(ptx = "../kernels/vector.ptx")]
    #[name("saxpy")]
    unsafe fn pointers(n: u32, a: f32, x: *const f32, y: *mut f32);

    fn uses(
        stream: &gridcall::cudarc::driver::CudaStream,
        table: Table<'_, f32>,
        out: &mut gridcall::cudarc::driver::CudaSlice<f32>,
    ) -> Result<(), gridcall::LaunchError> {
        // SAFETY: never called; that it compiles is the test.
        unsafe { look(stream, cover(1), table, &mut *out) }?;
        let named = look { t: table, out };
        // SAFETY: as above.
        unsafe { named.launch(stream, cover(1)) }
    }
}

/// What `#[cfg]` takes away is not compared, and its parts go with it.
#[kernel(ptx = "../kernels/vector.ptx")]
unsafe extern "C" {
    #[cfg(any())]
    safe fn no_such_entry(n: String);
    #[cfg(not(any()))]
    safe fn relu(y: &mut [f32], n: i32);
    #[cfg(any())]
    #[name("relu")]
    safe fn relu(y: &mut [f32], n: u64);
}

#[cfg(any())]
#[kernel(ptx = "no/such.ptx")]
unsafe fn absent();

#[kernel(ptx = "no/such.ptx")]
#[cfg(any())]
unsafe extern "C" {
    safe fn absent_too();
}

/// Every way to write a path to one file.
mod paths {
    use gridcall::kernel;

    #[kernel(ptx = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels/vector.ptx"))]
    #[name("zero")]
    unsafe fn by_env(y: &mut [f32]);

    #[kernel(ptx = ::core::concat!("../kernels", "/", concat!("vector", ".ptx")))]
    #[name("zero")]
    unsafe fn by_concat(y: &mut [f32]);

    #[kernel(ptx = "../kernels/../kernels/vector.ptx")]
    #[name("zero")]
    unsafe fn by_literal(y: &mut [f32]);
}

#[test]
fn it_compiles() {
    let _ = in_a_body();
}
