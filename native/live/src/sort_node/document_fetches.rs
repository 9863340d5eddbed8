//! Unknown documents that rows refer to: they are requested, and used once they count. Meanwhile
//! the query's window stays as it was reported.

use crate::message::{FetchId, FetchedDocument, NodeEvent, QueryHash};
use crate::node::NodeOutput;

use super::SortNode;
use super::query::Lack;

impl SortNode {
    /// Requests the documents that a query refers to, if some are unknown and were not requested.
    pub(super) fn look_for(&mut self, hash: QueryHash, now_us: u64, out: &mut Vec<NodeOutput>) {
        let Some(query) = self.queries.get_mut(&hash) else {
            return;
        };
        if !query.lacks_something() {
            return;
        }
        self.lacking.insert(hash);
        match query.lack() {
            Lack::Nothing => {}
            Lack::TooMuch => self.renew(hash, now_us, out),
            Lack::Of(keys) => {
                self.questions += 1;
                let fetch = FetchId {
                    query: hash,
                    activation: query.activation,
                    token: self.config.token,
                    number: self.questions,
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
        for hash in self.lacking.clone() {
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
        if query.lacks_something() {
            self.look_for(hash, now_us, out);
        } else if query.is_on_hold() {
            self.show(hash, out);
            self.check(hash, now_us, out);
        }
    }

    /// Repeats unanswered requests.
    pub(super) fn look_again(&mut self, now_us: u64, out: &mut Vec<NodeOutput>) {
        let before_us = now_us.saturating_sub(self.config.renew_again_us);
        for hash in self.lacking.clone() {
            if let Some(query) = self.queries.get_mut(&hash) {
                query.ask_anew(before_us);
            }
            self.look_for(hash, now_us, out);
        }
    }
}
