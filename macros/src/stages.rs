//! The stages of `#[kernel]`, one after the other.

use proc_macro2::TokenStream;
use syn::Type;

use crate::artifact::{self, Code, Cuda, Found};
use crate::check;
use crate::claims;
use crate::expand::{self, Heard, Items, Subject};
use crate::family::Family;
use crate::input::{self, Declarations, Options};
use crate::kernel::{Kernel, Outline, Parsed};
use crate::report::Report;
use crate::statics::Static;
use crate::symbol;
use crate::witness;

/// `#[kernel(options)] item`.
pub(crate) fn kernel(options: TokenStream, item: TokenStream) -> TokenStream {
    let Declarations {
        kernels,
        statics,
        unread,
        cfgs,
        mut report,
    } = input::declarations(item);
    let options = input::options(options, &mut report);
    let mut found = find(&options, &mut report);
    let mut code = Vec::new();
    if let Some(expr) = options.cubin.as_ref().filter(|_| found.is_some()) {
        match report.note(artifact::open_code(expr)) {
            Some(Ok(read)) => code = read,
            Some(Err(missing)) => found = Some(Found::Absent(missing)),
            None => found = None,
        }
    }
    let cuda = options
        .cuda
        .as_ref()
        .and_then(|expr| report.note(artifact::open_cuda(expr)));
    // Where the source is wrong, so is what it would say.
    let found = found.filter(|_| cuda.is_some() == options.cuda.is_some());
    let mut files = Files {
        options: &options,
        found: found.as_ref(),
        code: &code,
        cuda: cuda.as_ref(),
        ordered: Vec::new(),
    };
    let mut out = report.into_tokens(&cfgs);
    out.extend(unread);

    let mut hidden = TokenStream::new();
    for declared in statics {
        let items = variable(declared, &mut files);
        out.extend(items.visible);
        hidden.extend(items.hidden);
    }
    for parsed in kernels {
        let items = one(parsed, &files);
        out.extend(items.visible);
        hidden.extend(items.hidden);
    }
    if !hidden.is_empty() {
        out.extend(expand::hidden(&cfgs, &files.image(), &hidden));
    }
    out
}

/// What the kernels of one `#[kernel]` share.
struct Files<'a> {
    options: &'a Options,
    /// None if it could not be opened.
    found: Option<&'a Found>,
    /// Machine code of the same kernels.
    code: &'a [Code],
    cuda: Option<&'a Cuda>,
    /// The variables that the block declares `static mut`, by their names in any of the files.
    ordered: Vec<String>,
}

/// All of a static, or its errors and its outline.
fn variable(mut declared: Static, files: &mut Files<'_>) -> Items {
    let mut report = std::mem::take(&mut declared.report);
    let krate = &files.options.krate;
    let mut variables = Vec::new();
    if let (true, Some(Found::Modules(artifacts))) = (report.is_empty(), files.found) {
        for artifact in artifacts {
            let Some(variable) = symbol::against(&declared, artifact, &mut report) else {
                break;
            };
            if let (true, Some(cuda)) = (report.is_empty(), files.cuda) {
                symbol::against_source(&declared, variable, cuda, &mut report);
            }
            variables.push((artifact, variable));
        }
    }
    if declared.mutability.is_some() {
        let names = variables
            .iter()
            .map(|(_, variable)| variable.name().to_owned());
        files.ordered.extend(names);
        if let Some(Found::Later) = files.found {
            files.ordered.push(declared.symbol_name());
        }
    }
    if report.is_empty() && files.found.is_some() {
        let later = matches!(files.found, Some(Found::Later));
        let source = files.cuda.and_then(|cuda| cuda.place.as_ref());
        return expand::symbol(krate, &declared, &variables, source, later);
    }
    let mut visible = report.into_tokens(&declared.attrs.cfgs);
    visible.extend(expand::symbol_outline(krate, &declared));
    Items {
        visible,
        hidden: TokenStream::new(),
    }
}

/// Opens the PTX; `None` if that failed.
fn find(options: &Options, report: &mut Report) -> Option<Found> {
    let Some(expr) = options.ptx.as_ref() else {
        return report.is_empty().then_some(Found::Later);
    };
    let found = report.note(artifact::open(expr))?;
    if let Found::Modules(artifacts) = &found {
        for artifact in artifacts {
            if let Err(message) = check::check_address_size(artifact) {
                report.error(expr, message);
                return None;
            }
        }
    }
    Some(found)
}

