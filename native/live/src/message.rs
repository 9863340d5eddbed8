//! What the parties of the grid say to one another.
//!
//! Three streams carry it. **Write streams** (one per write partition) hold after-images and ticks,
//! as the outbox publishes them. The **request stream** of a query partition tells its nodes which
//! queries there are. The **notification log** of a query partition holds what its filter nodes and
//! its sort node found out; hubs and the sort node read it.

use std::sync::Arc;

use rillbase_query::bson::{Document, DocumentWriter, ValueRef};
use sha2::{Digest, Sha256};

use crate::snapshot::Snapshot;

/// Names a query: the hash over tenant, collection, filter with access rule, sort and window.
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

/// A place in a stream: milliseconds and number, as Valkey gives them. Zero is before everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct StreamId {
    /// Milliseconds since 1970.
    pub ms: u64,
    /// Number within the millisecond.
    pub number: u64,
}

/// A party's right to speak for its partition: who holds a lease later has a higher one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Token(pub u64);

/// The life of the event layer and the database in which streams are complete.
pub type Incarnation = [u8; 16];

/// One version of one document, as a committed transaction left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AfterImage {
    /// The writing transaction.
    pub xid: u64,
    /// Whose collection.
    pub tenant: [u8; 16],
    /// Which collection.
    pub collection: [u8; 16],
    /// The document's version after the write.
    pub version: u64,
    /// The version of the access rules that the transaction read.
    pub rules_version: u64,
    /// When the document came into being, in milliseconds since 1970.
    pub created_ms: i64,
    /// When it was written, in microseconds since 1970. Decides nothing.
    pub written_us: i64,
    /// The `_id` in order-preserving bytes.
    pub key: Arc<[u8]>,
    /// What is left of it.
    pub content: Content,
    /// Write partitions that its atomic batch touches; empty: no batch.
    pub parts: Arc<[u16]>,
}

/// What a write left of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// The document, in BSON.
    Document(Arc<[u8]>),
    /// It was deleted; BSON of its `_id` alone.
    Deleted(Arc<[u8]>),
    /// A newer version exists already: this one only counts as a part of its batch.
    Superseded,
}

/// An entry of a write stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteEntry {
    /// A write.
    Image(AfterImage),
    /// Proof that the stream holds whatever the snapshot sees.
    Tick(Tick),
}

/// Proof that a stream is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tick {
    /// Valkey's time when it was appended, in microseconds.
    pub time_us: u64,
    /// How many entries the stream was ever given, this one included.
    pub count: u64,
    /// The relay's token.
    pub token: Token,
    /// In which life of Valkey and PostgreSQL.
    pub incarnation: Incarnation,
    /// What is in the stream.
    pub snapshot: Snapshot,
}

/// A query as nodes know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Its name.
    pub hash: QueryHash,
    /// Rises with each time that it comes to life; given by the registry.
    pub activation: u64,
    /// Whose it is.
    pub tenant: [u8; 16],
    /// What it reads.
    pub collection: [u8; 16],
    /// The version of the access rules in its filter; 0: no rule is in it.
    pub rules_version: u64,
    /// The filter, access rule included, in canonical BSON.
    pub filter: Arc<[u8]>,
    /// The sort as a BSON document `{"sort": […]}`; empty: by `_id`.
    pub sort: Arc<[u8]>,
    /// Rows passed over.
    pub offset: u32,
    /// Rows shown; none: all.
    pub limit: Option<u32>,
    /// Whether a sort node keeps it: it has a sort, an offset or a limit.
    pub sorted: bool,
    /// Rows that a sort node keeps beyond the window.
    pub slack: u32,
    /// How documents are grouped, in BSON; empty: they are not. Sort and window are those of the
    /// groups then, and a sort node keeps the query.
    pub group: Arc<[u8]>,
    /// What is looked up for each document, in BSON; empty: nothing. A sort node keeps the query if
    /// anything is.
    pub lookups: Arc<[u8]>,
    /// The collections that are looked up, each once.
    pub sides: Arc<[Side]>,
}

impl Definition {
    /// Whether rows stand for groups of documents.
    pub fn is_grouped(&self) -> bool {
        !self.group.is_empty()
    }

