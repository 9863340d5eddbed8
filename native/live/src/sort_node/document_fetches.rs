//! Documents that rows refer to and of which nothing is known: asked for, and taken when they may
//! count. Meanwhile the window of the query stays as it was told.

use crate::message::{FetchId, FetchedDocument, NodeEvent, QueryHash};
use crate::node::NodeOutput;

use super::SortNode;
use super::query::Lack;

impl SortNode {
    /// Asks for what a query refers to, if something is not known and was not asked for.
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

    /// Somebody has read what was asked for.
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

    /// More was told: what was read may count by now.
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

    /// What nobody has answered is asked for again.
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