/// All of a kernel, or its errors and its outline.
fn one(parsed: Parsed, files: &Files<'_>) -> Items {
    let Parsed {
        outline,
        kernel,
        family,
        mut report,
    } = parsed;
    if let Some(items) =
        family.and_then(|family| all_instances(&outline, &family, files, &mut report))
    {
        return items;
    }
    let expanded = kernel.and_then(|kernel| {
        check::alone(&kernel, &mut report);
        whole(&outline, &kernel, None, files, &mut report)
    });
    expanded.unwrap_or_else(|| {
        let mut visible = report.into_tokens(&outline.attrs.cfgs);
        visible.extend(expand::outline(&files.options.krate, &outline));
        Items {
            visible,
            hidden: TokenStream::new(),
        }
    })
}

/// A generic kernel: each instance as a kernel of its own, and what users see of all.
fn all_instances(
    outline: &Outline,
    family: &Family,
    files: &Files<'_>,
    report: &mut Report,
) -> Option<Items> {
    let found = files.found?;
    let mut instances = Vec::new();
    for instance in family.instances(found, report) {
        let Parsed {
            outline,
            kernel,
            report: found_wrong,
            ..
        } = family.declare(&instance);
        report.extend(found_wrong);
        let Some(kernel) = kernel else { continue };
        check::alone(&kernel, report);
        // What is wrong in one may be wrong in all, and is said once.
        let mut of_instance = Report::default();
        let by = instance.entry.is_none().then_some(&instance.ty);
        let items = whole(&outline, &kernel, by, files, &mut of_instance);
        report.extend(of_instance);
        instances.extend(items.map(|items| expand::Instance {
            ty: instance.ty,
            items,
        }));
    }
    report.is_empty().then(|| {
        expand::family(
            &files.options.krate,
            outline,
            instances,
            matches!(found, Found::Later),
        )
    })
}

/// All of a kernel; of an instance whose entry is not named, also the type that it is for.
fn whole(
    outline: &Outline,
    kernel: &Kernel,
    instance: Option<&Type>,
    files: &Files<'_>,
    report: &mut Report,
) -> Option<Items> {
    let (options, found) = (files.options, files.found?);
    let (mut heard, mut entries) = (Heard::default(), Vec::new());
    let mut touches = Vec::new();
    if let Found::Modules(artifacts) = found {
        for artifact in artifacts {
            let entry = check::against(outline, kernel, artifact, report)?;
            if !report.is_empty() {
                return None;
            }
            let subject = witness::Subject::new(outline, kernel, entry, artifact);
            witness::check(&subject, files.cuda, options.deny_unused, report);
            if let Some((first, &(of_first, _))) = artifacts.first().zip(entries.first()) {
                check::check_variants(outline, (first, of_first), (artifact, entry), report);
            }
            check::check_code(outline, (artifact, entry), files.code, report);
            if !report.is_empty() {
                return None;
            }
            heard.add(Heard {
                claims: claims::of(&options.krate, &subject, files.cuda),
                cpp: subject.cpp(files.cuda),
                source: files
                    .cuda
                    .and_then(|cuda| Some(cuda.place.as_ref()?.shown.clone())),
                read_only: subject.read_only(),
                calls: subject.calls(),
            });
            // Code that cannot be read is not known to wait.
            let waits = artifact.grid_waits(entry).unwrap_or_default();
            entries.push((entry, waits.for_dependencies.is_some()));
            touches.push(symbol::touches(artifact, entry, &files.ordered));
        }
    }
    report.is_empty().then(|| {
        expand::kernel(&Subject {
            krate: &options.krate,
            outline,
            kernel,
            file: shown(found),
            entry: entries.first().map(|&(entry, _)| entry),
            entries,
            later: matches!(found, Found::Later),
            instance,
            heard,
            touches,
            ordered: &files.ordered,
        })
    })
}

/// The file, as messages call it; of several the first.
fn shown(found: &Found) -> &str {
    match found {
        Found::Modules(artifacts) => artifacts
            .first()
            .map_or("", |artifact| artifact.place.shown.as_str()),
        Found::Absent(place) => &place.shown,
        Found::Later => "",
    }
}

impl Files<'_> {
    fn image(&self) -> TokenStream {
        let krate = &self.options.krate;
        let mut image = match self.found {
            Some(Found::Modules(artifacts)) => artifacts
                .iter()
                .enumerate()
                .map(|(number, artifact)| expand::image(krate, number, artifact, self.code))
                .collect(),
            Some(Found::Absent(place)) => expand::absent_image(krate, place),
            // Without a file there are only outlines.
            Some(Found::Later) | None => TokenStream::new(),
        };
        if let Some(place) = self.cuda.and_then(|cuda| cuda.place.as_ref()) {
            image.extend(expand::tracked(place));
        }
        image
    }
}
