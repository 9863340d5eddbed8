//! A cache of query results at the shared snapshot: identical queries within the same second get
//! the same result.
//!
//! A dashboard has many viewers, and each repeats its queries. The result depends on the aggregate,
//! the query, its period and the snapshot; of those only the snapshot changes, once a second,
//! however many events arrive. So a result is reused until there is a newer shared snapshot.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rillbase_aggregates::Period;
use rillbase_engine::Millis;

use crate::snapshots::{NamedSnapshot, SHARING_PERIOD};

/// The maximum bytes of all cached results.
const MAX_BYTES: usize = 16 << 20;

/// What determines a result, besides the snapshot.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct AnswerKey {
    /// The aggregate's number, which is never reused.
    pub(crate) aggregate: u64,
    pub(crate) query: Box<str>,
    /// The period, with relative times resolved.
    pub(crate) period: Period,
}

#[derive(Debug, Default)]
struct AnswerCacheState {
    /// The sequence of the snapshot, and the time until which it is shared.
    moment: u64,
    until: Millis,
    known: HashMap<AnswerKey, Arc<str>>,
    bytes: usize,
}

/// The results at the newest shared snapshot.
#[derive(Debug, Default)]
pub(crate) struct AnswerCache(Mutex<AnswerCacheState>);

impl AnswerCache {
    /// The result of a query at a snapshot.
    pub(crate) fn find(&self, moment: &NamedSnapshot, key: &AnswerKey) -> Option<Arc<str>> {
        let state = self.0.lock();
        let is_of_moment = moment.is_shared() && state.moment == moment.number;
        state.known.get(key).filter(|_| is_of_moment).cloned()
    }

    /// Caches a result, if there is room and no newer snapshot is shared.
    pub(crate) fn keep(&self, moment: &NamedSnapshot, key: AnswerKey, answer: &str) {
        let mut state = self.0.lock();
        if !moment.is_shared() || moment.number < state.moment {
            return;
        }
        if moment.number > state.moment {
            *state = AnswerCacheState {
                moment: moment.number,
                until: moment.snapshot.time().saturating_add(SHARING_PERIOD),
                ..AnswerCacheState::default()
            };
        }
        let bytes = state.bytes + answer.len() + key.query.len();
        if bytes <= MAX_BYTES {
            state.bytes = bytes;
            state.known.insert(key, answer.into());
        }
    }

    /// Removes results that can no longer be shared.
    pub(crate) fn expire(&self, now: Millis) {
        let mut state = self.0.lock();
        if state.until <= now && state.bytes > 0 {
            state.known = HashMap::new();
            state.bytes = 0;
        }
    }
}
