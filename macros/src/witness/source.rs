//! The CUDA source as a witness: its declaration of the kernel.

use quote::ToTokens;

use crate::artifact::Cuda;
use crate::cuda;
use crate::describe;
use crate::suggest;
use crate::value::Taken;

use super::Contradiction;
use super::Subject;
use super::types::{self, Known};

/// What the source says against the declaration. An empty list is also that of a kernel it does not
/// show.
pub(crate) fn check(subject: &Subject<'_>, cuda: &Cuda) -> Vec<Contradiction> {
    let candidates = candidates(subject, &cuda.source);
    if candidates.is_empty() {
        return no_kernel(subject, cuda).into_iter().collect();
    }
    // Of overloads, the one that the declaration fits best is meant.
    candidates
        .iter()
        .map(|kernel| check_kernel(subject, cuda, kernel))
        .min_by_key(Vec::len)
        .unwrap_or_default()
}

/// The kernel that a declaration means, if the source shows one.
pub(crate) fn kernel<'c>(subject: &Subject<'_>, cuda: &'c Cuda) -> Option<&'c cuda::Kernel> {
    let candidates = candidates(subject, &cuda.source);
    candidates
        .into_iter()
        .min_by_key(|kernel| check_kernel(subject, cuda, kernel).len())
}

fn candidates<'c>(subject: &Subject<'_>, source: &'c cuda::Source) -> Vec<&'c cuda::Kernel> {
    let entry = subject.entry.name();
    let of_path = |name: &str, namespace: Option<&str>| -> Vec<&'c cuda::Kernel> {
        let fits = |kernel: &&cuda::Kernel| {
            kernel.name == name && namespace.is_none_or(|namespace| kernel.namespace == namespace)
        };
        source.kernels.iter().filter(fits).collect()
    };
    match super::name::signature(entry) {
        Some(signature) => {
            let all = of_path(&signature.name, Some(&signature.namespace));
            // An instance that the source spells out is meant before its template.
            let special: Vec<&cuda::Kernel> = all
                .iter()
                .filter(|kernel| kernel.instance.is_some() && kernel.instance == signature.instance)
                .copied()
                .collect();
            if special.is_empty() {
                all.into_iter()
                    .filter(|kernel| kernel.instance.is_none())
                    .collect()
            } else {
                special
            }
        }
        // extern "C" has no namespaces.
        None => of_path(entry, None),
    }
}

fn no_kernel(subject: &Subject<'_>, cuda: &Cuda) -> Option<Contradiction> {
    let source = &cuda.source;
    if source.open {
        return None;
    }
    let name = super::name::signature(subject.entry.name()).map_or_else(
        || subject.entry.name().to_owned(),
        |signature| signature.path(),
    );
    let names: Vec<String> = source.kernels.iter().map(cuda::Kernel::path).collect();
    let meant = suggest::closest(&name, names.iter().map(String::as_str))
        .map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"));
    let listed = match names.len() {
        0 => "; it has none".to_owned(),
        1..=8 if meant.is_empty() => format!("; it has {}", describe::list(&names)),
        1..=8 => format!(" it has {}", describe::list(&names)),
        _ => String::new(),
    };
    let file = &cuda.shown;
    Some(Contradiction {
        tokens: subject.name_tokens(),
        message: format!("no `__global__` function `{name}` in {file}{meant}{listed}"),
    })
}

fn check_kernel(subject: &Subject<'_>, cuda: &Cuda, kernel: &cuda::Kernel) -> Vec<Contradiction> {
    let Some(params) = &kernel.params else {
        return Vec::new();
    };
    if let Some(contradiction) = check_arity(subject, cuda, kernel, params.len()) {
        return vec![contradiction];
    }
    let mut found = Vec::new();
    let is_struct = |name: &str| cuda.source.structs.iter().any(|known| known == name);
    for (index, (param, actual)) in subject.kernel.params.iter().zip(params).enumerate() {
        let known = Known {
            is_struct: &is_struct,
            ..subject.known(index)
        };
        if let Some(mut cure) = types::contradiction(param, &actual.ty, known) {
            // To the compiler it is an integer.
            if actual.text.ends_with("GraphConditionalHandle") {
                "write `GraphCondition`".clone_into(&mut cure);
            }
            let name = actual
                .name
                .as_ref()
                .map_or_else(String::new, |name| format!(" {name}"));
            let place = cuda.place(actual.line);
            found.push(Contradiction {
                tokens: param.ty.to_token_stream(),
                message: format!(
                    "{}, but {place} declares `{}{name}`: {cure}",
                    subject.param_is(index),
                    actual.text
                ),
            });
        }
    }
    if found.is_empty() {
        found.extend(check_order(subject, cuda, named(cuda, kernel, params)));
    }
    found
}

