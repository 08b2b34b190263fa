//! Compares a declaration with the kernel in its PTX, one rule a function.
//!
//! Claims only what the PTX proves: it holds number, order, size, alignment and class of the
//! parameters, but neither sign nor what a pointer points to.

use gridcall_ptx as ptx;
use proc_macro2::TokenStream;
use quote::ToTokens;

use crate::arity;
use crate::artifact::{Artifact, Code};
use crate::contract;
use crate::describe;
use crate::kernel::{Extents, Kernel, Outline, Param, Rank};
use crate::mangled;
use crate::report::Report;
use crate::suggest;
use crate::value::{self, Known, Shape, Taken};
use crate::witness;

/// What a check speaks of: one declaration and its PTX file.
struct Subject<'a, 'p> {
    outline: &'a Outline,
    kernel: &'a Kernel,
    artifact: &'p Artifact,
}

/// Checks what does not depend on the PTX.
pub(crate) fn alone(kernel: &Kernel, report: &mut Report) {
    check_contracts(kernel, report);
    if let Some(block) = &kernel.block {
        check_block_limits(block, report);
    }
    if let Some(cluster) = &kernel.cluster {
        check_cluster_limit(cluster, report);
    }
    if let Some(rank) = &kernel.rank {
        let extents = [("block", &kernel.block), ("cluster", &kernel.cluster)];
        for (name, extents) in extents {
            check_within_rank(rank, name, extents.as_ref(), report);
        }
    }
}

fn check_contracts(kernel: &Kernel, report: &mut Report) {
    let (mut arrays, mut integers) = (Vec::new(), Vec::new());
    for param in &kernel.params {
        match &param.taken {
            Taken::Slice { .. } | Taken::Optional { .. } => arrays.push(&param.ident),
            Taken::Value {
                known: Some(Known { counts: true, .. }),
                ..
            } => integers.push(&param.ident),
            _ => {}
        }
    }
    for requirement in &kernel.requires {
        contract::check_arrays(requirement, &arrays, &integers, report);
    }
}

/// Checks a declaration against its file, and gives the entry that it declares.
pub(crate) fn against<'a>(
    outline: &Outline,
    kernel: &Kernel,
    artifact: &'a Artifact,
    report: &mut Report,
) -> Option<&'a ptx::Entry> {
    let subject = Subject {
        outline,
        kernel,
        artifact,
    };
    let entry = subject.check_entry_exists(report)?;
    if subject.check_arity(entry, report) {
        for (index, (param, declared)) in kernel.params.iter().zip(entry.params()).enumerate() {
            subject.check_param(index, param, declared, report);
        }
    }
    if let Some(block) = &kernel.block {
        subject.check_reqntid(block, entry, report);
        subject.check_maxntid(block, entry, report);
    }
    if let Some(rank) = &kernel.rank {
        subject.check_rank(rank, entry, report);
    }
    subject.check_cluster(entry, report);
    subject.check_cooperative(entry, report);
    subject.check_params_size(entry, report);
    Some(entry)
}

/// Checks the file as such; the error is for the path literal.
pub(crate) fn check_address_size(artifact: &Artifact) -> Result<(), String> {
    match artifact.module().address_size() {
        64 => Ok(()),
        bits => Err(format!(
            "{} is compiled for {bits}-bit addresses, which no 64-bit program can launch: compile \
             it with `-m64`, or write `.address_size 64` into it",
            artifact.place.shown
        )),
    }
}

/// Checks that two images take the same parameters: a launch packs them once.
pub(crate) fn check_variants(
    outline: &Outline,
    (first, of_first): (&Artifact, &ptx::Entry),
    (other, of_other): (&Artifact, &ptx::Entry),
    report: &mut Report,
) {
    let layout = |param: &ptx::Param| (param.offset(), param.size(), param.align(), param.class());
    let mut pairs = of_first.params().iter().zip(of_other.params()).enumerate();
    // What follows the first is moved by it.
    if let Some((index, (one, another))) =
        pairs.find(|(_, (one, another))| layout(one) != layout(another))
    {
        let place = |artifact: &Artifact, param: &ptx::Param| {
            format!("{}:{}", artifact.place.shown, param.position().line)
        };
        report.error(
            &outline.ident,
            format!(
                "parameter {index} of `{}` is {} at {}, but {} at {}: compile both from one source",
                outline.ident,
                describe::param(one),
                place(first, one),
                describe::param(another),
                place(other, another),
            ),
        );
    }
}

