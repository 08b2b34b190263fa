//! What the names in a body stand for, scope by scope.

use std::collections::HashMap;

use super::super::code::Reg;

/// A register as PTX declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Register {
    pub(super) reg: Reg,
    pub(super) bits: u32,
}

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Register(Register),
    /// The elements of a vector of registers.
    Vector(Vec<Register>),
    /// A variable that the loader places.
    Symbol(usize),
    /// A variable in shared memory.
    Shared(usize),
    /// Bytes of the frame's local memory; a parameter of a call or of the function if so.
    Local {
        offset: u32,
        size: u32,
        is_param: bool,
    },
    KernelParam {
        offset: u32,
        size: u32,
    },
    /// The bytes of each parameter and result of a function that is called through a register.
    Prototype {
        returns: Vec<u32>,
        params: Vec<u32>,
    },
    /// The functions that a call through a register may reach.
    CallTargets(Vec<usize>),
    /// Labels, by their number.
    BranchTargets(Vec<u32>),
}

#[derive(Clone, Debug, Default)]
struct Scope<'a> {
    names: HashMap<&'a str, Name>,
    ranges: HashMap<&'a str, Vec<Name>>,
}

/// The scopes that are open, innermost last.
#[derive(Clone, Debug, Default)]
pub(super) struct Names<'a> {
    scopes: Vec<Scope<'a>>,
}

impl<'a> Names<'a> {
    pub(super) fn open(&mut self) {
        self.scopes.push(Scope::default());
    }

    pub(super) fn close(&mut self) {
        self.scopes.pop();
    }

    pub(super) fn declare(&mut self, name: &'a str, what: Name) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.names.insert(name, what);
        }
    }

    /// Declares `name` followed by each number.
    pub(super) fn declare_range(&mut self, name: &'a str, members: Vec<Name>) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.ranges.insert(name, members);
        }
    }

    pub(super) fn find(&self, name: &str) -> Option<Name> {
        self.scopes.iter().rev().find_map(|scope| scope.find(name))
    }
}

impl Scope<'_> {
    fn find(&self, name: &str) -> Option<Name> {
        if let Some(found) = self.names.get(name) {
            return Some(found.clone());
        }
        let digits = name.len()
            - name
                .trim_end_matches(|last: char| last.is_ascii_digit())
                .len();
        // `%r10` may be the tenth of `%r` or the first of `%r1`.
        (1..=digits).rev().find_map(|length| {
            let (stem, number) = name.split_at(name.len() - length);
            if number.len() > 1 && number.starts_with('0') {
                return None;
            }
            self.ranges
                .get(stem)?
                .get(number.parse::<usize>().ok()?)
                .cloned()
        })
    }
}
