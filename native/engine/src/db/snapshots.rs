//! The open snapshots.

use std::sync::Arc;

use parking_lot::Mutex;

use super::DbCore;
use crate::horizon::Horizon;
use crate::key::{Millis, Sequence};

/// The open snapshots in order, with reference counts. There are few, and usually the newest come
/// and go: at the end of a vector that needs no allocation.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    open: Mutex<Vec<(SnapshotPoint, usize)>>,
}

/// What a snapshot sees: a sequence and a time.
type SnapshotPoint = (Sequence, Millis);

/// Increments the reference count of a point.
fn hold(open: &mut Vec<(SnapshotPoint, usize)>, point: SnapshotPoint) {
    let not_after = open.iter().rposition(|(other, _)| *other <= point);
    match not_after.and_then(|at| open.get_mut(at)) {
        Some((other, count)) if *other == point => *count += 1,
        _ => open.insert(not_after.map_or(0, |at| at + 1), (point, 1)),
    }
}

impl Snapshots {
    fn take(&self, core: &DbCore) -> SnapshotPoint {
        let mut open = self.open.lock();
        let point = (core.publisher.visible(), core.time.now());
        hold(&mut open, point);
        point
    }

    /// Registers a snapshot at `sequence`, which will be visible, with the `time` of another open
    /// snapshot.
    fn hold(&self, sequence: Sequence, time: Millis) -> SnapshotPoint {
        hold(&mut self.open.lock(), (sequence, time));
        (sequence, time)
    }

    fn release(&self, point: SnapshotPoint) {
        let mut open = self.open.lock();
        let Ok(at) = open.binary_search_by_key(&point, |(other, _)| *other) else {
            return;
        };
        if let Some((_, count)) = open.get_mut(at) {
            *count -= 1;
            if *count == 0 {
                open.remove(at);
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.open.lock().iter().map(|(_, count)| count).sum()
    }

    /// Snapshots taken after this call are at or above the last sequence.
    pub(crate) fn horizon(&self, core: &DbCore) -> Horizon {
        let open = self.open.lock();
        let mut sequences: Vec<Sequence> =
            open.iter().map(|((sequence, _), _)| *sequence).collect();
        sequences.push(core.publisher.visible());
        sequences.sort_unstable();
        sequences.dedup();
        let now = core.time.now();
        let oldest = open.iter().map(|((_, time), _)| *time).min();
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
    point: SnapshotPoint,
}

impl DbSnapshot {
    pub(crate) fn new(core: &Arc<DbCore>) -> Self {
        Self {
            point: core.snapshots.take(core),
            core: Arc::clone(core),
        }
    }

    /// A snapshot of the database as it will be once everything up to `sequence` is visible. It
    /// judges expiry at the time of `since`. Nothing after `sequence` may be visible yet.
    pub(crate) fn in_advance(core: &Arc<DbCore>, sequence: Sequence, since: &Self) -> Self {
        Self {
            point: core.snapshots.hold(sequence, since.time()),
            core: Arc::clone(core),
        }
    }

    /// The last sequence that it sees.
    pub fn sequence(&self) -> Sequence {
        self.point.0
    }

    /// The time at which it judges expiry.
    pub fn time(&self) -> Millis {
        self.point.1
    }
}

impl Drop for DbSnapshot {
    fn drop(&mut self) {
        self.core.snapshots.release(self.point);
    }
}
