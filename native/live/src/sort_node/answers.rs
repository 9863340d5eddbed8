//! What the filter nodes answered to requests for one query.
//!
//! Rows count only when every filter node continues from them: a node that has not read the request
//! yet, or calls it too old, does not report what happened between its own start and those rows.

use std::collections::BTreeMap;

use crate::message::StreamId;

#[derive(Debug, Default, Clone, Copy)]
struct FilterAnswer {
    /// The request with which it started to watch; `None` if it is not known to watch.
    since: Option<StreamId>,
    /// The last request that it accepted.
    active: StreamId,
    /// The last request that it called too old.
    too_old: StreamId,
}

/// What the filter nodes answered to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestVerdict {
    /// Not all of them have answered it.
    Open,
    /// One called it, or a later one, too old.
    TooOld,
    Accepted,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct FilterAnswers(BTreeMap<u16, FilterAnswer>);

impl FilterAnswers {
    pub(super) fn accepted(&mut self, partition: u16, request: StreamId) {
        let answer = self.0.entry(partition).or_default();
        answer.since.get_or_insert(request);
        answer.active = answer.active.max(request);
    }

    pub(super) fn refused(&mut self, partition: u16, request: StreamId) {
        let answer = self.0.entry(partition).or_default();
        answer.since = None;
        answer.too_old = answer.too_old.max(request);
    }

    /// A filter node has a new holder, which has not answered yet.
    pub(super) fn restarted(&mut self, partition: u16) {
        self.0.remove(&partition);
    }

    pub(super) fn of(&self, request: StreamId, partitions: u16) -> RequestVerdict {
        let answers = || (0..partitions).map(|partition| self.0.get(&partition));
        if answers().flatten().any(|answer| answer.too_old >= request) {
            RequestVerdict::TooOld
        } else if answers().all(|answer| answer.is_some_and(|answer| answer.active >= request)) {
            RequestVerdict::Accepted
        } else {
            RequestVerdict::Open
        }
    }

    /// Whether all filter nodes are known to have watched since requests up to `read`.
    pub(super) fn all_watch(&self, partitions: u16, read: StreamId) -> bool {
        (0..partitions).all(|partition| {
            let since = self.0.get(&partition).and_then(|answer| answer.since);
            since.is_some_and(|since| since <= read)
        })
    }
}
