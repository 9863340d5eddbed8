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
    /// Who says it.
    pub source: NotificationSource,
    /// By what right: entries of one source with a lower token than one before are ignored.
    pub token: FencingToken,
    /// How many notifications this source wrote under this token, this one included: a hole means
    /// that some were lost.
    pub count: u64,
    /// What it says.
    pub event: NodeEvent,
}

/// Why a document is no longer in a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovalReason {
    /// It was deleted.
    Deleted,
    /// It exists, and is not in the result, or nobody knows.
    Left,
}

/// What a filter node or a sort node found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeEvent {
    /// A new holder of the lease begins. Whatever it is to know comes as `Rebase`.
    Start,
    /// A filter node: which answers a write changes. Hubs go by it for unsorted queries, the sort
    /// node for sorted ones.
    ///
    /// An unsorted query that is among `changed` besides is one whose watchers differ: those who
    /// joined it with a version that was passed over have the document, for others it enters, or
    /// was never there.
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
    /// A filter node has handled its part of an atomic batch, also where no query was concerned.
    Done {
        /// The batch's transaction.
        xid: u64,
    },
    /// From here on this node watches the query, for all who asked for it up to `request`.
    Active {
        /// The query.
        query: QueryHash,
        /// Which of its lives.
        activation: u64,
        /// The last request that this answers. Those before it are answered too, unless they were
        /// too old.
        request: StreamId,
    },
    /// The registration is older than what the node kept: read again and register again.
    TooOld {
        /// The query.
        query: QueryHash,
        /// Which of its lives.
        activation: u64,
        /// The request that this answers, and no other.
        request: StreamId,
    },
    /// The query cannot be watched any more: a problem's `code` and `detail`.
    Failed {
        /// The query.
        query: QueryHash,
        /// The stable code.
        code: String,
        /// For people.
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
        /// Which of its lives.
        activation: u64,
        /// What the rows have seen.
        snapshot: PgSnapshot,
        /// The newest access rules of the collection under which any of the rows may have been
        /// written: a query made with older ones must not show them. 0: nobody knows of any.
        rules_version: u64,
        /// The rows.
        rows: Vec<ResultRow>,
        /// 0, 1, …: the rows are told in parts.
        part: u32,
        /// Whether this is the last part.
        last: bool,
    },
    /// A new holder has told all its queries.
    Rebased {
        /// What its state has seen.
        snapshot: PgSnapshot,
    },
    /// The sort node: how a window changes by one write or one renewal, in this order.
    Window {
        /// The query.
        query: QueryHash,
        /// Which of its lives.
        activation: u64,
        /// As that of a `Rebase`, of all that the window ever held.
        rules_version: u64,
        /// The write that caused it; none: a renewal.
        image: Option<Cause>,
        /// The changes.
        changes: Vec<WindowChange>,
    },
    /// The sort node has lost sight of the window's end and needs the query asked again.
    Renew {
        /// The query.
        query: QueryHash,
        /// Which of its lives.
        activation: u64,
        /// How many rows beyond the window it wants.
        slack: u32,
    },
    /// The sort node: rows refer to documents of which it knows nothing. The window stays as it is
    /// until they are there, and the difference is told as after a renewal.
    Fetch {
        /// Names the question.
        fetch: FetchId,
        /// The keys, of each of the query's sides.
        keys: Vec<Vec<Arc<[u8]>>>,
    },
    /// A document that was written cannot be evaluated for these queries, and is in no answer of
    /// theirs.
    Unevaluated {
        /// The queries.
        queries: Vec<QueryHash>,
    },
}

/// What is told of the write behind a change of a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The writing transaction.
    pub xid: u64,
    /// The version of the access rules that it read.
    pub rules_version: u64,
    /// When it was written, in microseconds.
    pub written_us: i64,
    /// Partitions of its batch; empty: no batch.
    pub parts: Arc<[u16]>,
}

/// One step from the old window to the new one. Indexes are those at the moment of the step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WindowChange {
    /// A row comes in.
    Add {
        /// Where.
        index: u32,
        /// What.
        row: ResultRow,
    },
    /// A row stays where it is.
    Change {
        /// Where.
        index: u32,
        /// What.
        row: ResultRow,
    },
    /// A row moves.
    Move {
        /// From where.
        old_index: u32,
        /// To where.
        index: u32,
        /// What.
        row: ResultRow,
    },
    /// A row goes.
    Remove {
        /// From where.
        old_index: u32,
        /// Which.
        key: Arc<[u8]>,
        /// BSON of its `_id` alone.
        id: Arc<[u8]>,
        /// Its version: of the delete, or of the write with which it left.
        version: u64,
        /// Why.
        reason: RemovalReason,
    },
}
