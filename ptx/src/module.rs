//! A module: all that one PTX text declares.

use std::collections::HashMap;

use crate::entry::{Alias, Entry, Function};
use crate::error::Error;
use crate::parse;
use crate::target::{Target, Version};
use crate::variable::{File, Variable};

/// What a PTX text declares.
///
/// It owns what it says and does not keep the text; whoever wants code gives the text again.
///
/// ```
/// use gridcall_ptx::Module;
///
/// let text = "
///     .version 9.5
///     .target sm_90
///     .address_size 64
///     .visible .entry saxpy(.param .u32 n, .param .f32 a, .param .u64 x, .param .u64 y) { ret; }
/// ";
/// let module = Module::parse(text)?;
/// let saxpy = module.entry("saxpy").unwrap();
/// assert_eq!(saxpy.params()[2].offset(), 8);
/// assert_eq!(saxpy.params_size(), 24);
/// # Ok::<(), gridcall_ptx::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    pub(crate) version: Version,
    pub(crate) target: Target,
    pub(crate) address_size: u32,
    pub(crate) entries: Vec<Entry>,
    pub(crate) entry_by_name: HashMap<String, usize>,
    pub(crate) functions: Vec<Function>,
    pub(crate) function_by_name: HashMap<String, usize>,
    pub(crate) variables: Vec<Variable>,
    pub(crate) files: Vec<File>,
    pub(crate) aliases: Vec<Alias>,
}

impl Module {
    /// Reads the declarations of a text; the code in the bodies is stepped over.
    ///
    /// # Errors
    ///
    /// If the text is not PTX, or what it declares cannot be told. What stands in a body is never an error here.
    pub fn parse(source: &str) -> Result<Module, Error> {
        parse::module(source)
    }

    /// `.version`, the version of the language.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// `.target`, what the code was compiled for.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// `.address_size`, the bits of an address: 64, or 32, which is what holds if the text says nothing.
    #[must_use]
    pub fn address_size(&self) -> u32 {
        self.address_size
    }

    /// The kernels, in the order of the text.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The kernel of a name.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entry_by_name
            .get(name)
            .map(|&index| &self.entries[index])
    }

    /// The device functions, defined here or only announced, in the order of the text.
    #[must_use]
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// The device function of a name.
    #[must_use]
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.function_by_name
            .get(name)
            .map(|&index| &self.functions[index])
    }

    /// Second names of device functions.
    #[must_use]
    pub fn aliases(&self) -> &[Alias] {
        &self.aliases
    }

    /// The variables outside of functions, in the order of the text.
    #[must_use]
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// The source files that `.loc` speaks of.
    #[must_use]
    pub fn files(&self) -> &[File] {
        &self.files
    }
}
