//! What an instruction does to registers, as far as addresses are concerned.

use std::collections::{HashMap, HashSet};

use super::Reach;
use super::value::{Set, Step, Value, only};
use crate::code::{Address, Base, Code, Declaration, Instruction, Operand, Statement};
use crate::constant::Constant;
use crate::param::Param;
use crate::types::{Class, ScalarType, StateSpace};

/// A register by its number.
pub(super) type Register = usize;

/// How a register comes by its value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    Register(Register),
    Value(Value),
}

#[derive(Debug)]
pub(super) enum Transfer {
    Set(Register, Source),
    Add(Register, Source, Source),
    Subtract(Register, Source, Source),
    Multiply(Register, Source, Source),
    /// `a * b + c`
    MultiplyAdd(Register, [Source; 3]),
    /// One of two.
    Choose(Register, Source, Source),
    /// Anything made of the others.
    Blur(Register, Vec<Source>),
}

/// An access to global memory, or to what may be global memory.
#[derive(Debug)]
pub(super) struct Touch<'a> {
    pub(super) reach: Reach,
    pub(super) base: Register,
    /// The type of an element; none if the instruction does not tell.
    pub(super) ty: Option<ScalarType>,
    pub(super) lanes: u32,
    /// What is read or written.
    pub(super) data: Vec<&'a str>,
    pub(super) instruction: &'a Instruction<'a>,
}

/// All of a body.
pub(super) struct Program<'a> {
    params: HashMap<&'a str, (usize, &'a Param)>,
    /// Registers with names of their own.
    named: HashSet<&'a str>,
    /// `r` and 10 of `.reg .b32 r<10>`.
    prefixes: Vec<(&'a str, u32)>,
    numbers: HashMap<&'a str, Register>,
    pub(super) transfers: Vec<Transfer>,
    pub(super) touches: Vec<Touch<'a>>,
    /// Registers whose value goes where it is not followed.
    pub(super) escapes: Vec<Register>,
    /// Registers whose value is looked at, as for its alignment.
    pub(super) inspected: Vec<Register>,
    /// Parameters that are read at all.
    pub(super) used: HashSet<usize>,
    /// Parameters read in a way that is not followed.
    pub(super) odd: Set,
    /// Registers that floating-point instructions work on, and the type.
    pub(super) floats: HashMap<&'a str, ScalarType>,
}

