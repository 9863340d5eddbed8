//! The answers of a query's nodes to its registration, and how much of what the nodes report
//! counts.
//!
//! A node that has not answered continues from other subscribers' rows, from those of an earlier
//! registration, or from none; with its answer it may report more of what it had handled before. So
//! its reports about a batch, or about how far it has read, count for this query only once it has
//! answered the request that its rows came with. The state that a node started with is different:
//! it is not reported to queries registered later, whose rows may lack it; to those registered
//! earlier the node has sent its whole state, which says itself what its snapshot sees.

use std::collections::BTreeMap;

use crate::message::{NotificationSource, StreamId};
use crate::snapshot::PgSnapshot;

#[derive(Debug)]
struct RegistrationAnswer {
    /// The last request that it answers, and those before it.
    request: StreamId,
    /// The position of its answer to the request that the rows came with, if it has answered.
    at: StreamId,
    /// The position at which it started.
    began: StreamId,
    /// The position of its answer to the first registration, or of its first answer since it
    /// started.
    since: StreamId,
    /// The position at which the next holder of its partition started.
    until: Option<StreamId>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct RegistrationAnswers {
    /// The request that registered the query last, with the rows that it continues from.
    request: StreamId,
    by: BTreeMap<NotificationSource, RegistrationAnswer>,
    /// What a node's whole state of the query has seen, and the position of that report.
    states: BTreeMap<NotificationSource, (PgSnapshot, StreamId)>,
}

impl RegistrationAnswers {
    /// Other rows count from here on, of a new activation or of the same one.
    pub(super) fn begin(&mut self, request: StreamId, anew: bool) {
        if anew {
            self.by.clear();
        }
        self.request = request;
        self.states.clear();
    }

    /// The request that registered the query last.
    pub(super) const fn request(&self) -> StreamId {
        self.request
    }

    /// A node that started at `began` watches the query from `at` on, for all requests up to this
    /// one.
    pub(super) fn answered(
        &mut self,
        source: NotificationSource,
        request: StreamId,
        (began, at): (StreamId, StreamId),
    ) {
        // Another holder has replaced it.
        if at < began {
            return;
        }
        match self.by.get_mut(&source) {
            Some(known) if known.until.is_none() => {
                if known.request < self.request {
                    known.at = at;
                }
                known.request = request.max(known.request);
            }
            _ => {
                let (since, until) = (at, None);
                let answer = RegistrationAnswer {
                    request,
                    at,
                    began,
                    since,
                    until,
                };
                self.by.insert(source, answer);
            }
        }
    }

    /// Records that a node has sent its whole state of the query.
    pub(super) fn record_state(
        &mut self,
        source: NotificationSource,
        snapshot: &PgSnapshot,
        at: StreamId,
    ) {
        self.states.insert(source, (snapshot.clone(), at));
    }

    /// What the whole state that a node last reported has seen, and its position.
    pub(super) fn state_of(&self, source: NotificationSource) -> Option<(&PgSnapshot, StreamId)> {
        let state = self.states.get(&source);
        state.map(|(snapshot, at)| (snapshot, *at))
    }

    /// A node has a new holder, which has not answered yet.
    pub(super) fn restarted(&mut self, source: NotificationSource, at: StreamId) {
        if let Some(answer) = self.by.get_mut(&source) {
            answer.until.get_or_insert(at);
        }
    }

    /// Whether the node's current holder has answered.
    pub(super) fn has(&self, source: NotificationSource) -> bool {
        let answer = self.by.get(&source);
        answer.is_some_and(|answer| answer.until.is_none() && answer.request >= self.request)
    }

    /// The position at which a node's report counts for the query, if it does: that it has read up
    /// to some point, or that it started with it. What it reported before its answer counts from
    /// that answer on.
    pub(super) fn position_of(
        &self,
        source: NotificationSource,
        at: StreamId,
        read: bool,
    ) -> Option<StreamId> {
        let answer = self.by.get(&source)?;
        let since = if read { answer.began } else { answer.since };
        let until = answer.until;
        let holds =
            answer.request >= self.request && since < at && until.is_none_or(|until| at < until);
        holds.then_some(at.max(answer.at))
    }
}
