//! What filter nodes and sort nodes have in common: what they are told and what they give out.

use std::collections::HashMap;

use crate::message::{
    FencingToken, NodeEvent, NodeRequest, Notification, NotificationSource, QueryDefinition,
    ResultRow, StreamId,
};
use crate::snapshot::PgSnapshot;

/// Something that a node handles. `E` is an entry of its own stream: a write for a filter node, a
/// notification for a sort node.
#[derive(Debug, Clone)]
pub enum NodeInput<E> {
    /// A rebuild is about to begin; the first thing that a new node is given. What comes out must be
    /// in the log before anything of `Begin` is read.
    Start,
    /// The rebuild begins.
    Begin(Begin),
    /// Documents that the rebuild's snapshot sees, bodies included: a filter node needs those of its
    /// partition, a sort node those of all collections that sorted queries read. Each document comes
    /// once.
    Rows {
        /// Whose rows.
        collection: [u8; 16],
        /// The documents.
        rows: Vec<ResultRow>,
    },
    /// All rows have been given. From here on the node reads its stream after [`Begin::position`] and
    /// the request stream after [`Begin::requests`].
    End,
    /// The next entry of the request stream.
    Request {
        /// Its id.
        id: StreamId,
        /// What it says.
        request: NodeRequest,
    },
    /// The next entry of its own stream; of the log also what it said itself.
    Entry {
        /// Its id.
        id: StreamId,
        /// What it says.
        entry: E,
    },
    /// The next entry of its own stream, which nobody can handle: it could not be read, or the node
    /// broke on it twice.
    Quarantined {
        /// Its id.
        id: StreamId,
        /// Whose queries it may concern, if that could be read.
        collection: Option<[u8; 16]>,
    },
    /// One of the documents of a rebuild was left out, as the node broke on it twice. To be said
    /// after [`NodeInput::End`].
    LeftOut {
        /// Whose it was.
        collection: [u8; 16],
    },
    /// Whatever was in both streams has been given. To be said whenever a read came back with less
    /// than it asked for, and at least every 100 ms: a batch is known to be whole by it. Never while
    /// requests that could have been read wait.
    Idle,
}

/// How a rebuild begins.
#[derive(Debug, Clone)]
pub struct Begin {
    /// The end of the node's own stream, noted before anything else. What a write stream held before
    /// is seen by the snapshot.
    pub position: StreamId,
    /// How many entries a write stream had been given up to there; a log's writers count themselves.
    pub count: u64,
    /// The end of the request stream, noted at the same moment.
    pub requests: StreamId,
    /// All queries of the query partition, from the registry. Read after the ends were noted.
    pub queries: Vec<QueryDefinition>,
    /// The snapshot in which the rows are read; taken after all of the above.
    pub snapshot: PgSnapshot,
    /// The versions of the collections' access rules that it sees.
    pub rules: HashMap<[u8; 16], u64>,
}

/// What a node wants done.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all of what a node gives out is notifications"
)]
pub enum NodeOutput {
    /// To be appended to the notification log, in this order.
    Notify(Notification),
    /// The node no longer knows that its state is complete. It ignores all input until it is
    /// rebuilt: `Start`, `Begin`, `Rows` …, `End`.
    Rebuild(Why),
}

/// Why a node must be rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Why {
    /// Entries were lost: the counts disagree.
    Lost,
    /// The event layer or the database began another life.
    Incarnation,
    /// An entry could not be handled, and nobody knows which queries it concerned.
    Unreadable,
    /// For a sort node: a filter node was rebuilt, and what it said before its end may be lost.
    FilterNode,
}

/// Numbers what a node says.
#[derive(Debug)]
pub(crate) struct Voice {
    source: NotificationSource,
    token: FencingToken,
    count: u64,
}

impl Voice {
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
