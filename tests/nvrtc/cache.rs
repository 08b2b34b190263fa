//! Is a program that was compiled found again, and only if nothing changed?

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use gridcall::nvrtc::{Cache, Cached, Program};

use crate::folder::Folder;

const SOURCE: &str = "#include \"size.cuh\"
    template <class T> __global__ void f(T* y) { *y = SIZE; }";

fn folder(test: &str) -> Folder {
    let folder = Folder::new(test);
    folder.write("include/size.cuh", "#define SIZE 1");
    folder
}

fn program(folder: &Folder) -> Program {
    Program::new(SOURCE)
        .include_path(folder.path("include"))
        .name_expression("f<float>")
        .cache(Cache::in_folder(folder.path("cache")))
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).into_iter().flatten();
    files.map(|file| file.unwrap().path()).collect()
}

#[track_caller]
fn cached(program: &Program) -> Cached {
    program.compile_for("compute_75").unwrap().cached().clone()
}

#[test]
fn a_program_is_found_again_as_it_was() {
    nvrtc!();
    let folder = folder(this_test!());
    let program = program(&folder).name_expression("f<int>");
    let first = program.compile_for("sm_80").unwrap();
    assert_eq!(*first.cached(), Cached::Stored);
    let again = program.compile_for("sm_80").unwrap();
    assert_eq!(*again.cached(), Cached::Found);
    assert_eq!(again.ptx(), first.ptx());
    assert_eq!(again.cubin().unwrap(), first.cubin().unwrap());
    assert_eq!(again.log(), first.log());
    for name in ["f<float>", "f<int>"] {
        let name = name.into();
        assert!(again.lowered_name(&name).is_some());
        assert_eq!(again.lowered_name(&name), first.lowered_name(&name));
    }
}

#[test]
fn whatever_changes_is_compiled_again() {
    nvrtc!();
    let folder = folder(this_test!());
    let program = program(&folder);
    assert_eq!(cached(&program), Cached::Stored);
    for (what, other) in [
        ("an option", program.clone().option("--use_fast_math")),
        ("a macro", program.clone().define("A", 1)),
        ("its value", program.clone().define("A", 2)),
        ("a header", program.clone().header("a.h", "1")),
        ("its text", program.clone().header("a.h", "2")),
        ("the name", program.clone().name("other.cu")),
        (
            "a name expression",
            program.clone().name_expression("f<int>"),
        ),
    ] {
        assert_eq!(cached(&other), Cached::Stored, "{what}");
        assert_eq!(cached(&other), Cached::Found, "{what}");
    }
    let other = program.compile_for("compute_80").unwrap();
    assert_eq!(*other.cached(), Cached::Stored);
    assert_eq!(cached(&program), Cached::Found);
}

#[test]
fn a_header_that_changes_is_compiled_again() {
    nvrtc!();
    let folder = folder(this_test!());
    let program = program(&folder);
    let ptx = |expected| {
        let compiled = program.compile_for("compute_75").unwrap();
        assert_eq!(*compiled.cached(), expected);
        compiled.ptx().to_owned()
    };
    let first = ptx(Cached::Stored);
    folder.write("include/size.cuh", "#define SIZE 2");
    assert_ne!(ptx(Cached::Stored), first);
    folder.write(
        "include/size.cuh",
        "#include \"more.cuh\"\n#define SIZE MORE",
    );
    folder.write("include/more.cuh", "#define MORE 3");
    let third = ptx(Cached::Stored);
    folder.write("include/more.cuh", "#define MORE 4");
    assert_ne!(ptx(Cached::Stored), third);
    folder.write("include/more.cuh", "#define MORE 3");
    assert_eq!(ptx(Cached::Found), third);
    folder.write("include/size.cuh", "#define SIZE 1");
    assert_eq!(ptx(Cached::Found), first);
}

#[test]
fn the_toolkits_headers_are_part_of_the_key() {
    nvrtc!();
    let folder = folder(this_test!());
    let program = Program::new("#include <cuda_fp16.h>\n#include <cuda/std/array>\n__global__ void f(__half* y) { *y = 1; }")
        .cache(Cache::in_folder(folder.path("cache")));
    // Where NVRTC came without headers, there is nothing to see.
    if program.compile_for("compute_75").is_err() {
        support_says(this_test!(), "there are no headers beside NVRTC");
        return;
    }
    assert_eq!(cached(&program), Cached::Found);
}

fn support_says(test: &str, why: &str) {
    crate::support::say(&format!("{test}: not run, as {why}"));
}

#[test]
fn an_entry_that_is_damaged_is_compiled_again() {
    nvrtc!();
    let folder = folder(this_test!());
    let program = program(&folder);
    let whole = program.compile_for("compute_75").unwrap();
    let [entry] = entries(&folder.path("cache")).try_into().unwrap();
    let bytes = fs::read(&entry).unwrap();
    for damaged in [
        bytes[..bytes.len() / 2].to_vec(),
        Vec::new(),
        bytes.iter().map(|byte| !byte).collect(),
        [&bytes[..bytes.len() - 1], &[0]].concat(),
    ] {
        fs::write(&entry, damaged).unwrap();
        let again = program.compile_for("compute_75").unwrap();
        assert_eq!(*again.cached(), Cached::Stored);
        assert_eq!(again.ptx(), whole.ptx());
    }
    assert_eq!(cached(&program), Cached::Found);
}

#[test]
fn without_a_cache_it_is_compiled_each_time() {
    nvrtc!();
    let folder = folder(this_test!());
    let off = program(&folder).cache(Cache::off());
    assert_eq!(cached(&off), Cached::Not("the cache is off".to_owned()));
    let clock = Program::new("__device__ const char* made = __TIME__;")
        .cache(Cache::in_folder(folder.path("cache")));
    assert_eq!(
        cached(&clock),
        Cached::Not("`__TIME__` is another one each time".to_owned())
    );
    assert_eq!(entries(&folder.path("cache")).len(), 0);
}

