//! Replies in either version: version 2 has no maps, and a single kind of null.

use std::io::Write as _;

/// Writes the elements of a reply in order.
#[derive(Debug)]
pub(crate) struct ReplyWriter<'a> {
    out: &'a mut Vec<u8>,
    is_version_3: bool,
}

impl<'a> ReplyWriter<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>, version: u8) -> Self {
        Self {
            out,
            is_version_3: version >= 3,
        }
    }

    /// The same buffer in another version.
    pub(crate) fn of_version(&mut self, version: u8) -> ReplyWriter<'_> {
        ReplyWriter::new(self.out, version)
    }

    /// The number of bytes so far.
    pub(crate) fn len(&self) -> usize {
        self.out.len()
    }

    fn header(&mut self, sign: char, number: impl std::fmt::Display) {
        // Writing to a vector does not fail.
        let _ = write!(self.out, "{sign}{number}\r\n");
    }

    pub(crate) fn ok(&mut self) {
        self.simple("OK");
    }

    /// A short text without line ends.
    pub(crate) fn simple(&mut self, text: &str) {
        self.header('+', text);
    }

    /// Line ends become spaces, since the first one ends an error.
    pub(crate) fn error(&mut self, code: &str, text: &str) {
        let text = text.replace(['\r', '\n'], " ");
        self.header('-', format_args!("{code} {text}"));
    }

    pub(crate) fn integer(&mut self, number: u64) {
        self.header(':', number);
    }

    pub(crate) fn bulk(&mut self, bytes: &[u8]) {
        self.header('$', bytes.len());
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(b"\r\n");
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.bulk(text.as_bytes());
    }

    pub(crate) fn null(&mut self) {
        let nothing: &[u8] = if self.is_version_3 {
            b"_\r\n"
        } else {
            b"$-1\r\n"
        };
        self.out.extend_from_slice(nothing);
    }

    pub(crate) fn array(&mut self, length: usize) {
        self.header('*', length);
    }

    /// A map; this many names with values follow.
    pub(crate) fn map(&mut self, length: usize) {
        if self.is_version_3 {
            self.header('%', length);
        } else {
            self.header('*', length * 2);
        }
    }

    /// A push; version 3 only.
    pub(crate) fn push(&mut self, length: usize) {
        self.header('>', length);
    }

    /// An element that was already encoded.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }
}
