//! Matrix instructions: what a warp computes together on matrices that are spread over its lanes.
//!
//! Products of floating-point numbers are summed in double precision and rounded once; the ISA leaves the
//! order and the precision of the sums open. Fragments of `wmma`, whose layout it leaves open too, hold a
//! matrix row by row.

use super::access::Reach;
use super::approx::to_f64;
use super::code::{Dest, Ordering, Reg, Target};
use super::context::Context;
use super::fault::FaultKind;
use super::memory::GlobalMemory;
use super::number::{Format, Number, Round};
use super::step::reach;
use super::sync::Lanes;
use super::trouble::Trouble;
use super::types::{mask, sign_extend};
use super::visit::Role;
use super::warp::{Group, Parts, State, Warp};

/// What an element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    Float(Format),
    /// Bits, and whether it has a sign.
    Integer(u32, bool),
    Bit,
}

impl Element {
    pub(crate) fn bits(self) -> u32 {
        match self {
            Self::Float(Format::Tf32) => 32,
            Self::Float(format) => format.bits(),
            Self::Integer(bits, _) => bits,
            Self::Bit => 1,
        }
    }

    /// How many lie in a register.
    fn packed(self) -> usize {
        (self.bits().max(32) / self.bits()) as usize
    }

    fn register_bits(self) -> u32 {
        self.bits().max(32)
    }
}

/// Which matrix of a product a fragment holds part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    A,
    B,
    C,
}

/// The rows of A and of the result, their columns, and the length of the sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
}

impl Shape {
    fn extents(self, which: Which) -> (usize, usize) {
        match which {
            Which::A => (self.m, self.k),
            Which::B => (self.k, self.n),
            Which::C => (self.m, self.n),
        }
    }
}

/// How elements are spread over lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spread {
    /// `mma` of 8 or 16 rows and 8 columns.
    Tiles,
    /// `mma.m8n8k4` on halves: four products at once, each by eight lanes; whether A and B lie by columns.
    Quads {
        a_by_columns: bool,
        b_by_columns: bool,
    },
    /// `wmma`: row by row.
    Rows,
}

/// What becomes of two elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Product {
    Multiply,
    Xor,
    And,
}

/// A product of matrices, to which a third is added.
#[derive(Clone, Debug)]
pub(crate) struct Multiply {
    pub(crate) shape: Shape,
    pub(crate) spread: Spread,
    pub(crate) product: Product,
    pub(crate) saturates: bool,
    /// The elements of A, B, C and the result.
    pub(crate) elements: [Element; 4],
    pub(crate) a: Vec<Reg>,
    pub(crate) b: Vec<Reg>,
    pub(crate) c: Vec<Reg>,
    pub(crate) d: Vec<Dest>,
}

/// A fragment of `wmma` and where it lies in memory.
#[derive(Clone, Debug)]
pub(crate) struct Fragment {
    pub(crate) which: Which,
    pub(crate) shape: Shape,
    pub(crate) element: Element,
    pub(crate) by_columns: bool,
    pub(crate) target: Target,
    /// From one line to the next, in elements; as long as a line if there is none.
    pub(crate) stride: Option<Reg>,
}

