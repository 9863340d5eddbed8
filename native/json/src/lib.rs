//! A strict JSON reader for bytes from anywhere.
//!
//! [`read`] reads one RFC 8259 document and passes its parts to a [`JsonSink`], in order. No tree
//! is built: the Python binding creates dicts and lists, other crates may write BSON, and
//! [`Ignore`] only validates.
//!
//! Where the RFC leaves a choice, parsers differ, and attackers exploit the differences. Here each
//! such case is an error: text that is not UTF-8, a byte order mark, a key given twice, an escape
//! that names half a character, U+0000 in a string (no `PostgreSQL` text can hold it), and numbers
//! that no double can hold. Depth, values and digits are bounded, so time and memory are linear in
//! the length of the input.
//!
//! Errors carry a stable [`JsonErrorCode`] and a [`JsonLocation`]: byte offset, line, column and JSON pointer.

mod error;
mod items;
mod limits;
mod number;
mod path;
mod reader;
mod sink;
mod text;

pub use error::{Error, JsonErrorCode, JsonLocation, ReadFailure};
pub use items::{FileItem, ItemReader, ItemsFailure};
pub use limits::JsonLimits;
pub use reader::read;
pub use sink::{Ignore, Integer, JsonSink};
