//! The module: where variables go, which functions there are, and what each kernel reaches.

use std::collections::HashMap;

use gridcall_ptx::{
    Code, Declaration, Element, Linkage, Module, Param, Position, ScalarType, StateSpace,
    Statement, Value,
};

use super::super::TextPosition;
use super::super::code::{Function, Inst, Op, Passed};
use super::super::code_base::CodeBase;
use super::super::program::{
    Kernel, KernelParam, LowerError, Lowered, Relocation, SharedVariable, Unsupported, Variable,
    VariableSpace,
};
use super::super::types::Type;
use super::body::{Body, Draft, Missing, scalar};
use super::names::Name;
use super::{error, flow, lenient, registers};

/// The newest version of PTX whose instructions are known.
const NEWEST: (u32, u32) = (9, 9);

/// What a call has to know of a function: bytes and type of each parameter and result.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pub(super) params: Vec<(u32, Option<Type>)>,
    pub(super) returns: Vec<(u32, Option<Type>)>,
    pub(super) has_body: bool,
}

/// What all bodies share.
#[derive(Debug, Default)]
pub(super) struct Environment<'a> {
    pub(super) code_base: CodeBase,
    pub(super) functions: HashMap<&'a str, usize>,
    pub(super) signatures: Vec<Known>,
    symbols: HashMap<&'a str, usize>,
    shared: HashMap<&'a str, usize>,
    /// Variables that are declared in bodies, by where they stand.
    pub(super) symbol_at: HashMap<Position, usize>,
    pub(super) shared_at: HashMap<Position, usize>,
    param_bytes: HashMap<&'a str, u32>,
}

impl Environment<'_> {
    pub(super) fn param_bytes(&self, kernel: &str) -> u32 {
        self.param_bytes.get(kernel).copied().unwrap_or(0)
    }
}

/// Lowers a text.
pub(crate) fn lower(source: &str) -> Result<Lowered, LowerError> {
    let module = parse(source)?;
    let version = (module.version().major, module.version().minor);
    if version > NEWEST {
        return Err(LowerError {
            position: TextPosition { line: 1, column: 1 },
            message: format!(
                "PTX {}.{} is newer than {}.{}, the newest that is known",
                version.0, version.1, NEWEST.0, NEWEST.1
            ),
            not_ptx: false,
            unknown_version: Some(version),
        });
    }
    let mut bodies = Vec::new();
    for body in module.entries().iter().map(gridcall_ptx::Entry::body) {
        bodies.push(
            body.map(|body| body.parse(source))
                .transpose()
                .map_err(|e| broken(&e))?,
        );
    }
    for body in module.functions().iter().map(gridcall_ptx::Function::body) {
        bodies.push(
            body.map(|body| body.parse(source))
                .transpose()
                .map_err(|e| broken(&e))?,
        );
    }
    let mut environment = Environment {
        code_base: CodeBase::next(),
        ..Environment::default()
    };
    name_functions(&module, &bodies, &mut environment);
    let mut variables = Vec::new();
    let mut shared = Vec::new();
    place_variables(
        &module,
        source,
        &bodies,
        &mut environment,
        &mut variables,
        &mut shared,
    )?;
    let mut functions = Vec::new();
    let mut drafts = Vec::new();
    let mut missing = Vec::new();
    for (index, code) in bodies.iter().enumerate() {
        let (function, draft, lacks) = lower_body(&module, &environment, index, code.as_ref())?;
        functions.push(function);
        drafts.push(draft);
        missing.push(lacks);
    }
    let mut lowered = Lowered {
        version,
        code_base: environment.code_base,
        target: module.target().name().to_owned(),
        variables,
        shared,
        files: module
            .files()
            .iter()
            .map(|file| (file.index(), file.name().to_owned()))
            .collect(),
        ..Lowered::default()
    };
    for (function, draft) in functions.iter_mut().zip(drafts) {
        finish(function, draft, &mut lowered);
    }
    lowered.kernels = kernels(
        &module,
        &functions,
        &missing,
        &lowered.variables,
        &lowered.shared,
    );
    lowered.functions = functions;
    Ok(lowered)
}

