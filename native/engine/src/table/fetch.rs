//! Reading frames from a file: one by one, or many at once.

use super::frame::{self, FRAME_BYTES, Handle};
use crate::coding::to_usize;
use crate::error::{Error, Result};
use crate::vfs::RandomRead;

/// The maximum size of a block; larger ones are not read.
const MAX_BLOCK_BYTES: u64 = 1 << 30;

/// Bytes that were read ahead for the following blocks.
#[derive(Debug, Default)]
pub(crate) struct ReadAhead {
    bytes: Vec<u8>,
    start: u64,
}

/// How much is read ahead at once.
const AHEAD_BYTES: u64 = 256 << 10;

impl ReadAhead {
    pub(super) fn frame(
        &mut self,
        file: &dyn RandomRead,
        handle: Handle,
        end: u64,
    ) -> Result<Vec<u8>> {
        let length = frame_bytes(file, handle)?;
        if let Some(frame) = self.buffered(handle.offset, length) {
            return Ok(frame.to_vec());
        }
        let left = end.saturating_sub(handle.offset);
        let size = AHEAD_BYTES.min(left).max(length as u64);
        self.bytes.resize(to_usize(size), 0);
        self.start = handle.offset;
        file.read_exact_at(handle.offset, &mut self.bytes)?;
        Ok(self
            .buffered(handle.offset, length)
            .unwrap_or_default()
            .to_vec())
    }

    fn buffered(&self, offset: u64, length: usize) -> Option<&[u8]> {
        let at = to_usize(offset.checked_sub(self.start)?);
        self.bytes.get(at..at.checked_add(length)?)
    }
}

fn frame_bytes(file: &dyn RandomRead, handle: Handle) -> Result<usize> {
    if handle.length > MAX_BLOCK_BYTES {
        return Err(Error::corruption(
            file.path(),
            handle.offset,
            "a block claims an impossible length",
        ));
    }
    Ok(to_usize(handle.length) + FRAME_BYTES)
}

/// A frame's block.
pub(super) fn read_frame(file: &dyn RandomRead, handle: Handle) -> Result<Vec<u8>> {
    let mut frame = vec![0; frame_bytes(file, handle)?];
    file.read_exact_at(handle.offset, &mut frame)?;
    frame::read(frame, handle.offset)
        .map_err(|detail| Error::corruption(file.path(), handle.offset, detail))
}

/// An error in a file whose checksums are valid.
pub(super) fn damaged(file: &dyn RandomRead, handle: Handle, what: &str) -> Error {
    let detail = format!("this {what} is malformed although its checksum matches");
    Error::corruption(file.path(), handle.offset, detail)
}
