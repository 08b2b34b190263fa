//! Operands: from what stands in the text to registers.

use gridcall_ptx::{Address, Base, Constant, Operand};

use super::super::code::{Dest, Flag, Op, Preset, Reg, Target};
use super::super::space::Space;
use super::super::special::Special;
use super::super::types::{Kind, Type, mask};
use super::body::Body;
use super::names::{Name, Register};
use super::{Lowered, invalid};

impl Body<'_, '_> {
    /// A source of a type, whose width has to be that of the register.
    pub(super) fn source(&mut self, operand: &Operand<'_>, ty: Type) -> Lowered<Reg> {
        let register = self.source_register(operand, ty)?;
        if register.bits == ty.bits() || register.bits == 0 {
            return Ok(register.reg);
        }
        invalid(format!(
            "an operand of {} bits where {} are due",
            register.bits,
            ty.bits()
        ))
    }

    /// A source that may be wider than its type, as loads, stores and conversions take.
    pub(super) fn wide_source(&mut self, operand: &Operand<'_>, ty: Type) -> Lowered<Reg> {
        let register = self.source_register(operand, ty)?;
        if register.bits >= ty.bits() || register.bits == 0 {
            return Ok(register.reg);
        }
        invalid(format!(
            "an operand of {} bits where {} are due",
            register.bits,
            ty.bits()
        ))
    }

    /// The register of a source; one without a width fits everywhere.
    fn source_register(&mut self, operand: &Operand<'_>, ty: Type) -> Lowered<Register> {
        let anonymous = |reg: Reg| Register { reg, bits: 0 };
        match operand {
            Operand::Name(name) => match self.names.find(name) {
                Some(Name::Register(register)) => Ok(register),
                Some(Name::Vector(_)) => invalid(format!("`{name}` is a vector")),
                Some(_) => Ok(anonymous(self.address_of(name, 0, ty)?)),
                None => self.special(name, None, ty).map(anonymous),
            },
            Operand::Component { name, component } => match self.names.find(name) {
                Some(Name::Vector(elements)) => element(&elements, component),
                Some(_) => invalid(format!("`{name}.{component}` is no register")),
                None => self.special(name, Some(component), ty).map(anonymous),
            },
            Operand::Constant(constant) => {
                let Some(bits) = constant_bits(*constant, ty) else {
                    return invalid(format!("a constant that is no {ty:?}").to_lowercase());
                };
                if ty.bits() == 128 {
                    let low = self.preset(Preset::Bits(bits), 64);
                    let to = self.new_dest(128);
                    let zero = self.preset(Preset::Bits(0), 64);
                    self.emit(Op::Pack {
                        to,
                        from: Box::new([low, zero]),
                        bits: 64,
                    });
                    return Ok(anonymous(to.reg));
                }
                Ok(anonymous(self.preset(Preset::Bits(bits), ty.bits())))
            }
            Operand::Offset { name, offset } => match self.names.find(name) {
                Some(Name::Register(_)) => invalid(format!("`{name}+{offset}` is no operand")),
                _ => Ok(anonymous(self.address_of(name, *offset, ty)?)),
            },
            Operand::Element {
                name,
                index:
                    Address {
                        base: Base::Immediate(index),
                        ..
                    },
            } => {
                let index = index.integer().and_then(|index| i64::try_from(index).ok());
                let Some(offset) = index.and_then(|index| index.checked_mul(i64::from(ty.bytes())))
                else {
                    return invalid("an element that is none");
                };
                Ok(anonymous(self.address_of(name, offset, ty)?))
            }
            _ => invalid("an operand of another form than the instruction takes"),
        }
    }

    /// The address of a variable, a function or a parameter, in its own state space.
    fn address_of(&mut self, name: &str, offset: i64, ty: Type) -> Lowered<Reg> {
        if !matches!(ty.bits(), 32 | 64) {
            return invalid(format!("the address of `{name}` in {} bits", ty.bits()));
        }
        let preset = self.address_preset(name, offset)?;
        Ok(self.preset(preset, ty.bits()))
    }

    fn address_preset(&mut self, name: &str, offset: i64) -> Lowered<Preset> {
        Ok(match self.names.find(name) {
            Some(Name::Symbol(variable)) => Preset::Symbol { variable, offset },
            Some(Name::Shared(variable)) => {
                self.note_shared(variable);
                Preset::Shared {
                    variable,
                    offset,
                    generic: false,
                }
            }
            Some(Name::Local { offset: at, .. }) => Preset::Local {
                offset: i64::from(at).wrapping_add(offset),
                generic: false,
            },
            Some(Name::KernelParam { offset: at, .. }) => {
                Preset::Param(i64::from(at).wrapping_add(offset))
            }
            Some(_) => return invalid(format!("`{name}` has no address")),
            None => {
                let Some(index) = self.environment.functions.get(name) else {
                    return invalid(format!("`{name}` is not declared"));
                };
                if offset != 0 {
                    return invalid(format!("an address within the function `{name}`"));
                }
                self.function.calls.push(*index);
                Preset::Bits(self.environment.code_base.address(*index))
            }
        })
    }

