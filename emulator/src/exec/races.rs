//! Races in global memory between the blocks of a grid: on request, since every byte is remembered.
//!
//! Blocks of a grid have no order; only strong operations (atomic, volatile, relaxed and stronger) may
//! meet. Nothing is known of order made by them, so a cooperative grid, which has barriers, is not checked.

use std::collections::HashMap;

use super::fault::FaultKind;
use super::trouble::Trouble;

/// Who used a byte: blocks are counted from one.
#[derive(Clone, Copy, Debug, Default)]
struct Users {
    writer: u64,
    writer_strong: bool,
    reader: u64,
    reader_strong: bool,
    several_read: bool,
}

#[derive(Debug, Default)]
pub(crate) struct GlobalRaces {
    bytes: HashMap<u64, Users>,
}

impl GlobalRaces {
    pub(crate) fn read(
        &mut self,
        block: u64,
        address: u64,
        size: u32,
        strong: bool,
    ) -> Result<(), Trouble> {
        let me = block + 1;
        for byte in bytes(address, size) {
            let users = self.bytes.entry(byte).or_default();
            let races = users.writer != 0 && users.writer != me && !(strong && users.writer_strong);
            if races {
                return Err(race("load", address, users.writer - 1));
            }
            users.several_read |= users.reader != 0 && users.reader != me;
            users.reader_strong = strong && (users.reader == 0 || users.reader_strong);
            users.reader = me;
        }
        Ok(())
    }

    pub(crate) fn write(
        &mut self,
        block: u64,
        address: u64,
        size: u32,
        strong: bool,
    ) -> Result<(), Trouble> {
        let me = block + 1;
        for byte in bytes(address, size) {
            let users = self.bytes.entry(byte).or_default();
            let writes =
                users.writer != 0 && users.writer != me && !(strong && users.writer_strong);
            let other_reads = users.reader != 0 && (users.reader != me || users.several_read);
            let reads = other_reads && !(strong && users.reader_strong);
            if writes || reads {
                let other = if writes { users.writer } else { users.reader };
                return Err(race("store", address, other - 1));
            }
            users.writer = me;
            users.writer_strong = strong;
        }
        Ok(())
    }
}

/// The bytes of an access: neighbours do not race.
fn bytes(address: u64, size: u32) -> std::ops::Range<u64> {
    address..address + u64::from(size)
}

fn race(what: &str, address: u64, other: u64) -> Trouble {
    Trouble::new(
        FaultKind::GlobalRace,
        format!(
            "race in global memory at {address:#x}: a {what} that is not ordered with an access by block {other} of the grid"
        ),
    )
}
