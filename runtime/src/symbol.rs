//! Symbols: `__constant__` and `__device__` variables of a module, declared as statics.

mod cell;
mod claims;
mod error;
mod gate;
mod uses;

use std::{any::type_name, ffi::c_void, fmt, marker::PhantomData, sync::Arc};

use bytemuck::CheckedBitPattern;
use cudarc::driver::{CudaContext, CudaStream, result, sys};
use gridcall_view::{AsDeviceView, Guard, Place, StreamRef, View, ViewError};

pub(crate) use self::{
    cell::LoadedSymbol,
    claims::{Claims, Touched},
    uses::Acquired,
};
pub use self::{
    cell::SymbolCell,
    error::{SymbolError, SymbolErrorKind},
};
use crate::{
    arg::KernelArg,
    current::Current,
    error::{LoadError, OtherModule},
    function::{DeviceFn, Functions},
    module::Module,
};

/// A declared variable of a module: what a `static` in a block of [`#[kernel]`](macro@crate::kernel)
/// becomes, `D` being the type of the same name that stands for it.
///
/// ```no_run
/// use gridcall::{Symbol, cover, kernel};
///
/// #[kernel(ptx = "../kernels/symbols.ptx")]
/// unsafe extern "C" {
///     /// `__constant__ float taps[5];`
///     #[name("taps")]
///     pub static mut TAPS: [f32; 5];
///     /// `__device__ const float ramp[4] = { .. };`
///     #[name("ramp")]
///     static RAMP: [f32; 4];
///
///     /// y ← taps * x
///     #[requires(x.len() >= n, y.len() >= n)]
///     pub safe fn filter(x: &[f32], y: &mut [f32], n: u32);
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ctx = gridcall::device(0)?;
/// let stream = ctx.default_stream();
/// # let x = stream.clone_htod(&[1.0_f32; 100])?;
/// # let mut y = stream.alloc_zeros::<f32>(100)?;
/// TAPS.write(&stream, &[0.0, 0.25, 0.5, 0.25, 0.0])?;
/// filter(&stream, cover(100), &x, &mut y, 100)?;
/// TAPS.write(&stream, &[0.2; 5])?; // after the filter, before the next one
/// filter(&stream, cover(100), &x, &mut y, 100)?;
/// assert_eq!(TAPS.read(&stream)?, [0.2; 5]);
/// assert_eq!(RAMP.read(&stream)?, [0.0, 1.0, 2.0, 3.0]);
///
/// let taps: Symbol<TAPS> = TAPS.load(&ctx)?; // of one context, to be kept
/// # let _ = taps;
/// # Ok(())
/// # }
/// ```
///
/// # One variable for all kernels
///
/// Each context has its own variables, with the values of the source to begin with. In one context,
/// all declarations over the same PTX text are of one loaded module, whichever block or path they
/// name it by: what is written here is what all of them see.
///
/// # Order
///
/// What is declared `static` is read only, on the host and by kernels; that no kernel writes it is
/// the block's word, where the code does not tell.
///
/// What is declared `static mut` can be written, and its uses are in the right order on whatever
/// streams and threads: a kernel whose code reads it waits for those that wrote it, a write waits
/// for all before. A kernel counts as reading where its code shows that it only does so. For that,
/// the launch of a kernel whose code uses a `static mut` asks for the stream's identity, takes a
/// lock and records an event; other kernels pay nothing. Kernels learn of a `static
/// mut` by the block that they are declared in. One that uses the variable and is declared in
/// another block, which does not name it, is refused: whichever of both is loaded second does not
/// load, and says so.
///
/// As for arrays, a stream that is being captured into a graph is refused; and no node of a
/// [`Graph`](crate::Graph) is made of a kernel that uses a `static mut`.
///
/// What the host does to a variable by its [address](SymbolView::address), and kernels that other
/// libraries launch, are not ordered. Nor is a kernel that takes the variable's address from memory
/// where another kernel put it; nothing in its code shows that. One that calls a function by its
/// address counts as using whatever the functions use whose address the module takes.
///
/// # Functions
///
/// A variable that holds addresses of device functions is declared by
/// [`DeviceFn`](crate::DeviceFn); it is not read and written but [got](Static::get) and
/// [set](Static::set).
pub struct Static<D>(PhantomData<fn() -> D>);

