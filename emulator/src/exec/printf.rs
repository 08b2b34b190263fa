//! `vprintf`, `__assertfail` and `cudaGraphSetConditional`: the functions that PTX calls and that the
//! system provides.

use super::access::Reach;
use super::code::{Call, Passed};
use super::context::Context;
use super::fault::FaultKind;
use super::format::{Argument, format};
use super::local::lanes;
use super::memory::GlobalMemory;
use super::step::reach;
use super::trouble::Trouble;
use super::warp::{Group, Warp};

/// The longest text that is read from device memory.
const LONGEST: usize = 1 << 16;

struct Site<'a, 'b, M> {
    warp: &'a mut Warp,
    cx: &'a mut Context<'b, M>,
}

impl<M: GlobalMemory> Site<'_, '_, M> {
    /// The value a call passes, for one lane.
    fn argument(&self, here: Group, passed: Option<&Passed>, lane: usize) -> u64 {
        let frame = &self.warp.frames[here.frame as usize];
        match passed {
            None => 0,
            Some(Passed::Register(dest)) => frame.lane(dest.reg, lane),
            Some(Passed::Bytes { offset, size }) => {
                let bytes = (0..(*size).min(8)).map(|at| {
                    let byte = self
                        .warp
                        .local
                        .peek(lane, frame.local_base + offset + at, 1)
                        .0;
                    byte << (8 * at)
                });
                bytes.fold(0, |value, byte| value | byte)
            }
        }
    }

    fn reach(&mut self) -> Reach<'_, M> {
        reach!(self)
    }

    /// A text that ends with a zero.
    fn text(&mut self, lane: usize, address: u64) -> Result<Vec<u8>, Trouble> {
        let mut text = Vec::new();
        for at in 0..LONGEST as u64 {
            match self.reach().peek_byte(lane, address.wrapping_add(at)) {
                Some(0) => return Ok(text),
                Some(byte) => text.push(byte),
                None => {
                    return Err(Trouble::new(
                        FaultKind::IllegalAddress,
                        format!("text at {address:#x} that runs out of its memory"),
                    )
                    .at(lane, address));
                }
            }
        }
        Ok(text)
    }

    fn bytes(&mut self, lane: usize, address: u64, count: u64) -> Result<u64, Trouble> {
        let mut value = 0;
        for at in 0..count {
            let Some(byte) = self.reach().peek_byte(lane, address.wrapping_add(at)) else {
                return Err(Trouble::new(
                    FaultKind::IllegalAddress,
                    format!("arguments of `printf` at {address:#x} that run out of their memory"),
                )
                .at(lane, address));
            };
            value |= u64::from(byte) << (8 * at);
        }
        Ok(value)
    }
}

/// Prints for each lane, in order.
pub(crate) fn run<M: GlobalMemory>(
    warp: &mut Warp,
    cx: &mut Context<'_, M>,
    here: Group,
    call: &Call,
) -> Result<(), Trouble> {
    let mut site = Site { warp, cx };
    for lane in lanes(here.mask) {
        let form = site.argument(here, call.arguments.first(), lane);
        let mut next = site.argument(here, call.arguments.get(1), lane);
        let form = site.text(lane, form)?;
        let text = format(&form, |kind| {
            let size = kind.bytes();
            let at = next.next_multiple_of(size);
            next = at + size;
            let value = site.bytes(lane, at, size)?;
            Ok(match kind {
                Argument::Text if value == 0 => (0, b"(null)".to_vec()),
                Argument::Text => (value, site.text(lane, value)?),
                _ => (value, Vec::new()),
            })
        })?;
        site.cx.memory.print(&text.0);
        site.cx.running.changed = true;
        let count = text.1;
        let frame = &mut site.warp.frames[here.frame as usize];
        match call.returns.first() {
            Some(Passed::Register(dest)) => frame.set_lane(*dest, lane, u128::from(count)),
            Some(Passed::Bytes { offset, .. }) => {
                let at = frame.local_base + offset;
                site.warp.local.store(lane, at, 4, u64::from(count));
            }
            None => {}
        }
    }
    Ok(())
}

/// Sets a condition of a graph. Threads that set one at the same time are at fault: which value stays is
/// not defined.
pub(crate) fn set_conditional<M: GlobalMemory>(
    warp: &mut Warp,
    cx: &mut Context<'_, M>,
    here: Group,
    call: &Call,
) -> Result<(), Trouble> {
    let site = Site { warp, cx };
    let mut set: Vec<(usize, u64)> = Vec::new();
    for lane in lanes(here.mask) {
        let handle = site.argument(here, call.arguments.first(), lane);
        let value = site.argument(here, call.arguments.get(1), lane) & 0xffff_ffff;
        if let Some((first, _)) = set.iter().find(|(_, other)| *other == handle) {
            return Err(Trouble::new(
                FaultKind::GlobalRace,
                format!(
                    "condition {handle:#x} of a graph set by lanes {first} and {lane} at the same time: \
                     let one thread set it"
                ),
            )
            .by(lane));
        }
        let answer = site.cx.memory.set_condition(handle, value as u32);
        if let Err(words) = answer {
            return Err(Trouble::new(FaultKind::IllegalAddress, words).by(lane));
        }
        set.push((lane, handle));
    }
    site.cx.running.changed = true;
    Ok(())
}

/// What a failed assertion says.
pub(crate) fn assertion<M: GlobalMemory>(
    warp: &mut Warp,
    cx: &mut Context<'_, M>,
    here: Group,
    call: &Call,
) -> Trouble {
    let mut site = Site { warp, cx };
    let lane = here.mask.trailing_zeros() as usize;
    let mut text = |at: usize| {
        let address = site.argument(here, call.arguments.get(at), lane);
        let bytes = site.text(lane, address).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let (message, file, function) = (text(0), text(1), text(3));
    let line = site.argument(here, call.arguments.get(2), lane) & 0xffff_ffff;
    Trouble::new(
        FaultKind::Assert,
        format!("{file}:{line}: {function}: assertion `{message}` failed"),
    )
    .by(lane)
}
