//! The steps of a write: sequence, log, memtable, durable, visible.
//!
//! Under the commit lock a batch is assigned its sequences and enters the log, so that both have
//! the same order. Outside it writers fill memtables concurrently, and one of them syncs for all
//! that wait. A write is acknowledged, and visible, when it is as durable as requested and all
//! writes before it are visible.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{CommitState, DbCore, Keyspace};
use crate::db::batch::{Logged, Stamped, WriteBatch};
use crate::error::{Error, Result};
use crate::key::{EntryKind, Sequence, Tag};
use crate::memtable::Memtable;
use crate::wal::{AppendedRecords, Durability, WalVersion};

/// Writers are slowed to about this many bytes a second when compactions fall behind.
const SLOW_RATE: f64 = 16e6;
/// Shorter delays are accumulated, because the operating system cannot sleep for less.
const SHORTEST_DELAY: Duration = Duration::from_millis(1);
/// The log's size is checked once per this many bytes written.
const LOG_CHECK_BYTES: u64 = 1 << 20;

/// A batch that is in the log.
struct Logging {
    batch: Stamped,
    first: Sequence,
    last: Sequence,
    number: u64,
    written: AppendedRecords,
    memtables: Vec<(Keyspace, Arc<Memtable>)>,
}

impl DbCore {
    /// Writes a batch; returns its last sequence once it is visible.
    pub(crate) fn write(
        &self,
        batch: WriteBatch,
        durability: Durability,
        check: impl FnOnce(&CommitState) -> Result<()>,
    ) -> Result<Sequence> {
        batch.check()?;
        self.check()?;
        self.find_room()?;
        self.slow_down(&batch)?;
        let logging = self.log(batch, check)?;
        self.fill([&logging], durability)?;
        self.save(&[&logging], durability)?;
        self.settle(&logging)
    }

    /// Writes batches that are checked independently and become durable with one sync. Results are
    /// in the order of the batches; each sees those before it as written.
    pub(crate) fn write_each(
        &self,
        batches: Vec<(WriteBatch, impl FnOnce(&CommitState) -> Result<()>)>,
        durability: Durability,
    ) -> Vec<Result<Sequence>> {
        let count = batches.len();
        match self.log_each(batches, durability) {
            Err(error) => (0..count).map(|_| Err(error.clone())).collect(),
            Ok(logged) => {
                let settle = |one: Result<Logging>| self.settle(&one?);
                logged.into_iter().map(settle).collect()
            }
        }
    }

    /// Assigns sequences to batches whose checks succeed, and makes all of those visible.
    fn log_each(
        &self,
        batches: Vec<(WriteBatch, impl FnOnce(&CommitState) -> Result<()>)>,
        durability: Durability,
    ) -> Result<Vec<Result<Logging>>> {
        self.check()?;
        self.find_room()?;
        // No waiting is allowed once the first has its sequence: later writes wait for it.
        let may_write = |batch: &WriteBatch| batch.check().and_then(|()| self.slow_down(batch));
        let allowed: Vec<Result<()>> = batches.iter().map(|(batch, _)| may_write(batch)).collect();
        let each = batches.into_iter().zip(allowed);
        let log = |((batch, check), allowed): (_, Result<()>)| {
            allowed.and_then(|()| self.log(batch, check))
        };
        let mut logged: Vec<Result<Logging>> = each.map(log).collect();
        self.fill(logged.iter().flatten(), durability)?;
        loop {
            let kept: Vec<&Logging> = logged.iter().flatten().collect();
            match self.save(&kept, durability) {
                // There was no space for the last of them, but there may have been for others.
                Err(error) if error.is_full() => self.refuse_dropped(&mut logged),
                saved => return saved.map(|()| logged),
            }
        }
    }

    /// Fails those for which the log had no space.
    fn refuse_dropped(&self, logged: &mut [Result<Logging>]) {
        for one in logged {
            let kept = one.as_ref().map(|logging| self.wal.keeps(&logging.written));
            if let Ok(Err(error)) = kept {
                *one = Err(error);
            }
        }
    }

