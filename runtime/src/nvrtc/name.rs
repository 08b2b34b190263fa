//! What are kernels called in C++, and the types of Rust as template arguments?

use std::fmt;

use super::error::{CompileError, CompileErrorKind};
use crate::{
    arg::KernelArg,
    declaration::Declaration,
    layout::{ArgLayout, Class},
};

/// A C++ name that NVRTC is asked to compile and to tell the lowered name of: a *name expression*.
///
/// As text, or a template's name with its arguments, types being those of Rust:
///
/// ```
/// use gridcall::{Float4, nvrtc::NameExpression};
///
/// let text = NameExpression::from("math::scale<float>");
/// let made = NameExpression::template("math::scale").ty::<Float4>().value(256_usize);
/// assert_eq!(made.to_string(), "math::scale<float4, 256>");
/// ```
#[derive(Clone, Debug)]
pub struct NameExpression {
    name: String,
    arguments: Vec<String>,
    /// The first argument that C++ has no name for.
    nameless: Option<String>,
}

impl NameExpression {
    /// A template, whose arguments follow in order.
    #[must_use]
    pub fn template(name: impl Into<String>) -> NameExpression {
        NameExpression {
            name: name.into(),
            arguments: Vec::new(),
            nameless: None,
        }
    }

    /// Adds a type: `f32` is `float`, [`Float4`](crate::Float4) `float4`, `u64` and `usize`
    /// `unsigned long long`. A struct with [`#[derive(KernelArg)]`](derive@crate::KernelArg) has its
    /// own name, or the one that `#[kernel_arg(name = "ns::Name")]` gives it.
    ///
    /// What has no name in C++, such as an array, is an error when the program is compiled.
    #[must_use]
    pub fn ty<T: KernelArg>(mut self) -> NameExpression {
        match cpp_type(&T::LAYOUT) {
            Some(name) => self.arguments.push(name.to_owned()),
            None => self.refuse(std::any::type_name::<T>()),
        }
        self
    }

    /// Adds an integer or a `bool`.
    ///
    /// What exceeds 64 bits is an error when the program is compiled.
    #[must_use]
    pub fn value(mut self, value: impl TryInto<i128>) -> NameExpression {
        let Ok(value) = value.try_into() else {
            self.refuse("an integer of more than 64 bits");
            return self;
        };
        let text = match (i64::try_from(value), u64::try_from(value)) {
            // Its digits alone are no `long long`.
            (Ok(i64::MIN), _) => format!("({} - 1)", i64::MIN + 1),
            (Ok(value), _) => value.to_string(),
            (_, Ok(value)) => format!("{value}ULL"),
            _ => {
                self.refuse("an integer of more than 64 bits");
                return self;
            }
        };
        self.arguments.push(text);
        self
    }

    fn refuse(&mut self, what: &str) {
        self.nameless.get_or_insert_with(|| what.to_owned());
    }

    /// The name, if C++ has one for each argument.
    pub(super) fn text(&self) -> Result<String, CompileError> {
        match &self.nameless {
            None => Ok(self.to_string()),
            Some(argument) => Err(CompileErrorKind::NoCppName {
                template: self.name.clone(),
                argument: argument.clone(),
            }
            .into()),
        }
    }
}

impl From<&str> for NameExpression {
    fn from(name: &str) -> NameExpression {
        NameExpression::template(name)
    }
}

impl From<String> for NameExpression {
    fn from(name: String) -> NameExpression {
        NameExpression::template(name)
    }
}

impl fmt::Display for NameExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.arguments.is_empty() {
            return Ok(());
        }
        write!(f, "<{}>", self.arguments.join(", "))
    }
}