/// A variable of a module that is loaded in one context: `D` is the type that
/// [`#[kernel]`](macro@crate::kernel) made of its declaration.
///
/// Loaded by [`Static::load`], or taken from a [`Module`] by [`Static::load_from`]. Cheap to clone,
/// may be sent to and shared between threads, and keeps its context alive.
pub struct Symbol<D> {
    loaded: Arc<LoadedSymbol>,
    context: Arc<CudaContext>,
    declared: PhantomData<fn() -> D>,
}

/// A variable as a device array that kernels read: of the elements of an array, of one element
/// otherwise.
///
/// Made by [`Symbol::view`] and [`Static::view`]. Its uses are ordered with those of the symbol.
///
/// Launches finish the guard of [`acquire`](AsDeviceView::acquire) themselves. Who acquires the view
/// by hand must finish or drop the guard, on the same thread: from the one to the other no other
/// thread uses a `static mut` of the context. A guard that is forgotten (`mem::forget`) keeps them
/// waiting for good.
///
/// ```no_run
/// use gridcall::{cover, kernel};
///
/// #[kernel(ptx = "../kernels/symbols.ptx")]
/// unsafe extern "C" {
///     #[name("taps")]
///     static mut TAPS: [f32; 5];
///     #[requires(x.len() >= n, y.len() >= n)]
///     safe fn filter(x: &[f32], y: &mut [f32], n: u32);
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ctx = gridcall::device(0)?;
/// let stream = ctx.default_stream();
/// let mut y = stream.alloc_zeros::<f32>(5)?;
/// filter(&stream, cover(5), &TAPS.view(&ctx)?, &mut y, 5)?;
/// # Ok(())
/// # }
/// ```
pub struct SymbolView<T> {
    loaded: Arc<LoadedSymbol>,
    context: Arc<CudaContext>,
    len: usize,
    elements: PhantomData<fn() -> T>,
}

/// The declaration of a symbol. Implemented by `#[kernel]`.
///
/// # Safety
///
/// `Value` must be `Element`, or an array of it, or of such arrays; and the variable of the
/// declared name must hold a `Value`: as its bytes if this is a [`DeclaredValue`], as addresses if it
/// is a [`DeclaredFn`].
pub unsafe trait DeclaredSymbol: 'static {
    /// What it holds.
    type Value;
    /// What it is an array of.
    type Element;

    /// The declaration and where it is loaded.
    fn cell() -> &'static SymbolCell;
}

/// A symbol that holds its value as it is. Implemented by `#[kernel]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` holds addresses of device functions",
    label = "holds functions",
    note = "take them by `{Self}.get(&stream)`, and change a `static mut` by `set`"
)]
pub trait DeclaredValue: DeclaredSymbol {}

/// A symbol that holds addresses of device functions: its value is a
/// [`DeviceFn`](crate::DeviceFn), or an array of such. Implemented by `#[kernel]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` holds no addresses of device functions",
    label = "holds no functions",
    note = "take its value by `{Self}.read(&stream)`"
)]
pub trait DeclaredFn: DeclaredSymbol {}

/// A symbol that is declared `static mut`. Implemented by `#[kernel]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is declared `static`, and only what is declared `static mut` can be written",
    label = "not declared `static mut`",
    note = "declare it `static mut` if the host writes it between launches"
)]
pub trait DeclaredMut: DeclaredSymbol {}

/// A symbol whose module is known while compiling. Implemented by `#[kernel]`.
#[diagnostic::on_unimplemented(
    message = "the module of `{Self}` is known only when the program runs",
    label = "declared without `ptx = ..`",
    note = "take it from the module: `unsafe {{ {Self}.load_from(&module) }}`"
)]
pub trait DeclaredInPtx: DeclaredSymbol {}

