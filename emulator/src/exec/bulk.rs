//! Bulk copies: `cp.async.bulk`, `cp.reduce.async.bulk` and their forms that go by a tensor map.
//!
//! What an instruction names is checked when it is issued. The bytes are read and written as late as they
//! may: where somebody looks at the barrier that is told of them, or waits for the group they are in. So
//! whoever does not wait sees what was there before, and whoever reuses the source too early copies that.

use super::access::{Reach, addresses};
use super::atomic::{AtomicKind, AtomicOp};
use super::code::{Reg, Target};
use super::context::Context;
use super::fault::FaultKind;
use super::local::lanes;
use super::mbarrier;
use super::memory::GlobalMemory;
use super::shared::Who;
use super::space::Place;
use super::step::reach;
use super::tensor_map::{self, TensorMap};
use super::tile::{Row, Tile};
use super::trouble::Trouble;
use super::types::Type;
use super::warp::{Group, Warp};

/// What bulk copies move at once, and what their addresses and sizes are multiples of.
const UNIT: u64 = 16;
/// What the address of a tile in shared memory is a multiple of.
const TILE_ALIGN: u64 = 128;

#[derive(Clone, Debug)]
pub(crate) struct BulkOp {
    pub(crate) to: End,
    pub(crate) from: End,
    /// The bytes; by a tensor map, those of its tile.
    pub(crate) size: Option<Reg>,
    pub(crate) done: Done,
    /// The blocks of the cluster that get a copy each.
    pub(crate) blocks: Option<Reg>,
    pub(crate) reduce: Option<Reduction>,
}

/// Where a bulk copy begins or ends.
#[derive(Clone, Debug)]
pub(crate) enum End {
    Shared(Target),
    Global(Target),
    Tensor {
        map: Target,
        coordinates: Box<[Reg]>,
        offsets: Box<[Reg]>,
        im2col: bool,
    },
    /// The cache: nothing is copied.
    Cache,
}

/// Who is told that a copy is done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Done {
    Barrier(Target),
    Group,
    Nobody,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Reduction {
    Of(AtomicOp),
    /// On elements of the tensor map's type.
    OfElements(AtomicKind),
}

/// A copy that was issued and has not been made.
#[derive(Clone, Debug)]
struct Transfer {
    issuer: Issuer,
    path: Path,
}

/// The thread that issued a copy.
#[derive(Clone, Copy, Debug)]
struct Issuer {
    rank: usize,
    warp: usize,
    lane: usize,
    /// The number of its block in the grid.
    block: u64,
    /// The instruction.
    pc: u32,
}

#[derive(Clone, Debug)]
enum Path {
    /// From global memory to the shared memory of a block.
    Load { tile: Tile, to: usize },
    Store {
        tile: Tile,
        reduce: Option<AtomicOp>,
        /// What was read already.
        read: Option<Vec<u8>>,
    },
    /// From the issuer's shared memory to that of a block.
    Send {
        from: u64,
        to: (usize, u64),
        bytes: u64,
        reduce: Option<AtomicOp>,
    },
}

/// A copy that a barrier in shared memory is told of.
#[derive(Clone, Debug)]
pub(crate) struct Incoming {
    barrier: u64,
    transfer: Transfer,
}

/// The groups of bulk copies of a warp's lanes.
#[derive(Debug, Default)]
pub(crate) struct BulkGroups {
    pending: Vec<Grouped>,
    committed: [u32; 32],
}

#[derive(Debug)]
struct Grouped {
    /// The number of the lane's group that it belongs to.
    group: u32,
    transfer: Transfer,
}

