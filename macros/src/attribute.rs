//! The attributes of a kernel and of its parameters: ours are read, the others handed on.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, Ident, LitInt, LitStr, Meta, Path, Token, Type};

use crate::contract;
use crate::describe;
use crate::kernel::{Attributes, Extents, Param, Rank, unraw};
use crate::report::Report;
use crate::suggest;
use crate::value::Taken;

/// What our attributes on a kernel say.
#[derive(Default)]
pub(crate) struct Settings {
    pub(crate) name: Option<LitStr>,
    pub(crate) block: Option<Extents>,
    pub(crate) cluster: Option<Extents>,
    pub(crate) cooperative: bool,
    pub(crate) rank: Option<Rank>,
    pub(crate) requires: Vec<TokenStream>,
    may_alias: Vec<Vec<Ident>>,
}

/// What the attributes on a parameter say.
#[derive(Default)]
pub(crate) struct OfParam {
    pub(crate) docs: Vec<Attribute>,
    pub(crate) align: Option<u32>,
}

const OURS: [&str; 7] = [
    "name",
    "block",
    "cluster",
    "cooperative",
    "rank",
    "requires",
    "may_alias",
];

/// Words that other attributes of Rust and CUDA have for ours.
const ELSEWHERE: [(&str, &str); 8] = [
    ("link_name", "name"),
    ("export_name", "name"),
    ("entry", "name"),
    ("launch_bounds", "block"),
    ("reqntid", "block"),
    ("maxntid", "block"),
    ("cluster_dims", "cluster"),
    ("reqnctapercluster", "cluster"),
];

/// Names near to ours that are none of ours mistyped.
const STANDARD: [&str; 17] = [
    "allow",
    "automatically_derived",
    "cold",
    "deny",
    "deprecated",
    "derive",
    "doc",
    "expect",
    "forbid",
    "global_allocator",
    "inline",
    "link",
    "must_use",
    "no_mangle",
    "test",
    "track_caller",
    "warn",
];

/// Reads the attributes of a kernel.
pub(crate) fn of_kernel(attrs: Vec<Attribute>, report: &mut Report) -> (Attributes, Settings) {
    let mut theirs = Attributes::default();
    let mut settings = Settings::default();
    for attr in attrs {
        let Some(name) = attr.path().get_ident().map(Ident::to_string) else {
            theirs.function.push(attr);
            continue;
        };
        match name.as_str() {
            "name" => settings.read_name(&attr, report),
            "block" => settings.read_block(&attr, report),
            "cluster" => settings.read_cluster(&attr, report),
            "cooperative" => settings.read_cooperative(&attr, report),
            "rank" => settings.read_rank(&attr, report),
            "requires" => settings.read_requires(&attr, report),
            "may_alias" => settings.read_may_alias(&attr, report),
            "align" => report.error(&attr, "#[align(..)] goes in front of a parameter"),
            "instances" => report.error(
                &attr,
                "the instances of what? write the type as a parameter of the function, `fn name<T>(..)`",
            ),
            "cfg" => theirs.cfgs.push(attr),
            "cfg_attr" if conditional_ours(&attr).is_empty() => theirs.function.push(attr),
            "cfg_attr" => {
                for path in conditional_ours(&attr) {
                    // Whether the condition holds, only rustc knows.
                    report.error(
                        path,
                        "not supported yet in #[cfg_attr]: declare the kernel twice, each under \
                         its #[cfg]",
                    );
                }
            }
            "doc" if matches!(attr.meta, Meta::NameValue(_)) => theirs.docs.push(attr),
            "allow" | "warn" | "deny" | "forbid" | "deprecated" | "doc" => {
                theirs.shared.push(attr);
            }
            other => match meant(other) {
                Some(ours) => report.error(
                    attr.path(),
                    format!("no attribute `{other}` for kernels; did you mean `#[{ours}(..)]`?"),
                ),
                None => theirs.function.push(attr),
            },
        }
    }
    (theirs, settings)
}

