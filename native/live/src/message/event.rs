//! What the notification log holds.

use std::sync::Arc;

use crate::snapshot::PgSnapshot;

use super::{AfterImage, FencingToken, FetchId, QueryHash, ResultRow, StreamId, StreamTick};

/// Who wrote an entry of the notification log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NotificationSource {
    /// The filter node of a write partition.
    Filter(u16),
    /// The sort node of the query partition.
    Sort,
}

/// An entry of the notification log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// Its author.
    pub source: NotificationSource,
    /// The author's token: entries of a source with a token lower than an earlier one are ignored.
    pub token: FencingToken,
    /// How many notifications this source has written under this token, this one included: a gap
    /// means that some were lost.
    pub count: u64,
    /// Its content.
    pub event: NodeEvent,
}

/// Why a document is no longer in a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovalReason {
    /// It was deleted.
    Deleted,
    /// It exists and is not in the result, or its state is unknown.
    Left,
}

/// What a filter node or a sort node reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeEvent {
    /// A new holder of the lease starts. Its state follows as `Rebase`.
    Start,
    /// A filter node: which results a write changes. Hubs apply it to unsorted queries, the sort
    /// node to sorted ones.
    ///
    /// If an unsorted query is also in `changed`, its subscribers differ: those that joined with a
    /// version that was skipped have the document; for others it enters, or was never there.
    Match {
        /// The write.
        image: AfterImage,
        /// Queries that it enters.
        added: Vec<QueryHash>,
        /// Queries that it stays in.
        changed: Vec<QueryHash>,
        /// Queries that it leaves.
        removed: Vec<QueryHash>,
    },
    /// A filter node has handled its part of an atomic batch, even if it concerned no query.
    Done {
        /// The batch's transaction.
        xid: u64,
    },
    /// From here on this node watches the query, for all registrations up to `request`.
    Active {
        /// The query.
        query: QueryHash,
        /// Its activation.
        activation: u64,
        /// The last request that this answers. Those before it are answered too, unless they were
        /// too old.
        request: StreamId,
    },
    /// At the end of a rebuild: the node has no rows for these queries in its state (a filter node
    /// never has any for sorted ones) and watches them from here on, as after a `Rebase` and an
    /// `Active` of each.
    Empty {
        /// The queries.
        queries: Vec<EmptyResult>,
        /// What its state has seen.
        snapshot: PgSnapshot,
        /// The last request that this answers.
        request: StreamId,
    },
    /// The registration is older than what the node retained: read and register again.
    TooOld {
        /// The query.
        query: QueryHash,
        /// Its activation.
        activation: u64,
        /// The request that this answers, and no other.
        request: StreamId,
    },
    /// The query can no longer be watched: a problem's `code` and `detail`.
    Failed {
        /// The query.
        query: QueryHash,
        /// The stable code.
        code: String,
        /// The text for people.
        detail: String,
    },
    /// Everything that the tick's snapshot sees has been handled. The sort node sends one when the
    /// ticks of all filter nodes have reached it: the oldest of them.
    Tick(StreamTick),
    /// A part of this source's whole state of a query. Filter nodes: its members in the partition;
    /// sort node: its window (in order, documents included).
    Rebase {
        /// The query.
        query: QueryHash,
        /// Its activation.
        activation: u64,
        /// What the rows have seen.
        snapshot: PgSnapshot,
        /// The newest access rules of the collection under which any of the rows may have been
        /// written: a query with older rules must not show them. 0 if none are known.
        rules_version: u64,
        /// The rows.
        rows: Vec<ResultRow>,
        /// 0, 1, …: the rows are sent in parts.
        part: u32,
        /// Whether this is the last part.
        last: bool,
    },
    /// A new holder has sent all its queries.
    Rebased {
        /// What its state has seen.
        snapshot: PgSnapshot,
    },
    /// The sort node: how a window changes by one write or one renewal, in this order.
    Window {
        /// The query.
        query: QueryHash,
        /// Its activation.
        activation: u64,
        /// As in a `Rebase`, for all rows that the window ever held.
        rules_version: u64,
        /// The write that caused it; `None` for a renewal.
        image: Option<Cause>,
        /// The changes.
        changes: Vec<WindowChange>,
    },
    /// The sort node no longer knows the window's end and needs the query to be read again.
    Renew {
        /// The query.
        query: QueryHash,
        /// Its activation.
        activation: u64,
        /// How many rows beyond the window it wants.
        slack: u32,
    },
    /// The sort node: rows refer to documents that it does not know. The window stays as it is
    /// until they arrive, and the difference is reported as after a renewal.
    Fetch {
        /// Identifies the request.
        fetch: FetchId,
        /// The keys for each of the query's sides.
        keys: Vec<Vec<Arc<[u8]>>>,
    },
    /// A written document cannot be evaluated for these queries, and is in none of their results.
    Unevaluated {
        /// The queries.
        queries: Vec<QueryHash>,
    },
}

/// A query for which a node has no rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmptyResult {
    /// The query.
    pub query: QueryHash,
    /// Its activation.
    pub activation: u64,
    /// As in a `Rebase`.
    pub rules_version: u64,
}

/// The write behind a change of a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The writing transaction.
    pub xid: u64,
    /// The version of the access rules that it read.
    pub rules_version: u64,
    /// When it was written, in microseconds.
    pub written_us: i64,
    /// Partitions of its batch; empty if it is not part of a batch.
    pub parts: Arc<[u16]>,
}

/// One step from the old window to the new one. Indexes are those at the time of the step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WindowChange {
    /// A row is added.
    Add {
        /// The index.
        index: u32,
        /// The row.
        row: ResultRow,
    },
    /// A row changes in place.
    Change {
        /// The index.
        index: u32,
        /// The row.
        row: ResultRow,
    },
    /// A row moves.
    Move {
        /// The old index.
        old_index: u32,
        /// The new index.
        index: u32,
        /// The row.
        row: ResultRow,
    },
    /// A row is removed.
    Remove {
        /// The old index.
        old_index: u32,
        /// The row's key.
        key: Arc<[u8]>,
        /// BSON of its `_id` alone.
        id: Arc<[u8]>,
        /// Its version: of the delete, or of the write with which it left.
        version: u64,
        /// The reason.
        reason: RemovalReason,
    },
}