impl BulkGroups {
    pub(crate) fn commit(&mut self, lane: usize) {
        self.committed[lane] += 1;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Makes the copies of the lanes of a mask, but for those of their latest `left` groups; only reads what
    /// they copy, if no more is asked for.
    pub(crate) fn wait<M: GlobalMemory>(
        &mut self,
        reach: &mut Reach<'_, M>,
        mask: u32,
        left: u32,
        reads: bool,
    ) -> Result<(), Trouble> {
        let mut kept = Vec::new();
        for mut copy in std::mem::take(&mut self.pending) {
            let lane = copy.transfer.issuer.lane;
            let over = copy.group.saturating_add(left) < self.committed[lane];
            if mask >> lane & 1 == 0 || !over {
                kept.push(copy);
            } else if reads {
                reach.read_early(&mut copy.transfer)?;
                kept.push(copy);
            } else {
                reach.make(&copy.transfer)?;
            }
        }
        self.pending = kept;
        Ok(())
    }

    /// Makes all copies of lanes that end.
    pub(crate) fn leave<M: GlobalMemory>(
        &mut self,
        reach: &mut Reach<'_, M>,
        mask: u32,
    ) -> Result<(), Trouble> {
        lanes(mask).for_each(|lane| self.commit(lane));
        self.wait(reach, mask, 0, false)
    }
}

impl Incoming {
    /// What is said of a copy that comes to a block whose threads have ended.
    pub(crate) fn unawaited(incoming: &[Self]) -> Option<Trouble> {
        let first = incoming.first()?;
        let mut trouble = Trouble::new(
            FaultKind::BulkCopy,
            format!(
                "the block ended while a bulk copy of {} bytes to its shared memory was under way: nobody waited for \
                 `mbarrier` at {:#x}",
                first.transfer.bytes(),
                first.barrier
            ),
        );
        trouble.pc = Some(first.transfer.issuer.pc);
        Some(trouble)
    }
}

impl Transfer {
    fn bytes(&self) -> u64 {
        match &self.path {
            Path::Load { tile, .. } | Path::Store { tile, .. } => tile.bytes,
            Path::Send { bytes, .. } => *bytes,
        }
    }
}

impl Warp {
    pub(crate) fn bulk<M: GlobalMemory>(
        &mut self,
        cx: &mut Context<'_, M>,
        here: Group,
        op: &BulkOp,
    ) -> Result<(), Trouble> {
        for lane in lanes(here.mask) {
            self.issue(cx, here, op, lane)
                .map_err(|trouble| trouble.by(lane))?;
        }
        Ok(())
    }