fn parse(source: &str) -> Result<Module, LowerError> {
    Module::parse(source).map_err(|found| {
        let mut failed = broken(&found);
        // A text whose first words are not those of a module is no PTX at all.
        failed.not_ptx = !source.contains(".version");
        failed
    })
}

fn broken(found: &gridcall_ptx::Error) -> LowerError {
    error(found.position(), found.message())
}

fn name_functions<'a>(
    module: &'a Module,
    bodies: &[Option<Code<'_>>],
    environment: &mut Environment<'a>,
) {
    for (index, entry) in module.entries().iter().enumerate() {
        environment.functions.insert(entry.name(), index);
        environment
            .param_bytes
            .insert(entry.name(), entry.params_size() as u32);
        environment.signatures.push(Known {
            has_body: bodies[index].is_some(),
            ..Known::default()
        });
    }
    let first = module.entries().len();
    for (at, function) in module.functions().iter().enumerate() {
        let index = first + at;
        let describe = |params: &[Param]| {
            params
                .iter()
                .map(|p| (p.size() as u32, scalar_of(p)))
                .collect()
        };
        let known = Known {
            params: describe(function.params()),
            returns: describe(function.returns()),
            has_body: bodies[index].is_some(),
        };
        // A definition wins over an announcement, whichever comes first.
        let before = environment.functions.get(function.name()).copied();
        if known.has_body || before.is_none() {
            environment.functions.insert(function.name(), index);
        }
        environment.signatures.push(known);
    }
    for alias in module.aliases() {
        if let Some(&index) = environment.functions.get(alias.function()) {
            environment.functions.insert(alias.name(), index);
        }
    }
}

/// The type of a parameter that is one number.
fn scalar_of(param: &Param) -> Option<Type> {
    if param.is_array() || param.vector() > 1 {
        None
    } else {
        scalar(param.ty())
    }
}

fn place_variables<'a>(
    module: &'a Module,
    source: &str,
    bodies: &[Option<Code<'_>>],
    environment: &mut Environment<'a>,
    variables: &mut Vec<Variable>,
    shared: &mut Vec<SharedVariable>,
) -> Result<(), LowerError> {
    let mut initial: Vec<(usize, Position, ScalarType, Vec<OwnedElement>)> = Vec::new();
    for variable in module.variables() {
        let space = match variable.space() {
            StateSpace::Global => VariableSpace::Global,
            StateSpace::Const => VariableSpace::Const,
            StateSpace::Shared => {
                let known = environment.shared.get(variable.name()).copied();
                let index = known.unwrap_or(shared.len());
                if known.is_none() {
                    shared.push(SharedVariable {
                        size: variable
                            .size()
                            .filter(|size| *size > 0)
                            .map(|size| size as u32),
                        align: variable.align() as u32,
                    });
                }
                environment.shared.insert(variable.name(), index);
                continue;
            }
            // References to textures and the like: whoever uses one is not supported.
            _ => continue,
        };
        let is_extern = variable.linkage() == Linkage::Extern;
        if let Some(&known) = environment.symbols.get(variable.name()) {
            // An announcement and its definition are one variable.
            if is_extern {
                continue;
            }
            variables[known].is_extern = false;
            variables[known].size = variable.size().unwrap_or(0) as u64;
        } else {
            environment.symbols.insert(variable.name(), variables.len());
            variables.push(Variable {
                name: variable.name().to_owned(),
                space,
                size: variable.size().unwrap_or(0) as u64,
                align: variable.align() as u64,
                initial: Vec::new(),
                relocations: Vec::new(),
                is_extern,
                is_visible: variable.linkage() != Linkage::None,
                is_managed: variable.is_managed(),
            });
        }
        let elements = variable.elements(source).map_err(|found| broken(&found))?;
        if !elements.is_empty() {
            let index = environment.symbols[variable.name()];
            let owned = elements.iter().map(OwnedElement::of).collect();
            initial.push((index, variable.position(), variable.ty(), owned));
        }
    }
    for code in bodies.iter().flatten() {
        for statement in code.statements() {
            if let Statement::Declaration(declaration) = statement {
                place_inner(declaration, environment, variables, shared, &mut initial);
            }
        }
    }
    for (index, position, ty, elements) in initial {
        fill(&mut variables[index], environment, position, ty, &elements)?;
    }
    for (index, variable) in variables.iter().enumerate() {
        if variable.is_extern && !environment.symbols.values().any(|used| *used == index) {
            return Err(error(
                Position { line: 1, column: 1 },
                "a variable that is nowhere",
            ));
        }
    }
    Ok(())
}

