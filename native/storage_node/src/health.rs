//! Whether the node can write. All probes, metrics and INFO agree.

use crate::node::NodeCore;

/// Whether the node can write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteAvailability {
    Available,
    /// The disk is full: writes are rejected until space is freed, reads continue.
    Full,
    /// A write or sync has failed, so the contents of the disk are unknown: the node stops.
    Failed,
}

impl WriteAvailability {
    /// Its status, and the state of the engine.
    pub(crate) fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Available => ("ok", "ok"),
            Self::Full => ("degraded", "storage_full"),
            Self::Failed => ("unavailable", "poisoned"),
        }
    }
}

impl NodeCore {
    pub(crate) fn health(&self) -> WriteAvailability {
        if self.db.why_poisoned().is_some() {
            WriteAvailability::Failed
        } else if self.db.why_full().is_some() {
            WriteAvailability::Full
        } else {
            WriteAvailability::Available
        }
    }
}
