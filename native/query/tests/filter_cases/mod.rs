//! The rows of `filter.rs`, by family.

mod arrays;
mod comparison;
mod elements;
mod logic;
mod refused;
mod whole;

/// A filter, documents that match, documents that do not.
pub(crate) type Row = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

pub(crate) const FAMILIES: &[(&str, &[Row])] = &[
    ("comparison", comparison::ROWS),
    ("arrays and paths", arrays::ROWS),
    ("elements", elements::ROWS),
    ("logic", logic::ROWS),
    ("schemas", whole::SCHEMA),
    ("text", whole::TEXT),
    ("geometry", whole::GEO),
];

pub(crate) use refused::REFUSED;
