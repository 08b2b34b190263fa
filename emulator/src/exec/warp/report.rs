//! What is said of a warp: what its lanes wait for, and where one went wrong.

use super::super::code::Op;
use super::super::context::Context;
use super::super::fault::{Fault, SourceLine};
use super::super::frame::{Frame, NONE};
use super::super::local::lanes;
use super::super::trouble::Trouble;
use super::{State, Warp};

impl Warp {
    /// What each group waits for, for a report.
    pub(crate) fn waits<M>(&self, cx: &Context<'_, M>) -> Vec<String> {
        self.groups
            .iter()
            .map(|group| {
                let line = cx.program.position(group.pc).line;
                let threads = list(group.mask);
                let warp = self.place.index;
                let what = match group.state {
                    State::Ready => "can go on".to_owned(),
                    State::Sync { members } => {
                        format!("wait for lanes {}", list(members & !group.mask))
                    }
                    State::Barrier { id, .. } => format!("wait at barrier {id}"),
                    State::Cluster { .. } => "wait for the cluster".to_owned(),
                    State::Phase { .. } => match &cx.code[group.pc as usize].op {
                        Op::MBarrier(op) => {
                            format!("wait at `mbarrier` {}", self.lacks(cx, group, op))
                        }
                        _ => "wait at an `mbarrier`".to_owned(),
                    },
                };
                format!("warp {warp} lanes {threads} at line {line} {what}")
            })
            .collect()
    }

    /// The line of the source; that of the call, where the function called has none.
    fn source<M>(&self, cx: &Context<'_, M>, pc: u32, frame: Option<&Frame>) -> Option<SourceLine> {
        let mut found = cx.program.source(pc);
        let mut frame = frame;
        while let (None, Some(callee)) = (&found, frame) {
            if callee.parent == NONE {
                break;
            }
            found = cx.program.source(callee.call);
            frame = self.frames.get(callee.parent as usize);
        }
        found
    }

    /// Turns a trouble into a fault, with all that is known of where it happened.
    pub(crate) fn fault<M>(
        &self,
        cx: &Context<'_, M>,
        pc: u32,
        active: u32,
        trouble: Trouble,
    ) -> Box<Fault> {
        let pc = trouble.pc.unwrap_or(pc);
        let lane = trouble.lane.unwrap_or(active.trailing_zeros() as usize) % 32;
        let frame = self
            .frames
            .iter()
            .filter(|frame| frame.mask >> lane & 1 == 1)
            .max_by_key(|frame| frame.depth);
        let registers = match (trouble.address, frame) {
            (Some(_), Some(frame)) => cx.program.address_registers(pc, frame, lane),
            _ => Vec::new(),
        };
        Box::new(Fault {
            kind: trouble.kind,
            kernel: cx.program.kernels()[cx.setting.launch.kernel].name.clone(),
            block: Some(cx.place.ctaid),
            thread: Some(self.place.thread(lane, cx.setting.launch.block)),
            position: Some(cx.program.position(pc)),
            source: self.source(cx, pc, frame),
            address: trouble.address,
            registers,
            message: trouble.message,
        })
    }
}

/// Lanes as people write them: `0-15, 17`.
pub(crate) fn list(mask: u32) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for lane in lanes(mask) {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == lane => *last = lane,
            _ => parts.push((lane, lane)),
        }
    }
    let texts = parts.iter().map(|(first, last)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        }
    });
    texts.collect::<Vec<_>>().join(", ")
}