    fn note_shared(&mut self, variable: usize) {
        if !self.function.shared.contains(&variable) {
            self.function.shared.push(variable);
        }
    }

    fn special(&mut self, name: &str, component: Option<&str>, ty: Type) -> Lowered<Reg> {
        if let Some(special) = Special::parse(name, component) {
            let bits = if special.bits() == 1 {
                1
            } else {
                ty.bits().max(8)
            };
            if (bits == 1) != (ty.bits() == 1) {
                return invalid(format!("`{name}` in {} bits", ty.bits()));
            }
            if special.changes() {
                let to = self.new_dest(bits);
                self.emit(Op::Special { to, special });
                return Ok(to.reg);
            }
            return Ok(self.preset(Preset::Special(special), bits));
        }
        if component.is_none() && self.environment.functions.contains_key(name) {
            return self.address_of(name, 0, ty);
        }
        invalid(format!("`{name}` is not declared"))
    }

    /// A destination of a type, whose width has to be that of the register.
    pub(super) fn dest(&mut self, operand: &Operand<'_>, ty: Type) -> Lowered<Dest> {
        let dest = self.any_dest(operand)?;
        if dest.reg == Reg::Sink || dest.bits == ty.bits() {
            return Ok(dest);
        }
        invalid(format!(
            "a destination of {} bits for a result of {}",
            dest.bits,
            ty.bits()
        ))
    }

    /// A destination that may be wider than its type.
    pub(super) fn wide_dest(&mut self, operand: &Operand<'_>, ty: Type) -> Lowered<Dest> {
        let dest = self.any_dest(operand)?;
        if dest.reg == Reg::Sink || dest.bits >= ty.bits() {
            return Ok(dest);
        }
        invalid(format!(
            "a destination of {} bits for a result of {}",
            dest.bits,
            ty.bits()
        ))
    }

    pub(super) fn any_dest(&mut self, operand: &Operand<'_>) -> Lowered<Dest> {
        match operand {
            Operand::Sink => Ok(Dest {
                reg: Reg::Sink,
                bits: 64,
            }),
            Operand::Name(name) => match self.names.find(name) {
                Some(Name::Register(Register { reg, bits })) => Ok(Dest { reg, bits }),
                _ => invalid(format!("`{name}` is no register that is declared")),
            },
            Operand::Component { name, component } => match self.names.find(name) {
                Some(Name::Vector(elements)) => {
                    element(&elements, component).map(|Register { reg, bits }| Dest { reg, bits })
                }
                _ => invalid(format!("`{name}.{component}` is no register")),
            },
            _ => invalid("a destination that is no register"),
        }
    }

    /// The predicate of that name.
    pub(super) fn predicate(&mut self, name: &str) -> Lowered<Option<u32>> {
        if name == "_" {
            return Ok(None);
        }
        match self.names.find(name) {
            Some(Name::Register(Register {
                reg: Reg::P(predicate),
                ..
            })) => Ok(Some(predicate)),
            _ => invalid(format!("`{name}` is no predicate that is declared")),
        }
    }

    /// A predicate that is set.
    pub(super) fn predicate_dest(&mut self, operand: &Operand<'_>) -> Lowered<Option<u32>> {
        match operand {
            Operand::Name(name) => self.predicate(name),
            Operand::Sink => Ok(None),
            _ => invalid("a destination that is no predicate"),
        }
    }

    /// A predicate that is read, possibly negated or constant.
    pub(super) fn flag(&mut self, operand: &Operand<'_>) -> Lowered<Flag> {
        match operand {
            Operand::Not(inner) => {
                let flag = self.flag(inner)?;
                Ok(Flag {
                    negated: !flag.negated,
                    ..flag
                })
            }
            Operand::Constant(constant) => {
                let Some(value) = constant.integer() else {
                    return invalid("a predicate that is no integer");
                };
                match self.preset(Preset::Bits(0), 1) {
                    Reg::P(predicate) => Ok(Flag {
                        predicate,
                        negated: value != 0,
                    }),
                    _ => invalid("a predicate that is none"),
                }
            }
            other => match self.source(other, Type::Pred)? {
                Reg::P(predicate) => Ok(Flag {
                    predicate,
                    negated: false,
                }),
                _ => invalid("an operand that is no predicate"),
            },
        }
    }