/// Checks that machine code which tells its kernels has this one.
pub(crate) fn check_code(
    outline: &Outline,
    (artifact, entry): (&Artifact, &ptx::Entry),
    code: &[Code],
    report: &mut Report,
) {
    for code in code {
        let Some(entries) = &code.read.entries else {
            continue;
        };
        if entries.iter().any(|name| name == entry.name()) {
            continue;
        }
        let shown = &code.place.shown;
        let has = match entries.as_slice() {
            [] => "it has no kernels at all".to_owned(),
            entries => {
                let entries: Vec<_> = entries.iter().map(|name| format!("`{name}`")).collect();
                format!("it has {}", entries.join(", "))
            }
        };
        report.error(
            &outline.ident,
            format!(
                "{shown} has no entry `{}`, which {}:{} declares; {has}: compile both from one source",
                entry.name(),
                artifact.place.shown,
                entry.position().line,
            ),
        );
    }
}

impl<'p> Subject<'_, 'p> {
    fn name(&self) -> &proc_macro2::Ident {
        &self.outline.ident
    }

    fn file(&self) -> &str {
        &self.artifact.place.shown
    }

    /// `kernels/vector.ptx:12`.
    fn place(&self, position: ptx::Position) -> String {
        format!("{}:{}", self.file(), position.line)
    }

    /// What the user edits to choose another entry.
    fn name_tokens(&self) -> TokenStream {
        match &self.kernel.name {
            Some(name) => name.to_token_stream(),
            None => self.name().to_token_stream(),
        }
    }

    fn check_entry_exists(&self, report: &mut Report) -> Option<&'p ptx::Entry> {
        let name = self.kernel.entry_name(self.outline);
        let found = self
            .artifact
            .module()
            .entry(&name)
            .or_else(|| self.mangled_entry(&name));
        if found.is_none() {
            report.error(self.name_tokens(), self.no_entry(&name));
        }
        found
    }

    /// The one entry that C++ calls `name`, or of several the one whose types are those declared.
    fn mangled_entry(&self, name: &str) -> Option<&'p ptx::Entry> {
        let module = self.artifact.module();
        let names: Vec<&str> = module.entries().iter().map(ptx::Entry::name).collect();
        let called = mangled::called(name, &names);
        let mut symbols: Vec<&str> = called.iter().map(|(symbol, _)| *symbol).collect();
        if symbols.len() > 1 {
            symbols.retain(|symbol| witness::name::fits(self.kernel, symbol));
        }
        match symbols.as_slice() {
            [symbol] => module.entry(symbol),
            _ => None,
        }
    }

    fn no_entry(&self, name: &str) -> String {
        let module = self.artifact.module();
        let file = self.file();
        if let Some(function) = module.function(name) {
            let place = self.place(function.position());
            return format!(
                "`{name}` is a device function at {place}, not a kernel: declare it `__global__`"
            );
        }
        let names: Vec<&str> = module.entries().iter().map(ptx::Entry::name).collect();
        let mangled = mangled::called(name, &names);
        if !mangled.is_empty() {
            return self.no_single_entry(name, &mangled);
        }
        let meant = suggest::closest(name, names.iter().copied())
            .map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"));
        match names.as_slice() {
            [] => format!("no entry `{name}` in {file}: it has no kernels at all"),
            few if few.len() <= MOST_LISTED => {
                let separator = if meant.is_empty() { ";" } else { "" };
                let listed = describe::list(few);
                format!("no entry `{name}` in {file}{meant}{separator} it has {listed}")
            }
            many if meant.is_empty() => {
                let listed = describe::list(&many[..MOST_LISTED]);
                format!(
                    "no entry `{name}` in {file}; it has {} entries, such as {listed}",
                    many.len()
                )
            }
            _ => format!("no entry `{name}` in {file}{meant}"),
        }
    }

    /// Of several entries that C++ calls so, none fits what is declared, or more than one.
    fn no_single_entry(&self, name: &str, called: &[(&str, String)]) -> String {
        let file = self.file();
        let fitting: Vec<&(&str, String)> = called
            .iter()
            .filter(|(symbol, _)| witness::name::fits(self.kernel, symbol))
            .collect();
        if !fitting.is_empty() {
            let listed = listed_with_symbols(&fitting);
            return format!("which `{name}`? {file} has {listed}: choose one by #[name(\"..\")]");
        }
        let listed = listed_with_symbols(&called.iter().collect::<Vec<_>>());
        let params = self.kernel.params.iter();
        let types: Vec<String> = params.map(|param| describe::ty(&param.ty)).collect();
        let types = types.join(", ");
        let is_template = called.iter().any(|(_, shown)| shown.contains('<'));
        let instantiate = if is_template {
            ", or instantiate the template for these in the source"
        } else {
            ""
        };
        format!(
            "no `{name}` in {file} takes `({types})`; it has {listed}: declare the types of one{instantiate}"
        )
    }

    fn check_arity(&self, entry: &ptx::Entry, report: &mut Report) -> bool {
        let declared = &self.kernel.params;
        let (has, needs) = (declared.len(), entry.params().len());
        if has == needs {
            return true;
        }
        let name = self.name();
        let place = self.place(entry.position());
        let count = plural(has, "parameter");
        let counts = format!("`{name}` declares {count}, the PTX entry at {place} has {needs}");
        let details = arity::explain(declared, entry.params());
        if has > needs {
            let extra = details.first_extra.unwrap_or(needs);
            report.error(
                declared[extra].tokens(),
                format!("{counts}; {}", details.message),
            );
        } else {
            let list = self.outline.paren.span.join();
            report.add(syn::Error::new(
                list,
                format!("{counts}; {}", details.message),
            ));
        }
        false
    }

    fn check_param(&self, index: usize, param: &Param, declared: &ptx::Param, report: &mut Report) {
        match &param.taken {
            Taken::Value {
                known: Some(known), ..
            } => {
                self.check_value(index, param, known, declared, report);
            }
            // The compiler knows what this macro does not.
            Taken::Value { known: None, .. }
            | Taken::Strided { .. }
            | Taken::TensorMap { .. }
            | Taken::Texture { .. }
            | Taken::Surface { .. } => {}
            Taken::Condition { .. } => {
                self.check_value(index, param, &value::CONDITION, declared, report);
            }
            Taken::Slice { .. }
            | Taken::Optional { .. }
            | Taken::Pointer { .. }
            | Taken::Function { .. } => {
                self.check_pointer(index, param, declared, report);
            }
        }
    }

    fn check_value(
        &self,
        index: usize,
        param: &Param,
        known: &Known,
        declared: &ptx::Param,
        report: &mut Report,
    ) {
        if declared.pointer().is_some() && known.shape == Shape::Integer && known.size == 8 {
            report.error(
                &param.ty,
                format!(
                    "{}, but {} declares a pointer: write {}",
                    self.param_is(index, param, Some(known)),
                    self.place(declared.position()),
                    describe::choices(declared)
                ),
            );
        } else if known.size != declared.size()
            || known.align != declared.align()
            || !is_of_class(known.shape, declared.class())
        {
            report.error(
                &param.ty,
                self.mismatch(index, param, Some(known), declared),
            );
        }
    }

    fn check_pointer(
        &self,
        index: usize,
        param: &Param,
        declared: &ptx::Param,
        report: &mut Report,
    ) {
        let is_word = declared.size() == 8
            && declared.align() == 8
            && matches!(declared.class(), ptx::Class::Integer | ptx::Class::Bits);
        if !is_word {
            report.error(&param.ty, self.mismatch(index, param, None, declared));
        } else if let Some(pointer) = declared.pointer()
            && let Some(space) = pointer.space
            && space != ptx::StateSpace::Global
        {
            report.error(
                &param.ty,
                format!(
                    "{}, but {} declares a pointer into `{space}`, which the host cannot make: \
                     take dynamic shared memory, or a pointer into `.global`",
                    self.param_is(index, param, None),
                    self.place(declared.position()),
                ),
            );
        }
    }

    /// Parameter 0, `n`, of `saxpy` is `u64` (8 bytes).
    fn param_is(&self, index: usize, param: &Param, known: Option<&Known>) -> String {
        let ty = match known {
            Some(known) => describe::value(&param.ty, known),
            None => format!("`{}`, a pointer (8 bytes)", describe::ty(&param.ty)),
        };
        format!(
            "parameter {index}, `{}`, of `{}` is {ty}",
            param.ident,
            self.name()
        )
    }

    fn mismatch(
        &self,
        index: usize,
        param: &Param,
        known: Option<&Known>,
        declared: &ptx::Param,
    ) -> String {
        format!(
            "{}, but {} declares {}: write {}",
            self.param_is(index, param, known),
            self.place(declared.position()),
            describe::param(declared),
            describe::choices(declared)
        )
    }

    fn check_reqntid(&self, block: &Extents, entry: &ptx::Entry, report: &mut Report) {
        if let Some(required) = entry.directives().reqntid()
            && required != block.dims
        {
            let [x, y, z] = required;
            let place = self.place(entry.position());
            report.error(
                &block.tokens,
                format!(
                    "the kernel at {place} is compiled for blocks of {x} x {y} x {z} alone \
                     (`.reqntid`): write `#[block({})]`, or leave it out",
                    shown_dims(required)
                ),
            );
        }
    }

    fn check_maxntid(&self, block: &Extents, entry: &ptx::Entry, report: &mut Report) {
        // PTX bounds the number of threads by the product, not the dimensions one by one.
        if let Some(most) = entry.directives().maxntid()
            && threads(block.dims) > threads(most)
        {
            let place = self.place(entry.position());
            report.error(
                &block.tokens,
                format!(
                    "{} threads a block, but the kernel at {place} is compiled for at most {} \
                     (`.maxntid`, from `__launch_bounds__`)",
                    threads(block.dims),
                    threads(most)
                ),
            );
        }
    }

    fn check_rank(&self, rank: &Rank, entry: &ptx::Entry, report: &mut Report) {
        if let Some(required) = entry.directives().reqntid()
            && exceeds(required, rank.axes)
        {
            let place = self.place(entry.position());
            let [x, y, z] = required;
            report.error(
                &rank.number,
                format!(
                    "the kernel at {place} is compiled for blocks of {x} x {y} x {z} alone (`.reqntid`), along \
                     more axes than #[rank({})]: write `#[rank({})]`",
                    rank.axes,
                    if z > 1 { 3 } else { 2 }
                ),
            );
        }
    }

    fn check_cluster(&self, entry: &ptx::Entry, report: &mut Report) {
        let directives = entry.directives();
        let place = self.place(entry.position());
        let Some(cluster) = &self.kernel.cluster else {
            return;
        };
        if let Some(required) = directives.reqnctapercluster()
            && required != cluster.dims
        {
            let [x, y, z] = required;
            report.error(
                &cluster.tokens,
                format!(
                    "the kernel at {place} is compiled for clusters of {x} x {y} x {z} alone \
                     (`.reqnctapercluster`): write `#[cluster({})]`, or leave it out",
                    shown_dims(required)
                ),
            );
        }
        if let Some(most) = directives.maxclusterrank()
            && threads(cluster.dims) > u128::from(most)
        {
            report.error(
                &cluster.tokens,
                format!(
                    "{} blocks a cluster, but the kernel at {place} is compiled for at most {most} \
                     (`.maxclusterrank`, from `__launch_bounds__`)",
                    threads(cluster.dims)
                ),
            );
        }
    }

    /// A kernel that waits for its grid traps in a launch that is not cooperative.
    fn check_cooperative(&self, entry: &ptx::Entry, report: &mut Report) {
        if self.kernel.cooperative {
            return;
        }
        if let Ok(ptx::GridWaits {
            for_grid: Some(position),
            ..
        }) = self.artifact.grid_waits(entry)
        {
            report.error(
                self.name_tokens(),
                format!(
                    "`{}` synchronises its whole grid, and traps at {} unless each launch is cooperative: \
                     declare it #[cooperative]",
                    self.name(),
                    self.place(position)
                ),
            );
        }
    }

    fn check_params_size(&self, entry: &ptx::Entry, report: &mut Report) {
        let module = self.artifact.module();
        let limit = ptx::params_limit(module.version(), module.target());
        if entry.params_size() > limit {
            let version = module.version();
            let target = module.target().name();
            report.error(
                self.name_tokens(),
                format!(
                    "the parameters of `{}` take {}, but PTX ISA {version} for {target} allows \
                     {limit}: pass large structs by a device array",
                    self.name(),
                    describe::bytes(entry.params_size())
                ),
            );
        }
    }
}

