//! Whether the node can write. Probes of every kind, metrics and INFO say the same.

use crate::node::NodeCore;

/// Whether the node can write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteAvailability {
    Well,
    /// There is no room on the disk: writes are refused until there is, reads go on.
    Full,
    /// A write or sync has failed so that what the disk holds is not known: the node ends.
    Failed,
}

impl WriteAvailability {
    /// Its status, and what is the matter with the engine.
    pub(crate) fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Well => ("ok", "ok"),
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
            WriteAvailability::Well
        }
    }
}