    /// Whether documents are shown with others that they refer to.
    pub fn looks_up(&self) -> bool {
        !self.lookups.is_empty()
    }
}

/// A collection that is looked up, as those who ask may see it. Queries with equal ones share them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side {
    /// Its name among queries: no query has the same.
    pub hash: QueryHash,
    /// Which collection.
    pub collection: [u8; 16],
    /// The version of the access rules in its filter; 0: no rule is in it.
    pub rules_version: u64,
    /// The access rule in canonical BSON.
    pub filter: Arc<[u8]>,
}

impl Side {
    /// The side of a tenant's collection under an access rule.
    pub fn new(
        tenant: [u8; 16],
        collection: [u8; 16],
        rules_version: u64,
        filter: Arc<[u8]>,
    ) -> Self {
        let rules = rules_version.to_be_bytes();
        Self {
            hash: QueryHash::of(&[b"side", &tenant, &collection, &rules, &filter]),
            collection,
            rules_version,
            filter,
        }
    }
}

/// What was read of a side: the documents that are referred to, and maybe others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    /// Documents that exist and may be seen.
    pub rows: Vec<Row>,
    /// Whether there are no others.
    pub complete: bool,
}

/// A document in the result of a query, or a row that a sort node makes of documents.
///
/// What stands for a group has the group's values as its key, what is a document with others that it
/// refers to has the document's. Neither has a version that is counted: its version is made of its
/// content, so that two such rows of one key are the same iff their versions are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The `_id` in order-preserving bytes.
    pub key: Arc<[u8]>,
    /// Its version.
    pub version: u64,
    /// When it came into being.
    pub created_ms: i64,
    /// When it was written last.
    pub updated_ms: i64,
    /// The document in BSON; empty where only membership is told.
    pub body: Arc<[u8]>,
}

/// Stands in place of the time of making of a row that stands for a group.
pub(crate) const GROUP_MS: i64 = i64::MIN;
/// The same of a document with others: times and version are in its body.
const JOINED_MS: i64 = i64::MIN + 1;

impl Row {
    /// A row that stands for a group.
    pub(crate) fn of_group(key: Arc<[u8]>, body: Arc<[u8]>) -> Self {
        let content = QueryHash::of(&[&body]);
        Self::made(key, &content, body, GROUP_MS)
    }

    /// A document with others that it refers to: `shown`.
    pub(crate) fn of_join(own: &Self, shown: Document<'_>) -> Self {
        let mut body = DocumentWriter::with_capacity(shown.as_bytes().len() + 96);
        if let Some(id) = Document::trusted(&own.body).get("_id") {
            body.append("_id", id);
        }
        let version = i64::try_from(own.version).unwrap_or(i64::MAX);
        body.append("version", ValueRef::Int64(version));
        body.append("created_ms", ValueRef::Int64(own.created_ms));
        body.append("updated_ms", ValueRef::Int64(own.updated_ms));
        body.append("document", ValueRef::Document(shown));
        // Its times say nothing that its version does not.
        let content = QueryHash::of(&[&own.version.to_be_bytes(), shown.as_bytes()]);
        Self::made(
            Arc::clone(&own.key),
            &content,
            body.finish().into(),
            JOINED_MS,
        )
    }

    fn made(key: Arc<[u8]>, content: &QueryHash, body: Arc<[u8]>, mark: i64) -> Self {
        let version = content.0.iter().take(8);
        let version = version.fold(0, |number, byte| number << 8 | u64::from(*byte));
        Self {
            key,
            // Where rows are shown to Python versions are signed; zero is no version.
            version: (version >> 1).max(1),
            created_ms: mark,
            updated_ms: mark,
            body,
        }
    }

    /// Whether it stands for a group.
    pub const fn is_group(&self) -> bool {
        self.created_ms == GROUP_MS
    }

    /// Whether it is a document with others that it refers to.
    pub const fn is_join(&self) -> bool {
        self.created_ms == JOINED_MS
    }