    /// What an address in brackets leads to.
    pub(super) fn target(&mut self, operand: &Operand<'_>, space: Space) -> Lowered<Target> {
        let address = match operand {
            Operand::Address(address) => *address,
            // An element of an array stands for what lies there.
            Operand::Element { .. } | Operand::Name(_) => {
                return invalid("an address that is not in brackets");
            }
            _ => return invalid("an address of another form than the instruction takes"),
        };
        match address.base {
            Base::Name(name) => match self.names.find(name) {
                Some(Name::Register(Register {
                    reg: base @ (Reg::W(_) | Reg::D(_)),
                    bits,
                })) => {
                    if bits < 32 {
                        return invalid(format!("the address `{name}` has {bits} bits"));
                    }
                    self.note_base(name);
                    Ok(Target {
                        space,
                        base,
                        offset: address.offset,
                    })
                }
                Some(Name::Register(_)) => invalid(format!("`{name}` holds no address")),
                found => {
                    let space = match (found, space) {
                        // A variable tells where it lies, if the instruction does not.
                        (Some(Name::Shared(_)), Space::Generic) => Space::Shared,
                        (Some(Name::Local { .. }), Space::Generic | Space::Param) => Space::Local,
                        (_, space) => space,
                    };
                    let preset = self.address_preset(name, 0)?;
                    let base = self.preset(preset, 64);
                    Ok(Target {
                        space,
                        base,
                        offset: address.offset,
                    })
                }
            },
            Base::Immediate(constant) => {
                let Some(bits) = constant_bits(constant, Type::U64) else {
                    return invalid("an address that is no integer");
                };
                let base = self.preset(Preset::Bits(bits), 64);
                Ok(Target {
                    space,
                    base,
                    offset: address.offset,
                })
            }
        }
    }

    /// The parts of a vector operand, or the one operand.
    pub(super) fn parts<'o, 'a>(operand: &'o Operand<'a>) -> &'o [Operand<'a>] {
        match operand {
            Operand::Vector(parts) => parts,
            other => std::slice::from_ref(other),
        }
    }

    /// The registers of a vector that is named as a whole.
    pub(super) fn whole_vector(&self, operand: &Operand<'_>) -> Option<Vec<Register>> {
        match operand {
            Operand::Name(name) => match self.names.find(name) {
                Some(Name::Vector(elements)) => Some(elements),
                _ => None,
            },
            _ => None,
        }
    }

    /// The destinations of a vector of `count` elements.
    pub(super) fn dests(
        &mut self,
        operand: &Operand<'_>,
        count: usize,
        ty: Type,
    ) -> Lowered<Vec<Dest>> {
        if let Some(elements) = self.whole_vector(operand)
            && elements.len() == count
        {
            return Ok(elements
                .iter()
                .map(|Register { reg, bits }| Dest {
                    reg: *reg,
                    bits: *bits,
                })
                .collect());
        }
        let parts = Self::parts(operand);
        if parts.len() != count {
            return invalid(format!("{} elements where {count} are due", parts.len()));
        }
        parts.iter().map(|part| self.wide_dest(part, ty)).collect()
    }

    pub(super) fn sources(
        &mut self,
        operand: &Operand<'_>,
        count: usize,
        ty: Type,
    ) -> Lowered<Vec<Reg>> {
        if let Some(elements) = self.whole_vector(operand)
            && elements.len() == count
        {
            return Ok(elements.iter().map(|register| register.reg).collect());
        }
        let parts = Self::parts(operand);
        if parts.len() != count {
            return invalid(format!("{} elements where {count} are due", parts.len()));
        }
        parts
            .iter()
            .map(|part| self.wide_source(part, ty))
            .collect()
    }
}

fn element(elements: &[Register], component: &str) -> Lowered<Register> {
    let at = match component {
        "x" | "r" => 0,
        "y" | "g" => 1,
        "z" | "b" => 2,
        "w" | "a" => 3,
        _ => return invalid(format!("a vector has no element `{component}`")),
    };
    match elements.get(at) {
        Some(register) => Ok(*register),
        None => invalid(format!(
            "a vector of {} has no element `{component}`",
            elements.len()
        )),
    }
}

/// The bits of a constant as a value of a type.
pub(super) fn constant_bits(constant: Constant, ty: Type) -> Option<u64> {
    match (constant, ty) {
        (Constant::F32(bits), Type::F32 | Type::B32 | Type::U32 | Type::S32) => {
            Some(u64::from(bits))
        }
        (Constant::F64(bits), Type::F64 | Type::B64 | Type::U64 | Type::S64) => Some(bits),
        (Constant::F32(bits), Type::F64) => Some(f64::from(f32::from_bits(bits)).to_bits()),
        #[expect(clippy::cast_possible_truncation, reason = "rounding is what is meant")]
        (Constant::F64(bits), Type::F32) => {
            Some(u64::from((f64::from_bits(bits) as f32).to_bits()))
        }
        (Constant::F32(_) | Constant::F64(_), _) => None,
        (Constant::S64(value), ty) => integer_bits(value.cast_unsigned(), ty),
        (Constant::U64(value), ty) => integer_bits(value, ty),
    }
}

fn integer_bits(value: u64, ty: Type) -> Option<u64> {
    match ty.kind() {
        Kind::Float if matches!(ty, Type::F32 | Type::F64) => None,
        Kind::Predicate => Some(u64::from(value != 0)),
        _ => Some(value & mask(ty.bits())),
    }
}
