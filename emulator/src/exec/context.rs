//! What a warp needs while it runs: the program, the launch, its block and all memory.

use super::access::WindowCache;
use super::barrier::{Barriers, ClusterBarrier};
use super::code::{Dest, Function, Inst, Preset, Reg};
use super::frame::Frame;
use super::launch::Launch;
use super::local::LANES;
use super::program::{Program, VariableSpace};
use super::races::GlobalRaces;
use super::shared::SharedMemory;
use super::space::{LOCAL, PARAM, SHARED};
use super::special::Special;
use super::step::widen;
use super::sync::Lanes;

/// What is the same for all threads of a launch.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) launch: Launch,
    /// Where each variable in shared memory lies, by its number; dynamic ones behind the others.
    pub(crate) shared_offsets: Vec<u32>,
    pub(crate) shared_bytes: u32,
    pub(crate) granule: u32,
    pub(crate) explicit_cluster: bool,
    /// For each function, the registers that are the same for all frames, and those that are not.
    pub(crate) presets: Vec<Presets>,
}

#[derive(Debug, Default)]
pub(crate) struct Presets {
    pub(crate) fixed: Vec<(Reg, u64)>,
    pub(crate) varying: Vec<(Reg, Preset)>,
}

/// Where a block stands in the grid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockPlace {
    pub(crate) index: u64,
    pub(crate) ctaid: [u32; 3],
    /// Its place in its cluster, and that of its cluster in the grid.
    pub(crate) rank: u32,
    pub(crate) cluster_ctaid: [u32; 3],
    pub(crate) cluster: [u32; 3],
}

/// Frames that were used before, by function.
#[derive(Debug, Default)]
pub(crate) struct FramePool {
    free: Vec<Vec<Frame>>,
}

/// What changes while the grid runs, but for memory and blocks.
#[derive(Debug, Default)]
pub(crate) struct Running {
    pub(crate) pool: FramePool,
    pub(crate) windows: WindowCache,
    /// How often each micro-operation ran.
    pub(crate) counts: Vec<u64>,
    pub(crate) steps: u64,
    pub(crate) thread_instructions: u64,
    /// Memory changed, or a barrier opened, or a thread ended.
    pub(crate) changed: bool,
    /// Something was read that others than the cluster's threads may change: global memory, a clock.
    pub(crate) looked: bool,
    pub(crate) races: Option<GlobalRaces>,
}

pub(crate) struct Context<'a, M> {
    pub(crate) program: &'a Program,
    pub(crate) code: &'a [Inst],
    pub(crate) setting: &'a Setting,
    pub(crate) running: &'a mut Running,
    pub(crate) memory: &'a mut M,
    pub(crate) shared: &'a mut [SharedMemory],
    pub(crate) place: BlockPlace,
    pub(crate) barriers: &'a mut Barriers,
    pub(crate) cluster: &'a mut ClusterBarrier,
}

impl Setting {
    /// Sorts the presets of the functions that can be reached by whether they are the same for all frames.
    pub(crate) fn resolve(&mut self, functions: &[Function], reached: &[usize]) {
        let mut all: Vec<Presets> = functions.iter().map(|_| Presets::default()).collect();
        for at in reached {
            for (reg, preset) in &functions[*at].presets {
                match self.fixed(preset) {
                    Some(value) => all[*at].fixed.push((*reg, value)),
                    None => all[*at].varying.push((*reg, *preset)),
                }
            }
        }
        self.presets = all;
    }

    fn fixed(&self, preset: &Preset) -> Option<u64> {
        let launch = &self.launch;
        Some(match preset {
            Preset::Bits(bits) => *bits,
            Preset::Symbol { variable, offset } => launch
                .symbols
                .get(*variable)
                .copied()
                .unwrap_or(0)
                .wrapping_add_signed(*offset),
            Preset::Shared {
                variable,
                offset,
                generic,
            } => {
                let base = self.shared_offsets.get(*variable).copied().unwrap_or(0);
                let address = u64::from(base).wrapping_add_signed(*offset);
                if *generic {
                    SHARED.wrapping_add(address)
                } else {
                    address
                }
            }
            Preset::ParamValue { offset, ty, bits } => {
                let start = *offset as usize;
                let mut wide = [0; 8];
                let bytes = launch.params.get(start..start + ty.bytes() as usize)?;
                wide[..bytes.len()].copy_from_slice(bytes);
                widen(u64::from_le_bytes(wide), *ty, *bits)
            }
            Preset::Param(offset) => PARAM.wrapping_add_signed(*offset),
            Preset::Special(special) => u64::from(match special {
                Special::Ntid(axis) => launch.block[*axis],
                Special::Nctaid(axis) => launch.grid[*axis],
                Special::NclusterId(axis) => launch.grid[*axis] / launch.cluster[*axis].max(1),
                Special::ClusterNctaid(axis) => launch.cluster[*axis],
                Special::ClusterNctarank => launch.cluster.iter().product(),
                Special::IsExplicitCluster => u32::from(self.explicit_cluster),
                Special::Nwarpid => 64,
                Special::Nsmid => launch.device.multiprocessors,
                Special::Gridid => 1,
                Special::Counter | Special::Counter64 | Special::ReservedShared => 0,
                // Where cooperative groups look for the grid's workspace.
                Special::EnvReg(1) => (launch.workspace >> 32) as u32,
                Special::EnvReg(2) => (launch.workspace & 0xffff_ffff) as u32,
                Special::EnvReg(_) => 0,
                Special::TotalSharedBytes => self.shared_bytes,
                Special::DynamicSharedBytes => launch.dynamic_shared,
                _ => return None,
            }),
            Preset::Local { .. } => return None,
        })
    }
}