impl<'a> Program<'a> {
    pub(super) fn new(params: &'a [Param], code: &'a Code<'a>) -> Program<'a> {
        let named = params.iter().enumerate();
        let mut program = Program {
            params: named
                .map(|(index, param)| (param.name(), (index, param)))
                .collect(),
            named: HashSet::new(),
            prefixes: Vec::new(),
            numbers: HashMap::new(),
            transfers: Vec::new(),
            touches: Vec::new(),
            escapes: Vec::new(),
            inspected: Vec::new(),
            used: HashSet::new(),
            odd: 0,
            floats: HashMap::new(),
        };
        for statement in code.statements() {
            match statement {
                Statement::Declaration(declaration) if declaration.space == StateSpace::Reg => {
                    program.declare(declaration);
                }
                Statement::Instruction(instruction) => program.instruction(instruction),
                _ => {}
            }
        }
        program
    }

    /// Registers whose names do not start as those of compilers do.
    fn declare(&mut self, declaration: &Declaration<'a>) {
        for name in declaration.names.iter().map(|declared| declared.name) {
            if name.name.starts_with('%') {
                continue;
            }
            match name.count {
                None => {
                    self.named.insert(name.name);
                }
                Some(count) => self.prefixes.push((name.name, count)),
            }
        }
    }

    /// Other names may be variables, parameters or functions.
    fn is_register(&self, name: &str) -> bool {
        let is_one_of = |&(prefix, count): &(&str, u32)| {
            name.strip_prefix(prefix)
                .and_then(|number| number.parse::<u32>().ok())
                .is_some_and(|number| number < count)
        };
        let declared = name.starts_with('%') && !is_special(name)
            || self.named.contains(name)
            || self.prefixes.iter().any(is_one_of);
        declared && !self.params.contains_key(name)
    }

    pub(super) fn registers(&self) -> usize {
        self.numbers.len()
    }

    fn number(&mut self, name: &'a str) -> Register {
        let next = self.numbers.len();
        *self.numbers.entry(name).or_insert(next)
    }

    fn instruction(&mut self, instruction: &'a Instruction<'a>) {
        self.note_params(instruction);
        let operands = instruction.operands.as_slice();
        match instruction.opcode {
            "ld" | "ldu" => self.load(instruction),
            "st" => self.store(instruction),
            "atom" => self.atomic(instruction, true),
            "red" => self.atomic(instruction, false),
            "cvta" => self.convert_address(instruction),
            "mov" => self.mov(instruction),
            "cvt" => self.convert(instruction),
            "add" | "sub" if is_whole(instruction) => {
                if let [dest, a, b] = operands
                    && let Some(dest) = self.register(dest)
                {
                    let (a, b) = (self.source(a), self.source(b));
                    self.transfers.push(match instruction.opcode {
                        "add" => Transfer::Add(dest, a, b),
                        _ => Transfer::Subtract(dest, a, b),
                    });
                }
            }
            "mul" if is_whole(instruction) => {
                if let [dest, a, b] = operands
                    && let Some(dest) = self.register(dest)
                {
                    let (a, b) = (self.source(a), self.source(b));
                    self.transfers.push(Transfer::Multiply(dest, a, b));
                }
            }
            "mad" if is_whole(instruction) => {
                if let [dest, a, b, c] = operands
                    && let Some(dest) = self.register(dest)
                {
                    let sources = [self.source(a), self.source(b), self.source(c)];
                    self.transfers.push(Transfer::MultiplyAdd(dest, sources));
                }
            }
            "shl" => self.shift(instruction),
            "selp" => {
                if let [dest, a, b, _] = operands
                    && let Some(dest) = self.register(dest)
                {
                    let (a, b) = (self.source(a), self.source(b));
                    self.transfers.push(Transfer::Choose(dest, a, b));
                }
            }
            "setp" => self.compare(instruction),
            // Neither moves data that is followed, nor is it seen afterwards.
            "bra" | "ret" | "exit" | "trap" | "brkpt" | "bar" | "barrier" | "membar" | "fence"
            | "prefetch" | "prefetchu" | "nanosleep" | "isspacep" | "brx" | "pmevent" => {}
            opcode if is_arithmetic(opcode) => self.compute(instruction),
            _ => self.odd_instruction(instruction),
        }
    }

    /// A parameter named other than in a load from it has its address taken.
    fn note_params(&mut self, instruction: &'a Instruction<'a>) {
        let names = |operand: &'a Operand<'a>| {
            let mut names = Vec::new();
            collect_names(operand, &mut names);
            names
        };
        for name in instruction.operands.iter().flat_map(names) {
            if let Some(&(index, _)) = self.params.get(name) {
                self.used.insert(index);
                if instruction.opcode != "ld" {
                    self.odd |= only(index);
                }
            }
        }
    }

    fn register(&mut self, operand: &Operand<'a>) -> Option<Register> {
        match operand {
            Operand::Name(name) => Some(self.number(name)),
            _ => None,
        }
    }

    fn source(&mut self, operand: &Operand<'a>) -> Source {
        match operand {
            Operand::Name(name) if self.is_register(name) => Source::Register(self.number(name)),
            // A component of `%tid` and the like.
            Operand::Component { .. } => Source::Value(Value::INTEGER),
            Operand::Constant(constant) => Source::Value(Value::integer(step(*constant))),
            _ => Source::Value(Value::UNKNOWN),
        }
    }

    fn set(&mut self, register: Register, value: Value) {
        self.transfers
            .push(Transfer::Set(register, Source::Value(value)));
    }

    /// Registers that an operand names, in lists and vectors too.
    fn registers_of(&mut self, operand: &'a Operand<'a>) -> Vec<Register> {
        let mut names = Vec::new();
        collect_names(operand, &mut names);
        names.retain(|name| self.is_register(name));
        names.into_iter().map(|name| self.number(name)).collect()
    }

    fn load(&mut self, instruction: &'a Instruction<'a>) {
        let [dest, from, ..] = instruction.operands.as_slice() else {
            return self.odd_instruction(instruction);
        };
        let ty = scalar_type(instruction);
        let wide = ty.is_none_or(|ty| ty.size() >= 8 && !ty.is_float());
        let loaded = if wide { Value::UNKNOWN } else { Value::INTEGER };
        let dests = self.registers_of(dest);
        if has(instruction, "param") {
            let value = match from {
                Operand::Address(address) => self.loaded_param(address, ty, &dests, loaded),
                _ => loaded,
            };
            for register in dests {
                self.set(register, value);
            }
            return;
        }
        for register in dests {
            self.set(register, loaded);
        }
        self.touch(instruction, Reach::Read, from, dest);
    }

    /// The value of a kernel's parameter, if the load takes all of one.
    fn loaded_param(
        &mut self,
        address: &Address<'a>,
        ty: Option<ScalarType>,
        dests: &[Register],
        otherwise: Value,
    ) -> Value {
        let Base::Name(name) = address.base else {
            return otherwise;
        };
        let Some(&(index, param)) = self.params.get(name) else {
            return otherwise;
        };
        if param.size() != 8 || !matches!(param.class(), Class::Integer | Class::Bits) {
            return otherwise;
        }
        let whole = address.offset == 0 && ty.is_some_and(|ty| ty.size() == 8) && dests.len() == 1;
        if whole {
            return Value::param(index);
        }
        self.odd |= only(index);
        Value::UNKNOWN
    }

    fn store(&mut self, instruction: &'a Instruction<'a>) {
        let [to, data, ..] = instruction.operands.as_slice() else {
            return self.odd_instruction(instruction);
        };
        let stored = self.registers_of(data);
        self.escapes.extend(stored);
        if !has(instruction, "param") {
            self.touch(instruction, Reach::Write, to, data);
        }
    }

    fn atomic(&mut self, instruction: &'a Instruction<'a>, returns: bool) {
        let (dest, rest) = match (instruction.operands.as_slice(), returns) {
            ([dest, rest @ ..], true) => (Some(dest), rest),
            (rest, _) => (None, rest),
        };
        let Some((at, data)) = rest.split_first() else {
            return self.odd_instruction(instruction);
        };
        if let Some(dest) = dest {
            let wide = scalar_type(instruction).is_none_or(|ty| ty.size() >= 8);
            let value = if wide { Value::UNKNOWN } else { Value::INTEGER };
            for register in self.registers_of(dest) {
                self.set(register, value);
            }
        }
        for operand in data {
            let registers = self.registers_of(operand);
            self.escapes.extend(registers);
        }
        self.touch(instruction, Reach::Update, at, dest.unwrap_or(at));
    }

    fn touch(
        &mut self,
        instruction: &'a Instruction<'a>,
        reach: Reach,
        at: &'a Operand<'a>,
        data: &'a Operand<'a>,
    ) {
        let Operand::Address(Address {
            base: Base::Name(name),
            ..
        }) = at
        else {
            let registers = self.registers_of(at);
            self.escapes.extend(registers);
            return;
        };
        let spaces = ["shared", "local", "const"];
        let elsewhere = instruction.modifiers.iter().any(|word| {
            spaces
                .iter()
                .any(|space| word.split("::").next() == Some(space))
        });
        if !self.is_register(name) {
            return;
        }
        let base = self.number(name);
        if elsewhere {
            // What reaches another memory is no pointer into the global one.
            self.escapes.push(base);
            return;
        }
        let mut names = Vec::new();
        collect_names(data, &mut names);
        self.touches.push(Touch {
            reach,
            base,
            ty: scalar_type(instruction),
            lanes: lanes(instruction),
            data: names,
            instruction,
        });
    }

    fn convert_address(&mut self, instruction: &'a Instruction<'a>) {
        let [dest, from] = instruction.operands.as_slice() else {
            return self.odd_instruction(instruction);
        };
        let Some(dest) = self.register(dest) else {
            return;
        };
        let from = self.source(from);
        self.transfers.push(if has(instruction, "global") {
            Transfer::Set(dest, from)
        } else {
            Transfer::Blur(dest, vec![from, Source::Value(Value::UNKNOWN)])
        });
    }

    fn mov(&mut self, instruction: &'a Instruction<'a>) {
        let [dest, from] = instruction.operands.as_slice() else {
            return self.odd_instruction(instruction);
        };
        if let (Operand::Name(dest), Some(ty)) = (dest, scalar_type(instruction))
            && ty.is_float()
        {
            self.floats.insert(dest, ty);
        }
        match (dest, from) {
            (Operand::Name(dest), Operand::Name(name)) if is_special(name) => {
                let dest = self.number(dest);
                self.set(dest, Value::INTEGER);
            }
            (Operand::Name(dest), Operand::Vector(_)) => {
                let dest = self.number(dest);
                let parts = self.registers_of(from);
                let parts = parts.into_iter().map(Source::Register).collect();
                self.transfers.push(Transfer::Blur(dest, parts));
            }
            (Operand::Name(dest), _) => {
                let dest = self.number(dest);
                let from = self.source(from);
                self.transfers.push(Transfer::Set(dest, from));
            }
            _ => self.compute(instruction),
        }
    }

    fn convert(&mut self, instruction: &'a Instruction<'a>) {
        let types: Vec<ScalarType> = instruction
            .modifiers
            .iter()
            .filter_map(|word| type_of(word))
            .collect();
        if let ([to, from], [dest, source, ..]) =
            (types.as_slice(), instruction.operands.as_slice())
        {
            for (ty, operand) in [(to, dest), (from, source)] {
                if let Operand::Name(name) = operand
                    && ty.is_float()
                {
                    self.floats.insert(name, *ty);
                }
            }
            if !to.is_float() && !from.is_float() && to.size() >= from.size() {
                // A wider integer is the same multiple.
                if let Some(dest) = self.register(dest) {
                    let source = self.source(source);
                    self.transfers.push(Transfer::Set(dest, source));
                    return;
                }
            }
        }
        self.compute(instruction);
    }

    fn shift(&mut self, instruction: &'a Instruction<'a>) {
        let [dest, from, by] = instruction.operands.as_slice() else {
            return self.odd_instruction(instruction);
        };
        let Some(dest) = self.register(dest) else {
            return;
        };
        self.inspect(&instruction.operands[1..2]);
        let from = self.source(from);
        let factor = match by {
            Operand::Constant(Constant::S64(by)) => {
                let by = u32::try_from(*by).unwrap_or(64);
                Step::of(1_u64.checked_shl(by).unwrap_or(0))
            }
            _ => Step::ONE,
        };
        let factor = Source::Value(Value::integer(factor));
        self.transfers.push(Transfer::Multiply(dest, from, factor));
    }

    /// A comparison with null tells nothing of an address that the code relies on.
    fn compare(&mut self, instruction: &'a Instruction<'a>) {
        let zero = |operand: &Operand<'_>| matches!(operand, Operand::Constant(Constant::S64(0)));
        self.note_floats(instruction);
        if !instruction.operands.iter().any(zero) {
            self.inspect(&instruction.operands);
        }
        for operand in instruction.operands.iter().take(1) {
            for register in self.registers_of(operand) {
                self.set(register, Value::INTEGER);
            }
        }
    }

    fn inspect(&mut self, operands: &'a [Operand<'a>]) {
        for operand in operands {
            let registers = self.registers_of(operand);
            self.inspected.extend(registers);
        }
    }

