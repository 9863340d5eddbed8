//! Visibility of writes.
//!
//! Writers are assigned sequences in order, then work concurrently; a write becomes visible once it
//! is as durable as requested and all writes before it are visible. So readers see prefixes of the
//! history.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::key::Sequence;

/// How often a writer polls before it sleeps: those before it usually finish soon.
const POLLS: u32 = 64;

/// The stage of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteStage {
    Begun,
    /// It only waits for the log to be synced up to here.
    Filled(u64),
    Finished,
    /// The log had no space for it: it never becomes visible.
    Dropped,
}

#[derive(Debug)]
struct PendingWrite {
    last: Sequence,
    /// The position of the log after it; 0 if it is not in the log.
    end: u64,
    stage: WriteStage,
}

impl PendingWrite {
    fn is_finished(&self, synced: u64) -> bool {
        match self.stage {
            WriteStage::Begun => false,
            WriteStage::Filled(end) => end <= synced,
            WriteStage::Finished | WriteStage::Dropped => true,
        }
    }
}

#[derive(Debug, Default)]
struct PublishQueue {
    /// The number of the front.
    base: u64,
    pending: VecDeque<PendingWrite>,
    /// The log is synced at least up to here.
    synced: u64,
    sleepers: usize,
}

impl PublishQueue {
    /// Takes the next position.
    fn register(&mut self, last: Sequence, end: u64) -> u64 {
        let stage = WriteStage::Begun;
        self.pending.push_back(PendingWrite { last, end, stage });
        self.base + self.pending.len() as u64 - 1
    }

    fn set(&mut self, number: u64, stage: WriteStage) {
        // A dropped write may have been removed already.
        let at = number.checked_sub(self.base).map(crate::coding::to_usize);
        let own = at.and_then(|at| self.pending.get_mut(at));
        if let Some(own) = own.filter(|own| own.stage != WriteStage::Dropped) {
            own.stage = stage;
        }
    }

    /// Records that the write at `number` has finished; returns up to where all have, if that
    /// changed.
    fn finish(&mut self, number: u64) -> Option<Sequence> {
        self.set(number, WriteStage::Finished);
        self.advance()
    }

    /// Records that the log is synced up to a position; returns like `finish`.
    fn sync(&mut self, end: u64) -> Option<Sequence> {
        self.synced = self.synced.max(end);
        self.advance()
    }

    fn advance(&mut self) -> Option<Sequence> {
        let mut advanced = None;
        let synced = self.synced;
        while self
            .pending
            .front()
            .is_some_and(|front| front.is_finished(synced))
        {
            let front = self.pending.pop_front();
            let shown = front.filter(|front| front.stage != WriteStage::Dropped);
            advanced = shown.map(|front| front.last).or(advanced);
            self.base += 1;
        }
        advanced
    }

    /// Drops writes after a position of the log. `before` is the sequence before the first one.
    fn drop_behind(&mut self, end: u64, mut before: Sequence) -> Dropped {
        let mut dropped = Dropped {
            cut: None,
            kept: before,
        };
        for pending in &mut self.pending {
            if pending.stage != WriteStage::Dropped && pending.end > end {
                pending.stage = WriteStage::Dropped;
                dropped.cut.get_or_insert(before);
            }
            if pending.stage != WriteStage::Dropped {
                dropped.kept = pending.last;
            }
            before = pending.last;
        }
        dropped
    }
}

/// The outcome of dropping writes for which the log had no space.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dropped {
    /// The sequence before the first dropped one, if any.
    pub(crate) cut: Option<Sequence>,
    /// The last sequence that was kept.
    pub(crate) kept: Sequence,
}

/// Makes writes visible in order.
#[derive(Debug)]
pub(crate) struct Publisher {
    visible: AtomicU64,
    /// Nothing after this becomes visible until there is space for the log.
    stalled_behind: AtomicU64,
    queue: Mutex<PublishQueue>,
    moved: Condvar,
    /// A write failed after its sequence was assigned: nothing after it ever becomes visible.
    broken: AtomicBool,
}

