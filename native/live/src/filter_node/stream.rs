//! Whether a node has read all of its write stream.

use crate::message::{Incarnation, StreamId, Tick, Token};
use crate::node::Why;
use crate::snapshot::Snapshot;

/// What was read of the write stream.
#[derive(Debug)]
pub(super) struct Stream {
    /// The last entry.
    end: StreamId,
    /// Entries ever given to the stream, as far as read.
    count: u64,
    /// Learnt from the first tick.
    incarnation: Option<Incarnation>,
    relay: Token,
    /// The last tick's: everything that it sees was read.
    complete: Snapshot,
}

/// What a tick is worth.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Proof,
    /// Of a relay that has been replaced.
    Outrun,
    Broken(Why),
}

impl Stream {
    pub(super) fn new(end: StreamId, count: u64) -> Self {
        Self {
            end,
            count,
            incarnation: None,
            relay: Token::default(),
            complete: Snapshot::default(),
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

    pub(super) fn judge(&mut self, tick: &Tick) -> Verdict {
        if tick.token < self.relay {
            return Verdict::Outrun;
        }
        if *self.incarnation.get_or_insert(tick.incarnation) != tick.incarnation {
            return Verdict::Broken(Why::Incarnation);
        }
        if self.count != tick.count {
            return Verdict::Broken(Why::Lost);
        }
        self.relay = tick.token;
        self.complete = tick.snapshot.clone();
        Verdict::Proof
    }

    pub(super) const fn end(&self) -> StreamId {
        self.end
    }

    pub(super) const fn complete(&self) -> &Snapshot {
        &self.complete
    }
}
