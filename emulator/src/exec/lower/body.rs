//! One body: declarations, labels and instructions in the order of the text.

use std::collections::HashMap;

use gridcall_ptx::{
    Code, Declaration, Instruction, NameRange, Position, ScalarType, SourcePlace, StateSpace,
    Statement,
};

use super::super::code::{Dest, Function, Guard, Inst, Op, Passed, Preset, Reg};
use super::super::program::{LowerError, Source};
use super::super::types::Type;
use super::module::Environment;
use super::names::{Name, Names, Register};
use super::{Lowered, Refusal, error, instruction, invalid};

/// The most registers or variables that one declaration may make.
const MOST: u32 = 1 << 20;

/// A micro-operation and where it comes from. Branches hold labels until all are known.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) inst: Inst,
    pub(crate) position: Position,
    pub(crate) source: Option<Source>,
    /// The register that an address is made of, by its name.
    pub(crate) base: Option<String>,
    /// The register it sets, and those it reads, by their names, for reports.
    pub(crate) names: Vec<String>,
}

/// An instruction that is not supported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) text: String,
    pub(crate) position: Position,
}

/// Everything known while a body is lowered.
pub(super) struct Body<'a, 'm> {
    pub(super) environment: &'m Environment<'a>,
    pub(super) names: Names<'a>,
    pub(super) function: Function,
    pub(super) drafts: Vec<Draft>,
    pub(super) missing: Vec<Missing>,
    presets: HashMap<(Preset, u32), Reg>,
    /// Where each label stands, by its number.
    labels: Vec<Option<u32>>,
    /// The labels of each scope, by the statement that opens it; the body's own is the last.
    scope_labels: Vec<HashMap<&'a str, u32>>,
    open_scopes: Vec<usize>,
    guard: Option<Guard>,
    position: Position,
    source: Option<Source>,
    base: Option<String>,
    instruction_names: Vec<String>,
    /// The hidden predicate of carries, once it is needed.
    carry: Option<u32>,
}

impl<'a, 'm> Body<'a, 'm> {
    pub(super) fn new(
        environment: &'m Environment<'a>,
        function: Function,
        position: Position,
    ) -> Self {
        let mut names = Names::default();
        names.open();
        Self {
            environment,
            names,
            function,
            drafts: Vec::new(),
            missing: Vec::new(),
            presets: HashMap::new(),
            labels: Vec::new(),
            scope_labels: Vec::new(),
            open_scopes: Vec::new(),
            guard: None,
            position,
            source: None,
            base: None,
            instruction_names: Vec::new(),
            carry: None,
        }
    }

