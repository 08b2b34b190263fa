//! Puts the stub library where `dlopen` finds it, and fills the table it jumps through.

use std::fmt;
use std::io;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
use std::sync::{Mutex, PoisonError};

use crate::config::Config;

/// Why the emulator could not be installed.
#[derive(Debug)]
#[non_exhaustive]
pub enum InstallError {
    /// A driver of that name is loaded already: it cannot be replaced.
    DriverLoaded(&'static str),
    /// The emulator has no stub library for this platform.
    Unsupported,
    /// The system refused something that is needed.
    System(&'static str, io::Error),
    /// The stub library could not be loaded; what the loader said.
    Load(String),
}

impl fmt::Display for InstallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DriverLoaded(name) => write!(
                f,
                "cannot install the emulator: another `{name}` is loaded already; install before anything else calls CUDA"
            ),
            Self::Unsupported => f.write_str(
                "cannot install the emulator: it runs on Linux with glibc, on x86-64 and aarch64",
            ),
            Self::System(what, error) => write!(f, "cannot install the emulator: {what}: {error}"),
            Self::Load(message) => {
                write!(
                    f,
                    "cannot install the emulator: the stub library does not load: {message}"
                )
            }
        }
    }
}

impl std::error::Error for InstallError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::System(_, error) => Some(error),
            _ => None,
        }
    }
}

/// Installs the emulator as this process's CUDA driver, with what the environment says
/// ([`Config::from_env`]).
///
/// From then on, whoever loads `libcuda.so` or `libcuda.so.1` by name gets the emulator. Calling it
/// again does nothing.
///
/// # Errors
///
/// Fails if a driver is loaded already, and on platforms other than Linux.
///
/// # Examples
///
/// ```
/// gridcall_emulator::install()?;
/// assert!(gridcall_emulator::is_installed());
/// # Ok::<(), gridcall_emulator::InstallError>(())
/// ```
pub fn install() -> Result<(), InstallError> {
    install_with(&Config::from_env())
}

/// Installs the emulator with devices of one's own choice. If it is installed already, its devices stay
/// as they are.
///
/// # Errors
///
/// As [`install`].
///
/// # Examples
///
/// ```
/// use gridcall_emulator::{Config, install_with};
///
/// install_with(&Config::default().devices(2))?;
/// # Ok::<(), gridcall_emulator::InstallError>(())
/// ```
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub fn install_with(config: &Config) -> Result<(), InstallError> {
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if *installed {
        return Ok(());
    }
    for (name, _) in STUBS {
        if linux::is_loaded(name) {
            return Err(InstallError::DriverLoaded(name));
        }
    }
    {
        let mut driver = crate::driver::lock();
        driver
            .memory
            .reserve()
            .map_err(|error| InstallError::System("no address space", error))?;
        driver.config = config.clone();
        driver.make_devices();
    }
    linux::load_stubs()?;
    crate::driver::drain::start();
    *installed = true;
    Ok(())
}

/// Installs the emulator with devices of one's own choice.
///
/// # Errors
///
/// Always: this platform has no stub library.
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
pub fn install_with(_config: &Config) -> Result<(), InstallError> {
    Err(InstallError::Unsupported)
}

/// Whether the emulator is installed as this process's CUDA driver.
///
/// # Examples
///
/// ```
/// if !gridcall_emulator::is_installed() {
///     println!("a real driver, or none");
/// }
/// ```
#[must_use]
pub fn is_installed() -> bool {
    #[cfg(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    ))]
    return *INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    #[cfg(not(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    )))]
    return false;
}

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
static INSTALLED: Mutex<bool> = Mutex::new(false);

/// The stub libraries by SONAME.
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
static STUBS: [(&str, &[u8]); 2] = [
    (
        "libcuda.so",
        include_bytes!(concat!(env!("OUT_DIR"), "/libcuda.so")),
    ),
    (
        "libcuda.so.1",
        include_bytes!(concat!(env!("OUT_DIR"), "/libcuda.so.1")),
    ),
];

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod linux {
    use std::ffi::{CStr, CString, c_void};
    use std::fs::File;
    use std::io::{self, Write};
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

    use super::{InstallError, STUBS};
    use crate::driver::table::{FUNCTIONS, address};

    pub(super) fn is_loaded(name: &str) -> bool {
        let Ok(name) = CString::new(name) else {
            return false;
        };
        // SAFETY: a zero-terminated name; with RTLD_NOLOAD nothing is loaded or run.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if handle.is_null() {
            return false;
        }
        // SAFETY: gives back the reference that the line above took.
        unsafe { libc::dlclose(handle) };
        true
    }

    /// Loads both stubs for good. The files stay open until both are loaded, so that they have
    /// different names.
    pub(super) fn load_stubs() -> Result<(), InstallError> {
        let mut files = Vec::new();
        for (name, bytes) in STUBS {
            let file = memory_file(name, bytes)
                .map_err(|error| InstallError::System("no file in memory", error))?;
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            files.push(file);
            fill(load(&path)?)?;
        }
        Ok(())
    }

    fn memory_file(name: &str, bytes: &[u8]) -> io::Result<File> {
        let name = CString::new(name)?;
        // SAFETY: a zero-terminated name and a flag that exists.
        let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and nobody else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let mut file = File::from(fd);
        file.write_all(bytes)?;
        Ok(file)
    }

    fn load(path: &str) -> Result<*mut c_void, InstallError> {
        let path = CString::new(path).map_err(|error| InstallError::Load(error.to_string()))?;
        // SAFETY: loads the library that the build script made, which has no initialisers.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if handle.is_null() {
            return Err(InstallError::Load(last_error()));
        }
        Ok(handle)
    }

    fn last_error() -> String {
        // SAFETY: has no requirements.
        let message = unsafe { libc::dlerror() };
        if message.is_null() {
            return "no reason given".into();
        }
        // SAFETY: not null, so a zero-terminated text, good until this thread's next call of dl functions.
        unsafe { CStr::from_ptr(message) }
            .to_string_lossy()
            .into_owned()
    }

    /// Writes the addresses of our functions into the table of a stub.
    fn fill(library: *mut c_void) -> Result<(), InstallError> {
        // SAFETY: a library that is loaded, and a zero-terminated name.
        let symbol = unsafe { libc::dlsym(library, c"gridcall_emulator_table".as_ptr()) };
        if symbol.is_null() {
            return Err(InstallError::Load(last_error()));
        }
        // SAFETY: the stub's own source declares the symbol as a function without parameters that
        // returns a pointer.
        let table = unsafe {
            std::mem::transmute::<*mut c_void, extern "C" fn() -> *mut *const ()>(symbol)
        };
        let table = table();
        for index in 0..FUNCTIONS.len() {
            // SAFETY: the table has as many places as the list it was made from has functions.
            let place = unsafe { table.add(index) };
            // SAFETY: one of those places, aligned, in writable memory of the stub; nobody calls
            // through the stub before it is filled, as its name is found by nobody else yet.
            unsafe { place.write(address(index)) };
        }
        Ok(())
    }
}
