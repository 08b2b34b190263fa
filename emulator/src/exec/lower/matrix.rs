//! Matrix instructions: shapes, types and how many registers each operand takes.

use gridcall_ptx::Operand;

use super::super::alu::Modifiers;
use super::super::code::{Op, Reg};
use super::super::matrix::{
    Element, Fragment, MatrixKind, MatrixOp, Multiply, Product, Shape, Spread, Which, registers,
};
use super::super::number::Format;
use super::super::space::Space;
use super::super::types::Type;
use super::body::Body;
use super::{Lowered, Refusal, invalid};

fn element(word: &str) -> Option<Element> {
    Some(match word {
        "f16" => Element::Float(Format::F16),
        "bf16" => Element::Float(Format::Bf16),
        "tf32" => Element::Float(Format::Tf32),
        "f32" => Element::Float(Format::F32),
        "f64" => Element::Float(Format::F64),
        "e4m3" => Element::Float(Format::E4m3),
        "e5m2" => Element::Float(Format::E5m2),
        "s8" => Element::Integer(8, true),
        "u8" => Element::Integer(8, false),
        "s4" => Element::Integer(4, true),
        "u4" => Element::Integer(4, false),
        "s32" => Element::Integer(32, true),
        "b1" => Element::Bit,
        _ => return None,
    })
}

fn shape(word: &str) -> Option<Shape> {
    let (m, rest) = word.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    Some(Shape {
        m: m.parse().ok()?,
        n: n.parse().ok()?,
        k: k.parse().ok()?,
    })
}

fn by_columns(word: &str) -> Option<bool> {
    match word {
        "row" => Some(false),
        "col" => Some(true),
        _ => None,
    }
}

const F16: Element = Element::Float(Format::F16);
const F32: Element = Element::Float(Format::F32);
const F64: Element = Element::Float(Format::F64);
const S32: Element = Element::Integer(32, true);

/// Whether `mma` has a shape for elements of A and B.
fn mma_exists(shape: Shape, a: Element, b: Element) -> bool {
    let Shape { m, n, k } = shape;
    let ks: &[(usize, usize)] = match (a, b) {
        (Element::Float(Format::F16), Element::Float(Format::F16)) => &[(16, 8), (16, 16)],
        (Element::Float(Format::Bf16), Element::Float(Format::Bf16)) => &[(16, 8), (16, 16)],
        (Element::Float(Format::Tf32), Element::Float(Format::Tf32)) => &[(16, 4), (16, 8)],
        (F64, F64) => &[(8, 4), (16, 4), (16, 8), (16, 16)],
        (
            Element::Float(Format::E4m3 | Format::E5m2),
            Element::Float(Format::E4m3 | Format::E5m2),
        ) => &[(16, 16), (16, 32)],
        (Element::Integer(8, _), Element::Integer(8, _)) => &[(8, 16), (16, 16), (16, 32)],
        (Element::Integer(4, _), Element::Integer(4, _)) => &[(8, 32), (16, 32), (16, 64)],
        (Element::Bit, Element::Bit) => &[(8, 128), (16, 128), (16, 256)],
        _ => &[],
    };
    n == 8 && ks.contains(&(m, k))
}

/// Whether `wmma` has a shape for elements of A and B.
fn wmma_exists(shape: Shape, element: Element) -> bool {
    let Shape { m, n, k } = shape;
    match element {
        Element::Float(Format::F16 | Format::Bf16) | Element::Integer(8, _) => {
            k == 16 && matches!((m, n), (16, 16) | (32, 8) | (8, 32))
        }
        Element::Float(Format::Tf32) => (m, n, k) == (16, 16, 8),
        F64 => (m, n, k) == (8, 8, 4),
        Element::Integer(4, _) => (m, n, k) == (8, 8, 32),
        Element::Bit => (m, n, k) == (8, 8, 128),
        _ => false,
    }
}

