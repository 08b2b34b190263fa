//! What a kernel's code does with its parameters: which it follows as a pointer, and how it reaches
//! memory.
//!
//! Takes all definitions of a register together, whatever path leads to them, and claims only what
//! holds on each: an access is told of where its address starts from one parameter and nothing else
//! that could be a pointer. What goes through memory, calls or unknown instructions is not
//! followed, and said to be so.

mod transfer;
mod value;

use std::collections::HashMap;

use crate::code::{CallPrototype, Code, Statement};
use crate::entry::{Entry, signature};
use crate::error::{Error, Position};
use crate::param::Param;
use crate::types::ScalarType;

pub(crate) use transfer::for_names;
use transfer::{Program, Source, Touch, Transfer};
use value::{MOST_PARAMS, Root, Set, Value, only};

/// What the code of a kernel does with each of its parameters.
///
/// ```
/// use gridcall_ptx::{Module, Reach};
///
/// let text = ".version 9.5
///     .target sm_90
///     .visible .entry fill(.param .u64 data, .param .f32 value) {
///         .reg .f32 %f<2>;
///         .reg .b64 %rd<3>;
///         ld.param.u64 %rd1, [data];
///         ld.param.f32 %f1, [value];
///         cvta.to.global.u64 %rd2, %rd1;
///         st.global.f32 [%rd2], %f1;
///         ret;
///     }";
/// let module = Module::parse(text)?;
/// let flow = module.entries()[0].flow(text)?;
/// let data = &flow.params()[0];
/// assert_eq!(data.accesses()[0].reach, Reach::Write);
/// assert_eq!(data.accesses()[0].bytes(), Some(4));
/// assert!(data.is_complete());
/// # Ok::<(), gridcall_ptx::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    params: Vec<ParamFlow>,
}

/// What the code does with one parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamFlow {
    accesses: Vec<Access>,
    calls: Vec<IndirectCall>,
    complete: bool,
    inspected: bool,
    used: bool,
}

/// An access to memory whose address certainly starts from the parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Whether it reads, writes or both.
    pub reach: Reach,
    /// The type of one element, if the instruction tells: floating point also where another
    /// instruction takes the value as such.
    pub ty: Option<ScalarType>,
    /// The elements at once: 4 of `.v4`.
    pub lanes: u32,
    /// The power of two that all that is added to the parameter is a multiple of, in bytes; none
    /// where nothing is added but the offset in the instruction.
    pub step: Option<u64>,
    /// Where the instruction is.
    pub position: Position,
}

/// A call of the function whose address the parameter certainly is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndirectCall {
    /// What the function returns by the call's prototype.
    pub returns: Vec<Param>,
    /// What it takes by the call's prototype.
    pub params: Vec<Param>,
    /// Where the prototype is.
    pub prototype: Position,
    /// Where the call is.
    pub position: Position,
}

/// How an instruction reaches memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reach {
    /// It reads.
    Read,
    /// It writes.
    Write,
    /// It does both at once, as atomics do.
    Update,
}

impl Access {
    /// The bytes at once, to which the address must be aligned.
    #[must_use]
    pub fn bytes(&self) -> Option<usize> {
        Some(self.ty?.size() * self.lanes as usize)
    }
}

impl IndirectCall {
    /// The prototype, without names: `(.b32, .b64) -> .b32`.
    #[must_use]
    pub fn signature(&self) -> String {
        signature(&self.params, &self.returns)
    }
}

impl Flow {
    /// The parameters in order.
    #[must_use]
    pub fn params(&self) -> &[ParamFlow] {
        &self.params
    }
}

impl ParamFlow {
    /// The accesses through it that are certain.
    #[must_use]
    pub fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// The calls of it as a function that are certain, by a prototype (`.callprototype`).
    #[must_use]
    pub fn calls(&self) -> &[IndirectCall] {
        &self.calls
    }

    /// Whether there are certainly no other accesses.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Whether the code may look at its value other than to reach memory, as to test its alignment.
    #[must_use]
    pub fn is_inspected(&self) -> bool {
        self.inspected
    }

    /// Whether the code names it at all.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.used
    }

    /// The first access that certainly writes.
    #[must_use]
    pub fn write(&self) -> Option<&Access> {
        self.accesses
            .iter()
            .find(|access| access.reach != Reach::Read)
    }

    /// Whether certainly nothing is written through it.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.complete && self.write().is_none()
    }
}

impl Entry {
    /// Follows the parameters through the code.
    ///
    /// `source` is the text that the module was read from. A kernel without a body uses none of its
    /// parameters.
    ///
    /// # Errors
    ///
    /// If a statement of the body is not written as PTX is.
    pub fn flow(&self, source: &str) -> Result<Flow, Error> {
        match &self.body {
            Some(body) => Ok(self.follow(&[], &body.parse(source)?)),
            None => Ok(Flow {
                params: vec![ParamFlow::UNUSED; self.params.len()],
            }),
        }
    }

    /// Follows the addresses of variables through the code, as [`flow`](Self::flow) does the
    /// parameters.
    pub(crate) fn flow_of_variables(
        &self,
        source: &str,
        variables: &[&str],
    ) -> Result<Vec<ParamFlow>, Error> {
        match &self.body {
            Some(body) if !variables.is_empty() => {
                let mut flow = self.follow(variables, &body.parse(source)?);
                Ok(flow.params.split_off(self.params.len()))
            }
            _ => Ok(vec![ParamFlow::UNUSED; variables.len()]),
        }
    }

