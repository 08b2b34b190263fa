//! Ranges of NVTX, in processes of their own: the library is opened once.

use std::{env, fs, path::PathBuf, process};

use gridcall::{LaunchError, cover};

use crate::kernels::saxpy;

/// NVTX with a profiler that listens.
const NVTX: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/nvtx.so"));

/// A folder with the library in it, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(library: &str) -> Folder {
        let folder = env::temp_dir().join(format!("gridcall-test-{library}-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(library), NVTX).unwrap();
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Launches `saxpy` twice.
fn launches() -> Result<(), LaunchError> {
    let stream = gridcall::device(0).unwrap().new_stream().unwrap();
    let x = stream.clone_htod(&[1.0_f32; 4]).unwrap();
    let mut y = stream.clone_htod(&[1.0_f32; 4]).unwrap();
    saxpy(&stream, cover(4).block(64), 4, 2.0, &x, &mut y)?;
    saxpy(&stream, cover(4), 4, 2.0, &x, &mut y)
}

fn told(test: &str, library: &str) -> String {
    let folder = Folder::new(library);
    let file = folder.0.join("ranges");
    // The driver may be found by what is there already.
    let mut libraries = folder.0.to_str().unwrap().to_owned();
    if let Ok(others) = env::var("LD_LIBRARY_PATH") {
        libraries = format!("{libraries}:{others}");
    }
    let variables = [
        ("LD_LIBRARY_PATH", libraries.as_str()),
        ("GRIDCALL_TEST_NVTX", file.to_str().unwrap()),
    ];
    crate::support::run_child(test, &variables);
    fs::read_to_string(&file).unwrap_or_default()
}

/// Each of the libraries by which CUDA brings NVTX will do.
#[test]
fn a_profiler_is_told() {
    if crate::support::is_child(this_test!()) {
        return launches().unwrap();
    }
    let _device = device!(alone);
    for library in ["libnvtx3interop.so.1", "libnvToolsExt.so.1"] {
        assert_eq!(
            told(this_test!(), library),
            "push gridcall: load saxpy\n\
             push gridcall: compile ../kernels/vector.ptx\n\
             pop gridcall\n\
             pop gridcall\n\
             push gridcall: launch saxpy (1, 1, 1) (64, 1, 1)\n\
             pop gridcall\n\
             push gridcall: launch saxpy (1, 1, 1) (256, 1, 1)\n\
             pop gridcall\n",
            "{library}"
        );
    }
}

#[test]
fn without_a_library_nobody_is_told() {
    if crate::support::is_child(this_test!()) {
        return launches().unwrap();
    }
    let _device = device!(alone);
    assert_eq!(told(this_test!(), "libother.so"), "");
}