    /// An instruction that makes its first operand of the others.
    fn compute(&mut self, instruction: &'a Instruction<'a>) {
        let Some((dest, rest)) = instruction.operands.split_first() else {
            return;
        };
        let is_float = self.note_floats(instruction);
        self.inspect(rest);
        let mut sources = Vec::new();
        for operand in rest {
            match operand {
                // A symbol's address may go into anything.
                Operand::Name(name) if !self.is_register(name) => {
                    sources.push(Source::Value(Value::UNKNOWN));
                }
                _ => sources.extend(self.registers_of(operand).into_iter().map(Source::Register)),
            }
        }
        if sources.is_empty() || is_float && instruction.opcode != "cvt" {
            sources.push(Source::Value(Value::INTEGER));
        }
        for register in self.registers_of(dest) {
            self.transfers
                .push(Transfer::Blur(register, sources.clone()));
        }
    }

    fn note_floats(&mut self, instruction: &'a Instruction<'a>) -> bool {
        let Some(ty) = scalar_type(instruction).filter(|ty| ty.is_float()) else {
            return false;
        };
        for operand in &instruction.operands {
            if let Operand::Name(name) = operand
                && self.is_register(name)
            {
                self.floats.insert(name, ty);
            }
        }
        true
    }

    /// An instruction that is not known may do anything with all that it names.
    fn odd_instruction(&mut self, instruction: &'a Instruction<'a>) {
        for operand in &instruction.operands {
            for register in self.registers_of(operand) {
                self.escapes.push(register);
                self.set(register, Value::UNKNOWN);
            }
        }
    }
}