/// Whether sums of products of such elements can have that type.
fn sums_exist(a: Element, c: Element, d: Element) -> bool {
    match a {
        F16 | Element::Float(Format::E4m3 | Format::E5m2) => {
            matches!((c, d), (F16 | F32, F16 | F32))
        }
        F64 => (c, d) == (F64, F64),
        Element::Float(_) => (c, d) == (F32, F32),
        _ => (c, d) == (S32, S32),
    }
}

/// How many registers a fragment of `wmma` takes, and their bits. Halves of A and B are held twice.
fn fragment_registers(shape: Shape, which: Which, element: Element) -> (usize, u32) {
    let elements = match which {
        Which::A => shape.m * shape.k,
        Which::B => shape.k * shape.n,
        Which::C => shape.m * shape.n,
    };
    if element == F16 && which != Which::C {
        return (8, 32);
    }
    registers(element, elements)
}

fn register_type(bits: u32) -> Type {
    if bits == 64 { Type::B64 } else { Type::B32 }
}

impl Body<'_, '_> {
    pub(super) fn lower_matrix(
        &mut self,
        opcode: &str,
        modifiers: &[&str],
        operands: &[Operand<'_>],
    ) -> Lowered<()> {
        let mut words = Modifiers::new(modifiers.iter().copied());
        if !words.take("sync") {
            return Err(Refusal::Unsupported);
        }
        words.take("aligned");
        match opcode {
            "mma" => self.lower_mma(&mut words, operands),
            "wmma" => self.lower_wmma(&mut words, operands),
            "ldmatrix" => self.lower_ldmatrix(&mut words, operands, true),
            "stmatrix" => self.lower_ldmatrix(&mut words, operands, false),
            _ => {
                let words = ["m8n8", "trans", "b16"]
                    .into_iter()
                    .all(|word| words.take(word))
                    && words.all_used();
                let ([to, from], true) = (operands, words) else {
                    return Err(Refusal::Unsupported);
                };
                let from = self.source(from, Type::B32)?;
                let to = self.dest(to, Type::B32)?;
                self.emit_matrix("movmatrix", MatrixKind::Transpose { to, from });
                Ok(())
            }
        }
    }

    fn emit_matrix(&mut self, name: &'static str, kind: MatrixKind) {
        self.emit(Op::Matrix(Box::new(MatrixOp { name, kind })));
    }

    fn lower_mma(&mut self, words: &mut Modifiers<'_>, operands: &[Operand<'_>]) -> Lowered<()> {
        let Some(shape) = words.find(shape) else {
            return Err(Refusal::Unsupported);
        };
        let layouts = (words.find(by_columns), words.find(by_columns));
        let (Some(a_by_columns), Some(b_by_columns)) = layouts else {
            return Err(Refusal::Unsupported);
        };
        let saturates = words.take("satfinite");
        for word in ["rn", "kind::f8f6f4"] {
            words.take(word);
        }
        let Some(product) = product(words) else {
            return Err(Refusal::Unsupported);
        };
        let mut next = || words.find(element);
        let (Some(d), Some(a), Some(b), Some(c)) = (next(), next(), next(), next()) else {
            return Err(Refusal::Unsupported);
        };
        let quads = shape == Shape { m: 8, n: 8, k: 4 } && a == F16 && b == F16;
        let spread = if quads {
            Spread::Quads {
                a_by_columns,
                b_by_columns,
            }
        } else {
            Spread::Tiles
        };
        let tiles = !a_by_columns && b_by_columns && mma_exists(shape, a, b);
        let bits = (a == Element::Bit) == (product != Product::Multiply);
        let saturation = !saturates || matches!(a, Element::Integer(..));
        if !(quads || tiles) || !sums_exist(a, c, d) || !bits || !saturation || !words.all_used() {
            return Err(Refusal::Unsupported);
        }
        let [to, a_from, b_from, c_from] = operands else {
            return invalid("it takes four matrices");
        };
        let count = |element: Element, elements: usize| {
            if quads {
                (elements * 4).div_ceil(32 * 32 / element.bits() as usize)
            } else {
                registers(element, elements).0
            }
        };
        let ty = |element: Element| register_type(registers(element, 32).1);
        let multiply = Multiply {
            shape,
            spread,
            product,
            saturates,
            elements: [a, b, c, d],
            a: self.sources(a_from, count(a, shape.m * shape.k), ty(a))?,
            b: self.sources(b_from, count(b, shape.k * shape.n), ty(b))?,
            c: self.sources(c_from, count(c, shape.m * shape.n), ty(c))?,
            d: self.dests(to, count(d, shape.m * shape.n), ty(d))?,
        };
        self.emit_matrix("mma", MatrixKind::Multiply(multiply));
        Ok(())
    }

