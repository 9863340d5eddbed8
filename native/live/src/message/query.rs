//! Queries as nodes know them, and the requests of app servers to nodes.

use std::sync::Arc;

use crate::snapshot::PgSnapshot;

use super::{FencingToken, QueryHash, ResultRow, StreamId};

/// A query as nodes know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryDefinition {
    /// Its hash.
    pub hash: QueryHash,
    /// Increases with each activation; assigned by the registry.
    pub activation: u64,
    /// Its tenant.
    pub tenant: [u8; 16],
    /// Its collection.
    pub collection: [u8; 16],
    /// The version of the access rules in its filter; 0 if it contains none.
    pub rules_version: u64,
    /// The filter, access rule included, in canonical BSON.
    pub filter: Arc<[u8]>,
    /// The sort as a BSON document `{"sort": […]}`; empty for the order of `_id`.
    pub sort: Arc<[u8]>,
    /// The number of rows skipped.
    pub offset: u32,
    /// The number of rows shown; `None` for all.
    pub limit: Option<u32>,
    /// Whether a sort node keeps it: it has a sort, an offset or a limit.
    pub sorted: bool,
    /// Rows that a sort node keeps beyond the window.
    pub slack: u32,
    /// How documents are grouped, in BSON; empty if they are not. Sort and window then apply to the
    /// groups, and a sort node keeps the query.
    pub group: Arc<[u8]>,
    /// What is looked up for each document, in BSON; empty for nothing. If anything is looked up, a
    /// sort node keeps the query.
    pub lookups: Arc<[u8]>,
    /// The collections that are looked up, each once.
    pub sides: Arc<[LookupSide]>,
    /// The access rule alone, in canonical BSON; empty if its users may read everything.
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

/// A collection that is looked up, as the query's users may see it. Queries with equal sides share
/// them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookupSide {
    /// Its hash, which no query has.
    pub hash: QueryHash,
    /// The collection.
    pub collection: [u8; 16],
    /// The version of the access rules in its filter; 0 if it contains none.
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

/// What was read of a side: the documents that are referred to, and possibly others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    /// Documents that exist and are visible.
    pub rows: Vec<ResultRow>,
    /// Whether there are no others.
    pub complete: bool,
}

/// Identifies a sort node's request for documents. The response repeats it; others are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchId {
    /// The query.
    pub query: QueryHash,
    /// Its activation.
    pub activation: u64,
    /// The token of the sort node.
    pub token: FencingToken,
    /// Increases with each request of one holder.
    pub number: u64,
}

/// A document of a side, as one snapshot has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedDocument {
    /// Its key.
    pub key: Arc<[u8]>,
    /// Its version, deletions included; 0 if it never existed.
    pub version: u64,
    /// The transaction that wrote it; 0 if it is no longer known.
    pub xid: u64,
    /// Its content; `None` if it does not exist or is not visible.
    pub body: Option<Arc<[u8]>>,
}

/// A request of an app server to all nodes of a query partition.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all requests are registrations"
)]
pub enum NodeRequest {
    /// Registers a query, or renews its registration. The rows are those that `snapshot` sees; for
    /// sorted queries the first `offset + limit + slack`, and `complete` says whether there are no
    /// more.
    Register {
        /// The query.
        query: QueryDefinition,
        /// The end of each write stream before the snapshot was taken.
        positions: Vec<StreamId>,
        /// What the rows have seen.
        snapshot: PgSnapshot,
        /// With documents for a sorted query, otherwise keys and versions.
        rows: Vec<ResultRow>,
        /// Whether `rows` is the whole result.
        complete: bool,
        /// What the same snapshot sees of each of the query's sides.
        foreign: Vec<Foreign>,
        /// Answers a `Renew` of the sort node.
        renewal: bool,
    },
    /// The query has had no subscribers for its time to live: forget it, if this is its activation.
    Expire {
        /// The query.
        query: QueryHash,
        /// Its activation.
        activation: u64,
    },
    /// To the sort node: single documents that it requested, of each of the query's sides.
    Fetched {
        /// The request.
        fetch: FetchId,
        /// The documents, all from one snapshot that was taken after they were requested.
        documents: Vec<Vec<FetchedDocument>>,
    },
}
