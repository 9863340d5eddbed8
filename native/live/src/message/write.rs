//! Writes, as the outbox publishes them to the write streams.

use std::sync::Arc;

use crate::snapshot::PgSnapshot;

use super::{FencingToken, Incarnation};

/// One version of one document, as a committed transaction left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AfterImage {
    /// The writing transaction.
    pub xid: u64,
    /// The tenant of the collection.
    pub tenant: [u8; 16],
    /// The collection.
    pub collection: [u8; 16],
    /// The document's version after the write.
    pub version: u64,
    /// The version of the access rules that the transaction read.
    pub rules_version: u64,
    /// When the document was created, in milliseconds since 1970.
    pub created_ms: i64,
    /// When it was written, in microseconds since 1970; in milliseconds, the time that reads return.
    pub written_us: i64,
    /// The `_id` in order-preserving bytes.
    pub key: Arc<[u8]>,
    /// Its content.
    pub content: ImageContent,
    /// Write partitions that its atomic batch touches; empty if it is not part of a batch.
    pub parts: Arc<[u16]>,
}

/// What a write left of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageContent {
    /// The document, in BSON.
    Document(Arc<[u8]>),
    /// It was deleted; BSON of its `_id` alone.
    Deleted(Arc<[u8]>),
    /// A newer version already exists: this one only counts as a part of its batch.
    Superseded,
}

/// An entry of a write stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteEntry {
    /// A write.
    Image(AfterImage),
    /// Proof that the stream holds whatever the snapshot sees.
    Tick(StreamTick),
}

/// Proof that a stream is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamTick {
    /// Valkey's time when it was appended, in microseconds.
    pub time_us: u64,
    /// How many entries were ever appended to the stream, this one included.
    pub count: u64,
    /// The relay's token.
    pub token: FencingToken,
    /// The incarnation of Valkey and PostgreSQL.
    pub incarnation: Incarnation,
    /// What is in the stream.
    pub snapshot: PgSnapshot,
}
