//! What a filter node is told.

use crate::message::{Definition, Request, Row, StreamId, Token, WriteEntry};
use crate::snapshot::Snapshot;

/// What a filter node is, and how much it keeps.
#[derive(Debug, Clone)]
pub struct Config {
    /// Its write partition.
    pub partition: u16,
    /// How many write partitions there are.
    pub partitions: u16,
    /// Its lease's token. Another token is another node.
    pub token: Token,
    /// For how long after-images are kept for registrations, in microseconds.
    pub retained_us: u64,
    /// How many bytes of them.
    pub retained_bytes: usize,
    /// For how long versions are remembered after the last write, in microseconds. Longer than
    /// anybody can publish late.
    pub remembered_us: u64,
    /// How many bytes of rows one `Rebase` carries.
    pub rebase_bytes: usize,
    /// What the index of queries may hold.
    pub limits: rillbase_matching::Limits,
}

impl Config {
    /// The usual bounds.
    pub fn new(partition: u16, partitions: u16, token: Token) -> Self {
        Self {
            partition,
            partitions,
            token,
            retained_us: 10_000_000,
            retained_bytes: 256 << 20,
            remembered_us: 60_000_000,
            rebase_bytes: 1 << 20,
            limits: rillbase_matching::Limits::default(),
        }
    }
}

/// Something that a filter node handles.
#[derive(Debug, Clone)]
pub enum Input {
    /// A rebuild is about to begin; the first thing that a new node is given. What comes out must be
    /// in the log before anything of `Begin` is read.
    Start,
    /// The rebuild begins.
    Begin(Begin),
    /// Documents of the partition that the rebuild's snapshot sees, bodies included. Each document
    /// comes once.
    Rows {
        /// Whose rows.
        collection: [u8; 16],
        /// The documents.
        rows: Vec<Row>,
    },
    /// All rows have been given. From here on the node reads the write stream after
    /// [`Begin::position`] and the request stream after the place that was noted before the registry
    /// was read.
    End,
    /// The next entry of the request stream.
    Request(Request),
    /// The next entry of the write stream.
    Write {
        /// Its id.
        id: StreamId,
        /// What it says.
        entry: WriteEntry,
    },
    /// The next entry of the write stream, which nobody can handle: it could not be read, or the
    /// node broke on it twice.
    Quarantined {
        /// Its id.
        id: StreamId,
        /// Whose queries it may concern, if that could be read.
        collection: Option<[u8; 16]>,
    },
    /// Whatever was in the streams has been given. To be said whenever a read came back with less
    /// than it asked for, and at least every 100 ms: a batch is known to be whole by it.
    Idle,
}

/// How a rebuild begins.
#[derive(Debug, Clone)]
pub struct Begin {
    /// The end of the write stream, noted before anything else. What the stream held before is seen
    /// by the snapshot.
    pub position: StreamId,
    /// How many entries the write stream had been given up to there.
    pub count: u64,
    /// All queries of the query partition, from the registry. Read after the end of the request
    /// stream was noted.
    pub queries: Vec<Definition>,
    /// The snapshot in which the rows are read; taken after all of the above.
    pub snapshot: Snapshot,
}