impl FramePool {
    fn take(&mut self, function: usize) -> Option<Frame> {
        self.free.get_mut(function)?.pop()
    }

    pub(crate) fn give_back(&mut self, frame: Frame) {
        if self.free.len() <= frame.function {
            self.free.resize_with(frame.function + 1, Vec::new);
        }
        self.free[frame.function].push(frame);
    }
}

/// Where a warp stands in its block.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WarpPlace {
    pub(crate) index: u32,
    /// The lanes that hold a thread.
    pub(crate) lanes: u32,
}

impl WarpPlace {
    /// The thread of a lane.
    pub(crate) fn thread(self, lane: usize, block: [u32; 3]) -> [u32; 3] {
        let number = self.index * 32 + lane as u32;
        let [x, y, _] = block.map(|extent| extent.max(1));
        [number % x, number / x % y, number / (x * y)]
    }
}

impl<M> Context<'_, M> {
    /// A frame with all its presets, whose local memory begins at `local_base`.
    pub(crate) fn new_frame(&mut self, function: usize, warp: WarpPlace, local_base: u32) -> Frame {
        let described = &self.program.functions()[function];
        let presets = &self.setting.presets[function];
        let mut frame = if let Some(frame) = self.running.pool.take(function) {
            frame
        } else {
            let mut frame = Frame {
                words: vec![[0; LANES]; described.words as usize],
                doubles: vec![[0; LANES]; described.doubles as usize],
                predicates: vec![0; described.predicates as usize],
                function,
                ..Frame::default()
            };
            for (reg, value) in &presets.fixed {
                set_all(&mut frame, *reg, &[*value; LANES]);
            }
            frame
        };
        frame.local_base = local_base;
        frame.local_end = local_base + described.local_bytes;
        for (reg, preset) in &presets.varying {
            let values = match preset {
                Preset::Special(special) => self.special(*special, warp),
                Preset::Local { offset, generic } => {
                    let address = u64::from(local_base).wrapping_add_signed(*offset);
                    [if *generic {
                        LOCAL.wrapping_add(address)
                    } else {
                        address
                    }; LANES]
                }
                _ => continue,
            };
            set_all(&mut frame, *reg, &values);
        }
        frame
    }

    /// Whether an address lies in a constant variable of the module.
    pub(crate) fn is_constant(&self, address: u64) -> bool {
        let variables = self
            .program
            .variables()
            .iter()
            .zip(self.setting.launch.symbols.iter());
        variables
            .filter(|(variable, _)| variable.space == VariableSpace::Const)
            .any(|(variable, start)| {
                address
                    .checked_sub(*start)
                    .is_some_and(|at| at < variable.size)
            })
    }

    /// A special register for all lanes.
    pub(crate) fn special(&self, special: Special, warp: WarpPlace) -> [u64; LANES] {
        let all = |value: u64| [value; LANES];
        let by_lane = |value: &dyn Fn(usize) -> u32| -> [u64; LANES] {
            std::array::from_fn(|lane| u64::from(value(lane)))
        };
        let block = self.setting.launch.block;
        let clock = self.running.steps * 4;
        // Nanoseconds of an arbitrary day, at one a step.
        let timer = 1_700_000_000_000_000_000 + self.running.steps;
        match special {
            Special::Tid(axis) => {
                let mut next = warp.thread(0, block);
                std::array::from_fn(|_| {
                    let [x, y, z] = next;
                    next = match (x + 1 < block[0], y + 1 < block[1]) {
                        (true, _) => [x + 1, y, z],
                        (false, true) => [0, y + 1, z],
                        (false, false) => [0, 0, z + 1],
                    };
                    u64::from([x, y, z][axis])
                })
            }
            Special::Laneid => by_lane(&|lane| lane as u32),
            Special::LanemaskEq => by_lane(&|lane| 1 << lane),
            Special::LanemaskLt => by_lane(&|lane| (1 << lane) - 1),
            Special::LanemaskLe => by_lane(&|lane| (2_u32 << lane).wrapping_sub(1)),
            Special::LanemaskGe => by_lane(&|lane| !((1 << lane) - 1)),
            Special::LanemaskGt => by_lane(&|lane| !(2_u32 << lane).wrapping_sub(1)),
            Special::Ctaid(axis) => all(u64::from(self.place.ctaid[axis])),
            Special::ClusterId(axis) => all(u64::from(self.place.cluster[axis])),
            Special::ClusterCtaid(axis) => all(u64::from(self.place.cluster_ctaid[axis])),
            Special::ClusterCtarank => all(u64::from(self.place.rank)),
            Special::Warpid => all(u64::from(warp.index)),
            Special::Smid => {
                let count = u64::from(self.setting.launch.device.multiprocessors.max(1));
                all(self.place.index % count)
            }
            Special::Clock => all(clock & 0xffff_ffff),
            Special::ClockHi => all(clock >> 32),
            Special::Clock64 => all(clock),
            Special::GlobalTimer => all(timer),
            Special::GlobalTimerLo => all(timer & 0xffff_ffff),
            Special::GlobalTimerHi => all(timer >> 32),
            _ => all(0),
        }
    }
}

fn set_all(frame: &mut Frame, reg: Reg, values: &Words64) {
    frame.write(
        Dest {
            reg,
            bits: reg.bits().min(64),
        },
        u32::MAX,
        values,
    );
}

type Words64 = [u64; LANES];
