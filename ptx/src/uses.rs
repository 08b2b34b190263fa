//! Which variables of its module a kernel uses: those that its code names, the functions that it
//! may call, and the initial values of variables among them.
//!
//! A name counts wherever it stands, so that none is missed but those whose address a kernel takes
//! from memory that another wrote. Code that calls a function by an address may call every one whose
//! address anything takes.

use std::collections::HashSet;

use crate::code::Operand;
use crate::entry::{Body, Entry, Function};
use crate::error::{Error, Position};
use crate::flow::for_names;
use crate::initial::other_text;
use crate::lexer::{Kind, Lexer};
use crate::module::Module;
use crate::types::StateSpace;
use crate::variable::Variable;

/// A variable that a kernel uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VariableUse<'m> {
    /// The variable, in `.const` or `.global`.
    pub variable: &'m Variable,
    /// Where the kernel certainly writes it, if it does.
    pub write: Option<Position>,
    /// Whether it certainly writes nothing of it.
    pub is_read_only: bool,
}

impl Module {
    /// The variables in `.const` and `.global` that a kernel of this module uses, in the order of
    /// the text.
    ///
    /// `source` is the text that the module was read from.
    ///
    /// # Errors
    ///
    /// If `source` is another text, or a statement of the kernel is not written as PTX is.
    ///
    /// ```
    /// use gridcall_ptx::Module;
    ///
    /// let text = ".version 9.0
    ///     .target sm_90
    ///     .const .align 4 .f32 scale;
    ///     .global .align 8 .u64 count;
    ///     .global .align 4 .u32 other;
    ///     .visible .entry tally() {
    ///         .reg .f32 %f<2>;
    ///         .reg .b64 %rd<3>;
    ///         ld.const.f32 %f1, [scale];
    ///         mov.u64 %rd1, count;
    ///         atom.global.add.u64 %rd2, [%rd1], 1;
    ///         ret;
    ///     }";
    /// let module = Module::parse(text)?;
    /// let uses = module.variable_uses(text, module.entry("tally").unwrap())?;
    /// let [scale, count] = uses[..] else { panic!("two variables") };
    /// assert!(scale.is_read_only && !count.is_read_only);
    /// assert_eq!(count.variable.name(), "count");
    /// assert_eq!(count.write.unwrap().line, 11);
    /// # Ok::<(), gridcall_ptx::Error>(())
    /// ```
    pub fn variable_uses(
        &self,
        source: &str,
        entry: &Entry,
    ) -> Result<Vec<VariableUse<'_>>, Error> {
        let Some(body) = entry.body() else {
            return Ok(Vec::new());
        };
        if !self.variables.iter().any(is_of_module) {
            return Ok(Vec::new());
        }
        let mut direct = Names::default();
        direct.read_body(source, body)?;
        let here = direct.all.clone();
        let beyond = self.beyond(source, direct)?;
        let variables: Vec<&Variable> = self
            .variables
            .iter()
            .filter(|variable| is_of_module(variable))
            .filter(|variable| here.contains(&*variable.name) || beyond.contains(&*variable.name))
            .collect();
        let names: Vec<&str> = variables.iter().map(|one| one.name()).collect();
        let flow = entry.flow_of_variables(source, &names)?;
        let uses = variables.into_iter().zip(flow).map(|(variable, flow)| {
            let constant = variable.space() == StateSpace::Const;
            let followed = flow.is_read_only() && !beyond.contains(variable.name());
            VariableUse {
                variable,
                write: flow.write().map(|access| access.position),
                is_read_only: constant || followed,
            }
        });
        Ok(uses.collect())
    }

    /// All names in the functions and initial values that what is named leads to.
    fn beyond<'s>(
        &'s self,
        source: &'s str,
        mut open: Names<'s>,
    ) -> Result<HashSet<&'s str>, Error> {
        let mut beyond = Names::default();
        let mut seen = HashSet::new();
        let mut any_function = false;
        loop {
            if (open.calls_any || beyond.calls_any) && !any_function {
                any_function = true;
                for name in self.addressed_functions(source)? {
                    beyond.add(name);
                }
            }
            let Some(name) = open.fresh.pop().or_else(|| beyond.fresh.pop()) else {
                break;
            };
            if !seen.insert(name) {
                continue;
            }
            for alias in self.aliases.iter().filter(|alias| alias.name() == name) {
                beyond.add(alias.function());
            }
            if let Some(body) = self.function(name).and_then(|function| function.body()) {
                beyond.read_body(source, body)?;
            }
            let variable = self.variables.iter().find(|variable| variable.name == name);
            if let Some(initial) = variable.and_then(Variable::initializer) {
                beyond.read(source, initial.range(), initial.position())?;
            }
        }
        Ok(beyond.all)
    }

    /// The functions whose address a variable holds from the start, or code takes.
    fn addressed_functions<'s>(&'s self, source: &'s str) -> Result<Vec<&'s str>, Error> {
        let mut named = Names::default();
        for initial in self.variables.iter().filter_map(Variable::initializer) {
            named.read(source, initial.range(), initial.position())?;
        }
        let entries = self.entries.iter().map(Entry::body);
        let bodies = entries.chain(self.functions.iter().map(Function::body));
        for body in bodies.flatten() {
            for instruction in body.parse(source)?.instructions() {
                // A function that is called by its name need not be called by an address.
                let operands = match (instruction.opcode, instruction.operands.as_slice()) {
                    ("call", [Operand::List(_), _, rest @ ..] | [_, rest @ ..]) => rest,
                    (_, all) => all,
                };
                for operand in operands {
                    for_names(operand, &mut |name| named.add(name));
                }
            }
        }
        let is_function = |name: &&str| {
            let alias = self.aliases.iter().any(|alias| alias.name() == *name);
            alias || self.function(name).is_some()
        };
        Ok(named.all.into_iter().filter(is_function).collect())
    }
}

fn is_of_module(variable: &Variable) -> bool {
    matches!(variable.space, StateSpace::Const | StateSpace::Global)
}

/// The words of some parts of the text.
#[derive(Default)]
struct Names<'s> {
    all: HashSet<&'s str>,
    /// Those that nobody has looked up yet.
    fresh: Vec<&'s str>,
    /// Whether code among them calls a function by its address.
    calls_any: bool,
}

impl<'s> Names<'s> {
    fn add(&mut self, name: &'s str) {
        if self.all.insert(name) {
            self.fresh.push(name);
        }
    }

    fn read_body(&mut self, source: &'s str, body: &Body) -> Result<(), Error> {
        self.read(source, body.range(), body.position())
    }

    fn read(
        &mut self,
        source: &'s str,
        range: std::ops::Range<usize>,
        position: Position,
    ) -> Result<(), Error> {
        let lexer = Lexer::resume(source, range.start, range.end, position);
        let mut lexer = lexer.ok_or_else(|| other_text(position))?;
        loop {
            let token = lexer.next();
            match token.kind {
                Kind::End => return Ok(()),
                Kind::Directive if token.text == ".callprototype" => self.calls_any = true,
                // Registers are most of what there is.
                Kind::Word if !token.text.starts_with('%') => self.add(token.text),
                _ => {}
            }
        }
    }
}
