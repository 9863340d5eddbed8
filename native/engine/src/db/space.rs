//! Handling a full disk.
//!
//! A write for which the log has no space fails without effect: its sequences are never visible,
//! its entries in memtables are hidden, its record is cut from the log. Reads continue. While the
//! log is stalled no write is assigned a sequence; the background tries to resume it, and continues
//! after the sequences that were dropped, which a record marks as used, so that none is reused.
//!
//! A flush or compaction without space removes its output and is retried. Writers that would have
//! to wait for it are rejected instead.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::background::{EXPIRY_CHECK_INTERVAL, RETRY_FULL};
use super::{CommitState, Db, DbCore};
use crate::db::batch::WriteBatch;
use crate::error::{Error, Result};
use crate::key::Sequence;

/// What is stalled by a full disk, besides the log.
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
    /// Fails while flushes or compactions lack space, or writes are no longer possible.
    pub(super) fn check_room(&self) -> Result<()> {
        self.check()?;
        if !self.stalls.any() {
            return Ok(());
        }
        let why = self.stalls.why.lock().clone();
        Err(Error::Full { why })
    }

    /// Records that flushes, or compactions, lack space, and wakes writers that wait for them.
    pub(super) fn stall(&self, flushes: bool, error: &Error) {
        *self.stalls.why.lock() = error.to_string();
        self.stalls.of(flushes).store(true, Ordering::Release);
        self.work.wake();
    }

    /// Records that flushes, or compactions, have space again.
    pub(super) fn unstall(&self, flushes: bool) {
        self.stalls.of(flushes).store(false, Ordering::Release);
    }

    /// How long an idle background thread sleeps.
    pub(super) fn idle_interval(&self) -> Duration {
        if self.wal.why_full().is_some() {
            RETRY_FULL
        } else {
            EXPIRY_CHECK_INTERVAL
        }
    }

    /// Fails while the log is stalled. Without background threads the writer tries to resume it.
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

    /// Hides the writes for which the log had no space.
    pub(super) fn drop_unwritten(&self) {
        self.hide_dropped(&mut self.commit.lock());
        // The background tries to resume from now on.
        self.work.wake();
    }

    fn hide_dropped(&self, commit: &mut CommitState) {
        let Some(end) = self.wal.stalled_at() else {
            return;
        };
        let dropped = self.publisher.drop_behind(end);
        commit.stalled_behind = Some(dropped.kept);
        if let Some(cut) = dropped.cut {
            self.cut_memtables(commit, cut);
        }
    }

    /// Hides all entries after a sequence; later ones go to new memtables.
    fn cut_memtables(&self, commit: &mut CommitState, cut: Sequence) {
        let active: Vec<_> = commit.active.values().cloned().collect();
        for (keyspace, memtable) in active {
            let view = keyspace.view();
            let waiting = view.waiting.iter();
            waiting
                .filter(|one| one.sealed_at() > cut)
                .for_each(|one| one.cut_at(cut));
            // A writer may still be adding to it, unless no batch was ever meant for it.
            if !memtable.is_empty() {
                memtable.cut_at(cut);
                self.replace_memtable(commit, &keyspace, &memtable, cut);
            }
        }
    }

    /// Resumes a stalled log, if there is space now.
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
    /// Why writes are rejected because the disk is full, if they are. They are accepted again once
    /// there is space.
    pub fn why_full(&self) -> Option<String> {
        let core = &self.core;
        let stalled = || core.stalls.any().then(|| core.stalls.why.lock().clone());
        core.wal.why_full().or_else(stalled)
    }
}