    /// Variables are told as if they were further parameters.
    fn follow(&self, variables: &[&str], code: &Code<'_>) -> Flow {
        let count = self.params.len() + variables.len();
        let program = Program::new(&self.params, variables, code);
        let Some(values) = settle(&program) else {
            return Flow {
                params: vec![ParamFlow::UNTOLD; count],
            };
        };
        let mut incomplete = program.odd;
        let mut inspected: Set = 0;
        for &register in &program.escapes {
            incomplete |= values[register].tainted;
        }
        for &register in &program.inspected {
            inspected |= values[register].tainted;
        }
        let mut params = vec![ParamFlow::UNUSED; count];
        let floats = program.floats();
        for touch in &program.touches {
            match values[touch.base].root {
                Root::Param { param, step } => {
                    if let Some(flow) = params.get_mut(param) {
                        flow.accesses.push(access(touch, step.bytes(), &floats));
                    }
                }
                _ => incomplete |= values[touch.base].tainted,
            }
        }
        for called in &program.calls {
            if let Root::Param { param, step } = values[called.address].root
                && step.bytes().is_none()
                && let Some(flow) = params.get_mut(param)
                && let Some(prototype) = prototype(code, called.prototype)
            {
                flow.calls.push(IndirectCall {
                    returns: prototype.returns.clone(),
                    params: prototype.params.clone(),
                    prototype: prototype.position,
                    position: called.position,
                });
            }
        }
        for (index, flow) in params.iter_mut().enumerate() {
            flow.used = program.used.contains(&index);
            flow.complete = index < MOST_PARAMS && incomplete & only(index) == 0;
            flow.inspected = index >= MOST_PARAMS || inspected & only(index) != 0;
            if index >= MOST_PARAMS {
                flow.accesses.clear();
                flow.calls.clear();
            }
        }
        Flow { params }
    }
}

impl ParamFlow {
    const UNUSED: ParamFlow = ParamFlow {
        accesses: Vec::new(),
        calls: Vec::new(),
        complete: true,
        inspected: false,
        used: false,
    };
    const UNTOLD: ParamFlow = ParamFlow {
        accesses: Vec::new(),
        calls: Vec::new(),
        complete: false,
        inspected: true,
        used: true,
    };
}

/// The prototype of a label; none of a list of functions, or if there are several.
fn prototype<'c, 'a>(code: &'c Code<'a>, label: &str) -> Option<&'c CallPrototype<'a>> {
    let mut found = code
        .statements()
        .iter()
        .filter_map(|statement| match statement {
            Statement::CallPrototype(prototype) if prototype.label == label => Some(prototype),
            _ => None,
        });
    match (found.next(), found.next()) {
        (Some(prototype), None) => Some(prototype),
        _ => None,
    }
}

fn access(touch: &Touch<'_>, step: Option<u64>, floats: &HashMap<&str, ScalarType>) -> Access {
    let float = |ty: ScalarType| {
        let as_float = touch.data.iter().find_map(|name| floats.get(name));
        as_float
            .filter(|float| float.size() == ty.size())
            .copied()
            .unwrap_or(ty)
    };
    Access {
        reach: touch.reach,
        ty: touch.ty.map(float),
        lanes: touch.lanes,
        step,
        position: touch.instruction.position,
    }
}

/// Rounds after which code is given up; that of compilers takes about five.
const MOST_ROUNDS: usize = 100;

/// The value of each register, after as many rounds as it takes for none to change.
fn settle(program: &Program<'_>) -> Option<Vec<Value>> {
    let mut values = vec![Value::UNSET; program.registers()];
    for round in 0.. {
        if round == MOST_ROUNDS {
            return None;
        }
        let mut changed = false;
        for transfer in &program.transfers {
            let (register, value) = apply(transfer, &values);
            let joined = values[register].join(value);
            changed |= joined != values[register];
            values[register] = joined;
        }
        if !changed {
            break;
        }
    }
    // What no instruction defines is nothing that could be claimed.
    for value in &mut values {
        if value.is_unset() {
            value.root = Root::Unknown;
        }
    }
    Some(values)
}

fn apply(transfer: &Transfer, values: &[Value]) -> (usize, Value) {
    let get = |source: &Source| match source {
        Source::Register(register) => values[*register],
        Source::Value(value) => *value,
    };
    match transfer {
        Transfer::Set(to, from) => (*to, get(from)),
        Transfer::Add(to, a, b) => (*to, get(a).add(get(b))),
        Transfer::Subtract(to, a, b) => (*to, get(a).subtract(get(b))),
        Transfer::Multiply(to, a, b) => (*to, get(a).multiply(get(b))),
        Transfer::MultiplyAdd(to, [a, b, c]) => (*to, get(a).multiply(get(b)).add(get(c))),
        Transfer::Choose(to, a, b) => (*to, get(a).join(get(b))),
        Transfer::Blur(to, sources) => {
            let all = sources.iter().map(|source| get(source).blur());
            (*to, all.fold(Value::UNSET, Value::join))
        }
    }
}