fn collect_names<'a>(operand: &'a Operand<'a>, names: &mut Vec<&'a str>) {
    match operand {
        Operand::Name(name) | Operand::Offset { name, .. } => names.push(name),
        Operand::Component { .. } | Operand::Constant(_) | Operand::Sink => {}
        Operand::Element { name, index } => {
            names.push(name);
            if let Base::Name(name) = index.base {
                names.push(name);
            }
        }
        Operand::Address(address) => {
            if let Base::Name(name) = address.base {
                names.push(name);
            }
        }
        Operand::Bracket(all) | Operand::Vector(all) | Operand::List(all) => {
            for operand in all {
                collect_names(operand, names);
            }
        }
        Operand::Pair(one, other) => names.extend([*one, *other]),
        Operand::Not(operand) | Operand::Negative(operand) => collect_names(operand, names),
    }
}

/// `%laneid`, `%clock64`: values that the device provides.
fn is_special(name: &str) -> bool {
    const SPECIAL: [&str; 26] = [
        "%laneid",
        "%warpid",
        "%nwarpid",
        "%smid",
        "%nsmid",
        "%gridid",
        "%clock",
        "%clock_hi",
        "%clock64",
        "%globaltimer",
        "%globaltimer_lo",
        "%globaltimer_hi",
        "%lanemask_eq",
        "%lanemask_le",
        "%lanemask_lt",
        "%lanemask_ge",
        "%lanemask_gt",
        "%total_smem_size",
        "%dynamic_smem_size",
        "%aggr_smem_size",
        "%cluster_ctarank",
        "%cluster_nctarank",
        "%is_explicit_cluster",
        "%current_graph_exec",
        "%tid",
        "%ctaid",
    ];
    SPECIAL.contains(&name) || name.starts_with("%envreg") || name.starts_with("%pm")
}

