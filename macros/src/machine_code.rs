//! Machine code beside the PTX of a declaration: cubins and fatbins.
//!
//! Takes the bytes of a file; says whether they are one whole image, since the driver reads as many
//! as its head says, and which kernels it holds, where it tells.

/// An image of machine code.
#[derive(Debug)]
pub(crate) struct MachineCode {
    /// The names of its kernels; none of a fatbin, whose images may be compressed.
    pub(crate) entries: Option<Vec<String>>,
}

/// Reads a cubin, which is an ELF file, or a fatbin; or says what is wrong with it.
pub(crate) fn read(bytes: &[u8]) -> Result<MachineCode, &'static str> {
    if bytes.starts_with(&ELF) {
        return cubin(bytes);
    }
    if bytes.starts_with(&FATBIN) {
        return fatbin(bytes);
    }
    Err("it is no cubin and no fatbin: make one by `nvcc -cubin` or `nvcc -fatbin`")
}

const ELF: [u8; 4] = *b"\x7fELF";
/// 64-bit, little-endian.
const CLASS: [u8; 2] = [2, 1];
/// `EM_CUDA`.
const MACHINE: u64 = 190;
/// `SHT_NOBITS`, of sections that have no bytes in the file.
const NOBITS: u64 = 8;
const SECTION_SIZE: usize = 64;
const FATBIN: [u8; 4] = [0x50, 0xed, 0x55, 0xba];

const TRUNCATED: &str = "it is not whole: make it again";

/// The number of `size` bytes at an offset.
fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let found = bytes.get(at..at.checked_add(size)?)?;
    let mut number = [0; 8];
    number[..size].copy_from_slice(found);
    Some(u64::from_le_bytes(number))
}

fn offset(bytes: &[u8], at: usize, size: usize) -> Option<usize> {
    usize::try_from(number(bytes, at, size)?).ok()
}

/// So many bytes from an offset on.
fn part(bytes: &[u8], start: usize, size: usize) -> Option<&[u8]> {
    bytes.get(start..start.checked_add(size)?)
}

fn cubin(bytes: &[u8]) -> Result<MachineCode, &'static str> {
    if part(bytes, 4, 2) != Some(&CLASS) || number(bytes, 18, 2) != Some(MACHINE) {
        return Err("it is an ELF file, but not of CUDA's machine code: make one by `nvcc -cubin`");
    }
    let entries = entries(bytes).ok_or(TRUNCATED)?;
    Ok(MachineCode {
        entries: Some(entries),
    })
}

/// The kernels of a cubin, each of which has a section of its own; none if it is not whole.
///
/// Offsets are those of `Elf64_Ehdr` and `Elf64_Shdr`.
fn entries(bytes: &[u8]) -> Option<Vec<String>> {
    let (programs, program_size, program_count) = (
        offset(bytes, 32, 8)?,
        offset(bytes, 54, 2)?,
        offset(bytes, 56, 2)?,
    );
    part(bytes, programs, program_size.checked_mul(program_count)?)?;
    let (sections, section_size, section_count) = (
        offset(bytes, 40, 8)?,
        offset(bytes, 58, 2)?,
        offset(bytes, 60, 2)?,
    );
    if section_size != SECTION_SIZE {
        return None;
    }
    let sections = part(bytes, sections, SECTION_SIZE * section_count)?;
    let contents = |section: &[u8]| {
        if number(section, 4, 4)? == NOBITS {
            return Some(&[][..]);
        }
        part(bytes, offset(section, 24, 8)?, offset(section, 32, 8)?)
    };
    let (sections, _) = sections.as_chunks::<SECTION_SIZE>();
    let names = contents(sections.get(offset(bytes, 62, 2)?)?)?;
    let mut entries = Vec::new();
    for section in sections {
        contents(section)?;
        let name = names.get(offset(section, 0, 4)?..)?;
        let name = name.split(|&byte| byte == 0).next()?;
        if let Some(entry) = name.strip_prefix(b".text.") {
            entries.push(String::from_utf8_lossy(entry).into_owned());
        }
    }
    Some(entries)
}

/// A fatbin says in its head how long the head is, and all behind it.
fn fatbin(bytes: &[u8]) -> Result<MachineCode, &'static str> {
    let whole = || {
        let (head, rest) = (offset(bytes, 6, 2)?, offset(bytes, 8, 8)?);
        part(bytes, 0, head.checked_add(rest)?)
    };
    match whole() {
        Some(_) => Ok(MachineCode { entries: None }),
        None => Err(TRUNCATED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CUBIN: &[u8] = include_bytes!("../../tests/launch/images/pick.sm_90.cubin");
    const FAT: &[u8] = include_bytes!("../../tests/launch/images/pick.fatbin");

    #[test]
    fn a_cubin_names_its_kernels() {
        assert_eq!(read(CUBIN).unwrap().entries.unwrap(), ["pick"]);
        assert!(read(FAT).unwrap().entries.is_none());
    }

    #[test]
    fn what_is_cut_off_is_not_whole() {
        for len in 4..CUBIN.len() {
            assert!(read(&CUBIN[..len]).is_err(), "{len}");
        }
        for len in 4..FAT.len() {
            assert_eq!(read(&FAT[..len]).unwrap_err(), TRUNCATED, "{len}");
        }
    }

    #[test]
    fn numbers_that_lead_outside_are_no_panic() {
        for at in 0..CUBIN.len() {
            for value in [0, 0x7f, 0xff] {
                let mut changed = CUBIN.to_vec();
                changed[at] = value;
                let _ = read(&changed);
            }
        }
        for size in [4, 15, 16, 17] {
            let mut changed = vec![0xff; size];
            changed[..4].copy_from_slice(&FATBIN);
            assert_eq!(read(&changed).unwrap_err(), TRUNCATED);
        }
    }

    #[test]
    fn other_files_are_told_apart() {
        assert!(read(b"").unwrap_err().contains("no cubin and no fatbin"));
        assert!(read(b".version 8.0").unwrap_err().contains("`nvcc -cubin`"));
        let mut host = CUBIN.to_vec();
        host[18] = 62;
        assert!(
            read(&host)
                .unwrap_err()
                .contains("not of CUDA's machine code")
        );
    }
}
