//! The cases: all geometries, ways of addressing, filters and formats, at edges and at random.

mod answers;
mod content;
mod fault;
mod format;
mod gather;
mod geometry;
mod memory;
mod query;
mod sample;
mod surface;

use crate::{Book, lab::Lab};

pub(crate) use fault::{fault, faults};

/// Cases of one kind.
type Part = fn(&mut Lab, &mut Book);

/// The cases by what they are about.
pub(crate) const PARTS: [(&str, Part); 25] = [
    ("addressing", sample::addressing),
    ("levels", sample::levels),
    ("offsets", sample::offsets),
    ("fetches", sample::fetches),
    ("formats", format::formats),
    ("values", format::values),
    ("srgb", format::srgb),
    ("means", format::means),
    ("mismatches", format::mismatches),
    ("linear_memory", memory::linear_memory),
    ("pitched_memory", memory::pitched_memory),
    ("gathers", gather::gathers),
    ("unusual_gathers", gather::unusual_gathers),
    ("queries", query::queries),
    ("loads", surface::loads),
    ("stores", surface::stores),
    ("formatted_stores", surface::formatted_stores),
    ("reductions", surface::reductions),
    ("attributes", answers::attributes),
    ("arrays", answers::arrays),
    ("textures", answers::textures),
    ("memory", answers::memory),
    ("copies", answers::copies),
    ("descriptors", answers::descriptors),
    ("ends", answers::ends),
];
