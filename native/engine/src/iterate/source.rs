//! Sources of entries.

use super::run::RunCursor;
use crate::error::Result;
use crate::head::KeyHead;
use crate::key::Tag;
use crate::memtable::MemtableCursor;

/// A cursor over a memtable or a run.
#[derive(Debug)]
pub(crate) enum EntrySource {
    Memory(MemtableCursor),
    Run(Box<RunCursor>),
}

impl EntrySource {
    #[inline]
    pub(crate) fn is_valid(&self) -> bool {
        match self {
            Self::Memory(cursor) => cursor.is_valid(),
            Self::Run(cursor) => cursor.is_valid(),
        }
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        match self {
            Self::Memory(cursor) => cursor.key(),
            Self::Run(cursor) => cursor.key(),
        }
    }

    #[inline]
    pub(crate) fn tag(&self) -> Tag {
        match self {
            Self::Memory(cursor) => cursor.tag(),
            Self::Run(cursor) => cursor.tag(),
        }
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        match self {
            Self::Memory(cursor) => cursor.value(),
            Self::Run(cursor) => cursor.value(),
        }
    }

    pub(crate) fn first(&mut self) -> Result<()> {
        match self {
            Self::Memory(cursor) => {
                cursor.first();
                Ok(())
            }
            Self::Run(cursor) => cursor.first(),
        }
    }

    pub(crate) fn last(&mut self) -> Result<()> {
        match self {
            Self::Memory(cursor) => {
                cursor.last();
                Ok(())
            }
            Self::Run(cursor) => cursor.last(),
        }
    }

    /// Moves to the first entry at or after `(key, tag)`.
    pub(crate) fn seek(&mut self, key: &[u8], tag: Tag) -> Result<()> {
        match self {
            Self::Memory(cursor) => {
                cursor.seek(key, tag);
                Ok(())
            }
            Self::Run(cursor) => cursor.seek(key, tag),
        }
    }

    /// Whether there may be keys with one of these heads in the keyspace.
    pub(crate) fn may_have(&self, heads: &[&[u8]], of: &KeyHead) -> Result<bool> {
        match self {
            Self::Memory(_) => Ok(true),
            Self::Run(cursor) => cursor.may_have(heads, of),
        }
    }

    /// Moves to the last entry before `(key, tag)`.
    pub(crate) fn seek_before(&mut self, key: &[u8], tag: Tag) -> Result<()> {
        match self {
            Self::Memory(cursor) => {
                cursor.seek_before(key, tag);
                Ok(())
            }
            Self::Run(cursor) => cursor.seek_before(key, tag),
        }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Result<()> {
        match self {
            Self::Memory(cursor) => {
                cursor.next();
                Ok(())
            }
            Self::Run(cursor) => cursor.next(),
        }
    }

    pub(crate) fn previous(&mut self) -> Result<()> {
        match self {
            Self::Memory(cursor) => {
                cursor.previous();
                Ok(())
            }
            Self::Run(cursor) => cursor.previous(),
        }
    }
}