/// An element of an initial value, apart from the text.
#[derive(Debug)]
struct OwnedElement {
    offset: usize,
    value: OwnedValue,
}

#[derive(Debug)]
enum OwnedValue {
    Constant(gridcall_ptx::Constant),
    Address {
        name: String,
        offset: i64,
        mask: Option<u64>,
    },
}

impl OwnedElement {
    fn of(element: &Element<'_>) -> Self {
        let value = match element.value {
            Value::Address(address) => OwnedValue::Address {
                name: address.name.to_owned(),
                offset: address.offset,
                mask: address.mask,
            },
            Value::Constant(constant) => OwnedValue::Constant(constant),
            _ => OwnedValue::Constant(gridcall_ptx::Constant::S64(0)),
        };
        Self {
            offset: element.offset,
            value,
        }
    }
}

fn place_inner(
    declaration: &Declaration<'_>,
    environment: &mut Environment<'_>,
    variables: &mut Vec<Variable>,
    shared: &mut Vec<SharedVariable>,
    initial: &mut Vec<(usize, Position, ScalarType, Vec<OwnedElement>)>,
) {
    for declared in &declaration.names {
        match declaration.space {
            StateSpace::Shared => {
                environment
                    .shared_at
                    .insert(declared.position, shared.len());
                shared.push(SharedVariable {
                    size: declared
                        .size
                        .filter(|size| *size > 0)
                        .map(|size| size as u32),
                    align: declaration.align as u32,
                });
            }
            StateSpace::Global | StateSpace::Const => {
                environment
                    .symbol_at
                    .insert(declared.position, variables.len());
                if !declared.elements.is_empty() {
                    let owned = declared.elements.iter().map(OwnedElement::of).collect();
                    initial.push((variables.len(), declared.position, declaration.ty, owned));
                }
                variables.push(Variable {
                    name: declared.name.name.to_owned(),
                    space: if declaration.space == StateSpace::Const {
                        VariableSpace::Const
                    } else {
                        VariableSpace::Global
                    },
                    size: declared.size.unwrap_or(0) as u64,
                    align: declaration.align as u64,
                    initial: Vec::new(),
                    relocations: Vec::new(),
                    is_extern: false,
                    is_visible: false,
                    is_managed: false,
                });
            }
            _ => {}
        }
    }
}

fn fill(
    variable: &mut Variable,
    environment: &Environment<'_>,
    position: Position,
    ty: ScalarType,
    elements: &[OwnedElement],
) -> Result<(), LowerError> {
    let size = ty.size();
    let whole = usize::try_from(variable.size).unwrap_or(0);
    variable.initial = vec![0; whole];
    for element in elements {
        let Some(bytes) = variable
            .initial
            .get_mut(element.offset..element.offset + size)
        else {
            return Err(error(
                position,
                "an initial value that is longer than the variable",
            ));
        };
        match &element.value {
            OwnedValue::Constant(constant) => {
                let Some(bits) = constant.bits(ty) else {
                    return Err(error(position, format!("an initial value that is no {ty}")));
                };
                bytes.copy_from_slice(&bits.to_le_bytes()[..size.min(8)]);
            }
            OwnedValue::Address { name, offset, mask } => {
                let part = |address: u64| match mask {
                    None => address,
                    Some(mask) => (address & mask) >> mask.trailing_zeros().min(63),
                };
                if let Some(&target) = environment.symbols.get(name.as_str()) {
                    variable.relocations.push(Relocation {
                        offset: element.offset as u64,
                        size: size as u32,
                        variable: target,
                        addend: *offset,
                        mask: *mask,
                    });
                } else if let Some(&function) = environment.functions.get(name.as_str()) {
                    let address = part(environment.code_base.address(function));
                    bytes.copy_from_slice(&address.to_le_bytes()[..size.min(8)]);
                } else {
                    return Err(error(
                        position,
                        format!("an initial value that speaks of `{name}`, which is not declared"),
                    ));
                }
            }
        }
    }
    Ok(())
}

