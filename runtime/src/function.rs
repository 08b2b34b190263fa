//! Functions of the device, by their addresses: as values of statics, and as arguments.

use std::{array, fmt, marker::PhantomData, sync::Arc};

use crate::{
    arg::KernelArg,
    layout::{ArgLayout, Class},
    load::Module,
    signature::Signature,
};

/// The address of a `__device__` function: what C++ writes as a pointer to a function of the type
/// `F`, such as `float (*)(float)` for `DeviceFn<fn(f32) -> f32>`.
///
/// A kernel takes one as an argument. The host comes by one by reading a variable of the module that
/// holds it, which is declared beside the kernels:
///
/// ```no_run
/// use gridcall::{DeviceFn, cover, kernel};
///
/// // typedef float (*Op)(float);
/// // __device__ float square(float x) { return x * x; }
/// // __device__ Op op_square = square;
/// #[kernel(ptx = "../kernels/functions.ptx", cuda = "../kernels/functions.cu")]
/// unsafe extern "C" {
///     #[name("op_square")]
///     static OP_SQUARE: DeviceFn<fn(f32) -> f32>;
///     #[name("op_halve")]
///     static OP_HALVE: DeviceFn<fn(f32) -> f32>;
///
///     /// y ← op(x)
///     #[requires(x.len() >= n, y.len() >= n)]
///     pub safe fn map(op: DeviceFn<fn(f32) -> f32>, x: &[f32], y: &mut [f32], n: u32);
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let stream = gridcall::device(0)?.default_stream();
/// let square = OP_SQUARE.get(&stream)?; // once
/// let halve = OP_HALVE.get(&stream)?;
/// let x = stream.clone_htod(&[1.0_f32, 2.0, 3.0])?;
/// let mut y = stream.alloc_zeros::<f32>(3)?;
/// map(&stream, cover(3), &square, &x, &mut y, 3)?;
/// assert_eq!(stream.clone_dtoh(&y)?, [1.0, 4.0, 9.0]);
/// map(&stream, cover(3), &halve, &x, &mut y, 3)?;
/// assert_eq!(stream.clone_dtoh(&y)?, [0.5, 1.0, 1.5]);
/// # Ok(())
/// # }
/// ```
///
/// # Its module
///
/// The address means something in the module that it was read from, and nowhere else. On an H200
/// (driver 580) it is the function's number in its module: a kernel of another module that is given
/// it calls whatever function has that number there, without a fault, and `compute-sanitizer` finds
/// nothing either; where no function has that number, the kernel runs without an end. So the value
/// knows its module and keeps it loaded. The launch of a kernel of another module, or of the same one
/// as it is loaded in another context, is refused before the driver is called: by one comparison,
/// without a lock or a lookup.
///
/// For the same reason it is no [`KernelArg`], and no field of a struct or element of an array that a
/// kernel takes: bytes in device memory do not tell where they came from. A variable may be an array
/// of them, `static OPS: [DeviceFn<fn(f32) -> f32>; 3];`.
///
/// # What is checked
///
/// `F` is a `fn` of what kernels take by value, and of device pointers, `fn(*const f32, u32) -> f32`.
/// While the crate compiles, that of a static is compared with the functions that the PTX initialises
/// the variable with: the number, sizes, alignments and classes of their parameters, and the result.
/// That of a parameter is compared with the prototype by which the kernel calls it, where its code
/// shows that; and in full with the type in the kernel's C++ name and in its CUDA source, if there are
/// such. When it is read, it is not null.
///
/// The rest the block vouches for: that the functions are of that type, and that a safe kernel may
/// call any of them. A device makes a wrong result, and no fault, of a call with other parameters than
/// the function has.
///
/// A kernel that calls a function by its address counts as using every variable that the functions use
/// whose address the module takes, for the [order](crate::Static#order) of `static mut`s.
///
/// # Stack
///
/// The compiler counts the largest frame of the module's functions that have an address and fit the
/// prototype of a call as local memory of the kernel, and the driver raises the stack of the
/// context (`CU_LIMIT_STACK_SIZE`) to that: on an H200 from 1,024 to 16,464 bytes, when the kernel was
/// launched. Where functions call themselves no size is known, and the limit is the caller's to raise.
pub struct DeviceFn<F> {
    address: u64,
    module: Arc<Module>,
    /// The static that it was read from.
    from: &'static str,
    function: PhantomData<fn() -> F>,
}

/// The type of a device function: a `fn` of up to 12 parameters, each of them what a kernel takes by
/// value or a device pointer, and a result of the same kind, or none.
///
/// ```
/// use gridcall::DeviceFunction;
/// fn is_function<F: DeviceFunction>() {}
/// is_function::<fn(f32, u32) -> f32>();
/// is_function::<fn(*mut u32, bool)>();
/// ```
///
/// # Safety
///
/// `SIGNATURE` must be how CUDA C++ passes the parameters and the result.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no type of a device function",
    label = "not a type of a device function",
    note = "it is a `fn(A, B) -> R`, at most of 12 parameters, of what a kernel takes by value and of device pointers, `*const T` and `*mut T`"
)]
pub unsafe trait DeviceFunction {
    /// Its parameters and its result.
    #[doc(hidden)]
    const SIGNATURE: Signature<'static>;
}

