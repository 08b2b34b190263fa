//! Reads all that can be read of any text.
//!
//! `cargo +nightly fuzz run read -- -dict=ptx.dict`, started with `fuzz/corpus/read` full of the texts in
//! `tests/corpus`.

#![no_main]

use gridcall_ptx::Module;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(module) = Module::parse(text) else {
        return;
    };
    for entry in module.entries() {
        let end = entry.params().iter().fold(0, |end, param| {
            assert!(param.offset() >= end && param.offset() % param.align() == 0);
            param.offset() + param.size()
        });
        assert_eq!(entry.params_size(), end);
    }
    let entries = module.entries().iter().map(|entry| entry.body());
    let functions = module.functions().iter().map(|function| function.body());
    for body in entries.chain(functions).flatten() {
        let _ = body.parse(text);
    }
    for variable in module.variables() {
        if let Ok(elements) = variable.elements(text) {
            let size = variable.size().unwrap_or(0);
            assert!(elements.iter().all(|element| element.offset < size));
        }
    }
});
