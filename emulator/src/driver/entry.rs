//! What happens around each function of the driver: no panic leaves it, and its answer becomes a code.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::codes::{Answer, Code};
use super::{Call, lock};

/// Functions that work on the driver's state: each body is given the call, which holds the lock.
macro_rules! driver_api {
    (@one [] $name:ident $call:ident ($($arg:ident: $type:ty),*) $body:block [$($meta:tt)*]) => {
        $($meta)*
        #[allow(non_snake_case, reason = "the driver's own name")]
        pub(crate) extern "C" fn $name($($arg: $type),*) -> u32 {
            $crate::driver::entry::enter(stringify!($name), |$call| $body)
        }
    };
    (@one [$twin:ident] $name:ident $call:ident ($($arg:ident: $type:ty),*) $body:block [$($meta:tt)*]) => {
        driver_api! { @one [] $name $call ($($arg: $type),*) $body [$($meta)*] }
        #[allow(non_snake_case, reason = "the driver's own name")]
        pub(crate) extern "C" fn $twin($($arg: $type),*) -> u32 {
            $crate::driver::entry::with_per_thread_default(|| $name($($arg),*))
        }
    };
    ($($(#[$meta:meta])* fn $name:ident $(| $twin:ident)? ($call:ident $(, $arg:ident: $type:ty)* $(,)?) $body:block)*) => {
        $(driver_api! { @one [$($twin)?] $name $call ($($arg: $type),*) $body [$(#[$meta])*] })*
    };
}

/// Functions that need nothing of the driver's state.
macro_rules! plain_api {
    ($($(#[$meta:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?) $body:block)*) => {$(
        $(#[$meta])*
        #[allow(non_snake_case, reason = "the driver's own name")]
        pub(crate) extern "C" fn $name($($arg: $type),*) -> u32 {
            $crate::driver::entry::enter_plain(stringify!($name), || $body)
        }
    )*};
}

pub(crate) use {driver_api, plain_api};

/// Runs the body of a function that takes the lock.
pub(crate) fn enter(name: &'static str, body: impl FnOnce(&mut Call) -> Answer) -> u32 {
    enter_plain(name, || {
        let mut call = Call::begin(name)?;
        body(&mut call)
    })
}

/// Runs the body of a function that takes no lock.
pub(crate) fn enter_plain(name: &'static str, body: impl FnOnce() -> Answer) -> u32 {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => 0,
        Ok(Err(code)) => code.0,
        Err(_) => {
            lock().note_panic(name);
            Code::UNKNOWN.0
        }
    }
}

thread_local! {
    static PER_THREAD_DEFAULT: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Whether the null stream means the thread's own in the call that is going on.
pub(crate) fn per_thread_default() -> bool {
    PER_THREAD_DEFAULT.get()
}

/// Runs a function as its `_ptsz` twin.
pub(crate) fn with_per_thread_default(function: impl FnOnce() -> u32) -> u32 {
    let before = PER_THREAD_DEFAULT.replace(true);
    let code = function();
    PER_THREAD_DEFAULT.set(before);
    code
}