    fn issue<M: GlobalMemory>(
        &mut self,
        cx: &mut Context<'_, M>,
        here: Group,
        op: &BulkOp,
        lane: usize,
    ) -> Result<(), Trouble> {
        let frame = &self.frames[here.frame as usize];
        let address = |target: &Target| addresses(frame, target)[lane];
        let own = cx.place.rank as usize;
        let issuer = Issuer {
            rank: own,
            warp: self.place.index as usize,
            lane,
            block: cx.place.index,
            pc: here.pc,
        };
        let size = op.size.map(|size| frame.lane(size, lane) & 0xffff_ffff);
        if let Some(size) = size
            && !size.is_multiple_of(UNIT)
        {
            return Err(Trouble::new(
                FaultKind::BulkCopy,
                format!("bulk copy of {size} bytes, which is no multiple of {UNIT}"),
            ));
        }
        let size = size.unwrap_or(0);
        let blocks = op.blocks.map(|blocks| frame.lane(blocks, lane) & 0xffff);
        let barrier = match &op.done {
            Done::Barrier(target) => Some((address(target), target.space.place(address(target)))),
            Done::Group | Done::Nobody => None,
        };
        let local_end = frame.local_end;
        let global = match (&op.to, &op.from) {
            (End::Tensor { .. }, _) => Some(&op.to),
            (_, End::Tensor { .. } | End::Global(_)) => Some(&op.from),
            (End::Global(_), _) => Some(&op.to),
            _ => None,
        };
        let shared = match (&op.to, &op.from) {
            (End::Shared(to), _) => Some((address(to), to.space.place(address(to)))),
            (_, End::Shared(from)) => Some((address(from), from.space.place(address(from)))),
            _ => None,
        };
        let source = match &op.from {
            End::Shared(from) => Some((address(from), from.space.place(address(from)))),
            _ => None,
        };
        let (mut tile, map) = match global {
            Some(End::Global(target)) => {
                let from = address(target);
                if !from.is_multiple_of(UNIT) {
                    return Err(misaligned("global memory", from, UNIT).at(lane, from));
                }
                (Tile::whole(from, size), None)
            }
            Some(End::Tensor {
                map,
                coordinates,
                offsets,
                im2col,
            }) => {
                let at = address(map);
                let values = |regs: &[Reg]| -> Vec<i64> {
                    let value = |reg: &Reg| i64::from(frame.lane(*reg, lane) as u32 as i32);
                    regs.iter().map(value).collect()
                };
                let coordinates = values(coordinates);
                let offsets: Vec<i64> = offsets
                    .iter()
                    .map(|reg| (frame.lane(*reg, lane) & 0xffff) as i64)
                    .collect();
                let place = map.space.place(at);
                let mut site = Site { warp: self, cx };
                let map = site
                    .reach()
                    .tensor_map(local_end, lane, at, place)
                    .map_err(|trouble| trouble.at(lane, at))?;
                let refuse = |why: String| Trouble::new(FaultKind::TensorMap, why).at(lane, at);
                let stores = matches!(op.to, End::Tensor { .. });
                let tile =
                    Tile::of(&map, &coordinates, &offsets, *im2col, stores).map_err(refuse)?;
                if stores {
                    Tile::check_stores(&map, &coordinates, op.reduce.is_some()).map_err(refuse)?;
                }
                (tile, Some(map))
            }
            _ => (Tile::apart(size), None),
        };
        let reduce = match (op.reduce, map) {
            (Some(Reduction::Of(op)), _) => Some(op),
            (Some(Reduction::OfElements(kind)), Some(map)) => Some(
                element_op(kind, &map).map_err(|why| Trouble::new(FaultKind::TensorMap, why))?,
            ),
            _ => None,
        };
        let align = if map.is_some() { TILE_ALIGN } else { UNIT };
        let mut site = Site { warp: self, cx };
        let mut reach = site.reach();
        let stores = !matches!(op.to, End::Shared(_) | End::Cache);
        let reads = matches!(op.to, End::Shared(_));
        reach
            .check_rows(&tile, stores, reads || reduce.is_some())
            .map_err(|trouble| match global {
                Some(End::Global(_)) | None => trouble,
                _ => Trouble {
                    message: format!("by a tensor map: {}", trouble.message),
                    ..trouble
                },
            })?;
        let Some((address, place)) = shared else {
            return Ok(());
        };
        let (rank, offset) = reach
            .shared_range(address, place, tile.span, align)
            .map_err(|trouble| trouble.at(lane, address))?;
        tile.shared = offset;
        if let (End::Shared(_), End::Shared(_)) = (&op.to, &op.from) {
            let Some((from_address, from_place)) = source else {
                return Ok(());
            };
            let (from_rank, from) = reach
                .shared_range(from_address, from_place, size, UNIT)
                .map_err(|trouble| trouble.at(lane, from_address))?;
            own_source(from_rank, own).map_err(|trouble| trouble.at(lane, from_address))?;
            let path = Path::Send {
                from,
                to: (rank, offset),
                bytes: size,
                reduce,
            };
            return Self::hand_over(&mut reach, barrier, Transfer { issuer, path }, rank, lane);
        }
        if stores {
            own_source(rank, own).map_err(|trouble| trouble.at(lane, address))?;
            reach.check_source(rank, &tile)?;
            let path = Path::Store {
                tile,
                reduce,
                read: None,
            };
            let group = self.bulk.committed[lane];
            let transfer = Transfer { issuer, path };
            self.bulk.pending.push(Grouped { group, transfer });
            return Ok(());
        }
        let Some(blocks) = blocks else {
            let path = Path::Load { tile, to: rank };
            return Self::hand_over(&mut reach, barrier, Transfer { issuer, path }, rank, lane);
        };
        // Each block of the mask gets the bytes, and is told, at the same place of its own shared memory.
        for to in lanes(blocks as u32) {
            if to >= reach.shared.len() {
                return Err(Trouble::new(
                    FaultKind::IllegalAddress,
                    format!(
                        "bulk copy to block {to} of a cluster of {}",
                        reach.shared.len()
                    ),
                ));
            }
            let path = Path::Load {
                tile: tile.clone(),
                to,
            };
            let barrier = barrier.map(|(address, place)| match place {
                Place::Shared(_, offset) => (address, Place::Shared(Some(to as u32), offset)),
                place => (address, place),
            });
            Self::hand_over(&mut reach, barrier, Transfer { issuer, path }, to, lane)?;
        }
        Ok(())
    }

