//! What a sort node is told.

use crate::message::{Definition, Notification, Request, Row, StreamId, Token};
use crate::snapshot::Snapshot;

/// What a sort node is, and how much it keeps.
#[derive(Debug, Clone)]
pub struct Config {
    /// How many write partitions there are.
    pub partitions: u16,
    /// Its lease's token. Another token is another node.
    pub token: Token,
    /// For how long versions of documents that left are remembered, in microseconds.
    pub remembered_us: u64,
    /// For how long what is told of unknown queries is kept: their registration may be behind.
    pub orphans_us: u64,
    /// How many steps may wait for one query, and for all unknown ones.
    pub max_waiting: usize,
    /// How many rows a query without limit may have.
    pub max_rows: usize,
    /// The most rows beyond a window.
    pub max_slack: u32,
    /// After how long a renewal is asked for again, in microseconds.
    pub renew_again_us: u64,
    /// How many bytes of rows one `Rebase` carries.
    pub rebase_bytes: usize,
    /// What the index of queries may hold during a rebuild.
    pub limits: rillbase_matching::Limits,
}

impl Config {
    /// The usual bounds.
    pub fn new(partitions: u16, token: Token) -> Self {
        Self {
            partitions,
            token,
            remembered_us: 60_000_000,
            orphans_us: 10_000_000,
            max_waiting: 10_000,
            max_rows: 100_000,
            max_slack: 1_000,
            renew_again_us: 5_000_000,
            rebase_bytes: 1 << 20,
            limits: rillbase_matching::Limits::default(),
        }
    }
}

/// Something that a sort node handles.
#[derive(Debug, Clone)]
pub enum Input {
    /// A rebuild is about to begin; the first thing that a new node is given. What comes out must be
    /// in the log before anything of `Begin` is read.
    Start,
    /// The rebuild begins.
    Begin(Begin),
    /// Documents of any write partition that the rebuild's snapshot sees, bodies included, of all
    /// collections that sorted queries read. Each document comes once.
    Rows {
        /// Whose rows.
        collection: [u8; 16],
        /// The documents.
        rows: Vec<Row>,
    },
    /// All rows have been given. From here on the node reads the log after [`Begin::position`] and
    /// the request stream after the place that was noted before the registry was read.
    End,
    /// The next entry of the request stream.
    Request(Request),
    /// The next entry of the notification log, its own included.
    Log {
        /// Its id.
        id: StreamId,
        /// What it says.
        notification: Notification,
    },
    /// Whatever was in both streams has been given. To be said at least every 100 ms, and never while
    /// requests that could have been read wait.
    Idle,
}

/// How a rebuild begins.
#[derive(Debug, Clone)]
pub struct Begin {
    /// The end of the notification log, noted before anything else.
    pub position: StreamId,
    /// The queries of the query partition, from the registry; unsorted ones are passed over. Read
    /// after the end of the request stream was noted.
    pub queries: Vec<Definition>,
    /// The snapshot in which the rows are read; taken after all of the above.
    pub snapshot: Snapshot,
}
