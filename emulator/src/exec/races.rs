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

impl Users {
    /// Whether another block wrote it, and the two accesses are not both strong.
    fn written_by_another(&self, me: u64, strong: bool) -> bool {
        self.writer != 0 && self.writer != me && !(strong && self.writer_strong)
    }
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
            if users.written_by_another(me, strong) {
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
            let writes = users.written_by_another(me, strong);
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
