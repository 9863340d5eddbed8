//! Merges the entries of several sources.
//!
//! Sources form a heap by their current entry, with the next one to return at the top. Advancing
//! the top and sifting it down takes two comparisons as long as one source stays on top, as is
//! usual.

use std::cmp::Ordering;

use super::source::EntrySource;
use crate::error::Result;
use crate::key::{Tag, compare};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// Iterates over merged sources, in both directions.
#[derive(Debug)]
pub(crate) struct MergingCursor {
    /// Those with a current entry form a heap at the front.
    sources: Vec<EntrySource>,
    live: usize,
    direction: Direction,
}

impl MergingCursor {
    pub(crate) fn new(sources: Vec<EntrySource>) -> Self {
        Self {
            sources,
            live: 0,
            direction: Direction::Forward,
        }
    }

    #[inline]
    pub(crate) fn is_valid(&self) -> bool {
        self.live > 0
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        self.sources.first().map_or(&[], EntrySource::key)
    }

    #[inline]
    pub(crate) fn tag(&self) -> Tag {
        self.sources.first().map_or(Tag::OLDEST, EntrySource::tag)
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        self.sources.first().map_or(&[], EntrySource::value)
    }

    pub(crate) fn first(&mut self) -> Result<()> {
        self.restart(Direction::Forward, EntrySource::first)
    }

    pub(crate) fn last(&mut self) -> Result<()> {
        self.restart(Direction::Backward, EntrySource::last)
    }

    /// Moves to the first entry at or after `(key, tag)`.
    pub(crate) fn seek(&mut self, key: &[u8], tag: Tag) -> Result<()> {
        self.restart(Direction::Forward, |source| source.seek(key, tag))
    }

    /// Moves to the first entry at or after `(key, tag)` of the sources that `may` have it. The
    /// others are skipped until the next seek.
    pub(crate) fn seek_where(
        &mut self,
        key: &[u8],
        tag: Tag,
        may: impl Fn(&EntrySource) -> Result<bool>,
    ) -> Result<()> {
        self.restart_some(Direction::Forward, |source| {
            if !may(source)? {
                return Ok(false);
            }
            source.seek(key, tag)?;
            Ok(source.is_valid())
        })
    }

    /// Moves to the last entry before `(key, tag)`.
    pub(crate) fn seek_before(&mut self, key: &[u8], tag: Tag) -> Result<()> {
        self.restart(Direction::Backward, |source| source.seek_before(key, tag))
    }

    fn restart(
        &mut self,
        direction: Direction,
        mut go: impl FnMut(&mut EntrySource) -> Result<()>,
    ) -> Result<()> {
        self.restart_some(direction, |source| {
            go(source)?;
            Ok(source.is_valid())
        })
    }

    /// Restarts with the sources that `go` has moved to an entry.
    fn restart_some(
        &mut self,
        direction: Direction,
        mut go: impl FnMut(&mut EntrySource) -> Result<bool>,
    ) -> Result<()> {
        self.direction = direction;
        self.live = 0;
        let mut live = 0;
        for at in 0..self.sources.len() {
            let Some(source) = self.sources.get_mut(at) else {
                break;
            };
            if go(source)? {
                self.sources.swap(at, live);
                live += 1;
            }
        }
        self.live = live;
        for at in (0..live / 2).rev() {
            self.sink(at);
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Result<()> {
        if self.direction == Direction::Backward {
            let (key, tag) = (self.key().to_vec(), self.tag());
            // The next entry: tags descend, so one less directly follows.
            return match tag.0.checked_sub(1) {
                Some(behind) => self.seek(&key, Tag(behind)),
                None => self.seek(&successor(key), Tag::NEWEST),
            };
        }
        if let Some(top) = self.sources.first_mut() {
            top.next()?;
        }
        self.settle();
        Ok(())
    }

    pub(crate) fn previous(&mut self) -> Result<()> {
        if self.direction == Direction::Forward {
            let (key, tag) = (self.key().to_vec(), self.tag());
            return self.seek_before(&key, tag);
        }
        if let Some(top) = self.sources.first_mut() {
            top.previous()?;
        }
        self.settle();
        Ok(())
    }

    /// Restores the heap after the top has moved.
    #[inline]
    fn settle(&mut self) {
        if !self.sources.first().is_some_and(EntrySource::is_valid) && self.live > 0 {
            self.live -= 1;
            self.sources.swap(0, self.live);
        }
        self.sink(0);
    }

    fn sink(&mut self, mut at: usize) {
        loop {
            let left = 2 * at + 1;
            if left >= self.live {
                return;
            }
            let right = left + 1;
            let child = if right < self.live && self.precedes(right, left) {
                right
            } else {
                left
            };
            if !self.precedes(child, at) {
                return;
            }
            self.sources.swap(child, at);
            at = child;
        }
    }

    #[inline]
    fn precedes(&self, one: usize, other: usize) -> bool {
        let (Some(one), Some(other)) = (self.sources.get(one), self.sources.get(other)) else {
            return false;
        };
        let order = compare((one.key(), one.tag()), (other.key(), other.tag()));
        match self.direction {
            Direction::Forward => order == Ordering::Less,
            Direction::Backward => order == Ordering::Greater,
        }
    }
}

/// The smallest key after another one.
pub(crate) fn successor(mut key: Vec<u8>) -> Vec<u8> {
    key.push(0);
    key
}
