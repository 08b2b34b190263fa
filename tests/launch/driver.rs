//! No driver, a toolkit's stub, an old driver, no device: an error that says what to do, never a panic.
//!
//! Each case puts a library of its own in front of the machine's driver, in a process of its own.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process,
};

use gridcall::{LoadErrorKind, cudarc::driver::CudaContext};

use crate::support::say;

/// All functions that gridcall asks for, none of which does anything.
const STUB: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/stub.so"));
/// As the stub, without the functions that came after CUDA 9.
const OLD: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/old.so"));

/// A folder with a `libcuda.so.1`, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn with_driver(name: &str, library: &[u8]) -> Folder {
        let folder = env::temp_dir().join(format!("gridcall-test-{name}-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        for file in ["libcuda.so.1", "libcuda.so"] {
            fs::write(folder.join(file), library).unwrap();
        }
        Folder(folder)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all::<&Path>(&self.0);
    }
}

/// Runs the block with the library for a driver, whose `cuInit` answers `code`.
macro_rules! with_driver {
    ($library:expr, $code:expr, $body:block) => {
        // In the child the folder is made in vain, under another name.
        let folder = Folder::with_driver(&this_test!().replace(':', "-"), $library);
        in_child!(
            without_device
            [
                ("LD_LIBRARY_PATH", folder.path()),
                ("GRIDCALL_DRIVER", "cuda"),
                ("GRIDCALL_TEST_STUB_ANSWER", $code),
            ],
            $body
        );
    };
}

#[test]
fn a_driver_that_cannot_be_opened_is_an_error() {
    with_driver!(b"", "0", {
        for _ in 0..2 {
            let error = gridcall::device(0).unwrap_err();
            let LoadErrorKind::NoDriver { library, .. } = error.kind() else {
                panic!("{error}");
            };
            assert_eq!(*library, "libcuda.so.1");
            let text = error.to_string();
            assert!(
                text.starts_with("no CUDA driver found: `libcuda.so.1` cannot be opened (")
                    && text.ends_with(
                        "); install the NVIDIA driver, or let GRIDCALL_DRIVER be other than `cuda`, for the \
                         emulator"
                    ),
                "{text}"
            );
        }
    });
}

#[test]
fn no_driver_at_all_is_an_error() {
    let Err(error) = gridcall::device(0) else {
        return say(&format!("{}: not run, as there is a device", this_test!()));
    };
    if let LoadErrorKind::NoDriver { library, reason } = error.kind() {
        assert_eq!(*library, "libcuda.so.1");
        assert!(reason.contains("libcuda.so.1"), "{reason}");
    } else {
        // There is a driver, and it is of no use.
        assert!(error.to_string().contains("CUDA"), "{error}");
    }
}

#[test]
fn the_stub_of_a_toolkit_is_named_as_that() {
    with_driver!(STUB, "34", {
        let error = gridcall::device(0).unwrap_err();
        let LoadErrorKind::DriverUnusable { code, .. } = error.kind() else {
            panic!("{error}");
        };
        assert_eq!(code.code(), 34);
        let text = error.to_string();
        assert!(
            text.starts_with("the CUDA driver cannot be used: ")
                && text.ends_with(
                    "; the library found is the CUDA toolkit's stub: put the driver's own before it"
                ),
            "{text}"
        );
    });
}

#[test]
fn a_driver_without_devices_is_an_error() {
    with_driver!(STUB, "100", {
        let error = gridcall::device(0).unwrap_err();
        assert!(
            error.to_string().ends_with(
                "(100): no description; there is no CUDA device on this machine, or none is \
                 visible (CUDA_VISIBLE_DEVICES)"
            ),
            "{error}"
        );
    });
}

#[test]
fn a_driver_that_counts_none_is_an_error() {
    with_driver!(STUB, "0", {
        let error = gridcall::device(0).unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no CUDA device 0: the driver counts 0"
        );
    });
}

#[test]
fn an_answer_that_nobody_knows_is_an_error() {
    with_driver!(STUB, "4711", {
        let error = gridcall::device(0).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the CUDA driver cannot be used: unknown error (4711): no description"
        );
    });
}

#[test]
fn an_old_driver_is_an_error() {
    with_driver!(OLD, "0", {
        let error = gridcall::device(0).unwrap_err();
        let LoadErrorKind::OldDriver { function } = error.kind() else {
            panic!("{error}");
        };
        assert_eq!(*function, "cuStreamIsCapturing");
        assert_eq!(
            error.to_string(),
            "the CUDA driver is too old: it has no `cuStreamIsCapturing`; update the NVIDIA driver"
        );
    });
}

#[test]
fn a_device_that_is_not_there_is_an_error() {
    let _device = device!();
    let count = CudaContext::device_count().unwrap();
    for ordinal in [usize::try_from(count).unwrap(), 4096, usize::MAX] {
        let error = gridcall::device(ordinal).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("there is no CUDA device {ordinal}: the driver counts {count}")
        );
    }
}