    /// Fills memtables from batches that are in the log.
    fn fill<'a>(
        &self,
        logged: impl IntoIterator<Item = &'a Logging> + Clone,
        durability: Durability,
    ) -> Result<()> {
        if let Err(error) = logged.clone().into_iter().try_for_each(insert) {
            self.poison(&error);
            self.publisher.fail();
            return Err(error);
        }
        if durability == Durability::Sync {
            let filled = logged.into_iter().map(|one| (one.number, one.written.end));
            self.publisher.filled(filled);
        }
        Ok(())
    }

    /// Makes batches that fill memtables as durable as requested, and visible. Without space for
    /// the last of them, none becomes visible here.
    fn save(&self, logged: &[&Logging], durability: Durability) -> Result<()> {
        let Some(newest) = logged.last() else {
            return Ok(());
        };
        let saved = match durability {
            Durability::Sync => self.wal.sync_through(&newest.written),
            Durability::Buffered => self.wal.write_through(&newest.written),
        };
        if let Err(error) = saved {
            if error.is_full() {
                self.drop_unwritten();
                return Err(error);
            }
            self.poison(&error);
            self.publisher.fail();
            return Err(error);
        }
        let shown = match durability {
            Durability::Sync => self.publisher.synced(self.wal.synced(), newest.last),
            Durability::Buffered => logged
                .iter()
                .try_for_each(|one| self.publisher.finish(one.number, one.last)),
        };
        shown.map_err(|_| self.poisoned())
    }

    /// Finishes a visible batch; returns its last sequence.
    fn settle(&self, logging: &Logging) -> Result<Sequence> {
        self.fold_rows(logging);
        self.stats
            .written(logging.batch.record(), logging.last - logging.first + 1);
        match self.make_room(logging) {
            // This write is durable; later ones are rejected.
            Err(error) if error.is_full() => {}
            made => made?,
        }
        Ok(logging.last)
    }

    /// Assigns a batch its sequences and appends it to the log.
    fn log(
        &self,
        batch: WriteBatch,
        check: impl FnOnce(&CommitState) -> Result<()>,
    ) -> Result<Logging> {
        let mut commit = self.commit.lock();
        self.check()?;
        check(&commit)?;
        let memtables = commit.memtables(batch.keyspaces())?;
        let first = commit.next_sequence;
        let last = first + batch.len() as u64 - 1;
        let batch = batch.stamp(first, self.time.now());
        let written = match self.wal.enqueue(&[batch.record()]) {
            Ok(written) => written,
            Err(error) => {
                self.poison(&error);
                return Err(error);
            }
        };
        for (_, memtable) in &memtables {
            memtable.keep_log_from(written.indexes.start);
        }
        commit.next_sequence = last + 1;
        commit.recent.note(batch.record(), last);
        let number = self.publisher.register(last, Some(written.end));
        drop(commit);
        Ok(Logging {
            batch,
            first,
            last,
            number,
            written,
            memtables,
        })
    }

    /// Folds the rows that this write has changed, now that it is visible.
    fn fold_rows(&self, logging: &Logging) {
        if !logging
            .memtables
            .iter()
            .any(|(_, memtable)| memtable.accumulates())
        {
            return;
        }
        // In this order: a later snapshot sees at least what is visible now.
        let visible = self.publisher.visible();
        let horizon = self.snapshots.horizon(self);
        let Ok(logged) = Logged::parse(logging.batch.record(), WalVersion::NEWEST) else {
            return;
        };
        for entry in logged.entries().flatten() {
            let mut memtables = logging.memtables.iter();
            let memtable = memtables.find(|(keyspace, _)| keyspace.id() == entry.keyspace);
            let Some((keyspace, memtable)) = memtable.filter(|(_, one)| one.accumulates()) else {
                continue;
            };
            if let (EntryKind::Merge, Some(merge)) = (entry.kind, &keyspace.options().merge) {
                memtable.fold(entry.key, &**merge, (visible, &horizon));
            }
        }
    }

    /// Delays a writer whose keyspaces have too many runs; stops it while they have far too many.
    fn slow_down(&self, batch: &WriteBatch) -> Result<()> {
        for &id in batch.keyspaces() {
            let Some(keyspace) = self.keyspace_by_id(id) else {
                continue;
            };
            let options = keyspace.options();
            let runs = keyspace.0.flushed_runs.load(Ordering::Relaxed);
            if runs < options.slow_at_runs || self.options.background_threads == 0 {
                continue;
            }
            if runs >= options.stop_at_runs {
                self.stats.stopped(|| self.wait_for_runs(&keyspace))?;
                continue;
            }
            let over = (runs - options.slow_at_runs + 1) as f64;
            let debt = batch.bytes() as f64 * over / SLOW_RATE;
            self.pay(Duration::from_secs_f64(debt));
        }
        Ok(())
    }

    /// Sleeps once enough delay has accumulated.
    fn pay(&self, delay: Duration) {
        let due = {
            let mut owed = self.owed_delay.lock();
            *owed += delay;
            if *owed < SHORTEST_DELAY {
                return;
            }
            std::mem::take(&mut *owed)
        };
        self.stats.slowed(due);
        std::thread::sleep(due);
    }

    fn wait_for_runs(&self, keyspace: &Keyspace) -> Result<()> {
        let stop = keyspace.options().stop_at_runs;
        self.work.wait_until(|| {
            let runs = keyspace.0.flushed_runs.load(Ordering::Relaxed);
            runs < stop || self.check_room().is_err() || keyspace.is_dropped()
        });
        self.check_room()
    }

    /// Starts flushes that this write made necessary.
    fn make_room(&self, logging: &Logging) -> Result<()> {
        for (keyspace, memtable) in &logging.memtables {
            if memtable.bytes() >= keyspace.options().memtable_bytes {
                self.rotate(keyspace, memtable)?;
            }
        }
        let bytes = logging.batch.record().len() as u64;
        let before = self.logged_bytes.fetch_add(bytes, Ordering::Relaxed);
        if before / LOG_CHECK_BYTES != (before + bytes) / LOG_CHECK_BYTES {
            self.respect_budgets()?;
        }
        Ok(())
    }

    /// Flushes the largest memtable if the memtables exceed their budget, and those that need more
    /// of the log than its budget.
    fn respect_budgets(&self) -> Result<()> {
        let oldest = self.wal.index_within(self.options.log_bytes);
        let mut full = Vec::new();
        let (mut total, mut largest) = (0, None);
        for keyspace in self.keyspaces.read().iter() {
            let view = keyspace.glance();
            let bytes = view.active.bytes();
            total += bytes;
            if largest.as_ref().is_none_or(|(most, _)| *most < bytes) {
                largest = Some((bytes, keyspace.clone()));
            }
            if view.active.first_record() < oldest {
                full.push(keyspace.clone());
            }
        }
        if total > self.options.memtables_bytes {
            full.extend(largest.map(|(_, keyspace)| keyspace));
        }
        for keyspace in &full {
            let active = Arc::clone(&keyspace.view().active);
            self.rotate(keyspace, &active)?;
        }
        if full.is_empty() {
            return Ok(());
        }
        self.wait_for_flushes()
    }

    /// Whether all memtables, and the log that those waiting for their flush need, are smaller than
    /// twice their budgets.
    fn fits_budgets(&self) -> bool {
        let oldest = self
            .wal
            .index_within(self.options.log_bytes.saturating_mul(2));
        let (mut total, mut is_log_small, mut waits) = (0_usize, true, false);
        for keyspace in self.keyspaces.read().iter() {
            let view = keyspace.glance();
            total += view.memtables().map(|one| one.bytes()).sum::<usize>();
            waits |= !view.waiting.is_empty();
            is_log_small &= view.waiting.iter().all(|one| one.first_record() >= oldest);
        }
        let is_memory_small = total < self.options.memtables_bytes.saturating_mul(2);
        (is_memory_small && is_log_small) || !waits
    }

    /// Waits while memtables or log exceed twice their budgets.
    pub(super) fn wait_for_flushes(&self) -> Result<()> {
        let fits = || self.fits_budgets();
        if self.options.background_threads > 0 && !fits() {
            let started = Instant::now();
            self.work
                .wait_until(|| fits() || self.check_room().is_err());
            self.stats.waited(started.elapsed());
            if !fits() {
                self.check_room()?;
            }
        }
        self.check()
    }

    /// Replaces a full memtable; waits while too many wait for their flush.
    pub(crate) fn rotate(&self, keyspace: &Keyspace, full: &Arc<Memtable>) -> Result<()> {
        let most = self.options.waiting_memtables.max(1);
        let current = || Arc::ptr_eq(&keyspace.view().active, full);
        if self.options.background_threads > 0 && keyspace.view().waiting.len() >= most {
            let started = Instant::now();
            self.work.wait_until(|| {
                keyspace.view().waiting.len() < most || !current() || self.check_room().is_err()
            });
            self.stats.waited(started.elapsed());
            if keyspace.view().waiting.len() >= most && current() {
                self.check_room()?;
            }
        }
        {
            let mut commit = self.commit.lock();
            self.check()?;
            if !current() || full.is_empty() || keyspace.is_dropped() {
                return Ok(());
            }
            let last = commit.next_sequence - 1;
            self.replace_memtable(&mut commit, keyspace, full, last);
        }
        self.start_work()
    }

    /// Wakes the background, or does the work inline if there is none.
    pub(crate) fn start_work(&self) -> Result<()> {
        if self.options.background_threads == 0 {
            return self.run_pending();
        }
        self.work.wake();
        Ok(())
    }
}

/// Fills the memtables from a logged batch.
fn insert(logging: &Logging) -> Result<()> {
    let malformed = || Error::InvalidArgument {
        what: "a batch is malformed".into(),
    };
    let logged =
        Logged::parse(logging.batch.record(), WalVersion::NEWEST).map_err(|_| malformed())?;
    for (sequence, entry) in (logging.first..).zip(logged.entries()) {
        let entry = entry.map_err(|_| malformed())?;
        let mut memtables = logging.memtables.iter();
        let memtable = memtables.find(|(keyspace, _)| keyspace.id() == entry.keyspace);
        let (_, memtable) = memtable.ok_or_else(malformed)?;
        let tag = Tag::new(sequence, entry.kind);
        if !memtable.insert(entry.key, entry.value, tag) {
            return Err(Error::InvalidArgument {
                what: "the memtable is full".into(),
            });
        }
    }
    Ok(())
}