#[derive(Clone, Debug)]
pub(crate) enum MatrixKind {
    Multiply(Multiply),
    LoadFragment(Fragment, Vec<Dest>),
    StoreFragment(Fragment, Vec<Reg>),
    /// `ldmatrix` and `stmatrix`: 8 x 8 matrices of 16 bits, a row a lane.
    Load {
        target: Target,
        to: Vec<Dest>,
        transposed: bool,
    },
    Store {
        target: Target,
        from: Vec<Reg>,
        transposed: bool,
    },
    Transpose {
        to: Dest,
        from: Reg,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct MatrixOp {
    pub(crate) name: &'static str,
    pub(crate) kind: MatrixKind,
}

impl MatrixOp {
    pub(crate) fn visit(&mut self, see: &mut dyn FnMut(&mut Reg, Role)) {
        match &mut self.kind {
            MatrixKind::Multiply(op) => {
                let sources = op.a.iter_mut().chain(&mut op.b).chain(&mut op.c);
                sources.for_each(|source| see(source, Role::Reads));
                op.d.iter_mut().for_each(|to| see(&mut to.reg, Role::Sets));
            }
            MatrixKind::LoadFragment(fragment, to) => {
                fragment.visit(see);
                for to in to {
                    see(&mut to.reg, Role::Sets);
                }
            }
            MatrixKind::StoreFragment(fragment, from) => {
                fragment.visit(see);
                for from in from {
                    see(from, Role::Reads);
                }
            }
            MatrixKind::Load { target, to, .. } => {
                see(&mut target.base, Role::Reads);
                for to in to {
                    see(&mut to.reg, Role::Sets);
                }
            }
            MatrixKind::Store { target, from, .. } => {
                see(&mut target.base, Role::Reads);
                for from in from {
                    see(from, Role::Reads);
                }
            }
            MatrixKind::Transpose { to, from } => {
                see(from, Role::Reads);
                see(&mut to.reg, Role::Sets);
            }
        }
    }
}

impl Fragment {
    fn visit(&mut self, see: &mut dyn FnMut(&mut Reg, Role)) {
        see(&mut self.target.base, Role::Reads);
        if let Some(stride) = &mut self.stride {
            see(stride, Role::Reads);
        }
    }
}

/// Row and column of the element that a lane holds in a place of its registers.
fn place(
    spread: Spread,
    shape: Shape,
    which: Which,
    element: Element,
    lane: usize,
    slot: usize,
) -> (usize, usize) {
    let (group, thread) = (lane / 4, lane % 4);
    let packed = element.packed();
    let (register, within) = (slot / packed, slot % packed);
    match (spread, which) {
        (Spread::Tiles, Which::A) if shape.m == 16 => {
            let row = group + 8 * (register % 2);
            (row, (register / 2) * 4 * packed + thread * packed + within)
        }
        (Spread::Tiles, Which::A) => (group, register * 4 * packed + thread * packed + within),
        (Spread::Tiles, Which::B) => (register * 4 * packed + thread * packed + within, group),
        (Spread::Tiles, Which::C) => (group + 8 * (slot / 2), 2 * thread + slot % 2),
        (Spread::Quads { a_by_columns, .. }, Which::A) => {
            let upper = 4 * (lane / 16);
            if a_by_columns {
                (slot + upper, thread)
            } else {
                (thread + upper, slot)
            }
        }
        (Spread::Quads { b_by_columns, .. }, Which::B) => {
            let upper = 4 * (lane / 16);
            if b_by_columns {
                (slot, thread + upper)
            } else {
                (thread, slot + upper)
            }
        }
        (Spread::Quads { .. }, Which::C) => {
            let upper = 4 * (lane / 16);
            if element == Element::Float(Format::F32) {
                (
                    (lane & 1) + (slot & 2) + upper,
                    (slot & 4) + (lane & 2) + (slot & 1),
                )
            } else {
                (thread + upper, slot)
            }
        }
        (Spread::Rows, which) => {
            let (rows, columns) = shape.extents(which);
            let held = (rows * columns / 32).max(1);
            let at = lane * held + slot % held;
            (at / columns, at % columns)
        }
    }
}

/// An element's bits in the registers of its lane.
fn extract(registers: &[[u64; 32]], element: Element, lane: usize, slot: usize) -> u64 {
    let packed = element.packed();
    let register = registers.get(slot / packed).map_or(0, |row| row[lane]);
    let shift = (slot % packed) as u32 * element.bits();
    register >> shift & mask(element.bits())
}

fn number(element: Element, bits: u64) -> f64 {
    match element {
        // Only the upper 19 bits count.
        Element::Float(Format::Tf32) => to_f64(Format::F32, bits & 0xffff_e000),
        Element::Float(format) => to_f64(format, bits),
        Element::Integer(..) | Element::Bit => 0.0,
    }
}

fn integer(element: Element, bits: u64) -> i64 {
    match element {
        Element::Integer(width, true) => sign_extend(bits, width),
        _ => bits.cast_signed(),
    }
}

impl Multiply {
    /// The result, by registers.
    fn compute(&self, a: &[[u64; 32]], b: &[[u64; 32]], c: &[[u64; 32]]) -> Vec<[u64; 32]> {
        let [ea, _, _, ed] = self.elements;
        let mut d = vec![[0; 32]; self.d.len()];
        if let Spread::Quads { .. } = self.spread {
            for quad in 0..4 {
                let lanes: Vec<usize> = (0..32).filter(|lane| lane % 16 / 4 == quad).collect();
                self.product_of(&lanes, a, b, c, &mut d);
            }
            return d;
        }
        let lanes: Vec<usize> = (0..32).collect();
        match (ea, ed) {
            (Element::Float(_), _) => self.product_of(&lanes, a, b, c, &mut d),
            _ => self.product_of_integers(&lanes, a, b, c, &mut d),
        }
        d
    }

    /// The matrix that lanes hold, row by row.
    fn matrix<T: Copy + Default>(
        &self,
        lanes: &[usize],
        which: Which,
        element: Element,
        registers: &[[u64; 32]],
        read: impl Fn(Element, u64) -> T,
    ) -> Vec<T> {
        let (rows, columns) = self.shape.extents(which);
        let mut all = vec![T::default(); rows * columns];
        for &lane in lanes {
            for slot in 0..registers.len() * element.packed() {
                let (row, column) = place(self.spread, self.shape, which, element, lane, slot);
                if let Some(value) = all.get_mut(row * columns + column) {
                    *value = read(element, extract(registers, element, lane, slot));
                }
            }
        }
        all
    }

    fn put(&self, lanes: &[usize], d: &mut [[u64; 32]], value: impl Fn(usize) -> u64) {
        let element = self.elements[3];
        let packed = element.packed();
        for &lane in lanes {
            for slot in 0..d.len() * packed {
                let (row, column) = place(self.spread, self.shape, Which::C, element, lane, slot);
                let bits = value(row * self.shape.n + column) & mask(element.bits());
                d[slot / packed][lane] |= bits << ((slot % packed) as u32 * element.bits());
            }
        }
    }

    fn product_of(
        &self,
        lanes: &[usize],
        a: &[[u64; 32]],
        b: &[[u64; 32]],
        c: &[[u64; 32]],
        d: &mut [[u64; 32]],
    ) {
        let [ea, eb, ec, ed] = self.elements;
        let Shape { m, n, k } = self.shape;
        let a = self.matrix(lanes, Which::A, ea, a, number);
        let b = self.matrix(lanes, Which::B, eb, b, number);
        let mut sums = self.matrix(lanes, Which::C, ec, c, number);
        for row in 0..m {
            for column in 0..n {
                let sum = &mut sums[row * n + column];
                for at in 0..k {
                    let (x, y) = (a[row * k + at], b[at * n + column]);
                    *sum = if ed == Element::Float(Format::F64) {
                        x.mul_add(y, *sum)
                    } else {
                        *sum + x * y
                    };
                }
            }
        }
        let format = match ed {
            Element::Float(format) => format,
            _ => Format::F32,
        };
        let encode = |sum: f64| match format {
            _ if sum.is_nan() => format.nan(),
            Format::F64 => sum.to_bits(),
            #[expect(clippy::cast_possible_truncation, reason = "rounding is what is meant")]
            Format::F32 => u64::from((sum as f32).to_bits()),
            format => Number::decode(Format::F64, sum.to_bits()).encode(format, Round::Nearest),
        };
        self.put(lanes, d, |at| encode(sums[at]));
    }

    fn product_of_integers(
        &self,
        lanes: &[usize],
        a: &[[u64; 32]],
        b: &[[u64; 32]],
        c: &[[u64; 32]],
        d: &mut [[u64; 32]],
    ) {
        let [ea, eb, ec, _] = self.elements;
        let Shape { m, n, k } = self.shape;
        let a = self.matrix(lanes, Which::A, ea, a, integer);
        let b = self.matrix(lanes, Which::B, eb, b, integer);
        let mut sums = self.matrix(lanes, Which::C, ec, c, integer);
        for row in 0..m {
            for column in 0..n {
                for at in 0..k {
                    let (x, y) = (a[row * k + at], b[at * n + column]);
                    sums[row * n + column] += match self.product {
                        Product::Multiply => x * y,
                        Product::Xor => x ^ y,
                        Product::And => x & y,
                    };
                }
            }
        }
        let (low, high) = (i64::from(i32::MIN), i64::from(i32::MAX));
        self.put(lanes, d, |at| {
            let sum = if self.saturates {
                sums[at].clamp(low, high)
            } else {
                sums[at]
            };
            sum.cast_unsigned()
        });
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

impl Warp {
    /// Runs a matrix instruction, once all lanes stand at it.
    pub(crate) fn matrix<M: GlobalMemory>(
        &mut self,
        cx: &mut Context<'_, M>,
        here: Group,
        op: &MatrixOp,
    ) -> Result<(), Trouble> {
        if self.place.lanes & self.live != u32::MAX {
            let there = (self.place.lanes & self.live).count_ones();
            return Err(Trouble::new(
                FaultKind::BadMask,
                format!(
                    "`{}` needs all 32 threads of the warp, but {there} are there",
                    op.name
                ),
            ));
        }
        let Some(parts) = self.assemble(here, u32::MAX) else {
            return Ok(());
        };
        match &op.kind {
            MatrixKind::Multiply(multiply) => {
                let mut lanes = Parts {
                    frames: &mut self.frames,
                    parts: &parts,
                };
                let read = |regs: &[Reg]| -> Vec<[u64; 32]> {
                    regs.iter().map(|reg| lanes.read(*reg)).collect()
                };
                let result =
                    multiply.compute(&read(&multiply.a), &read(&multiply.b), &read(&multiply.c));
                for (to, values) in multiply.d.iter().zip(&result) {
                    lanes.write(*to, u32::MAX, values);
                }
            }
            MatrixKind::Transpose { to, from } => {
                let mut lanes = Parts {
                    frames: &mut self.frames,
                    parts: &parts,
                };
                let rows = lanes.read(*from);
                let half = |row: usize, column: usize| {
                    rows[row * 4 + column / 2] >> (16 * (column % 2)) & 0xffff
                };
                let values = std::array::from_fn(|lane| {
                    let (row, column) = (lane / 4, 2 * (lane % 4));
                    half(column, row) | half(column + 1, row) << 16
                });
                lanes.write(*to, u32::MAX, &values);
            }
            MatrixKind::Load {
                target,
                to,
                transposed,
            } => {
                self.load_matrices(cx, &parts, target, to, *transposed)?;
            }
            MatrixKind::Store {
                target,
                from,
                transposed,
            } => {
                self.store_matrices(cx, &parts, target, from, *transposed)?;
            }
            MatrixKind::LoadFragment(fragment, to) => {
                self.load_fragment(cx, &parts, fragment, to)?;
            }
            MatrixKind::StoreFragment(fragment, from) => {
                self.store_fragment(cx, &parts, fragment, from)?;
            }
        }
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

    fn addresses_of(&mut self, parts: &[Group], target: &Target) -> [u64; 32] {
        let lanes = Parts {
            frames: &mut self.frames,
            parts,
        };
        let offset = target.offset.cast_unsigned();
        let narrow = matches!(target.base, Reg::W(_));
        lanes.read(target.base).map(|base| {
            let address = base.wrapping_add(offset);
            if narrow {
                address & 0xffff_ffff
            } else {
                address
            }
        })
    }

    fn local_end(&self, parts: &[Group], lane: usize) -> u32 {
        let part = parts.iter().find(|part| part.mask >> lane & 1 == 1);
        part.map_or(0, |part| self.frames[part.frame as usize].local_end)
    }

    fn load_matrices<M: GlobalMemory>(
        &mut self,
        cx: &mut Context<'_, M>,
        parts: &[Group],
        target: &Target,
        to: &[Dest],
        transposed: bool,
    ) -> Result<(), Trouble> {
        let addresses = self.addresses_of(parts, target);
        for (matrix, to) in to.iter().enumerate() {
            let mut rows = [[0_u8; 16]; 8];
            for (row, bytes) in rows.iter_mut().enumerate() {
                let lane = matrix * 8 + row;
                let place = target.space.place(addresses[lane]);
                let end = self.local_end(parts, lane);
                Site {
                    warp: &mut *self,
                    cx,
                }
                .reach()
                .load_bytes(end, lane, place, Ordering::default(), bytes)
                .map_err(|trouble| trouble.at(lane, addresses[lane]))?;
            }
            let half = |row: usize, column: usize| {
                u64::from(u16::from_le_bytes([
                    rows[row][2 * column],
                    rows[row][2 * column + 1],
                ]))
            };
            let values = std::array::from_fn(|lane| {
                let (row, column) = (lane / 4, 2 * (lane % 4));
                if transposed {
                    half(column, row) | half(column + 1, row) << 16
                } else {
                    half(row, column) | half(row, column + 1) << 16
                }
            });
            Parts {
                frames: &mut self.frames,
                parts,
            }
            .write(*to, u32::MAX, &values);
        }
        Ok(())
    }

    fn store_matrices<M: GlobalMemory>(
        &mut self,
        cx: &mut Context<'_, M>,
        parts: &[Group],
        target: &Target,
        from: &[Reg],
        transposed: bool,
    ) -> Result<(), Trouble> {
        let addresses = self.addresses_of(parts, target);
        for (matrix, from) in from.iter().enumerate() {
            let held = Parts {
                frames: &mut self.frames,
                parts,
            }
            .read(*from);
            let half = |row: usize, column: usize| {
                let (row, column) = if transposed {
                    (column, row)
                } else {
                    (row, column)
                };
                (held[row * 4 + column / 2] >> (16 * (column % 2))) as u16
            };
            for row in 0..8 {
                let mut bytes = [0; 16];
                for (column, piece) in bytes.chunks_exact_mut(2).enumerate() {
                    piece.copy_from_slice(&half(row, column).to_le_bytes());
                }
                let lane = matrix * 8 + row;
                let place = target.space.place(addresses[lane]);
                let end = self.local_end(parts, lane);
                Site {
                    warp: &mut *self,
                    cx,
                }
                .reach()
                .store_bytes(end, lane, place, Ordering::default(), &bytes)
                .map_err(|trouble| trouble.at(lane, addresses[lane]))?;
            }
        }
        cx.running.changed = true;
        Ok(())
    }

    /// The lines of a fragment in memory: where each begins, and the bytes and elements of all.
    fn lines(&mut self, parts: &[Group], fragment: &Fragment) -> Lines {
        let address = self.addresses_of(parts, &fragment.target)[0];
        let (rows, columns) = fragment.shape.extents(fragment.which);
        let (count, length) = if fragment.by_columns {
            (columns, rows)
        } else {
            (rows, columns)
        };
        let stride = match fragment.stride {
            Some(stride) => {
                Parts {
                    frames: &mut self.frames,
                    parts,
                }
                .read(stride)[0]
                    & 0xffff_ffff
            }
            None => length as u64,
        };
        let bits = u64::from(fragment.element.bits());
        let bytes = (length as u64 * bits).div_ceil(8) as usize;
        Lines {
            address,
            count,
            bytes,
            step: stride * bits / 8,
        }
    }

    fn load_fragment<M: GlobalMemory>(
        &mut self,
        cx: &mut Context<'_, M>,
        parts: &[Group],
        fragment: &Fragment,
        to: &[Dest],
    ) -> Result<(), Trouble> {
        let lines = self.lines(parts, fragment);
        let mut held = vec![0_u8; lines.count * lines.bytes];
        for (line, bytes) in held.chunks_exact_mut(lines.bytes).enumerate() {
            let lane = line % 32;
            let end = self.local_end(parts, lane);
            let mut address = lines.address.wrapping_add(line as u64 * lines.step);
            for piece in bytes.chunks_mut(16) {
                let place = fragment.target.space.place(address);
                Site {
                    warp: &mut *self,
                    cx,
                }
                .reach()
                .load_bytes(end, lane, place, Ordering::default(), piece)
                .map_err(|trouble| trouble.at(lane, address))?;
                address = address.wrapping_add(piece.len() as u64);
            }
        }
        let element = fragment.element;
        let bits = element.bits() as usize;
        let packed = element.packed();
        for (register, to) in to.iter().enumerate() {
            let values = std::array::from_fn(|lane| {
                (0..packed).fold(0, |value, within| {
                    let slot = register * packed + within;
                    let (row, column) = place(
                        Spread::Rows,
                        fragment.shape,
                        fragment.which,
                        element,
                        lane,
                        slot,
                    );
                    let (line, at) = if fragment.by_columns {
                        (column, row)
                    } else {
                        (row, column)
                    };
                    let first = line * lines.bytes * 8 + at * bits;
                    value | bits_at(&held, first, bits) << (within * bits)
                })
            });
            Parts {
                frames: &mut self.frames,
                parts,
            }
            .write(*to, u32::MAX, &values);
        }
        Ok(())
    }

    fn store_fragment<M: GlobalMemory>(
        &mut self,
        cx: &mut Context<'_, M>,
        parts: &[Group],
        fragment: &Fragment,
        from: &[Reg],
    ) -> Result<(), Trouble> {
        let lines = self.lines(parts, fragment);
        let element = fragment.element;
        let size = (element.bits() / 8).max(1) as usize;
        let lanes = Parts {
            frames: &mut self.frames,
            parts,
        };
        let registers: Vec<[u64; 32]> = from.iter().map(|from| lanes.read(*from)).collect();
        let mut held = vec![0_u8; lines.count * lines.bytes];
        for lane in 0..32 {
            for slot in 0..registers.len() * element.packed() {
                let (row, column) = place(
                    Spread::Rows,
                    fragment.shape,
                    fragment.which,
                    element,
                    lane,
                    slot,
                );
                let (line, at) = if fragment.by_columns {
                    (column, row)
                } else {
                    (row, column)
                };
                let first = line * lines.bytes + at * size;
                let bits = extract(&registers, element, lane, slot).to_le_bytes();
                if let Some(bytes) = held.get_mut(first..first + size) {
                    bytes.copy_from_slice(&bits[..size]);
                }
            }
        }
        for (line, bytes) in held.chunks_exact(lines.bytes).enumerate() {
            let lane = line % 32;
            let end = self.local_end(parts, lane);
            let mut address = lines.address.wrapping_add(line as u64 * lines.step);
            for piece in bytes.chunks(16) {
                let place = fragment.target.space.place(address);
                Site {
                    warp: &mut *self,
                    cx,
                }
                .reach()
                .store_bytes(end, lane, place, Ordering::default(), piece)
                .map_err(|trouble| trouble.at(lane, address))?;
                address = address.wrapping_add(piece.len() as u64);
            }
        }
        cx.running.changed = true;
        Ok(())
    }
}

struct Lines {
    address: u64,
    count: usize,
    bytes: usize,
    step: u64,
}

/// Up to 64 bits of some bytes, from a bit on that begins an element.
fn bits_at(bytes: &[u8], first: usize, bits: usize) -> u64 {
    let at = first / 8;
    let mut wide = [0; 8];
    let end = (at + bits.div_ceil(8)).min(bytes.len());
    if let Some(piece) = bytes.get(at..end) {
        wide[..piece.len()].copy_from_slice(piece);
    }
    u64::from_le_bytes(wide) >> (first % 8) & mask(bits as u32)
}

/// The registers a fragment of so many elements takes.
pub(crate) fn registers(element: Element, elements: usize) -> (usize, u32) {
    (
        (elements / 32).div_ceil(element.packed()).max(1),
        element.register_bits(),
    )
}
