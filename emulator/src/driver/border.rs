//! The border to C: pointers that callers of the driver pass in, as types that can only come from there.
//!
//! Each wraps one pointer whose validity the driver's contract demands of the caller; null is checked
//! wherever it is not allowed. Everything behind these types is safe code.

use std::ffi::{CStr, c_char, c_void};

use super::codes::{Answer, Code};

/// Where the caller wants one value written.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Out<T>(*mut T);

impl<T: Copy> Out<T> {
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    pub(crate) fn check(self) -> Answer {
        if self.0.is_null() {
            Err(Code::INVALID_VALUE)
        } else {
            Ok(())
        }
    }

    pub(crate) fn set(self, value: T) -> Answer {
        self.check()?;
        // SAFETY: only a caller of the driver makes an `Out`, and the driver's contract is that it
        // points to room for a `T`; it is not null, and alignment is not relied upon.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// Writes if the caller wants to know.
    pub(crate) fn set_if_wanted(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: as in `set`.
            unsafe { self.0.write_unaligned(value) };
        }
    }

    /// What is there already, for parameters that go both ways.
    pub(crate) fn get(self) -> Answer<T> {
        self.check()?;
        // SAFETY: as in `set`; the contract of these parameters is that they hold a value.
        Ok(unsafe { self.0.read_unaligned() })
    }

    /// What lies some bytes further, as the driver's structures nest.
    pub(crate) fn behind<U: Copy>(self, bytes: usize) -> Out<U> {
        Out(self.0.wrapping_byte_add(bytes).cast())
    }

    /// One element of an array that goes both ways.
    pub(crate) fn get_at(self, index: usize) -> Answer<T> {
        self.check()?;
        // SAFETY: as in `set_at`.
        let place = unsafe { self.0.add(index) };
        // SAFETY: `place` is one of the elements that the driver's contract says are there.
        Ok(unsafe { place.read_unaligned() })
    }

    /// Writes one element of an array.
    pub(crate) fn set_at(self, index: usize, value: T) -> Answer {
        self.check()?;
        // SAFETY: callers of this function stay below the length that the C caller gave along with
        // the pointer, which is what the driver's contract promises room for.
        let place = unsafe { self.0.add(index) };
        // SAFETY: `place` is one of those elements.
        unsafe { place.write_unaligned(value) };
        Ok(())
    }
}

/// Where the caller wants a value of a type that another argument says.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Untyped(*mut c_void);

impl Untyped {
    /// The type is the one that the driver's contract has for that other argument.
    pub(crate) fn out<T: Copy>(self) -> Out<T> {
        Out(self.0.cast())
    }
}

/// Where the caller wants a pointer to a text that lives as long as the process.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct OutText(*mut *const c_char);

impl OutText {
    pub(crate) fn set(self, text: Option<&'static CStr>) -> Answer {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: not null, and by the driver's contract room for one pointer.
        unsafe {
            self.0
                .write_unaligned(text.map_or(std::ptr::null(), CStr::as_ptr));
        }
        Ok(())
    }
}

/// One value or an array that the caller passes by pointer.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct In<T>(*const T);

impl<T: Copy> In<T> {
    pub(crate) const NULL: Self = Self(std::ptr::null());

    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    pub(crate) fn get(self) -> Answer<T> {
        self.at(0)
    }

    pub(crate) fn at(self, index: usize) -> Answer<T> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: `index` is below the length the C caller gave along with the pointer.
        let place = unsafe { self.0.add(index) };
        // SAFETY: one of the elements that the driver's contract says are there.
        Ok(unsafe { place.read_unaligned() })
    }

    /// A pointer to hand out; whoever owns the values says how long the caller may look at them.
    pub(crate) fn of(values: &[T]) -> Self {
        Self(values.as_ptr())
    }

    pub(crate) fn array(self, length: usize) -> Answer<Vec<T>> {
        (0..length).map(|index| self.at(index)).collect()
    }
}

/// A text that ends with a zero byte.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Text(*const c_char);

impl Text {
    pub(crate) fn get(self) -> Answer<String> {
        Ok(String::from_utf8_lossy(self.bytes()?).into_owned())
    }

    fn bytes(&self) -> Answer<&[u8]> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: not null, and by the driver's contract a text that ends with a zero byte and stays
        // unchanged during the call, which the borrow of `self` does not outlive.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_bytes())
    }
}