/// A symbol whose module the program names when it runs. Implemented by `#[kernel]`.
#[diagnostic::on_unimplemented(
    message = "the module of `{Self}` is that of its `ptx = ..`",
    label = "declared with `ptx = ..`",
    note = "take it from there: `{Self}.load(&ctx)`"
)]
pub trait DeclaredInModule: DeclaredSymbol {}

impl<D> Static<D> {
    /// Made by `#[kernel]`.
    #[doc(hidden)]
    #[must_use]
    pub const fn new() -> Static<D> {
        Static(PhantomData)
    }
}

impl<D: DeclaredSymbol> Static<D> {
    /// The variable in one context, its module loaded now if it is not yet.
    ///
    /// # Errors
    ///
    /// If the driver refuses the PTX, there is no driver, or a kernel that was loaded before uses
    /// the variable and was not told that it is written.
    pub fn load(&self, context: &Arc<CudaContext>) -> Result<Symbol<D>, LoadError>
    where
        D: DeclaredInPtx,
    {
        Ok(Symbol::new(D::cell().get(context)?, context))
    }

    /// Writes the variable in the stream's context; see [`Symbol::write`].
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load) and [`Symbol::write`].
    pub fn write(&self, stream: &CudaStream, value: &D::Value) -> Result<(), SymbolError>
    where
        D: DeclaredInPtx + DeclaredMut<Value: KernelArg> + DeclaredValue,
    {
        self.of(stream.context())?.write(stream, value)
    }

    /// Reads the variable in the stream's context; see [`Symbol::read`].
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load) and [`Symbol::read`].
    pub fn read(&self, stream: &CudaStream) -> Result<D::Value, SymbolError>
    where
        D: DeclaredInPtx + DeclaredValue<Element: CheckedBitPattern>,
    {
        self.of(stream.context())?.read(stream)
    }

    /// The variable in one context as a device array.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn view(&self, context: &Arc<CudaContext>) -> Result<SymbolView<D::Element>, SymbolError>
    where
        D: DeclaredInPtx + DeclaredValue,
    {
        Ok(self.of(context)?.view())
    }

    /// The functions whose addresses the variable holds in the stream's context; see
    /// [`Symbol::get`].
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load) and [`Symbol::get`].
    pub fn get(&self, stream: &CudaStream) -> Result<D::Value, SymbolError>
    where
        D: DeclaredInPtx + DeclaredFn<Value: Functions>,
    {
        self.of(stream.context())?.get(stream)
    }

    /// Sets the functions in the stream's context; see [`Symbol::set`].
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load) and [`Symbol::set`].
    pub fn set(&self, stream: &CudaStream, functions: &D::Value) -> Result<(), SymbolError>
    where
        D: DeclaredInPtx + DeclaredMut<Value: Functions> + DeclaredFn,
    {
        self.of(stream.context())?.set(stream, functions)
    }

    fn of(self, context: &Arc<CudaContext>) -> Result<Symbol<D>, SymbolError>
    where
        D: DeclaredInPtx,
    {
        let name = D::cell().declaration().name;
        self.load(context)
            .map_err(|error| SymbolError::new(name, SymbolErrorKind::Load(error)))
    }

    /// Takes the variable from a module, compared with this declaration.
    ///
    /// # Errors
    ///
    /// If the module has no such variable, or one of another size, or a kernel taken from it
    /// before uses it and was not told that it is written.
    ///
    /// # Safety
    ///
    /// The module's variable is the one that is declared: what is compared are its size and, of
    /// PTX, its alignment and class.
    pub unsafe fn load_from(&self, module: &Module) -> Result<Symbol<D>, LoadError>
    where
        D: DeclaredInModule,
    {
        let loaded = module.symbol(D::cell().declaration())?;
        Ok(Symbol::new(Arc::new(loaded), module.context()))
    }
}

impl<D: DeclaredSymbol> Symbol<D> {
    fn new(loaded: Arc<LoadedSymbol>, context: &Arc<CudaContext>) -> Symbol<D> {
        Symbol {
            loaded,
            context: context.clone(),
            declared: PhantomData,
        }
    }

