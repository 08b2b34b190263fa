//! Textures and surfaces, in the unified mode alone: the object is a number in a register, and holds how it is read.

use gridcall_ptx::{Address, Base, Operand};

use super::super::alu::Modifiers;
use super::super::atomic::{AtomicKind, AtomicOp};
use super::super::code::{Op, Reg};
use super::super::image_op::{Beyond, Geometry, ImageKind, ImageOp, Query};
use super::super::types::{Kind, Type};
use super::body::Body;
use super::names::Name;
use super::{Lowered, Refusal, invalid};

fn beyond(words: &mut Modifiers<'_>) -> Option<Beyond> {
    words.find(|word| match word {
        "trap" => Some(Beyond::Trap),
        "clamp" => Some(Beyond::Clamp),
        "zero" => Some(Beyond::Zero),
        _ => None,
    })
}

fn count(words: &mut Modifiers<'_>) -> usize {
    words
        .find(|word| match word {
            "v2" => Some(2),
            "v4" => Some(4),
            _ => None,
        })
        .unwrap_or(1)
}

fn cache(words: &mut Modifiers<'_>) {
    for word in ["ca", "cg", "cs", "cv", "wb", "wt"] {
        words.take(word);
    }
}

impl Body<'_, '_> {
    pub(super) fn lower_image(
        &mut self,
        opcode: &str,
        modifiers: &[&str],
        operands: &[Operand<'_>],
    ) -> Lowered<()> {
        let mut words = Modifiers::new(modifiers.iter().copied());
        let op = match opcode {
            "tex" => self.lower_tex(&mut words, operands)?,
            "tld4" => self.lower_gather(&mut words, operands)?,
            "txq" | "suq" => self.lower_query(opcode, &mut words, operands)?,
            "suld" => self.lower_surface_load(&mut words, operands)?,
            "sust" => self.lower_surface_store(&mut words, operands)?,
            _ => self.lower_surface_reduction(&mut words, operands)?,
        };
        self.emit(Op::Image(Box::new(op)));
        Ok(())
    }

    /// The register that holds an object; names of textures and surfaces of the module are another mode.
    fn object(&mut self, operand: &Operand<'_>) -> Lowered<Reg> {
        let name = match operand {
            Operand::Name(name) => *name,
            Operand::Address(Address {
                base: Base::Name(name),
                offset: 0,
                ..
            }) => *name,
            _ => return Err(Refusal::Unsupported),
        };
        match self.names.find(name) {
            Some(Name::Register(_)) => self.source(&Operand::Name(name), Type::B64),
            _ => Err(Refusal::Unsupported),
        }
    }

    /// An object and coordinates in brackets; a sampler between them is another mode.
    fn place(&mut self, operand: &Operand<'_>, geometry: Geometry) -> Lowered<(Reg, Vec<Reg>)> {
        let Operand::Bracket(parts) = operand else {
            return invalid("an object and coordinates in brackets are due");
        };
        let [object, at] = &parts[..] else {
            return Err(Refusal::Unsupported);
        };
        let object = self.object(object)?;
        let mut at = self.sources(at, geometry.operands(), Type::B32)?;
        at.truncate(geometry.axes() + usize::from(geometry.is_layered()));
        Ok((object, at))
    }

    fn lower_tex(
        &mut self,
        words: &mut Modifiers<'_>,
        operands: &[Operand<'_>],
    ) -> Lowered<ImageOp> {
        let level = words.take("level");
        words.take("base");
        let geometry = words.find(Geometry::parse);
        let four = words.take("v4");
        let (to_type, at_type) = (words.next_type(), words.next_type());
        let (Some(geometry), Some(to_type), Some(at_type), true) =
            (geometry, to_type, at_type, four && words.all_used())
        else {
            return Err(Refusal::Unsupported);
        };
        let integer = at_type == Type::S32;
        let numbers = matches!(to_type, Type::U32 | Type::S32 | Type::F32);
        if !numbers || !integer && at_type != Type::F32 || integer && (level || geometry.is_cube())
        {
            return Err(Refusal::Unsupported);
        }
        let (needed, level, rest) = match (operands, level) {
            ([to, place, level, rest @ ..], true) => ((to, place), Some(level), rest),
            ([to, place, rest @ ..], false) => ((to, place), None, rest),
            _ => return invalid("a number of operands that it does not take"),
        };
        // There is one level, whichever is asked for.
        if let Some(level) = level {
            self.source(level, Type::F32)?;
        }
        let offset = match rest {
            [] => Vec::new(),
            [offset] if !geometry.is_cube() => {
                let count = match geometry.axes() {
                    3 => 4,
                    count => count,
                };
                self.sources(offset, count, Type::B32)?
            }
            // A depth to compare with.
            _ => return Err(Refusal::Unsupported),
        };
        let to = self.dests(needed.0, 4, to_type)?;
        let (object, at) = self.place(needed.1, geometry)?;
        Ok(ImageOp {
            kind: ImageKind::Sample { geometry, integer },
            object,
            at,
            offset,
            to,
            from: Vec::new(),
        })
    }

    fn lower_gather(
        &mut self,
        words: &mut Modifiers<'_>,
        operands: &[Operand<'_>],
    ) -> Lowered<ImageOp> {
        let channel = words.find(|word| ["r", "g", "b", "a"].iter().position(|name| *name == word));
        let geometry = words.find(Geometry::parse);
        let four = words.take("v4");
        let (to_type, at_type) = (words.next_type(), words.next_type());
        let (Some(channel), Some(geometry), Some(to_type), Some(Type::F32), true) = (
            channel,
            geometry,
            to_type,
            at_type,
            four && words.all_used(),
        ) else {
            return Err(Refusal::Unsupported);
        };
        let around = geometry.axes() == 2 || geometry.is_cube();
        if !around || !matches!(to_type, Type::U32 | Type::S32 | Type::F32) {
            return Err(Refusal::Unsupported);
        }
        let (to, place, offset) = match operands {
            [to, place] => (to, place, Vec::new()),
            [to, place, offset] if !geometry.is_cube() => {
                (to, place, self.sources(offset, 2, Type::B32)?)
            }
            _ => return Err(Refusal::Unsupported),
        };
        let to = self.dests(to, 4, to_type)?;
        let (object, at) = self.place(place, geometry)?;
        Ok(ImageOp {
            kind: ImageKind::Gather { geometry, channel },
            object,
            at,
            offset,
            to,
            from: Vec::new(),
        })
    }

    fn lower_query(
        &mut self,
        opcode: &str,
        words: &mut Modifiers<'_>,
        operands: &[Operand<'_>],
    ) -> Lowered<ImageOp> {
        // The driver knows no others of an object in a register.
        let query = words.find(|word| {
            Some(match word {
                "width" => Query::Width,
                "height" => Query::Height,
                "depth" => Query::Depth,
                _ => return None,
            })
        });
        let (Some(query), true, true) = (query, words.take("b32"), words.all_used()) else {
            return Err(Refusal::Unsupported);
        };
        let [to, object] = operands else {
            return invalid("it takes a destination and an object");
        };
        let to = vec![self.dest(to, Type::B32)?];
        let object = self.object(object)?;
        let kind = if opcode == "txq" {
            ImageKind::TextureQuery(query)
        } else {
            ImageKind::SurfaceQuery(query)
        };
        Ok(ImageOp {
            kind,
            object,
            at: Vec::new(),
            offset: Vec::new(),
            to,
            from: Vec::new(),
        })
    }

    /// What accesses of surfaces have in common: where, what lies beyond, and how many numbers of a type.
    fn surface_words(words: &mut Modifiers<'_>) -> Lowered<(Geometry, Beyond, usize, Type)> {
        let geometry = words.find(Geometry::parse).filter(|found| !found.is_cube());
        cache(words);
        let count = count(words);
        let ty = words.next_type();
        let beyond = beyond(words);
        let (Some(geometry), Some(ty), Some(beyond), true) =
            (geometry, ty, beyond, words.all_used())
        else {
            return Err(Refusal::Unsupported);
        };
        Ok((geometry, beyond, count, ty))
    }

    fn lower_surface_load(
        &mut self,
        words: &mut Modifiers<'_>,
        operands: &[Operand<'_>],
    ) -> Lowered<ImageOp> {
        if !words.take("b") {
            return Err(Refusal::Unsupported);
        }
        let (geometry, beyond, count, ty) = Self::surface_words(words)?;
        if ty.kind() != Kind::Bits || ty.bytes() as usize * count > 16 {
            return Err(Refusal::Unsupported);
        }
        let [to, place] = operands else {
            return invalid("it takes a destination and a place");
        };
        let to = self.dests(to, count, ty)?;
        let (object, at) = self.place(place, geometry)?;
        Ok(ImageOp {
            kind: ImageKind::Load {
                geometry,
                ty,
                beyond,
            },
            object,
            at,
            offset: Vec::new(),
            to,
            from: Vec::new(),
        })
    }

    fn lower_surface_store(
        &mut self,
        words: &mut Modifiers<'_>,
        operands: &[Operand<'_>],
    ) -> Lowered<ImageOp> {
        let formatted = words.take("p");
        if !formatted && !words.take("b") {
            return Err(Refusal::Unsupported);
        }
        let (geometry, beyond, count, ty) = Self::surface_words(words)?;
        let fits = if formatted {
            ty == Type::B32
        } else {
            ty.kind() == Kind::Bits && ty.bytes() as usize * count <= 16
        };
        if !fits {
            return Err(Refusal::Unsupported);
        }
        let [place, from] = operands else {
            return invalid("it takes a place and a source");
        };
        let (object, at) = self.place(place, geometry)?;
        let from = self.sources(from, count, ty)?;
        let kind = if formatted {
            ImageKind::StoreTexel { geometry, beyond }
        } else {
            ImageKind::Store {
                geometry,
                ty,
                beyond,
            }
        };
        Ok(ImageOp {
            kind,
            object,
            at,
            offset: Vec::new(),
            to: Vec::new(),
            from,
        })
    }

    fn lower_surface_reduction(
        &mut self,
        words: &mut Modifiers<'_>,
        operands: &[Operand<'_>],
    ) -> Lowered<ImageOp> {
        let texels = words.take("p");
        if !texels && !words.take("b") {
            return Err(Refusal::Unsupported);
        }
        let Some(kind) = words.find(AtomicOp::parse_kind) else {
            return Err(Refusal::Unsupported);
        };
        let (geometry, beyond, count, ty) = Self::surface_words(words)?;
        let known = matches!(
            kind,
            AtomicKind::Add | AtomicKind::Min | AtomicKind::Max | AtomicKind::And | AtomicKind::Or
        );
        let op = AtomicOp {
            kind,
            // What a texel is, is known only when it runs.
            ty: if texels && ty == Type::B32 && !matches!(kind, AtomicKind::And | AtomicKind::Or) {
                Type::U32
            } else {
                ty
            },
            ftz: false,
        };
        if !known
            || count != 1
            || !op.exists()
            || geometry.is_layered()
            || texels && ty != Type::B32
        {
            return Err(Refusal::Unsupported);
        }
        let [place, from] = operands else {
            return invalid("it takes a place and a source");
        };
        let (object, at) = self.place(place, geometry)?;
        let from = vec![self.source(from, ty)?];
        Ok(ImageOp {
            kind: ImageKind::Reduce {
                geometry,
                op,
                beyond,
                texels,
            },
            object,
            at,
            offset: Vec::new(),
            to: Vec::new(),
            from,
        })
    }
}
