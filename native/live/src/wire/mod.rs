//! The encoding of the messages between the parties.
//!
//! `docs/formats/` specifies them: after-image.md ([`write_entry`]), request.md ([`request`], with
//! definitions) and notification.md ([`notification`]). Numbers are big-endian, lengths precede
//! what they measure, and readers reject input that does not end where it should. Reading allocates
//! no more than a small multiple of the input, whatever lengths it claims.

mod bytes;
pub mod notification;
pub mod request;
pub mod write_entry;

pub use rillbase_binary_format::ReadError;

/// Version of all formats; the first byte.
pub const FORMAT: u8 = 1;
