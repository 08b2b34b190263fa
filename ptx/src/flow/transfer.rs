//! What an instruction does to registers, as far as addresses are concerned.

use std::collections::{HashMap, HashSet};

use super::Reach;
use super::value::{Set, Step, Value, only};
use crate::code::{Address, Base, Code, Declaration, Instruction, Operand, Statement};
use crate::constant::Constant;
use crate::error::Position;
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

/// A call of a function by its address.
#[derive(Debug)]
pub(super) struct Called<'a> {
    pub(super) address: Register,
    /// The label of the prototype, or of the list of functions.
    pub(super) prototype: &'a str,
    pub(super) position: Position,
}

/// All of a body.
pub(super) struct Program<'a> {
    params: HashMap<&'a str, (usize, &'a Param)>,
    /// Variables of the module, numbered behind the parameters.
    variables: HashMap<&'a str, usize>,
    /// Whether a parameter's name starts as those of registers do.
    percent_params: bool,
    /// Registers with names of their own.
    named: HashSet<&'a str>,
    /// `r` and 10 of `.reg .b32 r<10>`.
    prefixes: Vec<(&'a str, u32)>,
    numbers: HashMap<&'a str, Register>,
    pub(super) transfers: Vec<Transfer>,
    pub(super) touches: Vec<Touch<'a>>,
    pub(super) calls: Vec<Called<'a>>,
    /// Registers whose value goes where it is not followed.
    pub(super) escapes: Vec<Register>,
    /// Registers whose value is looked at, as for its alignment.
    pub(super) inspected: Vec<Register>,
    /// Parameters that are read at all.
    pub(super) used: HashSet<usize>,
    /// Parameters read in a way that is not followed.
    pub(super) odd: Set,
    /// Instructions that work on floating-point numbers.
    floats: Vec<&'a Instruction<'a>>,
}

