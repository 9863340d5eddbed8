//! What is visible.
//!
//! Writers get their sequences in order, then work side by side; a write becomes visible once it is
//! as durable as it asked and all before it are visible. So readers see prefixes of the history.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex};

use crate::key::Sequence;

/// How often a writer looks again before it sleeps: those before it are mostly about to finish.
const LOOKS: u32 = 64;

#[derive(Debug)]
struct Pending {
    last: Sequence,
    finished: bool,
}

#[derive(Debug, Default)]
struct Queue {
    /// The number of the front.
    base: u64,
    pending: VecDeque<Pending>,
    sleepers: usize,
}

/// Lets writes become visible in their order.
#[derive(Debug, Default)]
pub(crate) struct Publisher {
    visible: AtomicU64,
    queue: Mutex<Queue>,
    moved: Condvar,
    /// A write failed after it got its sequence: nothing behind it ever becomes visible.
    broken: AtomicBool,
}

/// A write before this one failed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Broken;

impl Publisher {
    /// Begins where the log ended.
    pub(crate) fn start(&self, visible: Sequence) {
        self.visible.store(visible, Ordering::Release);
    }

    #[inline]
    pub(crate) fn visible(&self) -> Sequence {
        self.visible.load(Ordering::Acquire)
    }

    /// Takes a place for a write whose last sequence is `last`; called in order of sequences.
    pub(crate) fn register(&self, last: Sequence) -> u64 {
        let mut queue = self.queue.lock();
        queue.pending.push_back(Pending {
            last,
            finished: false,
        });
        queue.base + queue.pending.len() as u64 - 1
    }

    /// The write at `place` may become visible; returns once it is.
    pub(crate) fn finish(&self, place: u64, last: Sequence) -> Result<(), Broken> {
        let mut queue = self.queue.lock();
        let at = crate::coding::to_usize(place - queue.base);
        if let Some(own) = queue.pending.get_mut(at) {
            own.finished = true;
        }
        let mut advanced = None;
        while let Some(last) = queue
            .pending
            .front()
            .filter(|front| front.finished)
            .map(|f| f.last)
        {
            queue.pending.pop_front();
            queue.base += 1;
            advanced = Some(last);
        }
        if let Some(last) = advanced {
            self.visible.store(last, Ordering::Release);
        }
        let wake = advanced.is_some() && queue.sleepers > 0;
        drop(queue);
        if wake {
            self.moved.notify_all();
        }
        self.wait_for(last)
    }

    /// A write that has a place failed.
    pub(crate) fn fail(&self) {
        self.broken.store(true, Ordering::Release);
        drop(self.queue.lock());
        self.moved.notify_all();
    }

    /// Returns once all up to a sequence is visible.
    pub(crate) fn wait_for(&self, last: Sequence) -> Result<(), Broken> {
        for look in 0..LOOKS {
            if self.visible() >= last {
                return Ok(());
            }
            if look % 8 == 7 {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
        let mut queue = self.queue.lock();
        while self.visible() < last {
            if self.broken.load(Ordering::Acquire) {
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

    #[test]
    fn writes_become_visible_in_order_whatever_order_they_finish_in() {
        let publisher = Publisher::default();
        publisher.start(10);
        let first = publisher.register(12);
        let second = publisher.register(15);
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
        publisher.register(1);
        let second = publisher.register(2);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| publisher.finish(second, 2));
            publisher.fail();
            assert!(waiting.join().unwrap().is_err());
        });
        assert_eq!(publisher.visible(), 0);
    }
}
