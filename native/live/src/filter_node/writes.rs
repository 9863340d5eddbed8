//! Handles a write: which queries match the document now, and which matched it before.

use rillbase_matching::QueryId;
use rillbase_query::bson::Document;

use crate::message::{AfterImage, ImageContent, NodeEvent, QueryHash, StreamId};
use crate::node::NodeOutput;

use super::FilterNode;
use super::queries::{QueryHandle, WatchedQueries};

/// Buffers that are reused for each write.
#[derive(Debug, Default)]
pub(super) struct MatchBuffers {
    matched: Vec<QueryId>,
    failed: Vec<QueryId>,
}

/// How a write changes the results of queries.
#[derive(Debug, Default)]
struct ResultDifference {
    added: Vec<QueryHash>,
    changed: Vec<QueryHash>,
    removed: Vec<QueryHash>,
    members: Vec<QueryHandle>,
}

impl FilterNode {
    pub(super) fn image(
        &mut self,
        id: StreamId,
        image: &AfterImage,
        now_us: u64,
        out: &mut Vec<NodeOutput>,
    ) {
        if self.batch.is_some_and(|xid| xid != image.xid) {
            self.end_batch(out);
        }
        if !image.parts.is_empty() {
            self.batch = Some(image.xid);
        }
        if image.content != ImageContent::Superseded {
            self.retained.push(id, image, now_us);
        }
        self.compare(image, now_us, out);
    }

    /// Ends the current batch. A batch is appended to the stream atomically, so the batch is complete
    /// once another entry, or the end of the stream, follows it.
    pub(super) fn end_batch(&mut self, out: &mut Vec<NodeOutput>) {
        if let Some(xid) = self.batch.take() {
            self.voice.emit(NodeEvent::Done { xid }, out);
        }
    }

    fn compare(&mut self, image: &AfterImage, now_us: u64, out: &mut Vec<NodeOutput>) {
        let known = self.documents.touch(image.collection, &image.key, now_us);
        if image.version <= known.handled {
            known.has_unknown_below |= image.content == ImageContent::Superseded;
            if known.record_lower_version(image.version) {
                self.emit_late_removals(image, out);
            }
            return;
        }
        if image.content == ImageContent::Superseded {
            known.has_unknown_above = true;
            return;
        }
        known.advance(image.version);
        let has_unknown_above = std::mem::take(&mut known.has_unknown_above);
        known.has_unknown_below |= has_unknown_above;
        let before = std::mem::take(&mut known.members);
        let passed = self.ahead.handled(image);
        let scratch = self.find(image);
        let mut difference = difference(&self.queries, image.xid, &before, &scratch.matched);
        let (may, may_not) = self.sides.judge(&image.collection, &scratch.matched);
        self.report_unevaluated(image, &scratch.failed, out);
        self.scratch = scratch;
        self.emit_remove_and_change(&passed, image.xid, &mut difference);
        if let Some(known) = self.documents.get_mut(&image.collection, &image.key) {
            known.members = difference.members;
        }
        let ResultDifference {
            mut added,
            changed,
            mut removed,
            ..
        } = difference;
        if !removed.is_empty() {
            self.retained.record_departures(image, &removed);
        }
        added.extend(may);
        removed.extend(may_not);
        if !(added.is_empty() && changed.is_empty() && removed.is_empty()) {
            let image = image.clone();
            let event = NodeEvent::Match {
                image,
                added,
                changed,
                removed,
            };
            self.voice.emit(event, out);
        }
        if has_unknown_above {
            let ids = self.queries.sorted(&image.collection);
            self.emit_removals(image, &ids, out);
        }
    }

    /// Reports a document to the queries that could not evaluate it. The filter of a query holds
    /// its access rule, so the document may be one that none of its subscribers may read.
    fn report_unevaluated(
        &mut self,
        image: &AfterImage,
        failed: &[QueryId],
        out: &mut Vec<NodeOutput>,
    ) {
        let ImageContent::Document(body) = &image.content else {
            return;
        };
        let (document, now_ms) = (Document::trusted(body), image.written_us.div_euclid(1_000));
        let queries = failed.iter().filter_map(|id| self.queries.get(*id));
        let queries = queries.filter(|query| !query.has_seen(image.xid));
        let queries = queries.filter(|query| query.may_read(document, now_ms));
        let queries: Vec<_> = queries.map(|query| query.hash).collect();
        if !queries.is_empty() {
            self.voice.emit(NodeEvent::Unevaluated { queries }, out);
        }
    }

