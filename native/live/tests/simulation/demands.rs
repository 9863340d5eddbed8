//! Requests of nodes to app servers through their hubs, and the pending answers.

use std::sync::Arc;

use rillbase_live::message::{FetchId, FetchedDocument, NodeRequest, QueryHash};

use super::database::{Database, name};
use super::process::{Ends, Reading, read};
use super::queries::Query;
use super::valkey::Valkey;

/// A request of a node.
#[derive(Debug)]
pub(crate) enum Demand {
    /// The rows of a query, with this many beyond the window.
    Rows(QueryHash, u32),
    /// Single documents that a query looks up.
    Documents(FetchId, Vec<Vec<Arc<[u8]>>>),
}

/// What was read.
#[derive(Debug)]
pub(crate) enum Answer {
    Rows(Box<Reading>),
    Documents(Box<NodeRequest>),
}

impl Demand {
    /// Reads it, unless other rules are in force.
    pub(crate) fn read(self, valkey: &Valkey, database: &Database) -> Option<Answer> {
        let hash = match &self {
            Self::Rows(hash, _) => hash,
            Self::Documents(fetch, _) => &fetch.query,
        };
        let query = Query::named(hash);
        if query.rules != 0 && query.rules != database.rules {
            return None;
        }
        Some(match self {
            Self::Rows(_, slack) => {
                let ends = Ends::of(valkey);
                Answer::Rows(Box::new(read(query, slack, ends, true, database)))
            }
            Self::Documents(fetch, keys) => {
                let side = |keys: Vec<Arc<[u8]>>| {
                    let documents = keys.into_iter().map(|key| document(query, key, database));
                    documents.collect()
                };
                let documents = keys.into_iter().map(side).collect();
                Answer::Documents(Box::new(NodeRequest::Fetched { fetch, documents }))
            }
        })
    }
}

impl Answer {
    /// Sends it to the nodes.
    pub(crate) fn send(self, valkey: &mut Valkey) {
        match self {
            Self::Rows(reading) => reading.renew(valkey),
            Self::Documents(request) => valkey.answer(*request),
        }
    }
}

fn document(query: Query, key: Arc<[u8]>, database: &Database) -> FetchedDocument {
    // References may also be to keys that no document has.
    let mut keys = 0..=u8::MAX;
    let latest = keys.find(|number| name(*number) == key);
    let latest = latest.and_then(|number| database.latest(number));
    let seen = latest.filter(|latest| query.shows(latest));
    let row = seen.and_then(|_| database.rows().into_iter().find(|row| row.key == key));
    FetchedDocument {
        version: latest.map_or(0, |latest| latest.version),
        xid: latest.map_or(0, |latest| latest.xid),
        body: row.map(|row| row.body),
        key,
    }
}