impl Default for Publisher {
    fn default() -> Self {
        Self {
            visible: AtomicU64::default(),
            stalled_behind: AtomicU64::new(Sequence::MAX),
            queue: Mutex::default(),
            moved: Condvar::default(),
            broken: AtomicBool::default(),
        }
    }
}

/// An earlier write failed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Broken;

impl Publisher {
    /// Starts where the log ended.
    pub(crate) fn start(&self, visible: Sequence) {
        self.visible.store(visible, Ordering::Release);
    }

    #[inline]
    pub(crate) fn visible(&self) -> Sequence {
        self.visible.load(Ordering::Acquire)
    }

    /// Registers a write whose last sequence is `last`, and which ends at a position of the log if
    /// it is in the log; called in sequence order.
    pub(crate) fn register(&self, last: Sequence, end: Option<u64>) -> u64 {
        self.queue.lock().register(last, end.unwrap_or(0))
    }

    /// Drops the writes after a position of the log. Later ones wait for [`Publisher::resume`].
    pub(crate) fn drop_behind(&self, end: u64) -> Dropped {
        let mut queue = self.queue.lock();
        let dropped = queue.drop_behind(end, self.visible());
        self.stalled_behind.store(dropped.kept, Ordering::Release);
        if let Some(last) = queue.advance() {
            self.visible.store(last, Ordering::Release);
        }
        drop(queue);
        self.moved.notify_all();
        dropped
    }

    /// The log has space again; sequences up to `last` are used, by nothing visible.
    pub(crate) fn resume(&self, last: Sequence) {
        self.stalled_behind.store(Sequence::MAX, Ordering::Release);
        self.show(|queue| {
            let number = queue.register(last, 0);
            queue.finish(number)
        });
    }

    /// The write at `number` may become visible; returns once it is.
    pub(crate) fn finish(&self, number: u64, last: Sequence) -> Result<(), Broken> {
        self.show(|queue| queue.finish(number));
        self.wait_for(last)
    }

    /// Makes writes visible once the log is synced up to their positions: the syncing thread then
    /// publishes all of them, before those that wait for the sync are scheduled.
    pub(crate) fn filled(&self, writes: impl Iterator<Item = (u64, u64)>) {
        let mut queue = self.queue.lock();
        for (number, end) in writes {
            queue.set(number, WriteStage::Filled(end));
        }
    }

    /// The log is synced up to a position; returns once everything up to a sequence is visible.
    pub(crate) fn synced(&self, end: u64, last: Sequence) -> Result<(), Broken> {
        if self.visible() < last {
            self.show(|queue| queue.sync(end));
        }
        self.wait_for(last)
    }

    fn show(&self, advance: impl FnOnce(&mut PublishQueue) -> Option<Sequence>) {
        let mut queue = self.queue.lock();
        let advanced = advance(&mut queue);
        if let Some(last) = advanced {
            self.visible.store(last, Ordering::Release);
        }
        let wake = advanced.is_some() && queue.sleepers > 0;
        drop(queue);
        if wake {
            self.moved.notify_all();
        }
    }

    /// Records that a registered write failed.
    pub(crate) fn fail(&self) {
        self.broken.store(true, Ordering::Release);
        drop(self.queue.lock());
        self.moved.notify_all();
    }

    /// Waits until more than a sequence is visible, at most for this long. Returns whether it is.
    pub(crate) fn wait_beyond(&self, sequence: Sequence, longest: Duration) -> bool {
        let until = Instant::now() + longest;
        let mut queue = self.queue.lock();
        while self.visible() <= sequence && !self.broken.load(Ordering::Acquire) {
            queue.sleepers += 1;
            let waited = self.moved.wait_until(&mut queue, until);
            queue.sleepers -= 1;
            if waited.timed_out() {
                break;
            }
        }
        self.visible() > sequence
    }

