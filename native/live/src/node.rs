//! What filter nodes and sort nodes have in common: their input and output.

use std::collections::HashMap;

use crate::message::{
    FencingToken, NodeEvent, NodeRequest, Notification, NotificationSource, QueryDefinition,
    ResultRow, StreamId,
};
use crate::snapshot::PgSnapshot;

/// An input of a node. `E` is an entry of its own stream: a write for a filter node, a notification
/// for a sort node.
#[derive(Debug, Clone)]
pub enum NodeInput<E> {
    /// A rebuild is about to start; the first input of a new node. Its output must be in the log
    /// before anything of `Begin` is read.
    Start,
    /// Some queries of the query partition, from the registry. Several inputs contain all of them,
    /// some possibly twice. The registry is read after the positions in `Begin` were noted.
    Queries(Vec<QueryDefinition>),
    /// All queries have been passed, and a snapshot has been taken.
    Begin(Begin),
    /// Documents that the rebuild's snapshot sees, bodies included: a filter node needs those of its
    /// partition, a sort node those of all collections that sorted queries read. Each document comes
    /// once.
    Rows {
        /// Their collection.
        collection: [u8; 16],
        /// The documents.
        rows: Vec<ResultRow>,
    },
    /// All rows have been passed. Repeated while the node is being rebuilt: it reports some of its
    /// queries each time. From then on it reads its stream after [`Begin::position`] and the request
    /// stream after [`Begin::requests`].
    End,
    /// The next entry of the request stream.
    Request {
        /// Its id.
        id: StreamId,
        /// The request.
        request: NodeRequest,
    },
    /// The next entry of its own stream; for the log, this includes its own notifications.
    Entry {
        /// Its id.
        id: StreamId,
        /// The entry.
        entry: E,
    },
    /// The next entry of its own stream, which cannot be handled: it could not be read, or the node
    /// panicked on it twice.
    Quarantined {
        /// Its id.
        id: StreamId,
        /// The collection that it concerns, if that could be read.
        collection: Option<[u8; 16]>,
    },
    /// A document of a rebuild was omitted, because the node panicked on it twice. Must follow
    /// [`NodeInput::End`].
    LeftOut {
        /// Its collection.
        collection: [u8; 16],
    },
    /// Everything in both streams has been passed. Must be sent whenever a read returned less than
    /// it asked for, and at least every 100 ms: it proves that a batch is complete. Never while
    /// requests that could have been read are waiting.
    Idle,
}

/// What a rebuild's rows are, and where reading continues after it.
#[derive(Debug, Clone)]
pub struct Begin {
    /// The end of the node's own stream, noted before anything else. The snapshot sees what a write
    /// stream held before.
    pub position: StreamId,
    /// How many entries had been appended to a write stream up to that position; the writers of a
    /// log count their own.
    pub count: u64,
    /// The end of the request stream, noted at the same time.
    pub requests: StreamId,
    /// The snapshot in which the rows are read; taken after all of the above.
    pub snapshot: PgSnapshot,
    /// The versions of the collections' access rules that it sees.
    pub rules: HashMap<[u8; 16], u64>,
}

/// An action that a node requests.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all of what a node gives out is notifications"
)]
pub enum NodeOutput {
    /// To be appended to the notification log, in this order.
    Notify(Notification),
    /// The node no longer knows that its state is complete. It ignores all input until it is
    /// rebuilt: `Start`, `Queries` …, `Begin`, `Rows` …, `End`.
    Rebuild(RebuildReason),
}

/// Why a node must be rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RebuildReason {
    /// Entries were lost: the counts disagree.
    Lost,
    /// The event layer or the database started another incarnation.
    Incarnation,
    /// An entry could not be handled, and the queries that it concerned are unknown.
    Unreadable,
    /// For a sort node: a filter node was rebuilt, and its reports before it ended may be lost.
    FilterNode,
}

/// Numbers a node's notifications.
#[derive(Debug)]
pub(crate) struct NotificationWriter {
    source: NotificationSource,
    token: FencingToken,
    count: u64,
}

impl NotificationWriter {
    pub(crate) const fn new(source: NotificationSource, token: FencingToken) -> Self {
        Self {
            source,
            token,
            count: 0,
        }
    }

    pub(crate) fn emit(&mut self, event: NodeEvent, out: &mut Vec<NodeOutput>) {
        self.count += 1;
        out.push(NodeOutput::Notify(Notification {
            source: self.source,
            token: self.token,
            count: self.count,
            event,
        }));
    }
}
