//! The stages of `#[kernel]`, one after the other.

use proc_macro2::TokenStream;

use crate::artifact::{self, Artifact, Found};
use crate::check;
use crate::expand::{self, Items, Subject};
use crate::input::{self, Declarations, Options};
use crate::kernel::{Kernel, Outline, Parsed};
use crate::report::Report;

/// `#[kernel(options)] item`.
pub(crate) fn kernel(options: TokenStream, item: TokenStream) -> TokenStream {
    let Declarations {
        kernels,
        unread,
        cfgs,
        mut report,
    } = input::declarations(item);
    let options = input::options(options, &mut report);
    let found = find(&options, &mut report);
    let mut out = report.into_tokens(&cfgs);
    out.extend(unread);

    let mut hidden = TokenStream::new();
    for parsed in kernels {
        let items = one(parsed, &options, found.as_ref());
        out.extend(items.visible);
        hidden.extend(items.hidden);
    }
    if !hidden.is_empty() {
        out.extend(expand::hidden(
            &cfgs,
            &image(&options, found.as_ref()),
            &hidden,
        ));
    }
    out
}

/// Opens the PTX; `None` if that failed.
fn find(options: &Options, report: &mut Report) -> Option<Found> {
    let expr = options.ptx.as_ref()?;
    let found = report.note(artifact::open(expr))?;
    if let Found::Module(artifact) = &found
        && let Err(message) = check::check_address_size(artifact)
    {
        report.error(expr, message);
        return None;
    }
    Some(found)
}

/// All of a kernel, or its errors and its outline.
fn one(parsed: Parsed, options: &Options, found: Option<&Found>) -> Items {
    let Parsed {
        outline,
        kernel,
        mut report,
    } = parsed;
    let expanded = kernel.and_then(|kernel| {
        check::alone(&kernel, &mut report);
        whole(&outline, &kernel, options, found?, &mut report)
    });
    expanded.unwrap_or_else(|| {
        let mut visible = report.into_tokens(&outline.attrs.cfgs);
        visible.extend(expand::outline(&options.krate, &outline));
        Items {
            visible,
            hidden: TokenStream::new(),
        }
    })
}

fn whole(
    outline: &Outline,
    kernel: &Kernel,
    options: &Options,
    found: &Found,
    report: &mut Report,
) -> Option<Items> {
    let entry = match found {
        Found::Module(artifact) => check::against(outline, kernel, artifact, report),
        Found::Absent(_) => None,
    };
    report.is_empty().then(|| {
        expand::kernel(&Subject {
            krate: &options.krate,
            outline,
            kernel,
            file: shown(found),
            entry,
        })
    })
}

fn shown(found: &Found) -> &str {
    match found {
        Found::Module(Artifact { place, .. }) | Found::Absent(place) => &place.shown,
    }
}

fn image(options: &Options, found: Option<&Found>) -> TokenStream {
    match found {
        Some(Found::Module(artifact)) => expand::image(&options.krate, artifact),
        Some(Found::Absent(place)) => expand::absent_image(&options.krate, place),
        // Without a file there are only outlines.
        None => TokenStream::new(),
    }
}