    /// The context it is loaded in.
    #[must_use]
    pub fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    /// Writes the variable, in the order of `stream` and after all uses before it on other
    /// streams. Uses that are enqueued from now on, on any stream, see the value.
    ///
    /// The value is copied; the host does not wait for the device. Padding arrives as zeros.
    ///
    /// # Errors
    ///
    /// If the stream is in another context or being captured, or the driver fails.
    pub fn write(&self, stream: &CudaStream, value: &D::Value) -> Result<(), SymbolError>
    where
        D: DeclaredMut<Value: KernelArg> + DeclaredValue,
    {
        let mut bytes = vec![0_u8; D::Value::LAYOUT.size];
        // SAFETY: there is room for the size of the layout.
        unsafe { value.write(bytes.as_mut_ptr()) };
        self.write_bytes(stream, &bytes)
    }

    /// Writes all of the variable: `bytes` has its size.
    fn write_bytes(&self, stream: &CudaStream, bytes: &[u8]) -> Result<(), SymbolError> {
        let to = self.loaded.pointer;
        self.enqueue(stream, true, "cuMemcpyHtoDAsync", |stream| {
            // The bytes are pageable, so the driver has taken them when it returns
            // (https://docs.nvidia.com/cuda/cuda-driver-api/api-sync-behavior.html).
            // SAFETY: the variable has as many bytes, compared when it was loaded.
            unsafe { sys::cuMemcpyHtoDAsync_v2(to, bytes.as_ptr().cast(), bytes.len(), stream) }
        })
    }

    /// Reads the variable, in the order of `stream`, and waits for it.
    ///
    /// # Errors
    ///
    /// If the device wrote bytes that are no value of the type, the stream is in another context
    /// or being captured, or the driver fails.
    pub fn read(&self, stream: &CudaStream) -> Result<D::Value, SymbolError>
    where
        D: DeclaredValue<Element: CheckedBitPattern>,
    {
        const {
            assert!(size_of::<D::Value>().is_multiple_of(size_of::<D::Element>()));
        }
        let bytes = self.read_bytes(stream)?;
        let elements = bytes.chunks_exact(size_of::<D::Element>());
        for (index, element) in elements.enumerate() {
            if bytemuck::checked::try_pod_read_unaligned::<D::Element>(element).is_err() {
                let ty = type_name::<D::Element>();
                return Err(self.error(SymbolErrorKind::Invalid { index, ty }));
            }
        }
        // SAFETY: there are as many bytes as a value has, and each of its elements has just been
        // found to be one; a value is nothing but its elements, by the trait.
        Ok(unsafe { bytes.as_ptr().cast::<D::Value>().read_unaligned() })
    }

    /// Reads the variable as bytes, in the order of `stream`, and waits for it.
    ///
    /// # Errors
    ///
    /// If the stream is in another context or being captured, or the driver fails.
    pub fn read_bytes(&self, stream: &CudaStream) -> Result<Vec<u8>, SymbolError> {
        let mut bytes = vec![0_u8; D::cell().declaration().layout.size];
        let (from, to) = (self.loaded.pointer, bytes.as_mut_ptr().cast::<c_void>());
        let len = bytes.len();
        let enqueued = self.enqueue(stream, false, "cuMemcpyDtoHAsync", |stream| {
            // SAFETY: the variable and the vector have as many bytes, and the vector outlives the
            // copy: it is waited for below, or forgotten.
            unsafe { sys::cuMemcpyDtoHAsync_v2(to, from, len, stream) }
        });
        let read = enqueued.and_then(|()| {
            let _current = self.enter()?;
            // SAFETY: the stream is alive and its context current.
            unsafe { result::stream::synchronize(stream.cu_stream()) }
                .map_err(|error| self.driver_error("cuStreamSynchronize", error))
        });
        match read {
            Ok(()) => Ok(bytes),
            Err(error) => {
                // Whatever the driver still does with it.
                std::mem::forget(bytes);
                Err(error)
            }
        }
    }

