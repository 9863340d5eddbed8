//! CSV (RFC 4180) as documents and columns, and documents as CSV.
//!
//! The one reader of CSV in the product: imports into collections, uploads to datasets and previews
//! of files all use it, so a file means the same to each of them. In the order in which data flows:
//!
//! - [`reader`]: bytes, in parts of any size, as records. It is strict: what different readers
//!   would read differently is an error of its record; reading continues with the next record.
//! - [`dialect`]: guesses the delimiter of a file and the types of its columns.
//! - [`typed`]: a field's text as a value.
//! - [`mapping`]: maps columns to fields of a document.
//! - [`column`]: a column of many records in Arrow's layout.
//! - [`writer`]: documents as lines.
//!
//! Every byte may come from an attacker: sizes are bounded, and nothing here panics on any input.

pub mod column;
pub mod dialect;
pub mod mapping;
pub mod reader;
pub mod records;
pub mod typed;
pub mod writer;