/// A piece of the host's memory: where something is copied from or to, or an opaque argument.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Host(*mut c_void);

// SAFETY: it is an address; what is done with it is argued at each use, and the driver may do it on any
// thread.
unsafe impl Send for Host {}

// SAFETY: as for `Send`; sharing an address shares nothing behind it.
unsafe impl Sync for Host {}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:p}", self.0)
    }
}

impl Host {
    pub(crate) const NULL: Self = Self(std::ptr::null_mut());

    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    pub(crate) fn address(self) -> u64 {
        self.0.addr() as u64
    }

    /// An address that the caller gave as a number, as unified addressing allows.
    pub(crate) fn from_number(address: u64) -> Answer<Self> {
        usize::try_from(address)
            .map(|address| Self(std::ptr::with_exposed_provenance_mut(address)))
            .map_err(|_| Code::INVALID_VALUE)
    }

    pub(crate) fn offset(self, bytes: usize) -> Self {
        Self(self.0.wrapping_byte_add(bytes))
    }

    /// The caller's bytes.
    pub(crate) fn read(self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.read_to(&mut bytes);
        bytes
    }

    pub(crate) fn read_to(self, bytes: &mut [u8]) {
        if bytes.is_empty() {
            return;
        }
        // SAFETY: the driver's contract is that the caller's pointer is good for that many bytes until
        // the operation is done; `bytes` is ours alone, so the two do not overlap.
        unsafe {
            std::ptr::copy_nonoverlapping(self.0.cast::<u8>(), bytes.as_mut_ptr(), bytes.len());
        }
    }

    pub(crate) fn write(self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        // SAFETY: as in `read_to`, for a pointer the caller wants written to.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0.cast::<u8>(), bytes.len());
        }
    }

    /// The image of a module: its text up to the zero byte, or the head of a binary.
    pub(crate) fn image(self) -> Answer<Vec<u8>> {
        const BINARY: [[u8; 4]; 3] = [
            [0x7f, b'E', b'L', b'F'],
            [0x50, 0xed, 0x55, 0xba],
            [0xb1, 0x43, 0x62, 0x46],
        ];
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        for magic in BINARY {
            let same = |(index, byte): (usize, &u8)| self.offset(index).read(1) == [*byte];
            if magic.iter().enumerate().all(same) {
                return Ok(magic.to_vec());
            }
        }
        Text(self.0.cast()).bytes().map(<[u8]>::to_vec)
    }
}

/// A function of the caller that the driver calls on a stream.
pub(crate) type HostFn = Option<unsafe extern "C" fn(*mut c_void)>;

/// A callback of the old kind, which learns the stream and its error.
pub(crate) type StreamFn = Option<unsafe extern "C" fn(usize, u32, *mut c_void)>;

/// A function that says how much shared memory a block size needs.
pub(crate) type SharedBytesFn = Option<unsafe extern "C" fn(i32) -> usize>;

/// A call into the user's code that has to be made without the driver's lock.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HostCall {
    Function(unsafe extern "C" fn(*mut c_void), Host),
    Callback(unsafe extern "C" fn(usize, u32, *mut c_void), usize, Host),
}

impl HostCall {
    pub(crate) fn function(function: HostFn, data: Host) -> Answer<Self> {
        function
            .map(|function| Self::Function(function, data))
            .ok_or(Code::INVALID_VALUE)
    }

    pub(crate) fn callback(function: StreamFn, stream: usize, data: Host) -> Answer<Self> {
        function
            .map(|function| Self::Callback(function, stream, data))
            .ok_or(Code::INVALID_VALUE)
    }

    pub(crate) fn run(self) {
        match self {
            // SAFETY: the caller gave function and data for exactly this call, once for each time it
            // was enqueued; the driver's lock is not held.
            Self::Function(function, data) => unsafe { function(data.0) },
            // SAFETY: as above; only streams without an error get here.
            Self::Callback(function, stream, data) => unsafe { function(stream, 0, data.0) },
        }
    }
}

/// Asks the caller's function how much shared memory a block of that size needs.
pub(crate) fn shared_bytes(function: unsafe extern "C" fn(i32) -> usize, block_size: i32) -> usize {
    // SAFETY: the caller gave the function to be called with block sizes during this very call.
    unsafe { function(block_size) }
}