const MOST_LISTED: usize = 8;

/// `add(float*)`, that is `_Z3addPf`; and so on, up to a number.
fn listed_with_symbols(entries: &[&(&str, String)]) -> String {
    let mut listed: Vec<String> = entries
        .iter()
        .take(MOST_LISTED)
        .map(|(symbol, demangled)| format!("{demangled}, that is `{symbol}`"))
        .collect();
    let rest = entries.len().saturating_sub(MOST_LISTED);
    if rest > 0 {
        listed.push(format!("and {rest} more"));
    }
    listed.join("; ")
}

fn is_of_class(shape: Shape, class: ptx::Class) -> bool {
    match class {
        ptx::Class::Integer => shape == Shape::Integer,
        ptx::Class::Float => shape == Shape::Float,
        // `.b32` says the size alone.
        ptx::Class::Bits => true,
        ptx::Class::Bytes => shape == Shape::Bytes,
        _ => false,
    }
}

fn check_block_limits(block: &Extents, report: &mut Report) {
    const MOST: [u32; 3] = [1024, 1024, 64];
    let total = threads(block.dims);
    if total > 1024 {
        report.error(
            &block.tokens,
            format!("a block has at most 1024 threads, and this has {total}"),
        );
    } else if block.dims.iter().zip(MOST).any(|(&dim, most)| dim > most) {
        report.error(&block.tokens, "a block is at most 1024 x 1024 x 64");
    }
}