/// Reads the attributes of a static, and its name in the PTX if they give one.
pub(crate) fn of_static(
    attrs: Vec<Attribute>,
    report: &mut Report,
) -> (Attributes, Option<LitStr>) {
    let (attrs, others): (Vec<_>, Vec<_>) = attrs.into_iter().partition(|attr| {
        let of_kernels = ["block", "requires", "may_alias", "instances", "align"];
        !of_kernels.iter().any(|name| attr.path().is_ident(name))
    });
    for attr in others {
        let name = describe::expr(&attr.path().to_token_stream());
        report.error(
            &attr,
            format!("#[{name}(..)] is of kernels, and this is a variable"),
        );
    }
    let (theirs, settings) = of_kernel(attrs, report);
    (theirs, settings.name)
}

/// What `#[cfg_attr(..)]` holds that would have to be read here.
fn conditional_ours(attr: &Attribute) -> Vec<Path> {
    let parser = Punctuated::<Meta, Token![,]>::parse_terminated;
    // What does not parse is for rustc to tell.
    let metas = attr.parse_args_with(parser).unwrap_or_default();
    let paths = metas.iter().skip(1).map(Meta::path);
    let ours = |path: &&Path| path.is_ident("cfg") || OURS.iter().any(|name| path.is_ident(name));
    paths.filter(ours).cloned().collect()
}

/// Which of our attributes was meant, if one was.
fn meant(name: &str) -> Option<&'static str> {
    if STANDARD.contains(&name) {
        return None;
    }
    ELSEWHERE
        .iter()
        .find(|(elsewhere, _)| *elsewhere == name)
        .map(|&(_, ours)| ours)
        .or_else(|| suggest::closest(name, OURS))
}

impl Settings {
    fn read_name(&mut self, attr: &Attribute, report: &mut Report) {
        let value = match &attr.meta {
            Meta::NameValue(meta) => crate::input::literal_str(&meta.value).cloned(),
            Meta::List(_) => attr.parse_args::<LitStr>().ok(),
            Meta::Path(_) => None,
        };
        let Some(value) = value else {
            report.error(
                attr,
                "write the name of the entry in the PTX: `#[name(\"entry\")]`",
            );
            return;
        };
        if matches!(attr.meta, Meta::NameValue(_)) {
            report.error(attr, format!("write `#[name({})]`", value.token()));
        }
        if value.value().is_empty() {
            report.error(&value, "an entry's name is not empty");
        }
        if self.name.replace(value).is_some() {
            report.error(attr, "#[name(..)] is given twice: a kernel has one entry");
        }
    }

    fn read_block(&mut self, attr: &Attribute, report: &mut Report) {
        let Some(block) = read_extents(attr, "block", "threads", report) else {
            return;
        };
        if self.block.replace(block).is_some() {
            report.error(
                attr,
                "#[block(..)] is given twice: a kernel has one block size",
            );
        }
    }

    fn read_cluster(&mut self, attr: &Attribute, report: &mut Report) {
        let Some(cluster) = read_extents(attr, "cluster", "blocks", report) else {
            return;
        };
        if self.cluster.replace(cluster).is_some() {
            report.error(
                attr,
                "#[cluster(..)] is given twice: a kernel has one cluster size",
            );
        }
    }

    fn read_cooperative(&mut self, attr: &Attribute, report: &mut Report) {
        if !matches!(attr.meta, Meta::Path(_)) {
            report.error(
                attr,
                "write `#[cooperative]`: how many blocks run at a time, the device decides",
            );
        }
        if std::mem::replace(&mut self.cooperative, true) {
            report.error(attr, "#[cooperative] is given twice");
        }
    }

