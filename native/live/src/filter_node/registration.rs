//! Registering, joining, renewing and ending queries.

use std::collections::HashMap;
use std::sync::Arc;

use rillbase_documents::refusal::DocumentRefusal;
use rillbase_matching::QueryId;
use rillbase_query::bson::Document;
use rillbase_query::filter::Filter;

use crate::message::{
    AfterImage, ImageContent, LookupSide, NodeEvent, QueryDefinition, QueryHash, ResultRow,
    StreamId,
};
use crate::node::NodeOutput;
use crate::partition::write_partition;
use crate::snapshot::PgSnapshot;

use super::queries::QueryHandle;
use super::{FilterNode, failed};

/// A request to watch a query, as far as it concerns this node.
#[derive(Debug)]
pub(super) struct FilterRegistration<'r> {
    pub(super) query: &'r QueryDefinition,
    /// The end of the write stream before the snapshot was taken.
    pub(super) position: StreamId,
    pub(super) snapshot: &'r PgSnapshot,
    pub(super) rows: &'r [ResultRow],
    pub(super) renewal: bool,
}

impl FilterNode {
    pub(super) fn register(
        &mut self,
        registration: &FilterRegistration<'_>,
        now_us: u64,
        out: &mut Vec<NodeOutput>,
    ) {
        let query = registration.query;
        let known = self.queries.find(&query.hash);
        match known.map(|(id, known)| (id, known.activation)) {
            Some((_, activation)) if activation > query.activation => {}
            Some((id, activation)) if activation == query.activation => {
                self.register_again(id, registration, now_us, out);
            }
            Some((id, _)) => {
                self.forget(id);
                self.register_first(registration, now_us, out);
            }
            // A renewal reads only a part of the result.
            None if registration.renewal => self.answer(query, true, out),
            None => self.register_first(registration, now_us, out),
        }
    }

    pub(super) fn expire(&mut self, hash: QueryHash, activation: u64) {
        let known = self.queries.find(&hash);
        if let Some((id, known)) = known
            && known.activation <= activation
        {
            self.forget(id);
        }
    }

    fn register_first(
        &mut self,
        registration: &FilterRegistration<'_>,
        now_us: u64,
        out: &mut Vec<NodeOutput>,
    ) {
        let query = registration.query;
        if !self.retained.reaches(registration.position) {
            return self.answer(query, true, out);
        }
        let Some((id, filter)) = self.add(query, out) else {
            return;
        };
        let until_us = now_us.saturating_add(self.config.remembered_us);
        self.queries.insert(id, query);
        self.queries.guard(id, registration.snapshot, until_us);
        let member = self.queries.member(id);
        for row in registration.rows {
            if self.is_in_partition(&row.key) {
                let known = self.documents.touch(query.collection, &row.key, now_us);
                known.join(member);
            }
        }
        self.replay(member, &filter, registration, out);
        self.replay_sides(member, registration, out);
        if self.queries.is_alive(member) {
            self.answer(query, false, out);
        }
    }

    /// The query is already registered: another subscriber joins, or its sort node was given new
    /// rows.
    fn register_again(
        &mut self,
        id: QueryId,
        registration: &FilterRegistration<'_>,
        now_us: u64,
        out: &mut Vec<NodeOutput>,
    ) {
        let query = registration.query;
        // Subscribers that join a sorted query start from the sort node's window.
        let joins = query.sorted
            || self.queries.get(id).is_some_and(|known| {
                known.can_be_joined(registration.position, registration.snapshot)
            });
        let joins = joins && self.adopt(self.queries.member(id), registration, now_us, out);
        self.answer(query, !joins, out);
    }