impl<'a> Program<'a> {
    pub(super) fn new(
        params: &'a [Param],
        variables: &[&'a str],
        code: &'a Code<'a>,
    ) -> Program<'a> {
        let named = params.iter().enumerate();
        let numbered = variables.iter().zip(params.len()..);
        let mut program = Program {
            params: named
                .map(|(index, param)| (param.name(), (index, param)))
                .collect(),
            variables: numbered.map(|(name, index)| (*name, index)).collect(),
            percent_params: params.iter().any(|param| param.name().starts_with('%')),
            named: HashSet::new(),
            prefixes: Vec::new(),
            numbers: HashMap::new(),
            transfers: Vec::new(),
            touches: Vec::new(),
            calls: Vec::new(),
            escapes: Vec::new(),
            inspected: Vec::new(),
            used: HashSet::new(),
            odd: 0,
            floats: Vec::new(),
        };
        for statement in code.statements() {
            match statement {
                Statement::Declaration(declaration) if declaration.space == StateSpace::Reg => {
                    program.declare(declaration);
                }
                Statement::Declaration(declaration) => {
                    for declared in &declaration.names {
                        program.variables.remove(declared.name.name);
                    }
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
        if name.starts_with('%') {
            let is_param = self.percent_params && self.params.contains_key(name);
            return !is_special(name) && !is_param;
        }
        let is_one_of = |&(prefix, count): &(&str, u32)| {
            name.strip_prefix(prefix)
                .and_then(|number| number.parse::<u32>().ok())
                .is_some_and(|number| number < count)
        };
        let declared = self.named.contains(name) || self.prefixes.iter().any(is_one_of);
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
        self.note_variables(instruction);
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
            "call" => self.call(instruction),
            // Neither moves data that is followed, nor is it seen afterwards.
            "bra" | "ret" | "exit" | "trap" | "brkpt" | "bar" | "barrier" | "membar" | "fence"
            | "prefetch" | "prefetchu" | "nanosleep" | "isspacep" | "brx" | "pmevent" => {}
            opcode if is_arithmetic(opcode) => self.compute(instruction),
            _ => self.odd_instruction(instruction),
        }
    }

    /// A parameter named other than in a load from it has its address taken.
    fn note_params(&mut self, instruction: &'a Instruction<'a>) {
        for operand in &instruction.operands {
            for_names(operand, &mut |name| {
                if !self.percent_params && name.starts_with('%') {
                    return;
                }
                if let Some(&(index, _)) = self.params.get(name) {
                    self.used.insert(index);
                    if instruction.opcode != "ld" {
                        self.odd |= only(index);
                    }
                }
            });
        }
    }

    /// A variable named where its address is not followed.
    fn note_variables(&mut self, instruction: &'a Instruction<'a>) {
        if self.variables.is_empty() {
            return;
        }
        let into_register = matches!(instruction.operands.first(), Some(Operand::Name(_)));
        for operand in &instruction.operands {
            let followed = match (instruction.opcode, operand) {
                ("ld" | "ldu" | "st" | "atom" | "red", Operand::Address(_)) => true,
                ("mov" | "cvta" | "selp", Operand::Name(_) | Operand::Offset { .. }) => {
                    into_register
                }
                ("add" | "sub" | "mul" | "mad", Operand::Name(_) | Operand::Offset { .. }) => {
                    into_register && is_whole(instruction)
                }
                _ => false,
            };
            for_names(operand, &mut |name| {
                if let Some(&index) = self.variables.get(name) {
                    self.used.insert(index);
                    if !followed {
                        self.odd |= only(index);
                    }
                }
            });
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
            Operand::Name(name) | Operand::Offset { name, .. } => {
                let variable = self.variables.get(name);
                Source::Value(variable.map_or(Value::UNKNOWN, |&index| match operand {
                    Operand::Offset { .. } => Value::param(index).add(Value::INTEGER),
                    _ => Value::param(index),
                }))
            }
            _ => Source::Value(Value::UNKNOWN),
        }
    }

    fn set(&mut self, register: Register, value: Value) {
        self.transfers
            .push(Transfer::Set(register, Source::Value(value)));
    }

    /// Registers that an operand names, in lists and vectors too.
    fn registers_of(&mut self, operand: &'a Operand<'a>) -> Vec<Register> {
        let mut registers = Vec::new();
        for_names(operand, &mut |name| {
            if self.is_register(name) {
                registers.push(self.number(name));
            }
        });
        registers
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
        let variable = self.variables.get(name).copied();
        if !self.is_register(name) && variable.is_none() {
            return;
        }
        let base = self.number(name);
        if let Some(index) = variable {
            self.set(base, Value::param(index));
        }
        if elsewhere {
            // What reaches another memory is no pointer into the global one.
            self.escapes.push(base);
            return;
        }
        let mut names = Vec::new();
        for_names(data, &mut |name| names.push(name));
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
        if is_float(instruction) {
            self.floats.push(instruction);
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
        let mut types = instruction
            .modifiers
            .iter()
            .filter_map(|word| type_of(word));
        let ([dest, source], Some(to), Some(from), None) = (
            instruction.operands.as_slice(),
            types.next(),
            types.next(),
            types.next(),
        ) else {
            return self.compute(instruction);
        };
        if to.is_float() || from.is_float() {
            self.floats.push(instruction);
            self.inspect(&instruction.operands[1..]);
            // No address survives as a floating-point number.
            for register in self.registers_of(dest) {
                self.set(register, Value::INTEGER);
            }
        } else if to.size() >= from.size()
            && let Some(dest) = self.register(dest)
        {
            // A wider integer is the same multiple.
            let source = self.source(source);
            self.transfers.push(Transfer::Set(dest, source));
        } else {
            self.compute(instruction);
        }
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
        if is_float(instruction) {
            return self.floats.push(instruction);
        }
        let zero = |operand: &Operand<'_>| matches!(operand, Operand::Constant(Constant::S64(0)));
        if !instruction.operands.iter().any(zero) {
            self.inspect(&instruction.operands);
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
        if is_float(instruction) {
            // No address goes through it.
            return self.floats.push(instruction);
        }
        let Some((dest, rest)) = instruction.operands.split_first() else {
            return;
        };
        let mut sources = Vec::new();
        for operand in rest {
            match operand {
                // A symbol's address may go into anything.
                Operand::Name(name) if !self.is_register(name) && !is_special(name) => {
                    sources.push(Source::Value(Value::UNKNOWN));
                }
                _ => {
                    let registers = self.registers_of(operand);
                    self.inspected.extend(&registers);
                    sources.extend(registers.into_iter().map(Source::Register));
                }
            }
        }
        if sources.is_empty() {
            sources.push(Source::Value(Value::INTEGER));
        }
        for register in self.registers_of(dest) {
            self.transfers
                .push(Transfer::Blur(register, sources.clone()));
        }
    }

    /// Which of the registers that memory gives or takes hold floating-point numbers, and their
    /// type.
    pub(super) fn floats(&self) -> HashMap<&'a str, ScalarType> {
        // Older compilers say so in the access itself.
        let untyped = self
            .touches
            .iter()
            .filter(|touch| touch.ty.is_some_and(|ty| ty.class() == Class::Bits));
        let wanted: HashSet<&str> = untyped
            .flat_map(|touch| touch.data.iter().copied())
            .collect();
        let mut floats = HashMap::new();
        if wanted.is_empty() {
            return floats;
        }
        for instruction in &self.floats {
            for (operand, ty) in instruction.operands.iter().zip(operand_types(instruction)) {
                if let Operand::Name(name) = operand
                    && let Some(ty) = ty.filter(|ty| ty.is_float())
                    && wanted.contains(name)
                {
                    floats.insert(*name, ty);
                }
            }
        }
        floats
    }

    /// An instruction that is not known may do anything with all that it names.
    /// What is passed and returned is not followed; the address of the function stays what it was.
    fn call(&mut self, instruction: &'a Instruction<'a>) {
        let operands = match instruction.operands.as_slice() {
            [Operand::List(_), rest @ ..] | rest => rest,
        };
        if let [Operand::Name(address), .., Operand::Name(prototype)] = operands
            && self.is_register(address)
        {
            let address = self.number(address);
            self.escapes.push(address);
            self.calls.push(Called {
                address,
                prototype,
                position: instruction.position,
            });
            for operand in instruction
                .operands
                .iter()
                .filter(|one| matches!(one, Operand::List(_)))
            {
                self.odd_operand(operand);
            }
        } else {
            self.odd_instruction(instruction);
        }
    }

    fn odd_instruction(&mut self, instruction: &'a Instruction<'a>) {
        for operand in &instruction.operands {
            self.odd_operand(operand);
        }
    }

    fn odd_operand(&mut self, operand: &'a Operand<'a>) {
        for register in self.registers_of(operand) {
            self.escapes.push(register);
            self.set(register, Value::UNKNOWN);
        }
    }
}

/// Calls `visit` with each name in an operand.
pub(crate) fn for_names<'a>(operand: &Operand<'a>, visit: &mut impl FnMut(&'a str)) {
    match operand {
        Operand::Name(name) | Operand::Offset { name, .. } => visit(name),
        Operand::Component { .. } | Operand::Constant(_) | Operand::Sink => {}
        Operand::Element { name, index } => {
            visit(name);
            if let Base::Name(name) = index.base {
                visit(name);
            }
        }
        Operand::Address(address) => {
            if let Base::Name(name) = address.base {
                visit(name);
            }
        }
        Operand::Bracket(all) | Operand::Vector(all) | Operand::List(all) => {
            for operand in all {
                for_names(operand, visit);
            }
        }
        Operand::Pair(one, other) => {
            visit(one);
            visit(other);
        }
        Operand::Not(operand) | Operand::Negative(operand) => for_names(operand, visit),
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
    // Most are `%r12`, and few of the special ones end in a digit.
    if name.ends_with(|last: char| last.is_ascii_digit()) {
        return name == "%clock64" || name.starts_with("%envreg") || name.starts_with("%pm");
    }
    SPECIAL.contains(&name)
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
        "mma",
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
        "vabsdiff",
        "vadd",
        "vmad",
        "vmax",
        "vmin",
        "vote",
        "vset",
        "vshl",
        "vsub",
        "xor",
    ];
    ARITHMETIC.binary_search(&opcode).is_ok()
}

fn is_float(instruction: &Instruction<'_>) -> bool {
    scalar_type(instruction).is_some_and(ScalarType::is_float)
}

/// The type of each operand of an instruction on floating-point numbers.
fn operand_types(instruction: &Instruction<'_>) -> [Option<ScalarType>; 5] {
    let mut types = instruction
        .modifiers
        .iter()
        .filter_map(|word| type_of(word));
    match (instruction.opcode, types.next(), types.next()) {
        ("cvt", to, from) => [to, from, None, None, None],
        // The first operand is a predicate.
        ("setp", ty, _) => [None, ty, ty, None, None],
        (_, ty, None) => [ty; 5],
        // Of two types, as of `set` or `fma` on mixed ones, nobody knows which is whose.
        _ => [None; 5],
    }
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