    /// Makes what lanes that end have issued.
    pub(crate) fn leave_groups<M: GlobalMemory>(
        &mut self,
        cx: &mut Context<'_, M>,
        mask: u32,
    ) -> Result<(), Trouble> {
        if self.bulk.is_empty() {
            return Ok(());
        }
        let mut bulk = std::mem::take(&mut self.bulk);
        let mut site = Site { warp: self, cx };
        let result = bulk.leave(&mut site.reach(), mask);
        self.bulk = bulk;
        result
    }

    /// Leaves a copy with the barrier that is told of it.
    fn hand_over<M: GlobalMemory>(
        reach: &mut Reach<'_, M>,
        barrier: Option<(u64, Place)>,
        transfer: Transfer,
        to: usize,
        lane: usize,
    ) -> Result<(), Trouble> {
        let Some((address, place)) = barrier else {
            return Ok(());
        };
        let (rank, barrier) = reach
            .shared_range(address, place, 8, 8)
            .map_err(|trouble| trouble.at(lane, address))?;
        if rank != to {
            return Err(Trouble::new(
                FaultKind::IllegalAddress,
                format!(
                    "bulk copy to the shared memory of block {to} of the cluster, with `mbarrier` at {address:#x} in \
                     that of block {rank}"
                ),
            )
            .at(lane, address));
        }
        let object = reach.shared[rank].peek(barrier).unwrap_or(0);
        if !mbarrier::is_valid(u128::from(object)) {
            return Err(mbarrier::no_barrier(address).at(lane, address));
        }
        reach.shared[rank].news += 1;
        *reach.changed = true;
        reach.shared[rank]
            .incoming
            .push(Incoming { barrier, transfer });
        Ok(())
    }

    /// Lets arrive what a barrier of the block is to be told of.
    pub(crate) fn receive<M: GlobalMemory>(
        &mut self,
        cx: &mut Context<'_, M>,
        place: Place,
    ) -> Result<(), Trouble> {
        let own = cx.place.rank as usize;
        let Place::Shared(rank, barrier) = place else {
            return Ok(());
        };
        if rank.is_some_and(|rank| rank as usize != own) || cx.shared[own].incoming.is_empty() {
            return Ok(());
        }
        let (due, kept) = std::mem::take(&mut cx.shared[own].incoming)
            .into_iter()
            .partition(|incoming: &Incoming| incoming.barrier == barrier);
        cx.shared[own].incoming = kept;
        for Incoming { transfer, .. } in due {
            let mut site = Site { warp: self, cx };
            site.reach().make(&transfer)?;
            let bytes = transfer.bytes().cast_signed();
            cx.shared[own].update(None, barrier, 8, &mut |object| {
                mbarrier::transfer(object, -bytes)
            })?;
            cx.shared[own].news += 1;
            cx.running.changed = true;
            // Whoever sees the barrier's phase end is ordered behind the copy.
            if transfer.issuer.rank == own {
                cx.shared[own].fence(transfer.issuer.warp);
            }
        }
        cx.shared[own].fence(self.place.index as usize);
        Ok(())
    }
}

struct Site<'a, 'b, M> {
    warp: &'a mut Warp,
    cx: &'a mut Context<'b, M>,
}

impl<M: GlobalMemory> Site<'_, '_, M> {
    fn reach(&mut self) -> Reach<'_, M> {
        reach!(self)
    }
}

