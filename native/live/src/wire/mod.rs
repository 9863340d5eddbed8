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

use std::fmt;

/// Version of all formats; the first byte.
pub const FORMAT: u8 = 1;

/// Bytes that do not have this format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MalformedMessage(pub &'static str);

impl fmt::Display for MalformedMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for MalformedMessage {}
