//! Unknown documents that rows refer to: they are requested, and used once they count. Meanwhile
//! the query's window stays as it was reported.

use crate::message::{FetchId, FetchedDocument, NodeEvent, QueryHash};
use crate::node::NodeOutput;

use super::SortNode;
use super::query::MissingDocuments;

impl SortNode {
    /// Requests the documents that a query refers to, if some are unknown and were not requested.
    pub(super) fn request_documents(
        &mut self,
        hash: QueryHash,
        now_us: u64,
        out: &mut Vec<NodeOutput>,
    ) {
        let Some(query) = self.queries.get_mut(&hash) else {
            return;
        };
        if !query.has_unknown_references() {
            return;
        }
        self.incomplete.insert(hash);
        match query.missing_documents() {
            MissingDocuments::Nothing => {}
            MissingDocuments::TooMany => self.renew(hash, now_us, out),
            MissingDocuments::Of(keys) => {
                self.fetches += 1;
                let fetch = FetchId {
                    query: hash,
                    activation: query.activation,
                    token: self.config.token,
                    number: self.fetches,
                };
                query.ask_for(fetch, now_us);
                self.voice.emit(NodeEvent::Fetch { fetch, keys }, out);
            }
        }
    }

    /// Takes documents that were requested.
    pub(super) fn fetched(
        &mut self,
        fetch: &FetchId,
        documents: Vec<Vec<FetchedDocument>>,
        now_us: u64,
        out: &mut Vec<NodeOutput>,
    ) {
        if let Some(query) = self.queries.get_mut(&fetch.query) {
            query.answer(fetch, documents);
            self.resolve(fetch.query, now_us, out);
        }
    }

    /// After further reports, documents that were read may count.
    pub(super) fn resolve_all(&mut self, now_us: u64, out: &mut Vec<NodeOutput>) {
        for hash in self.incomplete.clone() {
            self.resolve(hash, now_us, out);
        }
    }

    fn resolve(&mut self, hash: QueryHash, now_us: u64, out: &mut Vec<NodeOutput>) {
        let waits = |query: &&mut super::query::SortedQuery| query.waiting.is_none();
        let Some(query) = self.queries.get_mut(&hash).filter(waits) else {
            return;
        };
        let latest_version = |side: &QueryHash, key: &[u8]| self.sides.latest_version(side, key);
        if let Err(refusal) = query.resolve(&latest_version, self.complete.as_ref()) {
            return self.fail(hash, &refusal, out);
        }
        if query.has_unknown_references() {
            self.request_documents(hash, now_us, out);
        } else if query.is_on_hold() {
            self.show(hash, out);
            self.check(hash, now_us, out);
        }
    }

    /// Repeats unanswered requests.
    pub(super) fn retry_requests(&mut self, now_us: u64, out: &mut Vec<NodeOutput>) {
        let before_us = now_us.saturating_sub(self.config.renew_again_us);
        for hash in self.incomplete.clone() {
            if let Some(query) = self.queries.get_mut(&hash) {
                query.retry(before_us);
            }
            self.request_documents(hash, now_us, out);
        }
    }
}