    /// Adopts the rows of other subscribers; otherwise their removal would go unnoticed. Their
    /// version may be ahead of the node ([`super::unconfirmed_rows`]). If the node has handled a
    /// higher version, which then came after `position`, and that does not match, it reports the
    /// removal now, unless it has reported since that the document left: the joining subscribers
    /// read that too, and a subscriber that resumes from the log must not be notified twice.
    /// Returns false if that version is no longer retained.
    fn adopt(
        &mut self,
        member: QueryHandle,
        registration: &FilterRegistration<'_>,
        now_us: u64,
        out: &mut Vec<NodeOutput>,
    ) -> bool {
        let query = registration.query;
        let mut left: HashMap<&[u8], (u64, u64)> = HashMap::new();
        let mut ahead = Vec::new();
        for row in registration.rows {
            if !self.is_in_partition(&row.key) {
                continue;
            }
            let known = self.documents.touch(query.collection, &row.key, now_us);
            if row.version > known.handled {
                ahead.push((Arc::clone(&row.key), row.version));
            } else if row.version == known.handled {
                known.join(member);
            } else if !known.has(member) {
                left.insert(&row.key, (row.version, known.handled));
            }
        }
        let seen = registration.snapshot;
        self.ahead.join(member, query.collection, seen, &ahead);
        if left.is_empty() {
            return true;
        }
        if !query.sorted {
            for image in self
                .retained
                .departures_since(registration.position, &query.hash)
            {
                let read = left.get(&*image.key).map(|(read, _)| *read);
                if read.is_some_and(|read| read < image.version) {
                    left.remove(&*image.key);
                }
            }
        }
        let mut said = Vec::new();
        for image in self.retained.after(registration.position) {
            let handled = left.get(&*image.key).map(|(_, handled)| *handled);
            if image.collection == query.collection && handled == Some(image.version) {
                left.remove(&*image.key);
                said.push(image.clone());
            }
        }
        self.report_departures(query, &said, out);
        left.is_empty()
    }

    /// Only the joining subscribers may have them.
    fn report_departures(
        &mut self,
        query: &QueryDefinition,
        images: &[AfterImage],
        out: &mut Vec<NodeOutput>,
    ) {
        let mut batches = Vec::new();
        for image in images {
            let event = NodeEvent::Match {
                image: image.clone(),
                added: Vec::new(),
                changed: Vec::from_iter((!query.sorted).then_some(query.hash)),
                removed: vec![query.hash],
            };
            self.voice.emit(event, out);
            self.retained.record_departure(image, query.hash);
            if !image.parts.is_empty() {
                batches.push(image.xid);
            }
        }
        self.repeat_done(batches, out);
    }

    /// Repeats `Done` for batches that were finished before the query was notified of them. The
    /// last one may still be open.
    fn repeat_done(&mut self, mut batches: Vec<u64>, out: &mut Vec<NodeOutput>) {
        batches.dedup();
        for xid in batches {
            if self.batch != Some(xid) {
                self.voice.emit(NodeEvent::Done { xid }, out);
            }
        }
    }

    /// Adds a query to the index, or reports why it was rejected.
    pub(super) fn add(
        &mut self,
        query: &QueryDefinition,
        out: &mut Vec<NodeOutput>,
    ) -> Option<(QueryId, Filter)> {
        let refusal = match self.try_add(query) {
            Ok(added) => return Some(added),
            Err(refusal) => refusal,
        };
        let event = failed(query.hash, &refusal.code, &refusal.detail);
        self.voice.emit(event, out);
        None
    }

    fn try_add(&mut self, query: &QueryDefinition) -> Result<(QueryId, Filter), DocumentRefusal> {
        let filter = parse(query)?;
        self.sides.join(query, &mut self.matcher)?;
        match self.matcher.add(query.collection, query.tenant, &filter) {
            Ok(id) => Ok((id, filter)),
            Err(refused) => {
                let matcher = &mut self.matcher;
                self.sides.leave(&query.hash, &query.sides, matcher);
                Err(DocumentRefusal::new("residual_quota", refused.to_string()))
            }
        }
    }

    fn answer(&mut self, query: &QueryDefinition, too_old: bool, out: &mut Vec<NodeOutput>) {
        let (query, activation, request) = (query.hash, query.activation, self.requests);
        let event = if too_old {
            NodeEvent::TooOld {
                query,
                activation,
                request,
            }
        } else {
            NodeEvent::Active {
                query,
                activation,
                request,
            }
        };
        self.voice.emit(event, out);
    }

    pub(super) fn is_in_partition(&self, key: &[u8]) -> bool {
        write_partition(key, self.config.partitions) == self.config.partition
    }