    fn read_rank(&mut self, attr: &Attribute, report: &mut Report) {
        let parser = |input: ParseStream| input.parse::<LitInt>();
        let Some(number) = report.note(parse_list(attr, parser, "#[rank(1)]")) else {
            return;
        };
        let axes = match report.note(number.base10_parse::<u8>()) {
            Some(axes @ 1..=3) => axes,
            Some(_) => {
                report.error(&number, "a launch is along one, two or three axes");
                return;
            }
            None => return,
        };
        if self.rank.replace(Rank { axes, number }).is_some() {
            report.error(attr, "#[rank(..)] is given twice: a kernel has one rank");
        }
    }

    fn read_requires(&mut self, attr: &Attribute, report: &mut Report) {
        let parser = Punctuated::<Expr, Token![,]>::parse_terminated;
        let Some(requirements) = report.note(parse_list(attr, parser, "#[requires(x.len() >= n)]"))
        else {
            return;
        };
        if requirements.is_empty() {
            report.error(
                attr,
                "what does the kernel require? write `#[requires(x.len() >= n)]`",
            );
        }
        for requirement in requirements {
            let requirement = requirement.into_token_stream();
            contract::check(&requirement, report);
            self.requires.push(requirement);
        }
    }

    fn read_may_alias(&mut self, attr: &Attribute, report: &mut Report) {
        let parser = Punctuated::<Ident, Token![,]>::parse_terminated;
        let Some(names) = report.note(parse_list(attr, parser, "#[may_alias(x, y)]")) else {
            return;
        };
        if names.len() < 2 {
            report.error(
                attr,
                "name the arrays that may overlap: `#[may_alias(x, y)]`",
            );
            return;
        }
        self.may_alias.push(names.into_iter().collect());
    }

    /// The pairs of `#[may_alias(..)]`, by index.
    pub(crate) fn aliases(&self, params: &[Param], report: &mut Report) -> Vec<(usize, usize)> {
        let mut pairs = Vec::new();
        for names in &self.may_alias {
            let arrays: Vec<(usize, &Ident)> = names
                .iter()
                .filter_map(|name| Some((find_array(name, params, report)?, name)))
                .collect();
            for (position, &(one, _)) in arrays.iter().enumerate() {
                for &(other, name) in &arrays[position + 1..] {
                    match aliasing(one, other, params) {
                        Ok(pair) if pairs.contains(&pair) => {}
                        Ok(pair) => pairs.push(pair),
                        Err(message) => report.error(name, message),
                    }
                }
            }
        }
        pairs
    }
}

fn find_array(name: &Ident, params: &[Param], report: &mut Report) -> Option<usize> {
    let is_named = |param: &Param| unraw(&param.ident) == unraw(name);
    let Some(index) = params.iter().position(is_named) else {
        let names: Vec<String> = params
            .iter()
            .filter(|param| param.taken.is_array())
            .map(|param| param.ident.to_string())
            .collect();
        let shown = name.to_string();
        let message = match suggest::closest(&shown, names.iter().map(String::as_str)) {
            Some(meant) => format!("no parameter `{shown}`; did you mean `{meant}`?"),
            None => format!(
                "no parameter `{shown}`; the arrays are {}",
                describe::list(names)
            ),
        };
        report.error(name, message);
        return None;
    };
    if !params[index].taken.is_array() {
        let ty = describe::ty(&params[index].ty);
        report.error(
            name,
            format!("`{name}` is `{ty}`: only arrays, `&[T]` and `&mut [T]`, overlap"),
        );
        return None;
    }
    Some(index)
}

fn aliasing(one: usize, other: usize, params: &[Param]) -> Result<(usize, usize), String> {
    if one == other {
        return Err(format!("`{}` is named twice", params[one].ident));
    }
    if !params[one].taken.is_written_array() && !params[other].taken.is_written_array() {
        return Err(format!(
            "`{}` and `{}` are only read, so they may overlap anyway: remove this",
            params[one].ident, params[other].ident
        ));
    }
    Ok((one.min(other), one.max(other)))
}

