//! Numbers and slices in binary formats.
//!
//! Varints are LEB128. Signed varints are folded first (0, −1, 1, −2, …), so that small ones are
//! short whatever their sign. Numbers of fixed width name their byte order. Readers neither panic
//! nor allocate for a length that the bytes cannot hold, whatever it claims.
#![allow(
    clippy::missing_errors_doc,
    reason = "every read fails in the same way: the bytes are cut short or malformed"
)]

mod reader;
mod writer;

pub use reader::{ByteReader, ReadError, ReadResult, u32_at, u64_at, varint_at};
pub use writer::{ByteWriter, varint_length};
