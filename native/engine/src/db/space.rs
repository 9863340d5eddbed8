//! A database for which there is no room on the disk.
//!
//! A write that the log has no room for fails, and leaves nothing behind: its sequences are never
//! visible, its entries in memtables are hidden, its record is cut from the log. Reads go on. While
//! the log is stalled no write gets a sequence; the background tries to resume it, and then goes on
//! behind the sequences that were dropped, which a record says, so that none is used twice.
//!
//! A flush or compaction that finds no room removes what it has written and is tried again. Writers
//! that would have to wait for it are refused instead.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::background::{LOOK_AGAIN, RETRY_FULL};
use super::{CommitState, Db, DbCore};
use crate::batch::WriteBatch;
use crate::error::{Error, Result};
use crate::key::Sequence;
use crate::memtable::Memtable;

/// What found no room, beside the log.
#[derive(Debug, Default)]
pub(crate) struct Stalls {
    flushes: AtomicBool,
    compactions: AtomicBool,
    why: Mutex<String>,
}

impl Stalls {
    fn of(&self, flushes: bool) -> &AtomicBool {
        if flushes {
            &self.flushes
        } else {
            &self.compactions
        }
    }

    fn any(&self) -> bool {
        [&self.flushes, &self.compactions]
            .into_iter()
            .any(|stalled| stalled.load(Ordering::Acquire))
    }
}

impl DbCore {
    /// Fails while flushes or compactions find no room, or nothing may be written any more.
    pub(super) fn check_room(&self) -> Result<()> {
        self.check()?;
        if !self.stalls.any() {
            return Ok(());
        }
        let why = self.stalls.why.lock().clone();
        Err(Error::Full { why })
    }

    /// Notes that flushes, or compactions, find no room, and lets writers that wait for them know.
    pub(super) fn stall(&self, flushes: bool, error: &Error) {
        *self.stalls.why.lock() = error.to_string();
        self.stalls.of(flushes).store(true, Ordering::Release);
        self.work.wake();
    }

    /// Flushes, or compactions, have found room.
    pub(super) fn unstall(&self, flushes: bool) {
        self.stalls.of(flushes).store(false, Ordering::Release);
    }

    /// How long a background thread without work sleeps.
    pub(super) fn look_again(&self) -> Duration {
        if self.wal.why_full().is_some() {
            RETRY_FULL
        } else {
            LOOK_AGAIN
        }
    }

    /// Fails while the log takes no record. Without background threads the writer looks for room.
    pub(super) fn find_room(&self) -> Result<()> {
        if !self.wal.is_stalled() {
            return Ok(());
        }
        if self.options.background_threads == 0 {
            return self.resume();
        }
        let why = self.wal.why_full().unwrap_or_default();
        Err(Error::Full { why })
    }

    /// Hides the writes for which the log had no room.
    pub(super) fn drop_unwritten(&self) {
        self.hide_dropped(&mut self.commit.lock());
        // The background looks for room from now on.
        self.work.wake();
    }

    fn hide_dropped(&self, commit: &mut CommitState) {
        let Some(end) = self.wal.stalled_at() else {
            return;
        };
        let dropped = self.publisher.drop_behind(end);
        commit.stalled_behind = Some(dropped.kept);
        if let Some(cut) = dropped.cut {
            Self::cut_memtables(commit, cut);
        }
    }

    /// Hides all entries behind a sequence; what comes next goes to fresh memtables.
    fn cut_memtables(commit: &mut CommitState, cut: Sequence) {
        let active = std::mem::take(&mut commit.active);
        commit.active = active
            .into_iter()
            .map(|(keyspace, memtable)| {
                let waiting = keyspace.view();
                let waiting = waiting.waiting.iter();
                waiting.for_each(|one| {
                    if one.sealed_at() > cut {
                        one.cut_at(cut);
                    }
                });
                // A writer may still be adding to it, unless no batch was ever meant for it.
                if memtable.is_empty() {
                    return (keyspace, memtable);
                }
                memtable.seal(cut);
                memtable.cut_at(cut);
                let fresh = Arc::new(Memtable::of(keyspace.options()));
                keyspace.rotate(Arc::clone(&fresh));
                (keyspace, fresh)
            })
            .collect();
    }

    /// Lets a stalled log go on, if there is room for it now.
    pub(super) fn resume(&self) -> Result<()> {
        if !self.wal.is_stalled() {
            return Ok(());
        }
        {
            let mut commit = self.commit.lock();
            self.hide_dropped(&mut commit);
            let used = commit.next_sequence - 1;
            let record = WriteBatch::skip_to(commit.next_sequence, self.time.now());
            self.wal.resume(record.record()).inspect_err(|error| {
                if !error.is_full() {
                    self.poison(error);
                }
            })?;
            commit.stalled_behind = None;
            self.publisher.resume(used);
        }
        self.work.wake();
        Ok(())
    }
}

impl Db {
    /// Why writes are refused for lack of room on the disk, if they are. They are taken again once
    /// there is room.
    pub fn why_full(&self) -> Option<String> {
        let core = &self.core;
        let stalled = || core.stalls.any().then(|| core.stalls.why.lock().clone());
        core.wal.why_full().or_else(stalled)
    }
}
