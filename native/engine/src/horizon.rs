//! What flushes and compactions must preserve for the open snapshots.

use crate::key::{Millis, Sequence};

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
