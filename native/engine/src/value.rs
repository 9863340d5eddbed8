//! A value that was read: it keeps its block alive. Values from memtables are copied, so that
//! keeping a value does not keep a whole memtable.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::block::Block;

/// Bytes of a block in the cache, or of their own.
#[derive(Clone)]
pub struct ValueBytes {
    held: ValueStorage,
    at: u32,
    length: u32,
}

#[derive(Clone)]
enum ValueStorage {
    Copied(Arc<[u8]>),
    Block(Arc<Block>),
    Own(Arc<Vec<u8>>),
}

impl ValueBytes {
    pub(crate) fn copied(bytes: &[u8]) -> Self {
        Self {
            held: ValueStorage::Copied(bytes.into()),
            at: 0,
            length: crate::coding::to_u32(bytes.len()),
        }
    }

    pub(crate) fn in_block(block: Arc<Block>, at: usize, length: usize) -> Self {
        Self {
            held: ValueStorage::Block(block),
            at: crate::coding::to_u32(at),
            length: crate::coding::to_u32(length),
        }
    }

    /// Without the first `bytes`.
    pub(crate) fn skip(mut self, bytes: usize) -> Self {
        let bytes = crate::coding::to_u32(bytes).min(self.length);
        self.at += bytes;
        self.length -= bytes;
        self
    }
}

impl From<Vec<u8>> for ValueBytes {
    fn from(bytes: Vec<u8>) -> Self {
        let length = crate::coding::to_u32(bytes.len());
        Self {
            held: ValueStorage::Own(Arc::new(bytes)),
            at: 0,
            length,
        }
    }
}

impl Deref for ValueBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let all = match &self.held {
            ValueStorage::Copied(bytes) => bytes,
            ValueStorage::Block(block) => block.bytes(),
            ValueStorage::Own(bytes) => bytes.as_slice(),
        };
        let at = self.at as usize;
        all.get(at..at + self.length as usize).unwrap_or_default()
    }
}

impl AsRef<[u8]> for ValueBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl PartialEq for ValueBytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for ValueBytes {}

impl fmt::Debug for ValueBytes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Value({} bytes)", self.length)
    }
}