    /// The document's version: of a document with others, its own.
    pub fn document_version(&self) -> u64 {
        if self.is_join() {
            let own = self.number("version");
            return u64::try_from(own).unwrap_or(0);
        }
        self.version
    }

    /// When the document came into being.
    pub(crate) fn document_created_ms(&self) -> i64 {
        if self.is_join() {
            return self.number("created_ms");
        }
        self.created_ms
    }

    /// When the document was written last.
    pub(crate) fn document_updated_ms(&self) -> i64 {
        if self.is_join() {
            return self.number("updated_ms");
        }
        self.updated_ms
    }

    fn number(&self, name: &str) -> i64 {
        match Document::trusted(&self.body).get(name) {
            Some(ValueRef::Int64(number)) => number,
            _ => 0,
        }
    }

    /// What it shows.
    pub(crate) fn document(&self) -> Document<'_> {
        let body = Document::trusted(&self.body);
        if self.is_join() {
            let shown = body.get("document").and_then(|shown| shown.as_document());
            return shown.unwrap_or(body);
        }
        body
    }

    /// BSON of the `_id` alone; empty where the body is.
    pub fn id(&self) -> Arc<[u8]> {
        if self.body.is_empty() {
            return Arc::clone(&self.body);
        }
        let mut writer = DocumentWriter::new();
        if let Some(id) = Document::trusted(&self.body).get("_id") {
            writer.append("_id", id);
        }
        writer.finish().into()
    }
}

/// What an app server asks of all nodes of a query partition.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all requests are registrations"
)]
pub enum Request {
    /// Watch a query, or go on watching it. The rows are those that `snapshot` sees; for sorted
    /// queries the first `offset + limit + slack`, and `complete` tells whether there are no more.
    Register {
        /// The query.
        query: Definition,
        /// The end of each write stream before the snapshot was taken.
        positions: Vec<StreamId>,
        /// What the rows have seen.
        snapshot: Snapshot,
        /// For a sorted query with documents, for others keys and versions.
        rows: Vec<Row>,
        /// Whether `rows` is the whole result.
        complete: bool,
        /// What the same snapshot sees of each of the query's sides.
        foreign: Vec<Foreign>,
        /// Answers a `Renew` of the sort node.
        renewal: bool,
    },
    /// Nobody has watched it for its time to live: forget it, if it is this activation.
    Expire {
        /// The query.
        query: QueryHash,
        /// Which of its lives.
        activation: u64,
    },
}

/// Who wrote an entry of the notification log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// The filter node of a write partition.
    Filter(u16),
    /// The sort node of the query partition.
    Sort,
}

/// An entry of the notification log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// Who says it.
    pub source: Source,
    /// By what right: entries of one source with a lower token than one before are ignored.
    pub token: Token,
    /// How many notifications this source wrote under this token, this one included: a hole means
    /// that some were lost.
    pub count: u64,
    /// What it says.
    pub news: News,
}

/// Why a document is no longer in a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gone {
    /// It was deleted.
    Deleted,
    /// It exists, and is not in the result, or nobody knows.
    Left,
}

/// What a filter node or a sort node found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
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
    Tick(Tick),
    /// A part of this source's whole state of a query. Filter nodes: its members in the partition;
    /// sort node: its window (in order, documents included).
    Rebase {
        /// The query.
        query: QueryHash,
        /// Which of its lives.
        activation: u64,
        /// What the rows have seen.
        snapshot: Snapshot,
        /// The newest access rules of the collection under which any of the rows may have been
        /// written: a query made with older ones must not show them. 0: nobody knows of any.
        rules_version: u64,
        /// The rows.
        rows: Vec<Row>,
        /// 0, 1, …: the rows are told in parts.
        part: u32,
        /// Whether this is the last part.
        last: bool,
    },
    /// A new holder has told all its queries.
    Rebased {
        /// What its state has seen.
        snapshot: Snapshot,
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
        row: Row,
    },
    /// A row stays where it is.
    Change {
        /// Where.
        index: u32,
        /// What.
        row: Row,
    },
    /// A row moves.
    Move {
        /// From where.
        old_index: u32,
        /// To where.
        index: u32,
        /// What.
        row: Row,
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
        gone: Gone,
    },
}
