use gridcall_emulator::exec::Program;
#[test]
fn all() {
    let dir = std::env::var("CORPUS").unwrap();
    let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "ptx")).collect();
    files.sort();
    for f in files {
        let text = std::fs::read_to_string(&f).unwrap();
        match Program::lower(&text) {
            Err(e) => println!("{}: ERROR {e}", f.file_name().unwrap().to_string_lossy()),
            Ok(p) => for k in p.kernels() { if !k.unsupported.is_empty() { println!("{} {}: {:?}", f.file_name().unwrap().to_string_lossy(), k.name, k.unsupported); } }
        }
    }
}