    fn lower_wmma(&mut self, words: &mut Modifiers<'_>, operands: &[Operand<'_>]) -> Lowered<()> {
        let kind = words.find(|word| {
            ["load", "store", "mma"]
                .into_iter()
                .find(|kind| *kind == word)
        });
        let Some(shape) = words.find(shape) else {
            return Err(Refusal::Unsupported);
        };
        match kind {
            Some("mma") => self.lower_wmma_mma(words, shape, operands),
            Some("load") => self.lower_wmma_load(words, shape, operands),
            Some(_) => self.lower_wmma_store(words, shape, operands),
            None => Err(Refusal::Unsupported),
        }
    }

    fn lower_wmma_mma(
        &mut self,
        words: &mut Modifiers<'_>,
        shape: Shape,
        operands: &[Operand<'_>],
    ) -> Lowered<()> {
        if words.find(by_columns).is_none() || words.find(by_columns).is_none() {
            return Err(Refusal::Unsupported);
        }
        let saturates = words.take("satfinite");
        words.take("rn");
        let Some(product) = product(words) else {
            return Err(Refusal::Unsupported);
        };
        let mut types = Vec::new();
        while let Some(found) = words.find(element) {
            types.push(found);
        }
        // Products of halves only name the types of result and sum.
        let (d, a, b, c) = match types[..] {
            [d, c] => (d, F16, F16, c),
            [d, a, b, c] => (d, a, b, c),
            _ => return Err(Refusal::Unsupported),
        };
        let bits = (a == Element::Bit) == (product != Product::Multiply);
        if !wmma_exists(shape, a) || a != b || !sums_exist(a, c, d) || !bits || !words.all_used() {
            return Err(Refusal::Unsupported);
        }
        let [to, a_from, b_from, c_from] = operands else {
            return invalid("it takes four matrices");
        };
        let count = |which, element| fragment_registers(shape, which, element);
        let (of_a, of_b) = (count(Which::A, a), count(Which::B, b));
        let (of_c, of_d) = (count(Which::C, c), count(Which::C, d));
        let multiply = Multiply {
            shape,
            spread: Spread::Rows,
            product,
            saturates,
            elements: [a, b, c, d],
            a: self.sources(a_from, of_a.0, register_type(of_a.1))?,
            b: self.sources(b_from, of_b.0, register_type(of_b.1))?,
            c: self.sources(c_from, of_c.0, register_type(of_c.1))?,
            d: self.dests(to, of_d.0, register_type(of_d.1))?,
        };
        self.emit_matrix("wmma.mma", MatrixKind::Multiply(multiply));
        Ok(())
    }

    fn lower_wmma_load(
        &mut self,
        words: &mut Modifiers<'_>,
        shape: Shape,
        operands: &[Operand<'_>],
    ) -> Lowered<()> {
        let which = words.find(|word| match word {
            "a" => Some(Which::A),
            "b" => Some(Which::B),
            "c" => Some(Which::C),
            _ => None,
        });
        let Some(which) = which else {
            return Err(Refusal::Unsupported);
        };
        let [to, address, stride @ ..] = operands else {
            return invalid("it takes a fragment and an address");
        };
        let fragment = self.fragment(words, shape, which, address, stride)?;
        let (count, bits) = fragment_registers(shape, which, fragment.element);
        let to = self.dests(to, count, register_type(bits))?;
        self.emit_matrix("wmma.load", MatrixKind::LoadFragment(fragment, to));
        Ok(())
    }

    fn lower_wmma_store(
        &mut self,
        words: &mut Modifiers<'_>,
        shape: Shape,
        operands: &[Operand<'_>],
    ) -> Lowered<()> {
        if !words.take("d") {
            return Err(Refusal::Unsupported);
        }
        let [address, from, stride @ ..] = operands else {
            return invalid("it takes an address and a fragment");
        };
        let fragment = self.fragment(words, shape, Which::C, address, stride)?;
        let (count, bits) = fragment_registers(shape, Which::C, fragment.element);
        let from = self.sources(from, count, register_type(bits))?;
        self.emit_matrix("wmma.store", MatrixKind::StoreFragment(fragment, from));
        Ok(())
    }

    fn fragment(
        &mut self,
        words: &mut Modifiers<'_>,
        shape: Shape,
        which: Which,
        address: &Operand<'_>,
        stride: &[Operand<'_>],
    ) -> Lowered<Fragment> {
        let by_columns = words.find(by_columns);
        let found = words.find(element);
        let space = words.find(|word| match word {
            "global" => Some(Space::Global),
            "shared" | "shared::cta" => Some(Space::Shared),
            _ => None,
        });
        let (Some(by_columns), Some(element), true) = (by_columns, found, words.all_used()) else {
            return Err(Refusal::Unsupported);
        };
        let exists = match which {
            Which::A | Which::B => wmma_exists(shape, element),
            Which::C => matches!(element, F16 | F32 | F64 | S32),
        };
        if !exists {
            return Err(Refusal::Unsupported);
        }
        let target = self.target(address, space.unwrap_or(Space::Generic))?;
        let stride: Option<Reg> = match stride {
            [] => None,
            [stride] => Some(self.source(stride, Type::U32)?),
            _ => return invalid("a number of operands that it does not take"),
        };
        self.function.granule = self.function.granule.min(element.bits().div_ceil(8));
        Ok(Fragment {
            which,
            shape,
            element,
            by_columns,
            target,
            stride,
        })
    }

    fn lower_ldmatrix(
        &mut self,
        words: &mut Modifiers<'_>,
        operands: &[Operand<'_>],
        loads: bool,
    ) -> Lowered<()> {
        let count = words.find(|word| match word {
            "x1" => Some(1),
            "x2" => Some(2),
            "x4" => Some(4),
            _ => None,
        });
        let transposed = words.take("trans");
        let known = words.take("m8n8") && words.take("b16");
        let shared = words.take("shared") || words.take("shared::cta");
        let (Some(count), true, true) = (count, known, words.all_used()) else {
            return Err(Refusal::Unsupported);
        };
        let space = if shared {
            Space::Shared
        } else {
            Space::Generic
        };
        let [first, second] = operands else {
            return invalid("it takes registers and an address");
        };
        self.function.granule = self.function.granule.min(4);
        if loads {
            let target = self.target(second, space)?;
            let to = self.dests(first, count, Type::B32)?;
            self.emit_matrix(
                "ldmatrix",
                MatrixKind::Load {
                    target,
                    to,
                    transposed,
                },
            );
        } else {
            let target = self.target(first, space)?;
            let from = self.sources(second, count, Type::B32)?;
            self.emit_matrix(
                "stmatrix",
                MatrixKind::Store {
                    target,
                    from,
                    transposed,
                },
            );
        }
        Ok(())
    }
}

/// `.xor.popc` and `.and.popc`, or a multiplication.
fn product(words: &mut Modifiers<'_>) -> Option<Product> {
    if !words.take("popc") {
        return Some(Product::Multiply);
    }
    if words.take("xor") {
        Some(Product::Xor)
    } else {
        words.take("and").then_some(Product::And)
    }
}
