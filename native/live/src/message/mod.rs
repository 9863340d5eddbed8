//! The messages between the parties of the grid.
//!
//! Three streams carry it. **Write streams** (one per write partition) hold after-images and ticks,
//! as the outbox publishes them. The **request stream** of a query partition tells its nodes which
//! queries exist. The **notification log** of a query partition holds the reports of its filter
//! nodes and its sort node; hubs and the sort node read it.

mod event;
mod query;
mod row;
mod write;

use sha2::{Digest, Sha256};

pub use event::{
    Cause, EmptyResult, NodeEvent, Notification, NotificationSource, RemovalReason, WindowChange,
};
pub use query::{FetchId, FetchedDocument, Foreign, LookupSide, NodeRequest, QueryDefinition};
pub(crate) use row::GROUP_MS;
pub use row::ResultRow;
pub use write::{AfterImage, ImageContent, StreamTick, WriteEntry};

/// Identifies a query: the hash over tenant, collection, filter with access rule, sort and window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueryHash(pub [u8; 16]);

impl QueryHash {
    /// The hash over some parts.
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut digest = Sha256::new();
        for part in parts {
            digest.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            digest.update(part);
        }
        let mut short = [0; 16];
        for (to, from) in short.iter_mut().zip(digest.finalize()) {
            *to = from;
        }
        Self(short)
    }
}

/// A position in a stream: milliseconds and number, as assigned by Valkey. Zero precedes
/// everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct StreamId {
    /// Milliseconds since 1970.
    pub ms: u64,
    /// Number within the millisecond.
    pub number: u64,
}

/// A party's right to speak for its partition: a later holder of the lease has a higher one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct FencingToken(pub u64);

/// Identifies the period of the event layer and the database in which streams are complete.
pub type Incarnation = [u8; 16];