type LoweredBody = (Function, Vec<Draft>, Vec<Missing>);

fn lower_body<'a>(
    module: &'a Module,
    environment: &Environment<'a>,
    index: usize,
    code: Option<&Code<'a>>,
) -> Result<LoweredBody, LowerError> {
    let entry = module.entries().get(index);
    let function = module
        .functions()
        .get(index.wrapping_sub(module.entries().len()));
    let (name, position) = match (entry, function) {
        (Some(entry), _) => (entry.name(), entry.position()),
        (None, Some(function)) => (function.name(), function.position()),
        (None, None) => ("", Position { line: 1, column: 1 }),
    };
    let empty = Function {
        name: name.to_owned(),
        is_kernel: entry.is_some(),
        has_body: code.is_some(),
        granule: 4,
        ..Function::default()
    };
    let mut body = Body::new(environment, empty, position);
    for (name, index) in &environment.symbols {
        body.names.declare(name, Name::Symbol(*index));
    }
    for (name, index) in &environment.shared {
        body.names.declare(name, Name::Shared(*index));
    }
    body.names.open();
    if let Some(entry) = entry {
        for param in entry.params() {
            let (offset, size) = (param.offset() as u32, param.size() as u32);
            body.names
                .declare(param.name(), Name::KernelParam { offset, size });
        }
    }
    if let Some(function) = function {
        let params = formals(&mut body, function.params())?;
        let returns = formals(&mut body, function.returns())?;
        body.function.params = params;
        body.function.returns = returns;
    }
    if let Some(code) = code {
        body.run(code)?;
        // A body may end without `ret`.
        body.emit_under(Op::Return, None);
        body.resolve_labels();
    }
    Ok((body.function, body.drafts, body.missing))
}

fn formals<'a>(body: &mut Body<'a, '_>, params: &'a [Param]) -> Result<Vec<Passed>, LowerError> {
    params
        .iter()
        .map(|param| {
            if param.space() == StateSpace::Reg {
                body.declare_formal_register(param.ty(), param.name())
                    .map_err(|_| {
                        error(
                            param.position(),
                            "a parameter in a register that is no number",
                        )
                    })
            } else {
                body.declare_formal(param, param.name())
            }
        })
        .collect()
}

/// Gives a function its final form and its place in the program's code.
fn finish(function: &mut Function, drafts: Vec<Draft>, lowered: &mut Lowered) {
    let drafts = flow::mark_joins(
        drafts,
        function.is_kernel,
        &mut lowered.joins,
        lowered.code.len() as u32,
    );
    let drafts = lenient::mark(drafts);
    let drafts = registers::allocate(function, drafts);
    let base = lowered.code.len() as u32;
    function.entry = base;
    for draft in drafts {
        let Draft {
            inst,
            position,
            source,
            base: address,
            names,
        } = draft;
        let op = match inst.op {
            Op::Compute(compute) => compute.specialise().unwrap_or(Op::Compute(compute)),
            Op::Branch(target) => Op::Branch(target + base),
            Op::BranchTable { targets, index } => Op::BranchTable {
                targets: targets.iter().map(|target| target + base).collect(),
                index,
            },
            other => other,
        };
        lowered.code.push(Inst { op, ..inst });
        lowered.positions.push(TextPosition {
            line: position.line,
            column: position.column,
        });
        lowered.sources.push(source);
        lowered.bases.push(address);
        lowered.names.push(names);
    }
    function.end = lowered.code.len() as u32;
}

