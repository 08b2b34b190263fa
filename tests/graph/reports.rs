//! The emulator finds what is not ordered even where the result is right by chance.

use std::{env, process::Command};

#[test]
fn nothing_unordered_is_reported() {
    let _device = device!();
    let output = Command::new(env::current_exe().unwrap())
        .args(["uses::", "updates::", "programs::", "--nocapture"])
        .env("GRIDCALL_TEST_PROGRAMS", "3")
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let report = stderr
        .lines()
        .find(|line| line.contains("unordered access"));
    assert_eq!(report, None);
}