/// Reads the attributes of a parameter of type `ty`.
pub(crate) fn of_param(
    attrs: Vec<Attribute>,
    ty: &Type,
    taken: Option<&Taken>,
    report: &mut Report,
) -> OfParam {
    let mut read = OfParam::default();
    for attr in attrs {
        let path = attr.path();
        if path.is_ident("align") {
            read.align = read_align(&attr, ty, taken, report);
        } else if path.is_ident("doc") {
            read.docs.push(attr);
        } else if path.is_ident("cfg") || path.is_ident("cfg_attr") {
            report.error(
                &attr,
                "#[cfg] on a parameter is not supported yet: put it on two declarations of the \
                 kernel",
            );
        } else {
            let shown = describe::expr(&path.to_token_stream());
            let message = match suggest::closest(&shown, ["align"]) {
                Some(meant) => {
                    format!("no attribute `{shown}` for parameters; did you mean `#[{meant}(..)]`?")
                }
                None => format!("no attribute `{shown}` for parameters; there is `#[align(16)]`"),
            };
            report.error(path, message);
        }
    }
    read
}

fn read_align(
    attr: &Attribute,
    ty: &Type,
    taken: Option<&Taken>,
    report: &mut Report,
) -> Option<u32> {
    let parser = |input: ParseStream| input.parse::<LitInt>();
    let number = report.note(parse_list(attr, parser, "#[align(16)]"))?;
    let align = report.note(number.base10_parse::<u32>())?;
    // An array whose type was refused has its error already.
    let taken = taken?;
    if !taken.is_array()
        || matches!(
            taken,
            Taken::TensorMap { .. } | Taken::Texture { .. } | Taken::Surface { .. }
        )
    {
        report.error(
            attr,
            format!(
                "only device arrays, `&[T]` and `&mut [T]`, are aligned at the call, and this is \
                 `{}`",
                describe::ty(ty)
            ),
        );
        return None;
    }
    if !align.is_power_of_two() {
        report.error(
            &number,
            format!("an alignment is a power of two, and {align} is none"),
        );
        return None;
    }
    if let Some(elem) = taken.known_elem()
        && (align as usize) < elem.align
    {
        report.error(
            &number,
            format!(
                "the elements of `{}` are aligned to {} already",
                describe::ty(ty),
                elem.align
            ),
        );
        return None;
    }
    Some(align)
}

/// One to three numbers: what a `block` or `cluster` has of `units` along each axis.
fn read_extents(attr: &Attribute, name: &str, units: &str, report: &mut Report) -> Option<Extents> {
    let (one, two) = match name {
        "block" => ("#[block(256)]", "#[block(16, 16)]"),
        _ => ("#[cluster(2)]", "#[cluster(2, 1, 1)]"),
    };
    let parser = Punctuated::<LitInt, Token![,]>::parse_terminated;
    let numbers = report.note(parse_list(attr, parser, &format!("{one}` or `{two}")))?;
    if numbers.is_empty() || numbers.len() > 3 {
        report.error(
            attr,
            format!("a {name} has one to three dimensions: `{one}`, `{two}`"),
        );
        return None;
    }
    let mut dims = [1; 3];
    for (dim, number) in dims.iter_mut().zip(&numbers) {
        match report.note(number.base10_parse::<u32>())? {
            0 => report.error(number, format!("a {name} of 0 {units} never runs")),
            count => *dim = count,
        }
    }
    Some(Extents {
        dims,
        tokens: numbers.to_token_stream(),
    })
}

/// What stands in the attribute's parentheses.
fn parse_list<P: Parser>(attr: &Attribute, parser: P, form: &str) -> syn::Result<P::Output> {
    match &attr.meta {
        Meta::List(list) => parser.parse2(list.tokens.clone()),
        _ => Err(syn::Error::new_spanned(attr, format!("write `{form}`"))),
    }
}
