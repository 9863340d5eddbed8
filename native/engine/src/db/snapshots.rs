//! The open snapshots.

use std::sync::Arc;

use parking_lot::Mutex;

use super::DbCore;
use crate::key::{Millis, Sequence};

/// The open snapshots in order, with reference counts. There are few, and usually the newest come
/// and go: at the end of a vector that needs no allocation.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    held: Mutex<Vec<(SnapshotPoint, usize)>>,
}

/// What a snapshot sees: a sequence and a time.
type SnapshotPoint = (Sequence, Millis);

/// Increments the reference count of a point.
fn hold(held: &mut Vec<(SnapshotPoint, usize)>, place: SnapshotPoint) {
    let behind = held.iter().rposition(|(other, _)| *other <= place);
    match behind.and_then(|at| held.get_mut(at)) {
        Some((other, count)) if *other == place => *count += 1,
        _ => held.insert(behind.map_or(0, |at| at + 1), (place, 1)),
    }
}

/// What folding and dropping must preserve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Horizon {
    /// Sequences of snapshots and of what is visible now, ascending. Those of writes that are not
    /// visible yet come last.
    pub(crate) sequences: Vec<Sequence>,
    /// The time of the oldest snapshot, or now: what is not expired then must be kept.
    pub(crate) time: Millis,
}

impl Horizon {
    /// The stripe of an entry: the oldest snapshot that sees it.
    pub(crate) fn stripe(&self, sequence: Sequence) -> usize {
        self.sequences
            .partition_point(|&snapshot| snapshot < sequence)
    }
}

impl Snapshots {
    fn take(&self, core: &DbCore) -> SnapshotPoint {
        let mut held = self.held.lock();
        let place = (core.publisher.visible(), core.time.now());
        hold(&mut held, place);
        place
    }

    /// Registers a snapshot at `sequence`, which will be visible, with the `time` of another open
    /// snapshot.
    fn hold(&self, sequence: Sequence, time: Millis) -> SnapshotPoint {
        hold(&mut self.held.lock(), (sequence, time));
        (sequence, time)
    }

    fn give_back(&self, place: SnapshotPoint) {
        let mut held = self.held.lock();
        let Ok(at) = held.binary_search_by_key(&place, |(other, _)| *other) else {
            return;
        };
        if let Some((_, count)) = held.get_mut(at) {
            *count -= 1;
            if *count == 0 {
                held.remove(at);
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.held.lock().iter().map(|(_, count)| count).sum()
    }

    /// Snapshots taken after this call are at or above the last sequence.
    pub(crate) fn horizon(&self, core: &DbCore) -> Horizon {
        let held = self.held.lock();
        let mut sequences: Vec<Sequence> =
            held.iter().map(|((sequence, _), _)| *sequence).collect();
        sequences.push(core.publisher.visible());
        sequences.sort_unstable();
        sequences.dedup();
        let now = core.time.now();
        let oldest = held.iter().map(|((_, time), _)| *time).min();
        Horizon {
            sequences,
            time: oldest.unwrap_or(now),
        }
    }
}

/// A snapshot of the database. While it is open, what it sees is not compacted away.
#[derive(Debug)]
pub struct DbSnapshot {
    core: Arc<DbCore>,
    place: SnapshotPoint,
}

impl DbSnapshot {
    pub(crate) fn new(core: &Arc<DbCore>) -> Self {
        Self {
            place: core.snapshots.take(core),
            core: Arc::clone(core),
        }
    }

    /// The database as it will be once everything up to `sequence` is visible, without what had
    /// expired when `since` was taken. Nothing after `sequence` may be visible yet.
    pub(crate) fn ahead(core: &Arc<DbCore>, sequence: Sequence, since: &Self) -> Self {
        Self {
            place: core.snapshots.hold(sequence, since.time()),
            core: Arc::clone(core),
        }
    }

    /// The last sequence that it sees.
    pub fn sequence(&self) -> Sequence {
        self.place.0
    }

    /// The time at which it judges expiry.
    pub fn time(&self) -> Millis {
        self.place.1
    }
}

impl Drop for DbSnapshot {
    fn drop(&mut self) {
        self.core.snapshots.give_back(self.place);
    }
}
