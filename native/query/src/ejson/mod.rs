//! Extended JSON v2: the text form of BSON, both ways.
//!
//! Reading takes canonical and relaxed form mixed. Writing gives either; the
//! canonical form keeps every type and reading it gives the same bytes back.
//! Relaxed form is for people, and still writes integers beyond 2^53 as
//! `$numberLong`, because other readers of JSON would round them.

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
