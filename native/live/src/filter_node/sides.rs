//! Collections that queries look up.
//!
//! The index treats the access rule of a side like a filter, but does not remember which documents
//! match it: every write of the collection is reported to the queries that look it up, with whether
//! the document is visible now. Readers of such documents compare versions and what their own rows
//! have seen. So queries can share a side, and join and leave it without further reads.

use std::collections::{BTreeSet, HashMap};

use rillbase_documents::refusal::DocumentRefusal;
use rillbase_matching::{Matcher, QueryId};
use rillbase_query::bson::Document;
use rillbase_query::filter::Filter;

use crate::message::{LookupSide, QueryDefinition, QueryHash};

#[derive(Debug)]
struct WatchedSide {
    hash: QueryHash,
    collection: [u8; 16],
    /// The queries that look it up.
    users: BTreeSet<QueryHash>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct WatchedSides {
    known: HashMap<QueryId, WatchedSide>,
    by_hash: HashMap<QueryHash, QueryId>,
    by_collection: HashMap<[u8; 16], BTreeSet<QueryId>>,
}

impl WatchedSides {
    /// Adds the sides of a query. If one is rejected, none is added.
    pub(super) fn join(
        &mut self,
        query: &QueryDefinition,
        matcher: &mut Matcher,
    ) -> Result<(), DocumentRefusal> {
        for side in query.sides.iter() {
            if let Err(refusal) = self.join_one(query, side, matcher) {
                self.leave(&query.hash, &query.sides, matcher);
                return Err(refusal);
            }
        }
        Ok(())
    }

    fn join_one(
        &mut self,
        query: &QueryDefinition,
        side: &LookupSide,
        matcher: &mut Matcher,
    ) -> Result<(), DocumentRefusal> {
        if let Some(known) = self.by_hash.get(&side.hash) {
            if let Some(known) = self.known.get_mut(known) {
                known.users.insert(query.hash);
            }
            return Ok(());
        }
        let filter = Filter::parse(Document::parse(&side.filter)?)?;
        let added = matcher.add(side.collection, query.tenant, &filter);
        let id =
            added.map_err(|refused| DocumentRefusal::new("residual_quota", refused.to_string()))?;
        self.by_hash.insert(side.hash, id);
        self.by_collection
            .entry(side.collection)
            .or_default()
            .insert(id);
        let known = WatchedSide {
            hash: side.hash,
            collection: side.collection,
            users: BTreeSet::from([query.hash]),
        };
        self.known.insert(id, known);
        Ok(())
    }

    /// Removes an ended query.
    pub(super) fn leave(&mut self, query: &QueryHash, sides: &[LookupSide], matcher: &mut Matcher) {
        for side in sides {
            let Some(id) = self.by_hash.get(&side.hash).copied() else {
                continue;
            };
            let Some(known) = self.known.get_mut(&id) else {
                continue;
            };
            known.users.remove(query);
            if !known.users.is_empty() {
                continue;
            }
            matcher.remove(id);
            self.by_hash.remove(&side.hash);
            if let Some(others) = self.by_collection.get_mut(&known.collection) {
                others.remove(&id);
                if others.is_empty() {
                    self.by_collection.remove(&known.collection);
                }
            }
            self.known.remove(&id);
        }
    }

    pub(super) fn is_side(&self, id: QueryId) -> bool {
        self.known.contains_key(&id)
    }

    /// The queries that look a side up.
    pub(super) fn users(&self, id: QueryId) -> Vec<QueryHash> {
        let known = self.known.get(&id);
        known.map_or_else(Vec::new, |known| known.users.iter().copied().collect())
    }

    /// The queries that look a collection up.
    pub(super) fn users_of(&self, collection: &[u8; 16]) -> BTreeSet<QueryHash> {
        let ids = self.by_collection.get(collection).into_iter().flatten();
        let known = ids.filter_map(|id| self.known.get(id));
        known
            .flat_map(|known| known.users.iter().copied())
            .collect()
    }

    /// Which users of a collection may see a written document, and which may not, by the queries of
    /// the index that match.
    pub(super) fn judge(
        &self,
        collection: &[u8; 16],
        matched: &[QueryId],
    ) -> (Vec<QueryHash>, Vec<QueryHash>) {
        let ids = self.by_collection.get(collection).into_iter().flatten();
        let known = ids.filter_map(|id| Some((id, self.known.get(id)?)));
        let (mut may, mut may_not) = (Vec::new(), Vec::new());
        for (id, known) in known {
            if matched.binary_search(id).is_ok() {
                may.push(known.hash);
            } else {
                may_not.push(known.hash);
            }
        }
        (may, may_not)
    }
}
