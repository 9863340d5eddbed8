//! Queries as nodes know them, and what app servers ask of nodes.

use std::sync::Arc;

use crate::snapshot::PgSnapshot;

use super::{FencingToken, QueryHash, ResultRow, StreamId};

/// A query as nodes know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryDefinition {
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
    pub sides: Arc<[LookupSide]>,
    /// The access rule alone, in canonical BSON; empty: those who ask may read everything.
    pub rule: Arc<[u8]>,
}

impl QueryDefinition {
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
pub struct LookupSide {
    /// Its name among queries: no query has the same.
    pub hash: QueryHash,
    /// Which collection.
    pub collection: [u8; 16],
    /// The version of the access rules in its filter; 0: no rule is in it.
    pub rules_version: u64,
    /// The access rule in canonical BSON.
    pub filter: Arc<[u8]>,
}

impl LookupSide {
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
    pub rows: Vec<ResultRow>,
    /// Whether there are no others.
    pub complete: bool,
}

/// Names what a sort node asked for: whoever answers repeats it, and no other answer is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchId {
    /// For which query.
    pub query: QueryHash,
    /// In which of its lives.
    pub activation: u64,
    /// Who asked.
    pub token: FencingToken,
    /// Rises with each question of one holder.
    pub number: u64,
}

/// A document of a side, as one snapshot has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedDocument {
    /// Its key.
    pub key: Arc<[u8]>,
    /// Its version, deletions included; 0: it was never there.
    pub version: u64,
    /// The transaction that wrote it; 0: none that anybody remembers.
    pub xid: u64,
    /// What it is; none: it does not exist, or may not be seen.
    pub body: Option<Arc<[u8]>>,
}

/// What an app server asks of all nodes of a query partition.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all requests are registrations"
)]
pub enum NodeRequest {
    /// Watch a query, or go on watching it. The rows are those that `snapshot` sees; for sorted
    /// queries the first `offset + limit + slack`, and `complete` tells whether there are no more.
    Register {
        /// The query.
        query: QueryDefinition,
        /// The end of each write stream before the snapshot was taken.
        positions: Vec<StreamId>,
        /// What the rows have seen.
        snapshot: PgSnapshot,
        /// For a sorted query with documents, for others keys and versions.
        rows: Vec<ResultRow>,
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
    /// To the sort node: single documents that it asked for, of each of the query's sides.
    Fetched {
        /// What is answered.
        fetch: FetchId,
        /// The documents, all from one snapshot that was taken after they were asked for.
        documents: Vec<Vec<FetchedDocument>>,
    },
}