#[test]
fn a_folder_that_cannot_be_written_is_no_error() {
    nvrtc!();
    let folder = folder(this_test!());
    folder.write("file", "");
    let mut refused = vec![folder.path("file/below")];
    // Nobody writes there, not even root.
    if Path::new("/proc/self").is_dir() {
        refused.push(PathBuf::from("/proc/gridcall"));
    }
    for cache in refused {
        let shown = format!("cannot write to {}: ", cache.display());
        match cached(&program(&folder).cache(Cache::in_folder(cache))) {
            Cached::Not(why) => assert!(why.starts_with(&shown), "{why}"),
            other => panic!("{other:?}"),
        }
    }
}

/// A limit on the size of files stands for a disk that is full: writing fails half way.
#[test]
#[cfg(unix)]
fn a_full_disk_is_no_error() {
    nvrtc!();
    let test = this_test!();
    let folder = folder(test);
    if !crate::support::is_child(test) {
        let status = Command::new("sh")
            .args([
                "-c",
                "trap '' XFSZ; ulimit -f 1; exec \"$0\" --exact \"$1\" --nocapture",
            ])
            .arg(env::current_exe().unwrap())
            .arg(test)
            .env("GRIDCALL_TEST_CHILD", test)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let said =
            String::from_utf8_lossy(&status.stdout) + String::from_utf8_lossy(&status.stderr);
        assert!(
            status.status.success() && said.contains("1 passed"),
            "{said}"
        );
        return;
    }
    let program = program(&folder)
        .name_expression("f<double>")
        .name_expression("f<int>");
    match cached(&program) {
        Cached::Not(why) => assert!(why.contains("cannot write to"), "{why}"),
        other => panic!("{other:?}"),
    }
    // Nothing is left of it.
    assert_eq!(entries(&folder.path("cache")).len(), 0);
}

#[test]
fn the_environment_names_the_folder() {
    nvrtc!();
    let folder = folder(this_test!());
    let (named, xdg) = (folder.path("named"), folder.path("xdg"));
    let compiled = || {
        Program::new("")
            .compile_for("compute_75")
            .unwrap()
            .cached()
            .clone()
    };
    let shown = |path: &Path| path.to_str().unwrap().to_owned();
    let (named_text, xdg_text) = (shown(&named), shown(&xdg));
    let test = this_test!();
    if crate::support::is_child(test) {
        match env::var("EXPECTED").unwrap().as_str() {
            "off" => assert_eq!(compiled(), Cached::Not("the cache is off".to_owned())),
            "nowhere" => match compiled() {
                Cached::Not(why) => assert!(why.contains("HOME names a folder"), "{why}"),
                other => panic!("{other:?}"),
            },
            _ => assert_eq!(compiled(), Cached::Stored),
        }
        return;
    }
    let run = |variables: &[(&str, &str)]| crate::support::run_child(test, variables);
    run(&[("GRIDCALL_CACHE_DIR", &named_text), ("EXPECTED", "stored")]);
    assert_eq!(entries(&named).len(), 1);
    run(&[
        ("GRIDCALL_CACHE_DIR", ""),
        ("EXPECTED", "off"),
        ("XDG_CACHE_HOME", &xdg_text),
    ]);
    assert!(!xdg.exists());
    // Where the variable is set, the others mean nothing.
    if env::var_os("GRIDCALL_CACHE_DIR").is_some() || cfg!(windows) {
        return;
    }
    let nowhere = [("HOME", ""), ("XDG_CACHE_HOME", "relative")];
    run(&[nowhere[0], nowhere[1], ("EXPECTED", "nowhere")]);
    let home = [("HOME", xdg_text.as_str()), ("XDG_CACHE_HOME", "")];
    run(&[home[0], home[1], ("EXPECTED", "stored")]);
    assert_eq!(entries(&xdg.join(".cache/gridcall")).len(), 1);
}

/// Processes that compile, find, damage and evict in one folder: each gets the right PTX.
#[test]
fn processes_share_a_folder() {
    nvrtc!();
    let test = this_test!();
    if crate::support::is_child(test) {
        let cache = PathBuf::from(env::var_os("SHARED").unwrap());
        for round in 0..12 {
            let number = round % 4;
            let program = Program::new(format!(
                "__global__ void k(int* y) {{ *y = {}; }}",
                1000 + number
            ))
            // Room for about two.
            .cache(Cache::in_folder(&cache).max_bytes(2_000));
            let compiled = program.compile_for("compute_75").unwrap();
            assert!(
                compiled.ptx().contains(&format!(", {};", 1000 + number)),
                "{}",
                compiled.ptx()
            );
            assert!(!matches!(compiled.cached(), Cached::Not(_)), "{compiled:?}");
            if round % 5 == 4 {
                // Not what another process is about to rename: that would be written anew.
                for entry in entries(&cache) {
                    if entry.extension().unwrap() == "nvrtc" {
                        let _ = fs::write(entry, "damaged");
                    }
                }
            }
        }
        return;
    }
    let folder = folder(test);
    let children: Vec<_> = (0..4)
        .map(|_| {
            Command::new(env::current_exe().unwrap())
                .args(["--exact", test, "--nocapture"])
                .env("GRIDCALL_TEST_CHILD", test)
                .env("SHARED", folder.path("cache"))
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        let said =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && said.contains("1 passed"),
            "{said}"
        );
    }
    let left = entries(&folder.path("cache"));
    assert!(
        left.iter().all(|file| file.extension().unwrap() == "nvrtc"),
        "{left:?}"
    );
}
