//! Lanes that meet at an instruction: those that its member mask names.

use super::super::code::{Dest, Flag, Reg};
use super::super::context::Context;
use super::super::fault::FaultKind;
use super::super::frame::Frame;
use super::super::local::lanes;
use super::super::memory::GlobalMemory;
use super::super::sync::{Lanes, Members, SyncOp};
use super::super::trouble::Trouble;
use super::{Group, State, Warp, same_lanes};

impl Warp {
    pub(super) fn sync<M: GlobalMemory>(
        &mut self,
        cx: &mut Context<'_, M>,
        here: Group,
        op: &SyncOp,
    ) -> Result<(), Trouble> {
        let Some(reg) = op.members else {
            return self.meet(
                cx,
                here,
                op,
                Members {
                    present: here.mask,
                    absent: 0,
                },
            );
        };
        // Lanes that name different members, such as the tiles of a warp, meet apart.
        let mut left = here.mask;
        while left != 0 {
            let frame = &self.frames[here.frame as usize];
            let mask = same_lanes(frame, reg, left);
            let members = member_lanes(frame, reg, mask, self.live)?;
            left &= !mask;
            self.meet(cx, Group { mask, ..here }, op, members)?;
        }
        Ok(())
    }

    fn meet<M: GlobalMemory>(
        &mut self,
        cx: &mut Context<'_, M>,
        here: Group,
        op: &SyncOp,
        members: Members,
    ) -> Result<(), Trouble> {
        let Some(parts) = self.assemble(here, members.present) else {
            return Ok(());
        };
        op.kind.run(
            &mut Parts {
                frames: &mut self.frames,
                parts: &parts,
            },
            members,
        )?;
        cx.shared[cx.place.rank as usize].warp_sync(self.place.index as usize);
        for part in parts {
            self.groups.push(Group {
                pc: here.pc + 1,
                state: State::Ready,
                ..part
            });
        }
        Ok(())
    }

    /// The groups that hold all members and stand at one instruction; if some are missing, this one waits.
    pub(crate) fn assemble(&mut self, here: Group, members: u32) -> Option<Vec<Group>> {
        let waits = |group: &Group| group.pc == here.pc && group.state == State::Sync { members };
        let mut parts = vec![here];
        parts.extend(self.groups.iter().filter(|group| waits(group)));
        let present = parts.iter().fold(0, |present, part| present | part.mask);
        if members & !present != 0 {
            self.groups.push(Group {
                state: State::Sync { members },
                ..here
            });
            return None;
        }
        self.groups.retain(|group| !waits(group));
        Some(parts)
    }
}

/// The lanes that take part: those that the member mask of all lanes of `active` names and that have not
/// ended; and the others that it names.
#[inline]
pub(crate) fn member_lanes(
    frame: &Frame,
    reg: Reg,
    active: u32,
    live: u32,
) -> Result<Members, Trouble> {
    let named = frame.lane(reg, active.trailing_zeros() as usize % 32) as u32;
    if active & !named != 0 {
        let lane = (active & !named).trailing_zeros() as usize;
        return Err(Trouble::new(
            FaultKind::BadMask,
            format!("lane {lane} runs the instruction, but its member mask {named:#010x} does not name it"),
        )
        .by(lane));
    }
    Ok(Members {
        present: named & live,
        absent: named & !live,
    })
}

/// Lanes of several groups, each in its own frame.
pub(crate) struct Parts<'a> {
    pub(crate) frames: &'a mut [Frame],
    pub(crate) parts: &'a [Group],
}

impl Lanes for Parts<'_> {
    fn read(&self, reg: Reg) -> [u64; 32] {
        let mut values = [0; 32];
        for part in self.parts {
            let read = self.frames[part.frame as usize].read(reg);
            for lane in lanes(part.mask) {
                values[lane] = read[lane];
            }
        }
        values
    }

    fn write(&mut self, to: Dest, mask: u32, values: &[u64; 32]) {
        for part in self.parts {
            self.frames[part.frame as usize].write(to, mask & part.mask, values);
        }
    }

    fn flags(&self, flag: Flag) -> u32 {
        self.parts.iter().fold(0, |flags, part| {
            flags | self.frames[part.frame as usize].flag(flag) & part.mask
        })
    }

    fn set_flags(&mut self, predicate: u32, mask: u32, flags: u32) {
        for part in self.parts {
            self.frames[part.frame as usize].put_flags(predicate, mask & part.mask, flags);
        }
    }
}