    /// Adds a removal and a change for each query that the document joined with a lower version,
    /// which was skipped because this one came first. Without an earlier notification of the node,
    /// no other subscriber may have the document.
    fn emit_remove_and_change(
        &self,
        passed: &[QueryHandle],
        xid: u64,
        difference: &mut ResultDifference,
    ) {
        for member in passed.iter().filter(|one| self.queries.is_alive(**one)) {
            let query = self.queries.get(member.id);
            let Some(query) = query.filter(|query| !query.has_seen(xid)) else {
                continue;
            };
            let ResultDifference {
                added,
                changed,
                removed,
                ..
            } = difference;
            let enters = added.contains(&query.hash);
            if !enters && (changed.contains(&query.hash) || removed.contains(&query.hash)) {
                continue;
            }
            if !enters {
                removed.push(query.hash);
            }
            if !query.sorted {
                changed.push(query.hash);
            }
        }
    }

    /// Emits removals for a version that was skipped because a higher one came first. No query was
    /// notified of it, but a sort node that was rebuilt between the two has read it from the
    /// database. So the document is removed from every sorted query that the skipped version
    /// matches and the higher one does not. The content of a superseded version is unknown, so all
    /// sorted queries of the collection are considered.
    fn emit_late_removals(&mut self, image: &AfterImage, out: &mut Vec<NodeOutput>) {
        let ids = if image.content == ImageContent::Superseded {
            self.queries.sorted(&image.collection)
        } else {
            let scratch = self.find(image);
            let is_sorted = |id: &QueryId| self.queries.get(*id).is_some_and(|query| query.sorted);
            let ids = scratch.matched.iter().copied().filter(is_sorted).collect();
            self.scratch = scratch;
            ids
        };
        if ids.is_empty() {
            return;
        }
        let known = self.documents.get_mut(&image.collection, &image.key);
        let handled = known.map_or(0, |known| known.handled);
        if let Some(later) = self.retained.find(&image.collection, &image.key, handled) {
            self.emit_removals(&later, &ids, out);
        }
    }

    /// Emits removals of a write for those of the queries that do not have the document, unless their
    /// rows are newer.
    fn emit_removals(&mut self, image: &AfterImage, ids: &[QueryId], out: &mut Vec<NodeOutput>) {
        let Some(known) = self.documents.get_mut(&image.collection, &image.key) else {
            return;
        };
        let left = ids
            .iter()
            .filter(|id| !known.has(self.queries.member(**id)));
        let queries = left.filter_map(|id| self.queries.get(*id));
        let removed: Vec<_> = queries
            .filter(|query| !query.has_seen(image.xid))
            .map(|query| query.hash)
            .collect();
        if !removed.is_empty() {
            let event = NodeEvent::Match {
                image: image.clone(),
                added: Vec::new(),
                changed: Vec::new(),
                removed,
            };
            self.voice.emit(event, out);
        }
    }

    /// Returns the queries that match, and those that could not be evaluated. The document is in no
    /// result of the latter.
    fn find(&mut self, image: &AfterImage) -> MatchBuffers {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.matched.clear();
        scratch.failed.clear();
        if let ImageContent::Document(body) = &image.content {
            let document = Document::trusted(body);
            let MatchBuffers { matched, failed } = &mut scratch;
            self.matcher
                .matches(&image.collection, document, matched, failed);
        }
        scratch
    }
}

fn difference(
    queries: &WatchedQueries,
    xid: u64,
    before: &[QueryHandle],
    matched: &[QueryId],
) -> ResultDifference {
    let alive = before.iter().filter(|member| queries.is_alive(**member));
    let mut before = alive.map(|member| member.id).peekable();
    let mut matched = matched.iter().copied().peekable();
    let mut difference = ResultDifference::default();
    loop {
        let next = match (before.peek(), matched.peek()) {
            (Some(had), Some(has)) => (*had).min(*has),
            (Some(id), None) | (None, Some(id)) => *id,
            (None, None) => return difference,
        };
        let had = before.next_if_eq(&next).is_some();
        let has = matched.next_if_eq(&next).is_some();
        let Some(query) = queries.get(next) else {
            continue;
        };
        let seen = query.has_seen(xid);
        if if seen { had } else { has } {
            difference.members.push(queries.member(next));
        }
        match (had, has) {
            _ if seen => {}
            (true, true) => difference.changed.push(query.hash),
            (true, false) => difference.removed.push(query.hash),
            (false, _) => difference.added.push(query.hash),
        }
    }
}
