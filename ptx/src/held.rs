//! Which functions a variable holds the addresses of when its module is loaded.

use crate::constant::Constant;
use crate::entry::Function;
use crate::error::{Error, Position};
use crate::initial::Value;
use crate::module::Module;
use crate::variable::Variable;

/// An element of an initial value that is not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held<'m> {
    /// Where it stands in the text.
    pub position: Position,
    /// What it is the address of; none of a number.
    pub name: Option<&'m str>,
    /// The function whose address it is.
    pub function: Option<&'m Function>,
}

impl Module {
    /// What a variable of this module holds from the start, where it holds addresses of functions.
    ///
    /// `source` is the text that the module was read from.
    ///
    /// # Errors
    ///
    /// If the initial value cannot be read.
    ///
    /// ```
    /// use gridcall_ptx::Module;
    ///
    /// let text = ".version 9.0
    ///     .target sm_90
    ///     .func (.param .b32 r) square(.param .b32 x) { ret; }
    ///     .global .align 8 .u64 ops[2] = {square, 0};";
    /// let module = Module::parse(text)?;
    /// let [held] = module.held_functions(&module.variables()[0], text)?[..] else { panic!("one") };
    /// assert_eq!(held.name, Some("square"));
    /// assert_eq!(held.function.unwrap().signature(), "(.b32) -> .b32");
    /// # Ok::<(), gridcall_ptx::Error>(())
    /// ```
    pub fn held_functions<'m>(
        &'m self,
        variable: &Variable,
        source: &'m str,
    ) -> Result<Vec<Held<'m>>, Error> {
        let elements = variable.elements(source)?.into_iter();
        let held = elements.filter_map(|element| {
            let position = element.position;
            match element.value {
                Value::Constant(Constant::S64(0) | Constant::U64(0)) => None,
                Value::Constant(_) => Some(Held {
                    position,
                    name: None,
                    function: None,
                }),
                Value::Address(address) => {
                    let whole = address.offset == 0 && address.mask.is_none();
                    let function = self.named_function(address.name);
                    Some(Held {
                        position,
                        name: Some(address.name),
                        function: function.filter(|_| whole),
                    })
                }
            }
        });
        Ok(held.collect())
    }

    /// A function by its name or by a second one.
    fn named_function(&self, name: &str) -> Option<&Function> {
        let alias = self.aliases.iter().find(|alias| alias.name() == name);
        self.function(alias.map_or(name, |alias| alias.function()))
    }
}
