//! Ranges in NVTX's domain `gridcall`, by the library that CUDA brings for other languages than C.
//!
//! It is opened at the first range. Where there is none, or no profiler listens, there are no
//! ranges, and asking costs a load.

use std::{
    ffi::{c_char, c_int, c_void},
    fmt::{self, Write},
    marker::PhantomData,
    sync::OnceLock,
};

use libloading::Library;

/// Of CUDA 12.9 and later, and of earlier ones.
#[cfg(not(windows))]
const LIBRARIES: [&str; 2] = ["libnvtx3interop.so.1", "libnvToolsExt.so.1"];
#[cfg(windows)]
const LIBRARIES: [&str; 2] = ["nvtx3interop.dll", "nvToolsExt64_1.dll"];

#[derive(Debug)]
struct Nvtx {
    push: unsafe extern "C" fn(*mut c_void, *const Attributes) -> c_int,
    pop: unsafe extern "C" fn(*mut c_void) -> c_int,
    domain: *mut c_void,
    /// Keeps the functions where they are.
    _library: Library,
}

// SAFETY: a domain may be used on any thread, as NVTX says of all its functions.
unsafe impl Send for Nvtx {}
// SAFETY: as for `Send`; nothing here changes.
unsafe impl Sync for Nvtx {}

/// [`nvtxEventAttributes_t`], without colour, category and payload.
///
/// [`nvtxEventAttributes_t`]: https://nvidia.github.io/NVTX/doxygen/structnvtx_event_attributes__v2.html
#[derive(Debug)]
#[repr(C)]
struct Attributes {
    version: u16,
    size: u16,
    category: u32,
    color_type: i32,
    color: u32,
    payload_type: i32,
    reserved: i32,
    payload: u64,
    message_type: i32,
    message: *const c_char,
}

const VERSION: u16 = 2;
/// `NVTX_MESSAGE_TYPE_ASCII`, which UTF-8 may be in.
const ASCII: i32 = 1;

/// A range of this thread, which ends when it is dropped.
#[derive(Debug)]
pub(super) struct Pushed {
    nvtx: &'static Nvtx,
    of_this_thread: PhantomData<*const ()>,
}

/// Begins a range with the message that is written, if a profiler listens.
#[inline(always)]
pub(super) fn push(write: impl FnOnce(&mut Message) -> fmt::Result) -> Option<Pushed> {
    let nvtx = nvtx()?;
    let mut message = Message::new();
    // What does not fit is left out.
    let _ = write(&mut message);
    Some(nvtx.push(&message))
}

#[inline(always)]
fn nvtx() -> Option<&'static Nvtx> {
    static NVTX: OnceLock<Option<Nvtx>> = OnceLock::new();
    match NVTX.get() {
        Some(nvtx) => nvtx.as_ref(),
        None => NVTX
            .get_or_init(|| LIBRARIES.iter().find_map(|library| Nvtx::open(library)))
            .as_ref(),
    }
}

impl Nvtx {
    /// If the library is there, and a profiler listens.
    #[cold]
    fn open(library: &str) -> Option<Nvtx> {
        // SAFETY: opening NVTX loads the profiler that the environment names, as its users want.
        let library = unsafe { Library::new(library) }.ok()?;
        // SAFETY: the type is the function's type in nvToolsExt.h.
        let create = unsafe {
            library.get::<unsafe extern "C" fn(*const c_char) -> *mut c_void>(b"nvtxDomainCreateA")
        };
        let create = *create.ok()?;
        // SAFETY: the type of the field is the function's type in nvToolsExt.h.
        let push = *unsafe { library.get(b"nvtxDomainRangePushEx") }.ok()?;
        // SAFETY: the type of the field is the function's type in nvToolsExt.h.
        let pop = *unsafe { library.get(b"nvtxDomainRangePop") }.ok()?;
        // SAFETY: the name is a C string.
        let domain = unsafe { create(c"gridcall".as_ptr()) };
        // No domain is made where nobody listens.
        (!domain.is_null()).then_some(Nvtx {
            push,
            pop,
            domain,
            _library: library,
        })
    }

    #[inline(never)]
    fn push(&'static self, message: &Message) -> Pushed {
        const SIZE: usize = size_of::<Attributes>();
        const { assert!(SIZE == 48) };
        let attributes = Attributes {
            version: VERSION,
            #[expect(clippy::cast_possible_truncation, reason = "it is 48")]
            size: SIZE as u16,
            category: 0,
            color_type: 0,
            color: 0,
            payload_type: 0,
            reserved: 0,
            payload: 0,
            message_type: ASCII,
            message: message.text.as_ptr().cast(),
        };
        // SAFETY: the domain is never destroyed; the attributes are of the version and size that
        // they say, and their message ends with a NUL; NVTX copies what it keeps.
        unsafe { (self.push)(self.domain, &raw const attributes) };
        Pushed {
            nvtx: self,
            of_this_thread: PhantomData,
        }
    }
}

impl Drop for Pushed {
    fn drop(&mut self) {
        // SAFETY: the domain is never destroyed; the range was begun on this thread, which a
        // `Pushed` does not leave.
        unsafe { (self.nvtx.pop)(self.nvtx.domain) };
    }
}

/// A text that ends with a NUL, without an allocation.
#[derive(Debug)]
pub(super) struct Message {
    text: [u8; 256],
    len: usize,
}

impl Message {
    fn new() -> Message {
        Message {
            text: [0; 256],
            len: 0,
        }
    }
}

impl Write for Message {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // The last byte stays NUL.
        let room = self.text.len() - 1 - self.len;
        let fits = (0..=text.len().min(room))
            .rev()
            .find(|&end| text.is_char_boundary(end))
            .unwrap_or(0);
        self.text[self.len..self.len + fits].copy_from_slice(&text.as_bytes()[..fits]);
        self.len += fits;
        if fits < text.len() {
            return Err(fmt::Error);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_is_too_long_is_cut_at_a_character() {
        let mut message = Message::new();
        write!(message, "launch {}", 1).unwrap();
        assert_eq!(&message.text[..9], b"launch 1\0");
        assert!(write!(message, "{}", "×".repeat(200)).is_err());
        assert_eq!(message.len, 254);
        assert_eq!(message.text[254..], [0, 0]);
    }
}
