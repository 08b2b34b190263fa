//! What textures and surfaces give, bit for bit what an H200 gave.
//!
//! `GRIDCALL_TEXTURE_RECORD=folder` has the real driver run the same cases and keeps what it gave, as
//! `GRIDCALL_TEXTURE_FAULT=name` does of one that may end in an error of the context for good.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::unused_self,
    reason = "the values of a test are small, and wanted exactly; what needs a context is asked of who \
              has one"
)]

#[path = "../common/mod.rs"]
mod common;

mod cases;
mod lab;

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

pub(crate) use common::cu;
use gridcall_emulator::Device;
use lab::Lab;

/// What the names of the cases begin with that end in an error.
const FAULT: &str = "fault/";

/// What an H200 gave: for each case its name, behind a byte of its length, and words behind their count.
const GOLDEN: &[u8] = include_bytes!("../data/texture-h200.bin");

/// What each case gave, as words.
#[derive(Default)]
pub(crate) struct Book(BTreeMap<String, Case>);

/// What a case gave, and what it was given.
#[derive(Default)]
struct Case {
    words: Vec<u32>,
    rows: Vec<[u32; 8]>,
}

impl Book {
    pub(crate) fn note(&mut self, name: impl Into<String>, words: Vec<u32>) {
        let rows = lab::ROWS.take();
        self.insert(name.into(), Case { words, rows });
    }

    fn insert(&mut self, name: String, case: Case) {
        match self.0.entry(name) {
            Entry::Vacant(free) => free.insert(case),
            Entry::Occupied(taken) => panic!("{} twice", taken.key()),
        };
    }

    /// The names of the cases.
    fn names(&self) -> BTreeSet<&str> {
        self.0.keys().map(String::as_str).collect()
    }

    fn write(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (name, Case { words, .. }) in &self.0 {
            bytes.push(u8::try_from(name.len()).unwrap());
            bytes.extend(name.as_bytes());
            bytes.extend(u32::try_from(words.len()).unwrap().to_le_bytes());
            bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        }
        bytes
    }

    fn read(mut bytes: &[u8]) -> Book {
        fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
            let (taken, rest) = bytes.split_at(count);
            *bytes = rest;
            taken
        }
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
        let mut book = Book::default();
        while !bytes.is_empty() {
            let length = take(&mut bytes, 1)[0];
            let name = take(&mut bytes, length.into()).to_vec();
            let count = word(take(&mut bytes, 4)) as usize;
            let words = take(&mut bytes, 4 * count)
                .chunks_exact(4)
                .map(word)
                .collect();
            let rows = Vec::new();
            book.insert(String::from_utf8(name).unwrap(), Case { words, rows });
        }
        book
    }
}

/// With the real driver, keeps what it gives instead of comparing.
fn record() -> bool {
    let Some(folder) = std::env::var_os("GRIDCALL_TEXTURE_RECORD").map(std::path::PathBuf::from)
    else {
        return false;
    };
    let keep = |name: &str, book: &Book| {
        std::fs::write(folder.join(format!("{name}.bin")), book.write()).unwrap();
    };
    let mut lab = Lab::new(0);
    if let Ok(fault) = std::env::var("GRIDCALL_TEXTURE_FAULT") {
        let mut book = Book::default();
        cases::fault(&mut lab, &mut book, &fault);
        keep(&format!("fault {fault}"), &book);
        return true;
    }
    for (name, part) in cases::PARTS {
        let mut book = Book::default();
        let part = std::panic::AssertUnwindSafe(|| part(&mut lab, &mut book));
        if std::panic::catch_unwind(part).is_err() {
            lab.reset();
        }
        keep(name, &book);
    }
    std::fs::write(
        folder.join("faults"),
        cases::faults().collect::<Vec<_>>().join("\n"),
    )
    .unwrap();
    true
}

/// What differs between the words of a case, in words of the test's.
fn difference(name: &str, case: &Case, golden: &Book) -> Option<String> {
    let Some(Case { words: given, .. }) = golden.0.get(name) else {
        return Some(format!("{name}: not there"));
    };
    let words = &case.words;
    let most = most_difference(name);
    let same = |at: usize| match (words.get(at), given.get(at)) {
        (Some(ours), Some(theirs)) if ours == theirs => true,
        (Some(ours), Some(theirs)) => {
            (f32::from_bits(*ours) - f32::from_bits(*theirs)).abs() < most
        }
        _ => false,
    };
    let count = words.len().max(given.len());
    let differ: Vec<usize> = (0..count).filter(|at| !same(*at)).collect();
    let first = *differ.first()?;
    let row = first / (words.len() / case.rows.len().max(1)).max(1);
    let show = |word: Option<&u32>| {
        word.map_or("none".to_owned(), |word| {
            format!("{word:#x} {}", f32::from_bits(*word))
        })
    };
    Some(format!(
        "{name}: {} of {count}, first at {first}, of {:x?}: {} where an H200 gave {}",
        differ.len(),
        case.rows.get(row),
        show(words.get(first)),
        show(given.get(first))
    ))
}

/// The two filters whose last bits are not known.
fn most_difference(name: &str) -> f32 {
    match name {
        "srgb/linear" => 1.0 / 256.0,
        name if name.starts_with("format/s8") && name.ends_with("/linear") => 1.0 / 32000.0,
        _ => 0.0,
    }
}

