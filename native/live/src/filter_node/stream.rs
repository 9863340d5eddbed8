//! Whether a node has read all of its write stream.

use crate::message::{FencingToken, Incarnation, StreamId, StreamTick};
use crate::node::RebuildReason;
use crate::snapshot::PgSnapshot;

/// How much of the write stream was read.
#[derive(Debug)]
pub(super) struct StreamProgress {
    /// The last entry.
    end: StreamId,
    /// The number of entries ever appended to the stream, as far as it was read.
    count: u64,
    /// Set by the first tick.
    incarnation: Option<Incarnation>,
    relay: FencingToken,
    /// The snapshot of the last tick: everything that it sees was read.
    complete: PgSnapshot,
}

/// How to treat a tick.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TickVerdict {
    Proof,
    /// From a relay that has been replaced.
    Superseded,
    Broken(RebuildReason),
}

impl StreamProgress {
    pub(super) fn new(end: StreamId, count: u64) -> Self {
        Self {
            end,
            count,
            incarnation: None,
            relay: FencingToken::default(),
            complete: PgSnapshot::default(),
        }
    }

    /// Counts an entry. Returns whether it is new.
    pub(super) fn read(&mut self, id: StreamId) -> bool {
        let new = id > self.end;
        if new {
            self.end = id;
            self.count += 1;
        }
        new
    }

    pub(super) fn judge(&mut self, tick: &StreamTick) -> TickVerdict {
        if tick.token < self.relay {
            return TickVerdict::Superseded;
        }
        if *self.incarnation.get_or_insert(tick.incarnation) != tick.incarnation {
            return TickVerdict::Broken(RebuildReason::Incarnation);
        }
        if self.count != tick.count {
            return TickVerdict::Broken(RebuildReason::Lost);
        }
        self.relay = tick.token;
        self.complete = tick.snapshot.clone();
        TickVerdict::Proof
    }

    pub(super) const fn end(&self) -> StreamId {
        self.end
    }

    pub(super) const fn complete(&self) -> &PgSnapshot {
        &self.complete
    }
}
