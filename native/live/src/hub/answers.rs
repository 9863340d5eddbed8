//! What the nodes of a query answered to its registration, and what their words are worth for it.
//!
//! A node that has not answered goes on from others' rows, from those of an earlier registration, or
//! from none: with its answer it may tell more of what it was done with before. So what it says of a
//! batch, or of how far it has come, is said of this query only if it has answered the request that
//! its rows came with: until then nobody knows, and once it has, whatever it had read is told. What
//! it began with is another thing. It does not tell that to those who register later, whose rows may
//! lack it; to those of before it has told its whole state, which says of itself whatever its
//! snapshot sees.

use std::collections::HashMap;

use crate::message::{NotificationSource, StreamId};
use crate::snapshot::PgSnapshot;

#[derive(Debug)]
struct RegistrationAnswer {
    /// The last request that it answers, and those before it.
    request: StreamId,
    /// Where it answered the one that the rows came with, if it has.
    at: StreamId,
    /// Where it began.
    began: StreamId,
    /// Where it answered the first registration, or has since it began.
    since: StreamId,
    /// Where the next holder of its place began.
    until: Option<StreamId>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct RegistrationAnswers {
    /// The request that registered the query last, with the rows that it goes on from.
    request: StreamId,
    by: HashMap<NotificationSource, RegistrationAnswer>,
    /// What a node's whole state of the query has seen, and where that was told.
    states: HashMap<NotificationSource, (PgSnapshot, StreamId)>,
}

impl RegistrationAnswers {
    /// Other rows count from here on: of a new life, or of the same.
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

    /// A node that began at `began` watches the query from `at` on, for all requests up to this one.
    pub(super) fn answered(
        &mut self,
        source: NotificationSource,
        request: StreamId,
        (began, at): (StreamId, StreamId),
    ) {
        // Somebody else holds its place by now.
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

    /// What the whole state that a node told last has seen, and where.
    pub(super) fn state_of(&self, source: NotificationSource) -> Option<(&PgSnapshot, StreamId)> {
        let state = self.states.get(&source);
        state.map(|(snapshot, at)| (snapshot, *at))
    }

    /// A node has a new holder, who has answered nothing.
    pub(super) fn restarted(&mut self, source: NotificationSource, at: StreamId) {
        if let Some(answer) = self.by.get_mut(&source) {
            answer.until.get_or_insert(at);
        }
    }

    /// Whether who is a node now has answered.
    pub(super) fn has(&self, source: NotificationSource) -> bool {
        let answer = self.by.get(&source);
        answer.is_some_and(|answer| answer.until.is_none() && answer.request >= self.request)
    }

    /// Where what a node says at a place of the log is said of the query, if it is: that it has read
    /// so much, or that it began with so much. What it said before its answer is said with that.
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