fn check_cluster_limit(cluster: &Extents, report: &mut Report) {
    let blocks = threads(cluster.dims);
    if blocks > 16 {
        report.error(
            &cluster.tokens,
            format!("a cluster has at most 16 blocks, and this has {blocks}"),
        );
    }
}

fn check_within_rank(rank: &Rank, name: &str, extents: Option<&Extents>, report: &mut Report) {
    if let Some(extents) = extents
        && exceeds(extents.dims, rank.axes)
    {
        report.error(
            &extents.tokens,
            format!(
                "the {name} extends along more axes than #[rank({})]: change one of the two",
                rank.axes
            ),
        );
    }
}

/// Whether there is more than one along an axis behind the first `axes`.
fn exceeds(dims: [u32; 3], axes: u8) -> bool {
    dims[usize::from(axes).min(3)..].iter().any(|&dim| dim > 1)
}

fn threads(dims: [u32; 3]) -> u128 {
    dims.iter().map(|&dim| u128::from(dim)).product()
}

/// `256` of 256 x 1 x 1.
fn shown_dims(dims: [u32; 3]) -> String {
    match dims {
        [x, 1, 1] => x.to_string(),
        [x, y, 1] => format!("{x}, {y}"),
        [x, y, z] => format!("{x}, {y}, {z}"),
    }
}

fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use crate::artifact::{Place, Text};
    use crate::input;

    const HEAD: &str = ".version 8.0\n.target sm_75\n.address_size 64\n";

    fn text(ptx: &str) -> Arc<Text> {
        let module = ptx::Module::parse(ptx).unwrap();
        Arc::new(Text {
            source: ptx.to_owned(),
            module,
        })
    }

    fn artifact(ptx: &str) -> Artifact {
        Artifact {
            place: Place {
                shown: "k.ptx".to_owned(),
                absolute: "/k.ptx".into(),
                variables: Vec::new(),
            },
            text: text(&format!("{HEAD}{ptx}")),
        }
    }

    /// The errors of a declaration, each with the source it underlines.
    fn errors(declaration: &str, ptx: &str) -> Vec<(String, String)> {
        let tokens = format!("unsafe extern \"C\" {{ {declaration} }}");
        let declarations = input::declarations(tokens.parse().unwrap());
        let [parsed] = declarations.kernels.as_slice() else {
            panic!("not one kernel")
        };
        let kernel = parsed.kernel.as_ref().unwrap();
        let mut report = Report::default();
        alone(kernel, &mut report);
        against(&parsed.outline, kernel, &artifact(ptx), &mut report);
        report.shown(&tokens)
    }

    fn error(declaration: &str, ptx: &str) -> (String, String) {
        let errors = errors(declaration, ptx);
        assert_eq!(errors.len(), 1, "{errors:#?}");
        errors.into_iter().next().unwrap()
    }

    #[test]
    fn a_right_declaration_has_no_errors() {
        let ptx = ".visible .entry k(.param .u32 a, .param .f32 b, .param .u64 c, .param .u64 d,
            .param .align 4 .b8 e[12], .param .u8 f, .param .b64 g, .param .b32 h, .param .s32 i,
            .param .align 16 .b8 j[16], .param .u64 .ptr .global .align 1 k) { ret; }";
        let declaration = "safe fn k(a: i32, b: f32, c: usize, d: &[f32], e: [f32; 3], f: bool, \
            g: &mut [u8], h: f32, i: u32, j: u128, k: Option<&[f32]>);";
        assert_eq!(errors(declaration, ptx), []);
    }

    #[test]
    fn a_wrong_class_is_at_the_type() {
        let ptx = "\n.visible .entry scale(.param .f32 a) {}";
        let (at, message) = error("safe fn scale(a: f64);", ptx);
        assert_eq!(at, "f64");
        assert_eq!(
            message,
            "parameter 0, `a`, of `scale` is `f64` (8 bytes), but k.ptx:5 declares `.f32` (4 \
             bytes): write `f32`"
        );
        let (_, message) = error("safe fn scale(a: u32);", ptx);
        assert!(
            message.contains("`u32` (4 bytes), but k.ptx:5 declares `.f32`"),
            "{message}"
        );
    }

    #[test]
    fn every_wrong_parameter_is_told() {
        let ptx = ".entry pad(.param .u64 out, .param .u64 n, .param .u8 b)";
        let found = errors(
            "safe fn pad(out: f32, n: u32, b: i32);",
            &format!("{ptx} {{}}"),
        );
        let at: Vec<&str> = found.iter().map(|(at, _)| at.as_str()).collect();
        assert_eq!(at, ["f32", "u32", "i32"]);
        assert!(
            found[1].1.contains("`usize` for C's `size_t`"),
            "{}",
            found[1].1
        );
        assert!(found[2].1.contains("`bool`"), "{}", found[2].1);
    }

    #[test]
    fn a_pointer_is_eight_bytes() {
        let (at, message) = error("safe fn k(x: &[f32]);", ".entry k(.param .u32 x) {}");
        assert_eq!(at, "&[f32]");
        assert!(message.contains("a pointer (8 bytes)"), "{message}");
        let (_, message) = error(
            "safe fn k(x: &[f32]);",
            ".entry k(.param .u64 .ptr .shared .align 4 x) {}",
        );
        assert!(message.contains("`.shared`"), "{message}");
        let (_, message) = error(
            "safe fn k(x: u64);",
            ".entry k(.param .u64 .ptr .align 1 x) {}",
        );
        assert!(
            message.contains("declares a pointer: write `&[T]`"),
            "{message}"
        );
    }

    #[test]
    fn by_value_bytes_compare_size_and_alignment() {
        let ptx = ".entry k(.param .align 4 .b8 g[12]) {}";
        let (_, message) = error("safe fn k(g: [f32; 4]);", ptx);
        assert!(
            message.contains("`[f32; 4]` (16 bytes, align 4)"),
            "{message}"
        );
        assert!(
            message.contains("`.align 4 .b8 [12]` (12 bytes): write `Float3`"),
            "{message}"
        );
        assert_eq!(errors("safe fn k(g: [f32; 3]);", ptx), []);
        let float4 = ".entry k(.param .align 16 .b8 g[16]) {}";
        assert!(
            error("safe fn k(g: [f32; 4]);", float4)
                .1
                .contains("`Float4`")
        );
    }

    #[test]
    fn a_missing_parameter_is_at_the_list() {
        let ptx = ".entry t(.param .u64 a, .param .u64 b, .param .u32 r, .param .u32 c, .param \
                   .u32 t) {}";
        let declaration = "safe fn t(input: &[f32], out: &mut [f32], rows: i32, cols: i32);";
        let (at, message) = error(declaration, ptx);
        assert_eq!(at, "(input: &[f32], out: &mut [f32], rows: i32, cols: i32)");
        assert_eq!(
            message,
            "`t` declares 4 parameters, the PTX entry at k.ptx:4 has 5; missing after `cols`: \
             `.u32`"
        );
    }

    #[test]
    fn an_extra_parameter_is_at_itself() {
        let ptx = ".entry t(.param .u64 a, .param .u32 n) {}";
        let (at, message) = error("safe fn t(a: &[f32], s: f64, n: u32);", ptx);
        assert_eq!(at, "s: f64");
        assert!(message.contains("the kernel has no `s`"), "{message}");
    }

    #[test]
    fn an_unknown_entry_is_at_the_name() {
        let ptx = ".entry relu() {} .entry scale() {}";
        let (at, message) = error("safe fn rleu();", ptx);
        assert_eq!(at, "rleu");
        assert_eq!(
            message,
            "no entry `rleu` in k.ptx; did you mean `relu`? it has `relu`, `scale`"
        );
        let (_, message) = error("safe fn sum();", ptx);
        assert_eq!(message, "no entry `sum` in k.ptx; it has `relu`, `scale`");
        let (at, _) = error("#[name(\"sum\")] safe fn relu();", ptx);
        assert_eq!(at, "\"sum\"");
        assert!(error("safe fn sum();", "").1.contains("no kernels at all"));
        assert!(
            error("safe fn f();", ".func f() { ret; }")
                .1
                .contains("__global__")
        );
    }

    #[test]
    fn a_mangled_entry_is_found_by_its_name() {
        let ptx = ".entry _Z4reluPfi(.param .u64 y, .param .u32 n) {}
            .entry _ZN4math5scaleEPff(.param .u64 y, .param .f32 a) {}";
        assert_eq!(errors("safe fn relu(y: &mut [f32], n: i32);", ptx), []);
        assert_eq!(errors("safe fn scale(y: &mut [f32], a: f32);", ptx), []);
        assert_eq!(
            errors(
                "#[name(\"math::scale\")] safe fn f(y: &mut [f32], a: f32);",
                ptx
            ),
            []
        );
        let (at, message) = error("safe fn relu();", ptx);
        assert_eq!(at, "()");
        assert!(
            message.starts_with("`relu` declares 0 parameters"),
            "{message}"
        );
    }

    #[test]
    fn overloads_are_told_apart_by_their_types() {
        let ptx = ".entry _Z3addPf(.param .u64 x) {} .entry _Z3addPd(.param .u64 x) {}
            .weak .entry _Z3addIiEvPT_(.param .u64 x) {}";
        assert_eq!(errors("safe fn add(x: &mut [f64]);", ptx), []);
        assert_eq!(
            errors("#[name(\"add<int>\")] safe fn add(x: &mut [i32]);", ptx),
            []
        );
        let (at, message) = error("safe fn add(x: &mut [u8]);", ptx);
        assert_eq!(at, "add");
        assert_eq!(
            message,
            "no `add` in k.ptx takes `(&mut [u8])`; it has add(float*), that is `_Z3addPf`; add(double*), that is \
             `_Z3addPd`; add<int>(int*), that is `_Z3addIiEvPT_`: declare the types of one, or instantiate the template \
             for these in the source"
        );
    }

    #[test]
    fn raw_names_are_without_their_mark() {
        assert_eq!(errors("safe fn r#type();", ".entry type() {}"), []);
        assert_eq!(
            errors("#[name(\"_Z1kv\")] safe fn k();", ".entry _Z1kv() {}"),
            []
        );
    }

    #[test]
    fn blocks_keep_the_launch_bounds() {
        let most = ".entry k() .maxntid 256 {}";
        assert_eq!(errors("#[block(16, 16)] safe fn k();", most), []);
        assert_eq!(errors("#[block(1, 256)] safe fn k();", most), []);
        let (at, message) = error("#[block(512)] safe fn k();", most);
        assert_eq!(at, "512");
        assert!(message.contains("at most 256 (`.maxntid`"), "{message}");
        let required = ".entry k() .reqntid 16, 8 {}";
        assert_eq!(errors("#[block(16, 8)] safe fn k();", required), []);
        let (at, message) = error("#[block(8, 16)] safe fn k();", required);
        assert_eq!(at, "8, 16");
        assert!(message.contains("write `#[block(16, 8)]`"), "{message}");
        assert_eq!(errors("#[block(1024)] safe fn k();", ".entry k() {}"), []);
        assert!(
            error("#[block(32, 64)] safe fn k();", ".entry k() {}")
                .1
                .contains("has 2048")
        );
        assert!(
            error("#[block(1, 1, 128)] safe fn k();", ".entry k() {}")
                .1
                .contains("x 64")
        );
    }

    #[test]
    fn clusters_are_those_of_the_entry() {
        let required = ".entry k() .explicitcluster .reqnctapercluster 2, 2 {}";
        assert_eq!(errors("#[cluster(2, 2)] safe fn k();", required), []);
        assert_eq!(errors("safe fn k();", required), []);
        let (at, message) = error("#[cluster(4)] safe fn k();", required);
        assert_eq!(at, "4");
        assert!(message.contains("write `#[cluster(2, 2)]`"), "{message}");
        let most = ".entry k() .maxclusterrank 4 {}";
        assert_eq!(errors("#[cluster(4)] safe fn k();", most), []);
        let (_, message) = error("#[cluster(4, 2)] safe fn k();", most);
        assert!(
            message.contains("at most 4 (`.maxclusterrank`"),
            "{message}"
        );
        assert_eq!(errors("#[cluster(16)] safe fn k();", ".entry k() {}"), []);
        assert!(
            error("#[cluster(17)] safe fn k();", ".entry k() {}")
                .1
                .contains("this has 17")
        );
    }

    #[test]
    fn a_rank_bounds_blocks_and_clusters() {
        let ptx = ".entry k() {}";
        for right in [
            "#[rank(1)] #[block(256)] safe fn k();",
            "#[rank(2)] #[block(1, 64)] #[cluster(2)] safe fn k();",
            "#[rank(3)] #[block(8, 8, 4)] #[cluster(1, 1, 2)] safe fn k();",
        ] {
            assert_eq!(errors(right, ptx), []);
        }
        let (at, message) = error("#[rank(1)] #[block(1, 64)] safe fn k();", ptx);
        assert_eq!(at, "1, 64");
        assert!(message.contains("more axes than #[rank(1)]"), "{message}");
        let required = ".entry k() .reqntid 8, 1, 8 {}";
        let (at, message) = error("#[rank(2)] safe fn k();", required);
        assert_eq!(at, "2");
        assert!(message.contains("write `#[rank(3)]`"), "{message}");
    }

    #[test]
    fn a_kernel_that_waits_for_its_grid_is_cooperative() {
        let traps = ".entry k() { .reg .b32 %r<3>; .reg .b64 %rd<2>; .reg .pred %p<2>;
            mov.u32 %r1, %envreg1; mov.u32 %r2, %envreg2; mov.b64 %rd1, {%r2, %r1};
            setp.ne.s64 %p1, %rd1, 0; @%p1 bra L; trap; L: ret; }";
        assert_eq!(errors("#[cooperative] safe fn k();", traps), []);
        let (at, message) = error("safe fn k();", traps);
        assert_eq!(at, "k");
        assert!(message.contains("traps at k.ptx:6 unless"), "{message}");
    }

    #[test]
    fn the_parameter_block_has_a_limit() {
        let ptx = ".entry k(.param .align 4 .b8 a[5000]) {}";
        let (at, message) = error("safe fn k(a: Big);", ptx);
        assert_eq!(at, "k");
        assert!(
            message.contains("take 5000 bytes, but PTX ISA 8.0 for sm_75 allows 4352"),
            "{message}"
        );
    }

    #[test]
    fn addresses_have_64_bits() {
        let mut small = artifact("");
        small.text = text(".version 8.0\n.target sm_75\n.address_size 32\n");
        assert!(check_address_size(&small).is_err_and(|message| message.contains("32-bit")));
        assert!(check_address_size(&artifact("")).is_ok());
    }
}