#[test]
fn all_is_what_an_h200_gave() {
    if record() {
        return;
    }
    let golden = Book::read(GOLDEN);
    let mut left = golden.names();
    left.retain(|name| !name.starts_with(FAULT));
    let mut wrong = Vec::new();
    for (_, part) in cases::PARTS {
        let device = Device::fresh().unwrap();
        let mut lab = Lab::new(common::ordinal(&device));
        let mut book = Book::default();
        part(&mut lab, &mut book);
        let differences = book
            .0
            .iter()
            .filter_map(|(name, case)| difference(name, case, &golden));
        wrong.extend(differences);
        for name in book.names() {
            left.remove(name);
        }
        assert_eq!(device.leaks(), []);
    }
    assert!(
        wrong.is_empty(),
        "{} cases:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert_eq!(left, BTreeSet::new(), "an H200 gave more");
}

/// What a GPU does with mistakes that are stopped here.
const STRICTER: [&str; 13] = [
    "1d of 2d",
    "3d of 2d",
    "a2d of 2d",
    "texture of a surface",
    "reduction u32x4",
    "reduction u8x4",
    "reduction u64 of u32",
    "reduction p f32",
    "reduction p u16",
    "reduction p u32x4",
    "destroyed texture",
    "destroyed surface",
    "texture of a destroyed array",
];

#[test]
fn a_fault_has_the_code_of_an_h200() {
    if std::env::var_os("GRIDCALL_TEXTURE_RECORD").is_some() {
        return;
    }
    let golden = Book::read(GOLDEN);
    let mut left = golden.names();
    left.retain(|name| name.starts_with(FAULT));
    for fault in cases::faults() {
        let device = Device::fresh().unwrap();
        let mut lab = Lab::new(common::ordinal(&device));
        let mut book = Book::default();
        cases::fault(&mut lab, &mut book, fault);
        if STRICTER.contains(&fault) {
            assert_eq!(device.reports().len(), 1, "{fault}");
            // What a GPU gave of it: a code, and what the array held.
            let code = format!("{FAULT}{fault}");
            left.remove(code.as_str());
            left.remove(format!("{code}/array").as_str());
            continue;
        }
        for (name, case) in &book.0 {
            assert_eq!(difference(name, case, &golden), None);
            left.remove(name.as_str());
        }
    }
    assert_eq!(left, BTreeSet::new(), "an H200 gave more");
}

/// A GPU says at most that something went wrong.
#[test]
fn mistakes_are_told() {
    if std::env::var_os("GRIDCALL_TEXTURE_RECORD").is_some() {
        return;
    }
    for (name, words) in [
        (
            "trap x",
            "at byte 128, row 0, slice 0, beyond its 4 rows of 128 bytes",
        ),
        ("trap store", "beyond its 4 rows of 128 bytes"),
        (
            "misaligned load",
            "at byte 2 of a row, which is no multiple of 4",
        ),
        (
            "1d of 2d",
            "an instruction with `.1d` on an array of two dimensions",
        ),
        (
            "texture of a surface",
            "a surface object, not a texture object",
        ),
        ("destroyed texture", "a texture object that was destroyed"),
        ("destroyed surface", "a surface object that was destroyed"),
        ("no texture", "0x12345678 is no texture object"),
        ("no surface", "0x12345678 is no surface object"),
        (
            "texture of a destroyed array",
            "freed memory, once allocation #1, 512 bytes of a CUDA array",
        ),
    ] {
        let device = Device::fresh().unwrap();
        let mut lab = Lab::new(common::ordinal(&device));
        cases::fault(&mut lab, &mut Book::default(), name);
        let reports = device.reports();
        let told = reports.iter().any(|report| report.message.contains(words));
        assert!(told, "{name}: {reports:?}");
    }
}

#[test]
fn an_array_that_is_left_is_told() {
    let device = Device::fresh().unwrap();
    let lab = Lab::new(common::ordinal(&device));
    let format = lab::Format::CU_AD_FORMAT_FLOAT;
    let spec = lab::Spec {
        size: [4, 0, 0],
        format,
        channels: 1,
        flags: 0,
    };
    let array = lab.array(spec, &[0; 16]);
    let leaks = device.leaks();
    assert_eq!(leaks.len(), 1);
    assert_eq!(
        leaks[0].to_string(),
        format!(
            "allocation #1 of device {}, 16 bytes of a CUDA array, was never freed",
            device.ordinal()
        )
    );
    assert_eq!(cu!(cuArrayDestroy(array)), 0);
    assert_eq!(device.leaks(), []);
}

/// Copies, kernels and their arrays are ordered as those of memory.
#[test]
fn what_is_not_ordered_is_told() {
    let device = Device::fresh().unwrap();
    let lab = Lab::new(common::ordinal(&device));
    let format = lab::Format::CU_AD_FORMAT_FLOAT;
    let spec = lab::Spec {
        size: [4, 0, 0],
        format,
        channels: 1,
        flags: 0,
    };
    let (array, pinned) = (lab.array(spec, &[0; 16]), lab.pinned(16));
    let mut copy = lab::memcpy3d();
    copy.srcHost = pinned;
    copy.dstMemoryType = cudarc::driver::sys::CUmemorytype::CU_MEMORYTYPE_ARRAY;
    copy.dstArray = array;
    (copy.WidthInBytes, copy.Height, copy.Depth) = (16, 1, 1);
    for _ in 0..2 {
        let mut stream = std::ptr::null_mut();
        assert_eq!(cu!(cuStreamCreate(&raw mut stream, 1)), 0);
        assert_eq!(cu!(cuMemcpy3DAsync_v2(&raw const copy, stream)), 0);
    }
    assert_eq!(cu!(cuArrayDestroy(array)), 0);
    assert_eq!(cu!(cuCtxSynchronize()), 700);
    assert_eq!(
        common::kinds(&device),
        [gridcall_emulator::ReportKind::UseAfterFree]
    );
}