    /// Reports to a new query what its snapshot does not see and what arrived before it was
    /// registered: of each document only the version handled last, because everything after
    /// `position` is retained, so a higher version is reported as well. A sort node that was
    /// rebuilt in between has the lower version, so removals are reported for what that one
    /// matched.
    fn replay(
        &mut self,
        member: QueryHandle,
        filter: &Filter,
        registration: &FilterRegistration<'_>,
        out: &mut Vec<NodeOutput>,
    ) {
        let query = registration.query;
        let unseen = self.unseen(filter, &query.collection, registration);
        let mut lowest: HashMap<Arc<[u8]>, u64> = HashMap::new();
        for (image, _) in unseen.iter().filter(|(_, has)| *has && query.sorted) {
            let version = lowest.entry(Arc::clone(&image.key)).or_insert(u64::MAX);
            *version = image.version.min(*version);
        }
        let mut batches = Vec::new();
        for (image, has) in &unseen {
            let Some(known) = self.documents.get_mut(&image.collection, &image.key) else {
                continue;
            };
            if known.handled != image.version {
                continue;
            }
            let had = if *has {
                known.join(member)
            } else {
                let lower = lowest.get(&image.key);
                let matched = lower.is_some_and(|lower| *lower < image.version);
                known.leave(member) || matched || (query.sorted && known.has_unknown_below)
            };
            if had || *has {
                self.voice
                    .emit(match_event(image, query.hash, had, *has), out);
            }
            if had && !*has {
                self.retained.record_departure(image, query.hash);
            }
            if !image.parts.is_empty() {
                batches.push(image.xid);
            }
        }
        self.repeat_done(batches, out);
    }

    /// Reports to a new query the looked-up documents that its snapshot does not see. Other queries
    /// that share the side receive them again.
    fn replay_sides(
        &mut self,
        member: QueryHandle,
        registration: &FilterRegistration<'_>,
        out: &mut Vec<NodeOutput>,
    ) {
        let sides = Arc::clone(&registration.query.sides);
        for side in sides.iter() {
            let unseen = match self.unseen_of(side, registration) {
                Ok(unseen) => unseen,
                Err(refusal) => {
                    return self.fail(member.id, &refusal.code, &refusal.detail, out);
                }
            };
            let mut batches = Vec::new();
            for (image, may) in unseen {
                let known = self.documents.get_mut(&image.collection, &image.key);
                if known.is_none_or(|known| known.handled != image.version) {
                    continue;
                }
                if !image.parts.is_empty() {
                    batches.push(image.xid);
                }
                self.voice
                    .emit(match_event(&image, side.hash, !may, may), out);
            }
            self.repeat_done(batches, out);
        }
    }

    fn unseen_of(
        &self,
        side: &LookupSide,
        registration: &FilterRegistration<'_>,
    ) -> Result<Vec<UnseenImage>, DocumentRefusal> {
        let filter = Filter::parse(Document::parse(&side.filter)?)?;
        Ok(self.unseen(&filter, &side.collection, registration))
    }

    /// Images after a registration's position that are not in its rows, and whether they match.
    fn unseen(
        &self,
        filter: &Filter,
        collection: &[u8; 16],
        registration: &FilterRegistration<'_>,
    ) -> Vec<UnseenImage> {
        let images = self.retained.after(registration.position);
        let unseen = images.filter(|image| {
            image.collection == *collection && !registration.snapshot.sees(image.xid)
        });
        let unseen = unseen.map(|image| (image.clone(), matches(filter, image)));
        unseen.collect()
    }
}

/// An after-image and whether it matches.
type UnseenImage = (AfterImage, bool);

/// The filter of a query.
pub(crate) fn parse(query: &QueryDefinition) -> Result<Filter, DocumentRefusal> {
    Ok(Filter::parse(Document::parse(&query.filter)?)?)
}

/// Whether a document is in a query's result. A document that cannot be evaluated is not.
fn matches(filter: &Filter, image: &AfterImage) -> bool {
    match &image.content {
        ImageContent::Document(body) => filter.matches(Document::trusted(body)) == Ok(true),
        ImageContent::Deleted(_) | ImageContent::Superseded => false,
    }
}

/// A match that concerns one query.
fn match_event(image: &AfterImage, query: QueryHash, had: bool, has: bool) -> NodeEvent {
    let only = |concerned: bool| Vec::from_iter(concerned.then_some(query));
    NodeEvent::Match {
        image: image.clone(),
        added: only(!had && has),
        changed: only(had && has),
        removed: only(had && !has),
    }
}
