//! Flushes and compactions, on background threads or inline.
//!
//! The first thread only flushes, so that writers never wait for a compaction; the others compact.
//! A single thread does both, flushes first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::stats::add;
use super::work_queue::WorkQueue;
use super::{DbCore, Keyspace};
use crate::error::{Error, Result};

/// How often idle threads check whether something has expired.
pub(super) const EXPIRY_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// The delay before work that failed for lack of space, and a full log, are retried.
pub(super) const RETRY_FULL: Duration = Duration::from_millis(500);
/// After this many consecutive failures the delay no longer grows beyond four seconds.
const MAX_FAILURES: u32 = 4;
/// Keyspaces are flushed together until their memtables have this size, and at most this many.
const FLUSH_GROUP_BYTES: usize = 4 << 20;
const FLUSH_GROUP_KEYSPACES: usize = 64;
/// How often waiting writers check again, in case they were not woken.
const RECHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Wakes workers when there may be work, and writers when work was done.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// Incremented with each wake.
    turn: Mutex<u64>,
    woken: Condvar,
    stopping: AtomicBool,
    /// Keyspaces with full memtables.
    pub(crate) flushes: WorkQueue,
    /// Keyspaces whose tables have changed, or may have expired.
    pub(crate) compactions: WorkQueue,
    /// When all keyspaces were last checked for what has expired.
    checked: Mutex<Option<Instant>>,
}

impl Work {
    pub(crate) fn wake(&self) {
        *self.turn.lock() += 1;
        self.woken.notify_all();
    }

    /// Adds a keyspace to all queues.
    pub(crate) fn add(&self, keyspace: &Keyspace) {
        self.flushes.add(keyspace.id());
        self.compactions.add(keyspace.id());
    }

    /// Whether it is time to check all keyspaces for what has expired; then the next time is an
    /// interval later.
    fn is_check_due(&self) -> bool {
        let mut checked = self.checked.lock();
        let is_due = checked.is_none_or(|at| at.elapsed() >= EXPIRY_CHECK_INTERVAL);
        if is_due {
            *checked = Some(Instant::now());
        }
        is_due
    }

    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.wake();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Waits until a condition holds.
    pub(crate) fn wait_until(&self, is_so: impl Fn() -> bool) {
        loop {
            let last_turn = *self.turn.lock();
            if is_so() || self.is_stopping() {
                return;
            }
            self.wait_after(last_turn, RECHECK_INTERVAL);
        }
    }

    fn turn(&self) -> u64 {
        *self.turn.lock()
    }

    /// Waits for a while or until woken.
    fn wait_for(&self, longest: Duration) {
        let until = Instant::now() + longest;
        while Instant::now() < until && !self.is_stopping() {
            self.wait_after(self.turn(), until.saturating_duration_since(Instant::now()));
        }
    }

    /// Waits until there is a wake after `last_turn`, or for a while.
    fn wait_after(&self, last_turn: u64, longest: Duration) {
        let until = Instant::now() + longest;
        let mut turn = self.turn.lock();
        while *turn == last_turn && !self.is_stopping() {
            if self.woken.wait_until(&mut turn, until).timed_out() {
                return;
            }
        }
    }
}

/// The duties of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BackgroundDuties {
    flushes: bool,
    compacts: bool,
}

/// Starts the background threads.
pub(crate) fn start(core: &Arc<DbCore>) -> Result<Vec<JoinHandle<()>>> {
    let count = core.options.background_threads;
    let mut threads = Vec::new();
    for number in 0..count {
        let duty = BackgroundDuties {
            flushes: number == 0,
            compacts: number > 0 || count == 1,
        };
        let core = Arc::clone(core);
        let thread = std::thread::Builder::new()
            .name(format!("rillbase-engine-{number}"))
            .spawn(move || core.serve(duty));
        threads.push(
            thread.map_err(|source| Error::io("spawn", std::path::Path::new("thread"), source))?,
        );
    }
    Ok(threads)
}