    pub(super) fn run(&mut self, code: &Code<'a>) -> Result<(), LowerError> {
        self.find_labels(code)?;
        self.names.open();
        self.open_scopes.push(0);
        let mut scopes = 1;
        for statement in code.statements() {
            match statement {
                Statement::Open(_) => {
                    self.names.open();
                    self.open_scopes.push(scopes);
                    scopes += 1;
                }
                Statement::Close(_) => {
                    self.names.close();
                    self.open_scopes.pop();
                }
                Statement::Label { name, .. } => {
                    if let Some(label) = self.label(name) {
                        self.labels[label as usize] = u32::try_from(self.drafts.len()).ok();
                    }
                }
                Statement::Declaration(declaration) => self.declare(declaration)?,
                Statement::Loc(loc) => {
                    let place =
                        |place: SourcePlace| (place.line != 0).then_some((place.file, place.line));
                    self.source = place(loc.place).map(|inner| Source {
                        place: inner,
                        inlined_at: loc.inlined_at.and_then(place),
                    });
                }
                Statement::CallPrototype(prototype) => {
                    let sizes = |params: &[gridcall_ptx::Param]| {
                        params.iter().map(|param| param.size() as u32).collect()
                    };
                    let name = Name::Prototype {
                        returns: sizes(&prototype.returns),
                        params: sizes(&prototype.params),
                    };
                    self.names.declare(prototype.label, name);
                }
                Statement::CallTargets {
                    label,
                    names,
                    position,
                } => {
                    let mut functions = Vec::new();
                    for name in expand(names) {
                        let Some(index) = self.environment.functions.get(name.as_str()) else {
                            return Err(error(
                                *position,
                                format!("no function `{name}` is declared"),
                            ));
                        };
                        functions.push(*index);
                    }
                    self.names.declare(label, Name::CallTargets(functions));
                }
                Statement::BranchTargets {
                    label,
                    names,
                    position,
                } => {
                    let mut targets = Vec::new();
                    for name in expand(names) {
                        let Some(target) = self.label(&name) else {
                            return Err(error(*position, format!("no label `{name}` is declared")));
                        };
                        targets.push(target);
                    }
                    self.names.declare(label, Name::BranchTargets(targets));
                }
                Statement::Instruction(instruction) => self.instruction(instruction)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Numbers the labels, each in the scope that holds it.
    fn find_labels(&mut self, code: &Code<'a>) -> Result<(), LowerError> {
        self.scope_labels.push(HashMap::new());
        let mut open = vec![0];
        for statement in code.statements() {
            match statement {
                Statement::Open(_) => {
                    open.push(self.scope_labels.len());
                    self.scope_labels.push(HashMap::new());
                }
                Statement::Close(position) => {
                    if open.len() == 1 {
                        return Err(error(*position, "a `}` without its `{`"));
                    }
                    open.pop();
                }
                Statement::Label { name, position } => {
                    let number = self.labels.len() as u32;
                    self.labels.push(None);
                    let scope = open.last().copied().unwrap_or(0);
                    if self.scope_labels[scope].insert(name, number).is_some() {
                        return Err(error(*position, format!("the label `{name}` stands twice")));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The number of a label that can be seen from here.
    pub(super) fn label(&self, name: &str) -> Option<u32> {
        self.open_scopes
            .iter()
            .rev()
            .find_map(|scope| self.scope_labels[*scope].get(name))
            .copied()
    }

    fn declare(&mut self, declaration: &Declaration<'a>) -> Result<(), LowerError> {
        let ty = scalar(declaration.ty);
        for declared in &declaration.names {
            let size = declared.size.unwrap_or(0);
            let placed = matches!(
                declaration.space,
                StateSpace::Shared | StateSpace::Global | StateSpace::Const
            );
            if placed && declared.name.count.is_some() {
                let message = format!(
                    "many variables in {} by one name are not supported",
                    declaration.space
                );
                return Err(error(declared.position, message));
            }
            match declaration.space {
                StateSpace::Reg => {
                    let Some(ty) = ty else {
                        let message = format!("a register of type {}", declaration.ty);
                        return Err(error(
                            declared.position,
                            format!("{message} is not supported"),
                        ));
                    };
                    self.declare_registers(
                        declared.name,
                        ty,
                        declaration.vector,
                        declared.position,
                    )?;
                }
                StateSpace::Local | StateSpace::Param => {
                    let is_param = declaration.space == StateSpace::Param;
                    let count = declared.name.count.unwrap_or(1).min(MOST);
                    let mut members = Vec::new();
                    for _ in 0..count {
                        let offset =
                            self.place_local(size, declaration.align, declared.position)?;
                        let size = size as u32;
                        members.push(Name::Local {
                            offset,
                            size,
                            is_param,
                        });
                    }
                    match (declared.name.count, members.pop()) {
                        (None, Some(only)) => self.names.declare(declared.name.name, only),
                        (_, last) => {
                            members.extend(last);
                            self.names.declare_range(declared.name.name, members);
                        }
                    }
                }
                StateSpace::Shared => {
                    let key = declared.position;
                    let Some(index) = self.environment.shared_at.get(&key) else {
                        return Err(error(
                            declared.position,
                            "a variable in shared memory that has no place",
                        ));
                    };
                    self.names.declare(declared.name.name, Name::Shared(*index));
                }
                StateSpace::Global | StateSpace::Const => {
                    let key = declared.position;
                    let Some(index) = self.environment.symbol_at.get(&key) else {
                        return Err(error(declared.position, "a variable that has no place"));
                    };
                    self.names.declare(declared.name.name, Name::Symbol(*index));
                }
                _ => {
                    let space = declaration.space;
                    let message = format!("variables in {space} are not supported in a body");
                    return Err(error(declared.position, message));
                }
            }
        }
        Ok(())
    }

    fn declare_registers(
        &mut self,
        name: NameRange<'a>,
        ty: Type,
        vector: u32,
        position: Position,
    ) -> Result<(), LowerError> {
        let count = name.count.unwrap_or(1);
        if count.saturating_mul(vector) > MOST {
            return Err(error(position, format!("more than {MOST} registers")));
        }
        if vector > 1 && name.count.is_none() {
            let elements = (0..vector).map(|_| self.new_register(ty.bits())).collect();
            self.names.declare(name.name, Name::Vector(elements));
            return Ok(());
        }
        let registers: Vec<Register> = (0..count).map(|_| self.new_register(ty.bits())).collect();
        if let (None, [register]) = (name.count, registers.as_slice()) {
            self.names.declare(name.name, Name::Register(*register));
        } else {
            let members = registers.into_iter().map(Name::Register).collect();
            self.names.declare_range(name.name, members);
        }
        Ok(())
    }

    /// A new register of some bits.
    pub(super) fn new_register(&mut self, bits: u32) -> Register {
        let function = &mut self.function;
        let take = |count: &mut u32, by: u32| {
            let at = *count;
            *count += by;
            at
        };
        let reg = match bits {
            1 => Reg::P(take(&mut function.predicates, 1)),
            2..=32 => Reg::W(take(&mut function.words, 1)),
            33..=64 => Reg::D(take(&mut function.doubles, 1)),
            _ => Reg::Q(take(&mut function.doubles, 2)),
        };
        Register { reg, bits }
    }

    pub(super) fn new_dest(&mut self, bits: u32) -> Dest {
        let Register { reg, bits } = self.new_register(bits);
        Dest { reg, bits }
    }

    /// A register that is set when the frame is made.
    pub(super) fn preset(&mut self, preset: Preset, bits: u32) -> Reg {
        let bank = if bits == 1 {
            1
        } else {
            bits.next_multiple_of(32)
        };
        if let Some(reg) = self.presets.get(&(preset, bank)) {
            return *reg;
        }
        let reg = self.new_register(bits).reg;
        self.presets.insert((preset, bank), reg);
        self.function.presets.push((reg, preset));
        reg
    }

    /// Room in the frame's local memory.
    pub(super) fn place_local(
        &mut self,
        size: usize,
        align: usize,
        position: Position,
    ) -> Result<u32, LowerError> {
        const MOST: usize = 512 << 10;
        let align = align.clamp(1, 1 << 10);
        let offset = (self.function.local_bytes as usize).next_multiple_of(align);
        let end = offset.saturating_add(size);
        if end > MOST {
            return Err(error(
                position,
                format!("local memory of {end} bytes, of which a thread has {MOST}"),
            ));
        }
        self.function.local_bytes = end.next_multiple_of(4) as u32;
        Ok(offset as u32)
    }

    /// The predicate that holds carries.
    pub(super) fn carry(&mut self) -> u32 {
        if let Some(carry) = self.carry {
            return carry;
        }
        let at = self.function.predicates;
        self.function.predicates += 1;
        self.carry = Some(at);
        at
    }

    /// Appends a micro-operation under the instruction's guard.
    pub(super) fn emit(&mut self, op: Op) {
        let guard = self.guard;
        self.emit_under(op, guard);
    }

    pub(super) fn emit_under(&mut self, op: Op, guard: Option<Guard>) {
        self.drafts.push(Draft {
            inst: Inst { op, guard },
            position: self.position,
            source: self.source,
            base: self.base.clone(),
            names: self.instruction_names.clone(),
        });
    }

    /// The name of the register that the instruction's address is made of.
    pub(super) fn note_base(&mut self, name: &str) {
        self.base = Some(name.to_owned());
    }

    fn instruction(&mut self, instruction: &Instruction<'a>) -> Result<(), LowerError> {
        self.position = instruction.position;
        self.base = None;
        self.instruction_names.clear();
        self.instruction_names
            .extend(
                instruction
                    .operands
                    .iter()
                    .filter_map(|operand| match operand {
                        gridcall_ptx::Operand::Name(name) => Some((*name).to_owned()),
                        _ => None,
                    }),
            );
        self.guard = match instruction.guard {
            None => None,
            Some(guard) => {
                if let Some(Name::Register(Register {
                    reg: Reg::P(predicate),
                    ..
                })) = self.names.find(guard.register)
                {
                    Some(Guard {
                        predicate,
                        negated: guard.negated,
                    })
                } else {
                    let message = format!("no predicate `{}` is declared", guard.register);
                    return Err(error(instruction.position, message));
                }
            }
        };
        let before = self.drafts.len();
        match instruction::lower(self, instruction) {
            Ok(()) => Ok(()),
            Err(Refusal::Unsupported) => {
                if !instruction::is_known(instruction.opcode) {
                    let message = format!("`{}` is no instruction of PTX", instruction.opcode);
                    return Err(error(instruction.position, message));
                }
                self.drafts.truncate(before);
                self.emit(Op::Unsupported);
                self.missing.push(Missing {
                    text: spelled(instruction),
                    position: instruction.position,
                });
                Ok(())
            }
            Err(Refusal::Invalid(message)) => {
                let text = spelled(instruction);
                Err(error(instruction.position, format!("`{text}`: {message}")))
            }
        }
    }

    /// Puts instructions in the place of labels.
    pub(super) fn resolve_labels(&mut self) {
        let end = self.drafts.len() as u32;
        let labels = &self.labels;
        let at = |label: u32| labels.get(label as usize).copied().flatten().unwrap_or(end);
        for draft in &mut self.drafts {
            match &mut draft.inst.op {
                Op::Branch(target) => *target = at(*target),
                Op::BranchTable { targets, .. } => {
                    targets.iter_mut().for_each(|target| *target = at(*target));
                }
                _ => {}
            }
        }
    }

    /// Declares a parameter or a result of a function, and says where it lies.
    pub(super) fn declare_formal(
        &mut self,
        param: &gridcall_ptx::Param,
        name: &'a str,
    ) -> Result<Passed, LowerError> {
        let offset = self.place_local(param.size(), param.align(), self.position)?;
        let size = param.size() as u32;
        self.names.declare(
            name,
            Name::Local {
                offset,
                size,
                is_param: true,
            },
        );
        Ok(Passed::Bytes { offset, size })
    }

    pub(super) fn declare_formal_register(
        &mut self,
        ty: ScalarType,
        name: &'a str,
    ) -> Lowered<Passed> {
        let Some(ty) = scalar(ty) else {
            return invalid("a parameter that is no number");
        };
        let register = self.new_register(ty.bits());
        self.names.declare(name, Name::Register(register));
        Ok(Passed::Register(Dest {
            reg: register.reg,
            bits: register.bits,
        }))
    }
}

/// An instruction with its modifiers, as it is written.
fn spelled(instruction: &Instruction<'_>) -> String {
    let mut text = instruction.opcode.to_owned();
    for modifier in &instruction.modifiers {
        text.push('.');
        text.push_str(modifier);
    }
    text
}

/// The interpreter's type of a declared one.
pub(super) fn scalar(ty: ScalarType) -> Option<Type> {
    Type::parse(ty.as_str().trim_start_matches('.'))
}

fn expand(names: &[NameRange<'_>]) -> Vec<String> {
    let mut all = Vec::new();
    for range in names {
        match range.count {
            None => all.push(range.name.to_owned()),
            Some(count) => {
                all.extend((0..count.min(1 << 12)).map(|number| format!("{}{number}", range.name)));
            }
        }
    }
    all
}