/// Integer arithmetic of the plain kind, on 32 or 64 bits.
fn is_whole(instruction: &Instruction<'_>) -> bool {
    scalar_type(instruction).is_some_and(|ty| !ty.is_float() && ty.size() >= 4)
        && !has(instruction, "cc")
        && !has(instruction, "hi")
}

/// Instructions that compute their first operand from the others and touch no memory.
fn is_arithmetic(opcode: &str) -> bool {
    const ARITHMETIC: [&str; 65] = [
        "abs",
        "activemask",
        "add",
        "addc",
        "and",
        "bfe",
        "bfi",
        "bfind",
        "bmsk",
        "brev",
        "clz",
        "cnot",
        "copysign",
        "cos",
        "div",
        "dp2a",
        "dp4a",
        "elect",
        "ex2",
        "fma",
        "fns",
        "lg2",
        "lop3",
        "mad",
        "mad24",
        "madc",
        "match",
        "max",
        "min",
        "mul",
        "mul24",
        "neg",
        "not",
        "or",
        "popc",
        "prmt",
        "rcp",
        "redux",
        "rem",
        "rsqrt",
        "sad",
        "set",
        "shf",
        "shfl",
        "shl",
        "shr",
        "sin",
        "slct",
        "sqrt",
        "sub",
        "subc",
        "szext",
        "tanh",
        "testp",
        "vote",
        "xor",
        "mma",
        "vadd",
        "vsub",
        "vmin",
        "vmax",
        "vabsdiff",
        "vset",
        "vmad",
        "vshl",
    ];
    ARITHMETIC.contains(&opcode)
}

fn has(instruction: &Instruction<'_>, word: &str) -> bool {
    instruction.modifiers.contains(&word)
}

fn lanes(instruction: &Instruction<'_>) -> u32 {
    let vector = |word: &&str| match *word {
        "v2" => Some(2),
        "v4" => Some(4),
        "v8" => Some(8),
        _ => None,
    };
    instruction.modifiers.iter().find_map(vector).unwrap_or(1)
}

/// The last type among the modifiers, which is that of the data.
fn scalar_type(instruction: &Instruction<'_>) -> Option<ScalarType> {
    instruction
        .modifiers
        .iter()
        .rev()
        .find_map(|word| type_of(word))
}

fn type_of(word: &str) -> Option<ScalarType> {
    Some(match word {
        "b8" => ScalarType::B8,
        "b16" => ScalarType::B16,
        "b32" => ScalarType::B32,
        "b64" => ScalarType::B64,
        "b128" => ScalarType::B128,
        "u8" => ScalarType::U8,
        "u16" => ScalarType::U16,
        "u32" => ScalarType::U32,
        "u64" => ScalarType::U64,
        "s8" => ScalarType::S8,
        "s16" => ScalarType::S16,
        "s32" => ScalarType::S32,
        "s64" => ScalarType::S64,
        "f16" => ScalarType::F16,
        "f16x2" => ScalarType::F16x2,
        "bf16" => ScalarType::Bf16,
        "bf16x2" => ScalarType::Bf16x2,
        "f32" => ScalarType::F32,
        "f64" => ScalarType::F64,
        _ => return None,
    })
}

fn step(constant: Constant) -> Step {
    match constant {
        Constant::S64(number) => Step::of(number.unsigned_abs()),
        Constant::U64(number) => Step::of(number),
        Constant::F32(_) | Constant::F64(_) => Step::ONE,
    }
}
