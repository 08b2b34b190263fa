//! The table that the stub jumps through, and looking a function up by name.

use std::collections::HashSet;
use std::sync::{LazyLock, Mutex, PoisonError};

use super::api;
use super::border::{Host, In, Out, Text};
use super::codes::Code;
use super::entry::plain_api;

mod list {
    #![allow(clippy::too_many_lines, reason = "a list, one line a function")]

    use super::{absent, api};

    include!(concat!(env!("OUT_DIR"), "/functions.rs"));
}

use list::per_thread_address;
pub(crate) use list::{FUNCTIONS, address};

/// A function that is listed but not built: says its name once.
extern "C" fn absent<const INDEX: usize>() -> u32 {
    static SAID: LazyLock<Mutex<HashSet<usize>>> = LazyLock::new(Mutex::default);
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if said.insert(INDEX)
        && let Some((name, _)) = FUNCTIONS.get(INDEX)
    {
        eprintln!(
            "gridcall-emulator: `{name}` is not supported, it answers CUDA_ERROR_NOT_SUPPORTED"
        );
    }
    Code::NOT_SUPPORTED.0
}

const PER_THREAD_DEFAULT_STREAM: u64 = 2;
const FOUND: u32 = 0;
const NOT_FOUND: u32 = 1;
const TOO_NEW: u32 = 2;

/// The newest variant of a function that is not newer than the version asked for.
fn find(symbol: &str, version: i32, flags: u64) -> Result<*const (), u32> {
    let mut found = None;
    let mut too_new = false;
    for (index, (name, since)) in FUNCTIONS.iter().enumerate() {
        if *name != symbol && base_name(name) != symbol {
            continue;
        }
        if i64::from(*since) > i64::from(version) {
            too_new = true;
        } else if found.is_none_or(|(best, _)| variant(name) >= best) {
            found = Some((variant(name), index));
        }
    }
    match found {
        Some((_, index)) => {
            let twin = (flags & PER_THREAD_DEFAULT_STREAM != 0)
                .then(|| per_thread_address(FUNCTIONS[index].0))
                .flatten();
            Ok(twin.unwrap_or_else(|| address(index)))
        }
        None if too_new => Err(TOO_NEW),
        None => Err(NOT_FOUND),
    }
}

fn base_name(name: &str) -> &str {
    match name.rsplit_once("_v") {
        Some((base, digits)) if digits.bytes().all(|byte| byte.is_ascii_digit()) => base,
        _ => name,
    }
}

fn variant(name: &str) -> u32 {
    name[base_name(name).len()..]
        .trim_start_matches("_v")
        .parse()
        .unwrap_or(1)
}

plain_api! {
    fn cuGetProcAddress(symbol: Text, function: Out<*const ()>, version: i32, flags: u64) {
        let found = find(&symbol.get()?, version, flags);
        function.set(found.unwrap_or(std::ptr::null()))?;
        found.map(drop).map_err(|_| Code::NOT_FOUND)
    }

    fn cuGetProcAddress_v2(symbol: Text, function: Out<*const ()>, version: i32, flags: u64, status: Out<u32>) {
        let (address, answer) = match find(&symbol.get()?, version, flags) {
            Ok(address) => (address, FOUND),
            Err(answer) => (std::ptr::null(), answer),
        };
        function.set(address)?;
        status.set_if_wanted(answer);
        if answer == FOUND || !status.is_null() {
            Ok(())
        } else {
            Err(Code::NOT_FOUND)
        }
    }

    /// The private tables of the CUDA runtime are not part of the driver API.
    fn cuGetExportTable(table: Out<*const ()>, _id: In<Host>) {
        table.set(std::ptr::null())?;
        Err(Code::NOT_FOUND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_variant_not_too_new_is_found() {
        let at = |name: &str| {
            let index = FUNCTIONS.iter().position(|(listed, _)| *listed == name);
            address(index.expect("listed"))
        };
        assert_eq!(find("cuMemAlloc", 12000, 0), Ok(at("cuMemAlloc_v2")));
        assert_eq!(
            find("cuEventElapsedTime", 12000, 0),
            Ok(at("cuEventElapsedTime"))
        );
        assert_eq!(
            find("cuEventElapsedTime", 13000, 0),
            Ok(at("cuEventElapsedTime_v2"))
        );
        assert_eq!(find("cuFuncGetParamCount", 12000, 0), Err(TOO_NEW));
        assert_eq!(find("cuNoSuchThing", 13000, 0), Err(NOT_FOUND));
        assert_ne!(
            find("cuMemsetD8Async", 12000, 0),
            find("cuMemsetD8Async", 12000, 2)
        );
        assert_eq!(find("cuCtxCreate", 3020, 0), Ok(at("cuCtxCreate_v2")));
        assert_eq!(find("cuCtxCreate", 12000, 0), Ok(at("cuCtxCreate_v3")));
    }
}