impl DbCore {
    fn serve(&self, duty: BackgroundDuties) {
        let mut failures = 0;
        while !self.work.is_stopping() {
            let turn = self.work.turn();
            match self.run_next(duty) {
                Ok(true) => failures = 0,
                Err(Error::Stopped) => {}
                Ok(false) => self.work.wait_after(turn, self.idle_interval()),
                Err(error) if error.is_full() => {
                    self.stall(duty.flushes, &error);
                    failures = (failures + 1).min(MAX_FAILURES);
                    self.back_off(failures);
                }
                Err(error) => {
                    self.poison(&error);
                    self.work.wake();
                    return;
                }
            }
        }
    }

    /// Waits twice as long after each failure. The log, which needs little space, is maintained
    /// meanwhile.
    fn back_off(&self, failures: u32) {
        for _ in 0..1_u32 << (failures - 1) {
            self.work.wait_for(RETRY_FULL);
            // The next piece of work reports the error.
            if self.resume().is_err_and(|error| !error.is_full()) {
                return;
            }
        }
    }

    /// Does one piece of work, if there is any.
    fn run_next(&self, duty: BackgroundDuties) -> Result<bool> {
        self.check()?;
        self.remove_obsolete_files();
        match self.resume() {
            // It is retried; work that frees space can be done meanwhile.
            Err(error) if error.is_full() => {}
            resumed => resumed?,
        }
        if duty.flushes {
            if self.flush_next()? {
                return Ok(true);
            }
            self.unstall(true);
            self.keep_reserve()?;
        }
        if duty.compacts {
            if self.work.is_check_due() {
                let keyspaces = self.keyspaces.read();
                let all = keyspaces.iter();
                all.for_each(|one| self.work.compactions.add(one.id()));
            }
            if self.compact_next()? {
                return Ok(true);
            }
            self.unstall(false);
        }
        Ok(false)
    }

    /// Flushes the keyspaces at the front of the queue: one with large memtables alone, those with
    /// small ones together.
    fn flush_next(&self) -> Result<bool> {
        let (mut group, mut bytes) = (Vec::new(), 0);
        while bytes < FLUSH_GROUP_BYTES && group.len() < FLUSH_GROUP_KEYSPACES {
            let Some(id) = self.work.flushes.take() else {
                break;
            };
            if let Some(keyspace) = self.keyspace_by_id(id) {
                let waiting = &keyspace.glance().waiting;
                bytes += waiting.iter().map(|one| one.bytes()).sum::<usize>();
                group.push(keyspace.clone());
            }
        }
        let flushed = self.flush(&group);
        if flushed.is_err() {
            let again = group.iter().map(Keyspace::id);
            again.for_each(|id| self.work.flushes.add(id));
        }
        // More keyspaces may be in the queue, also if this group had nothing to flush.
        flushed.map(|_| !group.is_empty())
    }

    /// Compacts the first keyspace of the queue that needs it. With its new tables it is at the end
    /// of the queue.
    fn compact_next(&self) -> Result<bool> {
        while let Some(id) = self.work.compactions.take() {
            let Some(keyspace) = self.keyspace_by_id(id) else {
                continue;
            };
            match self.compact_once(&keyspace) {
                Ok(false) => {}
                Ok(true) => return Ok(true),
                failed => {
                    self.work.compactions.add(id);
                    return failed;
                }
            }
        }
        Ok(false)
    }

    /// Does all pending work in the calling thread.
    pub(crate) fn run_pending(&self) -> Result<()> {
        let duty = BackgroundDuties {
            flushes: true,
            compacts: true,
        };
        self.keyspaces
            .read()
            .iter()
            .for_each(|one| self.work.add(one));
        let worked = (|| {
            while self.run_next(duty)? {}
            Ok(())
        })();
        if let Err(error) = &worked {
            self.poison(error);
        }
        worked
    }

    /// Removes files that are no longer read. One that cannot be removed is removed when the
    /// database is next opened.
    pub(crate) fn remove_obsolete_files(&self) {
        let dead = std::mem::take(&mut *self.graveyard.lock());
        for path in dead {
            if self.vfs.remove(&path).is_err() {
                add(&self.stats.unremoved_files, 1);
            }
        }
    }

    /// Sleeps as long as writing these bytes should have taken.
    pub(crate) fn limit_rate(&self, bytes: u64) {
        let rate = self.options.write_rate;
        if rate > 0 {
            std::thread::sleep(Duration::from_secs_f64(bytes as f64 / rate as f64));
        }
    }
}