fn kernels(
    module: &Module,
    functions: &[Function],
    missing: &[Vec<Missing>],
    variables: &[Variable],
    shared: &[SharedVariable],
) -> Vec<Kernel> {
    let const_bytes = variables
        .iter()
        .filter(|variable| variable.space == VariableSpace::Const)
        .fold(0_u64, |sum, variable| {
            let start = sum
                .checked_next_multiple_of(variable.align.max(1))
                .unwrap_or(sum);
            start.saturating_add(variable.size)
        });
    module
        .entries()
        .iter()
        .enumerate()
        .map(|(index, entry)| {
            let reached = reached(functions, index);
            let mut used: Vec<usize> = reached
                .iter()
                .flat_map(|at| functions[*at].shared.iter().copied())
                .collect();
            used.sort_unstable();
            used.dedup();
            let shared_bytes = used.iter().fold(0_u32, |end, at| match shared[*at] {
                SharedVariable {
                    size: Some(size),
                    align,
                } => end
                    .checked_next_multiple_of(align.max(1))
                    .unwrap_or(end)
                    .saturating_add(size),
                SharedVariable { size: None, .. } => end,
            });
            let directives = entry.directives();
            let product = |extents: [u32; 3]| {
                extents
                    .iter()
                    .fold(1, |all: u32, extent| all.saturating_mul(*extent))
            };
            let function = &functions[index];
            Kernel {
                name: entry.name().to_owned(),
                params: entry
                    .params()
                    .iter()
                    .map(|param| KernelParam {
                        name: param.name().to_owned(),
                        offset: param.offset() as u32,
                        size: param.size() as u32,
                        align: param.align() as u32,
                    })
                    .collect(),
                param_bytes: entry.params_size() as u32,
                shared_bytes,
                local_bytes: local_bytes(functions, index, &reached),
                const_bytes: u32::try_from(const_bytes).unwrap_or(u32::MAX),
                max_threads: directives.reqntid().or(directives.maxntid()).map(product),
                required_block: directives.reqntid(),
                required_cluster: directives.reqnctapercluster(),
                counts_clusters: directives.blocksareclusters(),
                explicit_cluster: directives.explicitcluster(),
                max_cluster_rank: directives.maxclusterrank(),
                registers: (function.words + 2 * function.doubles)
                    .clamp(16, directives.maxnreg().unwrap_or(255).max(16)),
                position: TextPosition {
                    line: entry.position().line,
                    column: entry.position().column,
                },
                unsupported: unsupported(&reached, missing),
                shared: used,
                granule: reached
                    .iter()
                    .map(|at| functions[*at].granule)
                    .min()
                    .unwrap_or(4)
                    .max(1),
                reached,
            }
        })
        .collect()
}

/// The local memory of a kernel and, as for compilers, of the largest function that it may call.
fn local_bytes(functions: &[Function], kernel: usize, reached: &[usize]) -> u32 {
    let called = reached.iter().filter(|at| **at != kernel);
    let largest = called.map(|at| functions[*at].local_bytes).max();
    functions[kernel]
        .local_bytes
        .saturating_add(largest.unwrap_or(0))
}

/// All functions that one can call, itself included.
fn reached(functions: &[Function], from: usize) -> Vec<usize> {
    let mut seen = vec![false; functions.len()];
    let mut left = vec![from];
    let mut all = Vec::new();
    let mut calls_any = false;
    while let Some(at) = left.pop() {
        if std::mem::replace(&mut seen[at], true) {
            continue;
        }
        all.push(at);
        left.extend(&functions[at].calls);
        // An address may come from anywhere: a table in memory, or a parameter.
        if functions[at].calls_any && !std::mem::replace(&mut calls_any, true) {
            left.extend(
                (0..functions.len())
                    .filter(|at| functions[*at].has_body && !functions[*at].is_kernel),
            );
        }
    }
    all.sort_unstable();
    all
}

fn unsupported(reached: &[usize], missing: &[Vec<Missing>]) -> Vec<Unsupported> {
    let mut found: Vec<Unsupported> = Vec::new();
    for lacks in reached.iter().flat_map(|at| &missing[*at]) {
        match found
            .iter_mut()
            .find(|known| known.instruction == lacks.text)
        {
            Some(known) => known.count += 1,
            None => found.push(Unsupported {
                instruction: lacks.text.clone(),
                position: TextPosition {
                    line: lacks.position.line,
                    column: lacks.position.column,
                },
                count: 1,
            }),
        }
    }
    found
}
