//! Compiler output: nvcc, NVRTC, clang, Triton, numba and rustc.

use std::fs;
use std::path::PathBuf;

use gridcall_ptx::Module;

fn texts() -> Vec<(String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut texts: Vec<(String, String)> = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap())
        .map(|file| {
            let name = file.file_name().into_string().unwrap();
            (name, fs::read_to_string(file.path()).unwrap())
        })
        .collect();
    texts.sort();
    texts
}

#[test]
fn every_text_is_read() {
    let texts = texts();
    assert_eq!(texts.len(), 85);
    for (name, text) in texts {
        let module = Module::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let entries = text.lines().filter(|line| line.contains(".entry ")).count();
        assert_eq!(module.entries().len(), entries, "{name}");
        for entry in module.entries() {
            let body = entry.body().unwrap().range();
            assert!(
                text[body.clone()].starts_with('{') && text[body].ends_with('}'),
                "{name}"
            );
        }
    }
}

#[test]
fn all_code_and_all_values_are_read() {
    for (name, text) in texts() {
        let module = Module::parse(&text).unwrap();
        let entries = module.entries().iter().map(|entry| entry.body());
        let functions = module.functions().iter().map(|function| function.body());
        let mut instructions = 0;
        for body in entries.chain(functions).flatten() {
            let code = body
                .parse(&text)
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            instructions += code.instructions().count();
        }
        assert!(instructions > 0, "{name}");
        for variable in module.variables() {
            let elements = variable
                .elements(&text)
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            let size = variable.size().unwrap_or(0);
            assert!(
                elements.iter().all(|element| element.offset < size),
                "{name}"
            );
        }
    }
}