/// What a device function takes or returns. Implemented here alone.
///
/// # Safety
///
/// `LAYOUT` must be how CUDA C++ passes the type.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is nothing that a device function takes or returns",
    label = "not passed to a device function",
    note = "it takes what a kernel takes by value, and device pointers, `*const T` and `*mut T`"
)]
pub unsafe trait Passed {
    const LAYOUT: ArgLayout;
}

/// What a device function returns. Implemented here alone.
///
/// # Safety
///
/// `LAYOUT` must be how CUDA C++ returns the type.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is nothing that a device function returns",
    label = "not returned by a device function"
)]
pub unsafe trait Returned {
    const LAYOUT: Option<ArgLayout>;
}

const POINTER: ArgLayout = ArgLayout {
    size: 8,
    align: 8,
    class: Class::Integer,
    has_pointer: true,
    kind: "pointer",
    name: "",
    fields: &[],
};

// SAFETY: the layout is the one by which the type is passed to kernels.
unsafe impl<T: KernelArg> Passed for T {
    const LAYOUT: ArgLayout = T::LAYOUT;
}

// SAFETY: an address of the device has 8 bytes.
unsafe impl<T> Passed for *const T {
    const LAYOUT: ArgLayout = POINTER;
}

// SAFETY: as above.
unsafe impl<T> Passed for *mut T {
    const LAYOUT: ArgLayout = POINTER;
}

// SAFETY: as the parameter of that type.
unsafe impl<T: Passed> Returned for T {
    const LAYOUT: Option<ArgLayout> = Some(T::LAYOUT);
}

// SAFETY: nothing is returned.
unsafe impl Returned for () {
    const LAYOUT: Option<ArgLayout> = None;
}

macro_rules! functions {
    ($(($($param:ident),*))+) => {$(
        // SAFETY: the layouts are those of the parameters and the result.
        unsafe impl<$($param: Passed,)* R: Returned> DeviceFunction for fn($($param),*) -> R {
            const SIGNATURE: Signature<'static> = Signature {
                params: &[$($param::LAYOUT),*],
                result: R::LAYOUT,
            };
        }
    )+};
}

functions! {
    () (A) (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E) (A, B, C, D, E, G) (A, B, C, D, E, G, H)
    (A, B, C, D, E, G, H, I) (A, B, C, D, E, G, H, I, J) (A, B, C, D, E, G, H, I, J, K)
    (A, B, C, D, E, G, H, I, J, K, L) (A, B, C, D, E, G, H, I, J, K, L, M)
}

/// A [`DeviceFn`], or an array of such. Implemented here alone.
#[doc(hidden)]
pub trait Functions: Sized {
    /// The type of the functions.
    type Function: DeviceFunction;

    /// How many there are.
    const COUNT: usize;

    /// Makes it of as many functions.
    fn gather(next: &mut dyn FnMut() -> DeviceFn<Self::Function>) -> Self;

    /// Calls `see` with each in order.
    fn each(&self, see: &mut dyn FnMut(&DeviceFn<Self::Function>));
}

impl<F: DeviceFunction> Functions for DeviceFn<F> {
    type Function = F;

    const COUNT: usize = 1;

    fn gather(next: &mut dyn FnMut() -> DeviceFn<F>) -> DeviceFn<F> {
        next()
    }

    fn each(&self, see: &mut dyn FnMut(&DeviceFn<F>)) {
        see(self);
    }
}

impl<T: Functions, const N: usize> Functions for [T; N] {
    type Function = T::Function;

    const COUNT: usize = N * T::COUNT;

    fn gather(next: &mut dyn FnMut() -> DeviceFn<T::Function>) -> [T; N] {
        array::from_fn(|_| T::gather(next))
    }

    fn each(&self, see: &mut dyn FnMut(&DeviceFn<T::Function>)) {
        for one in self {
            one.each(see);
        }
    }
}

impl<F> DeviceFn<F> {
    /// Of an address that is not null, read from a static of the module.
    pub(crate) fn new(address: u64, module: Arc<Module>, from: &'static str) -> DeviceFn<F> {
        DeviceFn {
            address,
            module,
            from,
            function: PhantomData,
        }
    }

    /// What the device takes for the function, within its module: never 0.
    #[must_use]
    #[inline(always)]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The name of the static that it was read from.
    #[must_use]
    pub fn read_from(&self) -> &'static str {
        self.from
    }

    #[inline(always)]
    pub(crate) fn module(&self) -> &Arc<Module> {
        &self.module
    }
}

impl<F> Clone for DeviceFn<F> {
    fn clone(&self) -> Self {
        DeviceFn {
            module: self.module.clone(),
            ..*self
        }
    }
}

/// Whether they are one function of one loaded module.
impl<F> PartialEq for DeviceFn<F> {
    fn eq(&self, other: &Self) -> bool {
        self.address == other.address && Arc::ptr_eq(&self.module, &other.module)
    }
}

impl<F> Eq for DeviceFn<F> {}

impl<F> fmt::Debug for DeviceFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceFn")
            .field("read_from", &self.from)
            .field("address", &format_args!("{:#x}", self.address))
            .field("module", &format_args!("{}", self.module))
            .finish()
    }
}
