//! Extended JSON v2: parses and writes the text form of BSON.
//!
//! Parsing accepts a mix of the canonical and the relaxed form. Writing produces either of them.
//! The canonical form preserves every type, so that parsing it returns the same bytes. The relaxed
//! form is for people, but also writes integers beyond 2^53 as `$numberLong`, because other readers
//! of JSON would round them.

mod bson_builder;
mod build_refusal;
pub mod date;
mod wrapper;
mod write;

pub use bson_builder::{
    parse_body, parse_document, parse_document_body, parse_message, parse_operations,
    parse_request, parse_value,
};
pub use write::{Form, document_to_string, value_to_string, write_value};