    /// The variable as a device array.
    #[must_use]
    pub fn view(&self) -> SymbolView<D::Element>
    where
        D: DeclaredValue,
    {
        SymbolView {
            loaded: self.loaded.clone(),
            context: self.context.clone(),
            len: size_of::<D::Value>() / size_of::<D::Element>(),
            elements: PhantomData,
        }
    }

    /// The functions whose addresses the variable holds, read in the order of `stream`, which is
    /// waited for. To be read once and kept: a [`DeviceFn`](crate::DeviceFn) keeps its module loaded.
    ///
    /// # Errors
    ///
    /// If it holds a null pointer, the stream is in another context or being captured, or the driver
    /// fails.
    pub fn get(&self, stream: &CudaStream) -> Result<D::Value, SymbolError>
    where
        D: DeclaredFn<Value: Functions>,
    {
        let bytes = self.read_bytes(stream)?;
        let address = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_ne_bytes);
        let addresses: Vec<u64> = bytes.chunks_exact(size_of::<u64>()).map(address).collect();
        if let Some(index) = addresses.iter().position(|&address| address == 0) {
            return Err(self.error(SymbolErrorKind::NoFunction { index }));
        }
        let mut addresses = addresses.into_iter();
        let LoadedSymbol { name, module, .. } = &*self.loaded;
        Ok(D::Value::gather(&mut || {
            // There are as many as the variable has room for, whose size was compared.
            let address = addresses.next().unwrap_or(0);
            DeviceFn::new(address, module.clone(), name)
        }))
    }

    /// Sets the functions whose addresses the variable holds, in the order of `stream` and after all
    /// uses before it on other streams, as [`write`](Self::write) does.
    ///
    /// ```no_run
    /// use gridcall::{DeviceFn, cover, kernel};
    ///
    /// #[kernel(ptx = "../kernels/functions.ptx")]
    /// unsafe extern "C" {
    ///     #[name("op_halve")]
    ///     static OP_HALVE: DeviceFn<fn(f32) -> f32>;
    ///     /// `__device__ Op op_chosen = square;`
    ///     #[name("op_chosen")]
    ///     static mut OP_CHOSEN: DeviceFn<fn(f32) -> f32>;
    ///     /// y ← op_chosen(y)
    ///     #[requires(y.len() >= n)]
    ///     safe fn map_chosen(y: &mut [f32], n: u32);
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let stream = gridcall::device(0)?.default_stream();
    /// let mut y = stream.clone_htod(&[4.0_f32])?;
    /// map_chosen(&stream, cover(1), &mut y, 1)?;
    /// OP_CHOSEN.set(&stream, &OP_HALVE.get(&stream)?)?; // after that launch, before the next one
    /// map_chosen(&stream, cover(1), &mut y, 1)?;
    /// assert_eq!(stream.clone_dtoh(&y)?, [8.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If one of them is of another module, the stream is in another context or being captured, or the
    /// driver fails.
    pub fn set(&self, stream: &CudaStream, functions: &D::Value) -> Result<(), SymbolError>
    where
        D: DeclaredMut<Value: Functions> + DeclaredFn,
    {
        let mut bytes = Vec::new();
        let mut foreign = None;
        let own = &self.loaded.module;
        functions.each(&mut |function| {
            bytes.extend(function.address().to_ne_bytes());
            if foreign.is_none() && !Arc::ptr_eq(function.module(), own) {
                let other = OtherModule::new(function.read_from(), function.module(), own);
                foreign = Some(SymbolErrorKind::OtherModule(other));
            }
        });
        match foreign {
            Some(kind) => Err(self.error(kind)),
            None => self.write_bytes(stream, &bytes),
        }
    }

    /// Enqueues a copy in the right order.
    fn enqueue(
        &self,
        stream: &CudaStream,
        writes: bool,
        call: &'static str,
        copy: impl FnOnce(sys::CUstream) -> sys::CUresult,
    ) -> Result<(), SymbolError> {
        if stream.context().cu_ctx() != self.context.cu_ctx() {
            return Err(self.error(SymbolErrorKind::OtherContext {
                symbol: self.context.ordinal(),
                stream: stream.context().ordinal(),
            }));
        }
        let _current = self.enter()?;
        let uses = self.loaded.uses(writes);
        if uses.is_empty() {
            // Nobody orders it, but to wait for the copy would end the capture.
            // SAFETY: the stream is borrowed, and its context current.
            unsafe { uses::refuse_capture(stream.cu_stream()) }.map_err(|kind| self.error(kind))?;
        }
        // SAFETY: the stream is borrowed, of the symbol's context, which is current.
        let acquired = unsafe { Acquired::new(uses, stream.cu_stream()) }?;
        copy(stream.cu_stream())
            .result()
            .map_err(|error| self.driver_error(call, error))?;
        acquired.map_or(Ok(()), Acquired::finish)
    }

    fn enter(&self) -> Result<Current, SymbolError> {
        Current::enter(&self.context).map_err(|e| self.driver_error("cuCtxSetCurrent", e))
    }

    #[cold]
    fn error(&self, kind: SymbolErrorKind) -> SymbolError {
        SymbolError::new(self.loaded.name, kind)
    }

    #[cold]
    fn driver_error(&self, call: &'static str, source: cudarc::driver::DriverError) -> SymbolError {
        self.error(SymbolErrorKind::Driver { call, source })
    }
}