/// The PTX was compared already, so a source that takes another number is not that of the PTX.
fn check_arity(
    subject: &Subject<'_>,
    cuda: &Cuda,
    kernel: &cuda::Kernel,
    count: usize,
) -> Option<Contradiction> {
    let compiled = subject.entry.params().len();
    (count != compiled).then(|| {
        let place = cuda.place(kernel.line);
        let entry = subject.place(subject.entry.position());
        Contradiction {
            tokens: subject.name_tokens(),
            message: format!(
                "{place} declares `{}` with {count} parameters, but its PTX at {entry} has {compiled}: \
                 compile the source again",
                kernel.path()
            ),
        }
    })
}

/// The parameters with their names, which an instance of a template may leave to the template.
fn named<'c>(
    cuda: &'c Cuda,
    kernel: &cuda::Kernel,
    params: &'c [cuda::Param],
) -> &'c [cuda::Param] {
    if params.iter().any(|param| param.name.is_some()) {
        return params;
    }
    let template = cuda
        .source
        .kernels
        .iter()
        .find(|other| other.is_template && other.path() == kernel.path());
    template
        .and_then(|template| template.params.as_deref())
        .filter(|named| named.len() == params.len())
        .unwrap_or(params)
}

/// Parameters of the same names in another order are exchanged.
fn check_order(
    subject: &Subject<'_>,
    cuda: &Cuda,
    params: &[cuda::Param],
) -> Option<Contradiction> {
    let declared: Vec<String> = subject
        .kernel
        .params
        .iter()
        .map(|param| crate::kernel::unraw(&param.ident))
        .collect();
    let actual: Vec<&str> = params
        .iter()
        .map(|param| param.name.as_deref().unwrap_or_default())
        .collect();
    let (index, other) = declared.iter().enumerate().find_map(|(index, name)| {
        let other = actual.iter().position(|actual| *actual == name.as_str())?;
        let is_exchange = other != index
            && declared
                .iter()
                .any(|declared| declared.as_str() == actual[index]);
        is_exchange.then_some((index, other))
    })?;
    let param = &subject.kernel.params[index];
    let place = cuda.place(params[index].line);
    Some(Contradiction {
        tokens: param.ident.to_token_stream(),
        message: format!(
            "parameter {index} of `{}` is called `{}`, but {place} calls it `{}`, and `{}` is its \
             parameter {other}: exchange them, or give them other names",
            subject.name(),
            declared[index],
            actual[index],
            declared[index],
        ),
    })
}

/// A struct of the source that stands for a type of the declaration.
pub(crate) struct Counterpart<'c> {
    /// The parameter.
    pub(crate) index: usize,
    pub(crate) structure: &'c cuda::Struct,
}

/// The structs whose fields the compiler can compare.
pub(crate) fn counterparts<'c>(
    subject: &Subject<'_>,
    kernel: &'c cuda::Kernel,
) -> Vec<Counterpart<'c>> {
    let params = kernel.params.as_deref().unwrap_or_default();
    let pairs = subject.kernel.params.iter().zip(params).enumerate();
    pairs
        .filter_map(|(index, (param, actual))| {
            let (written, actual) = match (&param.taken, &actual.ty) {
                (Taken::Value { ty, known: None }, actual) => (ty, actual),
                (Taken::Slice { elem, .. } | Taken::Optional { elem }, cuda::Type::Pointer(to)) => {
                    (elem, &to.ty)
                }
                _ => return None,
            };
            let super::rust::Rust::Other(_) = super::rust::Rust::of(written) else {
                return None;
            };
            match actual {
                cuda::Type::Struct(structure) if structure.layout().is_some() => {
                    Some(Counterpart { index, structure })
                }
                _ => None,
            }
        })
        .collect()
}