impl<M: GlobalMemory> Reach<'_, M> {
    /// Reads the tensor map at an address.
    fn tensor_map(
        &mut self,
        local_end: u32,
        lane: usize,
        address: u64,
        place: Place,
    ) -> Result<TensorMap, Trouble> {
        let aligned = match place {
            Place::Global(at) | Place::Param(at) => at.is_multiple_of(tensor_map::ALIGN),
            Place::Shared(..) | Place::Local(_) => false,
        };
        if !aligned {
            return Err(Trouble::new(
                FaultKind::Misaligned,
                format!(
                    "tensor map at {address:#x}, where it has to lie in parameters, constant or global memory, at a \
                     multiple of {}",
                    tensor_map::ALIGN
                ),
            ));
        }
        let mut bytes = [0; tensor_map::BYTES];
        for (at, piece) in (0..).step_by(8).zip(bytes.chunks_exact_mut(8)) {
            let place = match place {
                Place::Param(start) => Place::Param(start + at),
                Place::Global(start) => Place::Global(start + at),
                other => other,
            };
            let order = super::code::Ordering {
                masked: true,
                ..super::code::Ordering::default()
            };
            self.load_bytes(local_end, lane, place, order, piece)?;
        }
        TensorMap::from_bytes(&bytes).ok_or_else(|| {
            Trouble::new(
                FaultKind::TensorMap,
                format!("there is no tensor map at {address:#x}"),
            )
        })
    }

    /// The block and the offset of a range of shared memory.
    fn shared_range(
        &self,
        address: u64,
        place: Place,
        bytes: u64,
        align: u64,
    ) -> Result<(usize, u64), Trouble> {
        let Place::Shared(rank, offset) = place else {
            return Err(Trouble::new(
                FaultKind::IllegalAddress,
                format!("{address:#x} is no address of shared memory"),
            ));
        };
        let rank = rank.map_or(self.rank, |rank| rank as usize);
        let Some(shared) = self.shared.get(rank) else {
            return Err(Trouble::new(
                FaultKind::IllegalAddress,
                format!(
                    "access of shared memory of block {rank} of a cluster of {}",
                    self.shared.len()
                ),
            ));
        };
        if !offset.is_multiple_of(align) {
            return Err(misaligned("shared memory", offset, align));
        }
        let most = shared.bytes().len() as u64;
        if offset.saturating_add(bytes) > most {
            return Err(Trouble::new(
                FaultKind::IllegalAddress,
                format!(
                    "bulk copy of {bytes} bytes of shared memory at {offset:#x}, outside of the block's {most} bytes"
                ),
            ));
        }
        Ok((rank, offset))
    }

    /// Whether the bytes of global memory are there.
    fn check_rows(&mut self, tile: &Tile, stores: bool, reads: bool) -> Result<(), Trouble> {
        for row in &tile.rows {
            self.check_global(row.global, row.bytes, stores, reads)?;
        }
        Ok(())
    }

    /// Whether what is copied from shared memory was written.
    fn check_source(&self, rank: usize, tile: &Tile) -> Result<(), Trouble> {
        for row in &tile.rows {
            for chunk in row.chunks() {
                let offset = tile.place(chunk.start);
                let size = (chunk.end - chunk.start) as u32;
                if !self.shared[rank].any_written(offset, size) {
                    return Err(Trouble::uninitialised("shared", offset, size));
                }
            }
        }
        Ok(())
    }

    fn who(issuer: &Issuer, rank: usize) -> Option<Who> {
        (issuer.rank == rank).then_some(Who {
            warp: issuer.warp,
            lane: issuer.lane,
        })
    }

    /// Reads the shared memory that a copy takes, if it was not read yet.
    fn read_early(&mut self, transfer: &mut Transfer) -> Result<(), Trouble> {
        let issuer = transfer.issuer;
        if let Path::Store { tile, read, .. } = &mut transfer.path
            && read.is_none()
        {
            *read = Some(self.gather(&issuer, tile)?);
        }
        Ok(())
    }

    /// The bytes of the tile that go to global memory.
    fn gather(&mut self, issuer: &Issuer, tile: &Tile) -> Result<Vec<u8>, Trouble> {
        let mut bytes = vec![0; tile.span as usize];
        for row in &tile.rows {
            for chunk in row.chunks() {
                let offset = tile.place(chunk.start);
                let piece = &mut bytes[chunk.start as usize..chunk.end as usize];
                let who = Self::who(issuer, issuer.rank);
                self.shared[issuer.rank].take(who, offset, piece)?;
            }
        }
        Ok(bytes)
    }

    fn make(&mut self, transfer: &Transfer) -> Result<(), Trouble> {
        let block = std::mem::replace(&mut self.block, transfer.issuer.block);
        let made = self.move_bytes(transfer);
        self.block = block;
        *self.changed = true;
        made.map_err(|trouble| Trouble {
            pc: Some(transfer.issuer.pc),
            ..trouble
        })
    }

    fn move_bytes(&mut self, transfer: &Transfer) -> Result<(), Trouble> {
        let issuer = &transfer.issuer;
        match &transfer.path {
            Path::Load { tile, to } => {
                let mut bytes = tile.background();
                for row in &tile.rows {
                    let piece = &mut bytes[row.at as usize..][..row.bytes as usize];
                    self.read_global(row.global, piece)?;
                    tile.convert(piece);
                }
                let who = Self::who(issuer, *to);
                for (at, chunk) in (0..).step_by(16).zip(bytes.chunks(16)) {
                    if tile.holds(at) {
                        self.shared[*to].put(who, tile.place(at), chunk)?;
                    }
                }
            }
            Path::Store { tile, reduce, read } => {
                let bytes = match read {
                    Some(bytes) => bytes,
                    None => &self.gather(issuer, tile)?,
                };
                for row in &tile.rows {
                    let piece = &bytes[row.at as usize..][..row.bytes as usize];
                    match reduce {
                        Some(op) => self.reduce_global(row, *op, piece)?,
                        None => self.write_global(row.global, piece)?,
                    }
                }
            }
            Path::Send {
                from,
                to: (rank, to),
                bytes,
                reduce,
            } => {
                let mut data = vec![0; *bytes as usize];
                for (at, chunk) in (0..).step_by(16).zip(data.chunks_mut(16)) {
                    let who = Self::who(issuer, issuer.rank);
                    self.shared[issuer.rank].take(who, from + at, chunk)?;
                }
                let who = Self::who(issuer, *rank);
                if let Some(op) = reduce {
                    let size = op.ty.bytes();
                    for (at, piece) in (0..).zip(data.chunks_exact(size as usize)) {
                        let operand = value(piece);
                        let at = to + at * u64::from(size);
                        self.shared[*rank]
                            .update(who, at, size, &mut |old| op.eval(old, operand, 0))?;
                    }
                } else {
                    for (at, chunk) in (0..).step_by(16).zip(data.chunks(16)) {
                        self.shared[*rank].put(who, to + at, chunk)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn reduce_global(&mut self, row: &Row, op: AtomicOp, bytes: &[u8]) -> Result<(), Trouble> {
        let size = op.ty.bytes();
        for (at, piece) in (0..).zip(bytes.chunks_exact(size as usize)) {
            let operand = value(piece);
            let address = row.global + at * u64::from(size);
            self.update(0, 0, Place::Global(address), size, &mut |old| {
                op.eval(old, operand, 0)
            })?;
        }
        Ok(())
    }
}

/// What a reduction does with elements of a map's type.
fn element_op(kind: AtomicKind, map: &TensorMap) -> Result<AtomicOp, String> {
    let ty = match map.element {
        0 => Type::U8,
        1 => Type::U16,
        2 => Type::U32,
        3 => Type::S32,
        4 => Type::U64,
        5 => Type::S64,
        6 => Type::F16,
        7 | 10..=12 => Type::F32,
        8 => Type::F64,
        _ => Type::Bf16,
    };
    let bits = matches!(kind, AtomicKind::And | AtomicKind::Or | AtomicKind::Xor);
    let ty = match (bits, ty) {
        (true, Type::U32 | Type::S32) => Type::B32,
        (true, Type::U64) => Type::B64,
        (_, ty) => ty,
    };
    let op = AtomicOp {
        kind,
        ty,
        ftz: ty == Type::F32,
    };
    if op.exists() {
        Ok(op)
    } else {
        Err(format!(
            "reduction `{kind:?}` of elements of data type {}, which there is not",
            map.element
        )
        .to_lowercase())
    }
}

fn value(bytes: &[u8]) -> u128 {
    let mut wide = [0; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    u128::from_le_bytes(wide)
}

/// Whether a copy begins in the block's own shared memory.
fn own_source(rank: usize, own: usize) -> Result<(), Trouble> {
    if rank == own {
        return Ok(());
    }
    Err(Trouble::new(
        FaultKind::IllegalAddress,
        format!("bulk copy from the shared memory of block {rank} of the cluster, by block {own}"),
    ))
}

fn misaligned(what: &str, address: u64, align: u64) -> Trouble {
    Trouble::new(
        FaultKind::Misaligned,
        format!("bulk copy of {what} at {address:#x}, which is no multiple of {align}"),
    )
}