    /// Returns once everything up to a sequence is visible.
    pub(crate) fn wait_for(&self, last: Sequence) -> Result<(), Broken> {
        for poll in 0..POLLS {
            if self.visible() >= last {
                return Ok(());
            }
            if poll % 8 == 7 {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
        let mut queue = self.queue.lock();
        while self.visible() < last {
            let stalled = self.stalled_behind.load(Ordering::Acquire) < last;
            if stalled || self.broken.load(Ordering::Acquire) {
                return Err(Broken);
            }
            queue.sleepers += 1;
            self.moved.wait(&mut queue);
            queue.sleepers -= 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All orders of some numbers.
    fn orders(numbers: &[usize]) -> Vec<Vec<usize>> {
        if numbers.is_empty() {
            return vec![Vec::new()];
        }
        let mut all = Vec::new();
        for (at, &first) in numbers.iter().enumerate() {
            let mut others = numbers.to_vec();
            others.remove(at);
            for mut order in orders(&others) {
                order.insert(0, first);
                all.push(order);
            }
        }
        all
    }

    /// The queue changes only under its lock, so the orders of calls are all that can happen.
    #[test]
    fn in_every_order_of_finishing_what_is_visible_is_what_finished_without_a_gap() {
        const WRITES: usize = 6;
        let lasts: Vec<Sequence> = vec![2, 3, 7, 8, 12, 20];
        for order in orders(&(0..WRITES).collect::<Vec<_>>()) {
            // Any number of writes may have been registered by the time one finishes.
            for early in 1..=WRITES {
                let mut queue = PublishQueue::default();
                let mut tickets = Vec::new();
                let (mut finished, mut visible) = ([false; WRITES], 0);
                for (turn, &write) in order.iter().enumerate() {
                    let known = (early + turn).max(write + 1).min(WRITES);
                    while tickets.len() < known {
                        tickets.push(queue.register(lasts[tickets.len()], 0));
                    }
                    visible = queue.finish(tickets[write]).unwrap_or(visible);
                    finished[write] = true;
                    let prefix = finished.iter().take_while(|&&done| done).count();
                    let expected = prefix.checked_sub(1).map_or(0, |last| lasts[last]);
                    assert_eq!(visible, expected, "{order:?}, turn {turn}");
                }
                assert!(queue.pending.is_empty());
            }
        }
    }

    #[test]
    fn a_sync_shows_all_that_only_waited_for_it_up_to_what_did_not() {
        let mut queue = PublishQueue::default();
        let tickets: Vec<u64> = [2, 3, 7, 8].map(|last| queue.register(last, 0)).into();
        for (at, end) in [(0, 100), (1, 250), (3, 280)] {
            queue.set(tickets[at], WriteStage::Filled(end));
        }
        assert_eq!(queue.sync(200), Some(2));
        assert_eq!(queue.sync(150), None);
        assert_eq!(queue.sync(300), Some(3));
        // The last one is durable, but after one that is not filled yet.
        assert_eq!(queue.finish(tickets[2]), Some(8));
        assert!(queue.pending.is_empty());
    }

    #[test]
    fn writes_become_visible_in_order_whatever_order_they_finish_in() {
        let publisher = Publisher::default();
        publisher.start(10);
        let first = publisher.register(12, None);
        let second = publisher.register(15, None);
        std::thread::scope(|scope| {
            let late = scope.spawn(|| publisher.finish(second, 15));
            assert_eq!(publisher.visible(), 10);
            publisher.finish(first, 12).unwrap();
            late.join().unwrap().unwrap();
        });
        assert_eq!(publisher.visible(), 15);
    }

    #[test]
    fn a_failed_write_fails_those_that_wait_behind_it() {
        let publisher = Publisher::default();
        publisher.register(1, None);
        let second = publisher.register(2, None);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| publisher.finish(second, 2));
            publisher.fail();
            assert!(waiting.join().unwrap().is_err());
        });
        assert_eq!(publisher.visible(), 0);
    }
}