/// The name of a declared kernel: of an instance whose entry is not named, with its type.
pub(super) fn of_declaration(declaration: &Declaration) -> Result<String, CompileError> {
    let name = declaration.cpp.name;
    if name.starts_with("_Z") {
        return Err(CompileErrorKind::LoweredName {
            kernel: declaration.kernel,
            name,
        }
        .into());
    }
    let Some(instance) = declaration.cpp.instance else {
        return Ok(name.to_owned());
    };
    match instance.layout.as_ref().and_then(cpp_type) {
        Some(ty) => Ok(format!("{name}<{ty}>")),
        None => Err(CompileErrorKind::NoCppName {
            template: name.to_owned(),
            argument: instance.ty.to_owned(),
        }
        .into()),
    }
}

/// What C++ calls the type of a layout.
fn cpp_type(layout: &ArgLayout) -> Option<&'static str> {
    if !layout.name.is_empty() {
        return Some(layout.name);
    }
    let (name, size) = match layout.kind {
        "bool" => ("bool", 1),
        "i8" => ("signed char", 1),
        "u8" => ("unsigned char", 1),
        "i16" => ("short", 2),
        "u16" => ("unsigned short", 2),
        "i32" => ("int", 4),
        "u32" => ("unsigned int", 4),
        "i64" => ("long long", 8),
        "u64" => ("unsigned long long", 8),
        "i128" => ("__int128", 16),
        "u128" => ("unsigned __int128", 16),
        "f32" => ("float", 4),
        "f64" => ("double", 8),
        "f16" => ("__half", 2),
        "bf16" => ("__nv_bfloat16", 2),
        "e4m3" => ("__nv_fp8_e4m3", 1),
        "e5m2" => ("__nv_fp8_e5m2", 1),
        // CUDA's own names of its vectors; an array of them has more bytes than the name tells.
        vector if layout.class == Class::Bytes && layout.fields.is_empty() => {
            (vector, vector_size(vector)?)
        }
        _ => return None,
    };
    // An array has the kind of its elements.
    (layout.size == size).then_some(name)
}

/// 16 for `float4`.
fn vector_size(name: &str) -> Option<usize> {
    let lanes = usize::from(name.bytes().last()?.checked_sub(b'0')?);
    let element = match &name[..name.len() - 1] {
        "char" | "uchar" => 1,
        "short" | "ushort" => 2,
        "int" | "uint" | "float" => 4,
        "longlong" | "ulonglong" | "double" => 8,
        _ => return None,
    };
    (1..=4).contains(&lanes).then_some(element * lanes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Double2, Float3, Float4, UChar4};

    fn name<T: KernelArg>() -> String {
        let name = NameExpression::template("k").ty::<T>().text();
        name.unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn types_have_the_names_of_cuda() {
        assert_eq!(name::<f32>(), "k<float>");
        assert_eq!(name::<usize>(), "k<unsigned long long>");
        assert_eq!(name::<bool>(), "k<bool>");
        assert_eq!(name::<Float4>(), "k<float4>");
        assert_eq!(name::<Float3>(), "k<float3>");
        assert_eq!(name::<UChar4>(), "k<uchar4>");
        assert_eq!(name::<Double2>(), "k<double2>");
        for (said, ty) in [
            (name::<[f32; 4]>(), "[f32; 4]"),
            (name::<[Float4; 2]>(), "Float4; 2]"),
        ] {
            assert!(said.contains(ty) && said.contains("no name"), "{said}");
        }
    }

    #[test]
    fn values_are_literals_of_their_type() {
        let name = |value: i128| NameExpression::template("k").value(value);
        for (value, text) in [
            (-5, "-5"),
            (1 << 40, "1099511627776"),
            (u64::MAX.into(), "18446744073709551615ULL"),
            (i64::MIN.into(), "(-9223372036854775807 - 1)"),
        ] {
            assert_eq!(name(value).text().unwrap(), format!("k<{text}>"));
        }
        assert!(name(1 << 64).text().is_err());
        assert!(
            NameExpression::template("k")
                .value(u128::MAX)
                .text()
                .is_err()
        );
        let both = NameExpression::template("k").ty::<i32>().value(true);
        assert_eq!(both.text().unwrap(), "k<int, 1>");
    }
}
