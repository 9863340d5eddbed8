//! Positions in the notification log.

use crate::message::StreamId;

/// The position of an entry: the one before it, its own, and when it was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryPosition {
    pub(super) before: StreamId,
    pub(super) at: StreamId,
    pub(super) now_us: u64,
}

/// For each write partition, the first and the last position at which its node reported a write or
/// a batch.
#[derive(Debug, Default)]
pub(super) struct ReportedPositions(pub(super) Vec<(u16, StreamId, StreamId)>);

impl ReportedPositions {
    pub(super) fn at(part: u16, at: StreamId) -> Self {
        Self(vec![(part, at, at)])
    }

    pub(super) fn again(&mut self, part: u16, at: StreamId) {
        match self.0.iter_mut().find(|(of, ..)| *of == part) {
            Some((.., last)) => *last = at,
            None => self.0.push((part, at, at)),
        }
    }

    /// Whether a position follows a node's report.
    pub(super) fn is_over(&self, part: u16, at: StreamId) -> bool {
        let reported_at = self.0.iter().find(|(of, ..)| *of == part);
        reported_at.is_none_or(|(.., last)| at > *last)
    }
}

/// The positions at which the nodes of write partitions reported that they had handled their parts.
pub(super) type Ends = Vec<(u16, StreamId)>;