impl<T> SymbolView<T> {
    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements, which is never so.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device address of the variable, for kernels and driver calls whose callers vouch for
    /// the order.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.loaded.pointer
    }
}

// SAFETY: the variable has as many elements, valid ones by the word of its declaration, and lives
// as long as its module, which the view keeps. `acquire` makes the stream come after all writes,
// and the guard notes the read, which the next write waits for; what is not ordered is never
// written.
unsafe impl<T> AsDeviceView<T> for SymbolView<T> {
    fn describe(&self) -> Result<View<'_>, ViewError> {
        let place = Place::Context {
            context: self.context.cu_ctx().cast(),
            device: i32::try_from(self.context.ordinal()).unwrap_or(i32::MAX),
        };
        Ok(View::new(self.loaded.pointer, self.len, place).read_only())
    }

    fn acquire<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        if stream.context() != self.context.cu_ctx().cast() {
            return Err(ViewError::other(
                "the symbol is loaded in another context than the stream's",
            ));
        }
        let uses = self.loaded.uses(false);
        // SAFETY: the stream is borrowed for as long as the guard, and of the view's context, which
        // is current while an array is acquired and finished.
        match unsafe { Acquired::new(uses, stream.raw().cast()) }? {
            Some(acquired) => Ok(Guard::new(move || Ok(acquired.finish()?))),
            None => Ok(Guard::none()),
        }
    }
}

impl<D> Clone for Static<D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D> Copy for Static<D> {}

impl<D: DeclaredSymbol> fmt::Debug for Static<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let declaration = D::cell().declaration();
        f.debug_struct("Static")
            .field("name", &declaration.name)
            .field("ptx", &declaration.path())
            .finish()
    }
}

impl<D> Clone for Symbol<D> {
    fn clone(&self) -> Self {
        Symbol {
            loaded: self.loaded.clone(),
            context: self.context.clone(),
            declared: PhantomData,
        }
    }
}

impl<D> fmt::Debug for Symbol<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Symbol")
            .field("name", &self.loaded.name)
            .field("address", &format_args!("{:#x}", self.loaded.pointer))
            .field("device", &self.context.ordinal())
            .finish_non_exhaustive()
    }
}

impl<T> Clone for SymbolView<T> {
    fn clone(&self) -> Self {
        SymbolView {
            loaded: self.loaded.clone(),
            context: self.context.clone(),
            ..*self
        }
    }
}

impl<T> fmt::Debug for SymbolView<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SymbolView")
            .field("name", &self.loaded.name)
            .field("address", &format_args!("{:#x}", self.loaded.pointer))
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}
