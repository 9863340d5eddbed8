//! Answers at the moment that queries share: who asks the same within its second is told the same.
//!
//! A dashboard has many viewers, and each of them asks again and again. What a query is answered is
//! decided by the aggregate, the query, the period that it comes to, and the moment; of those the
//! moment changes once a second, however many events come. So what has been read and written once is
//! said again until there is another moment.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rillbase_aggregates::Period;
use rillbase_engine::Millis;

use crate::moments::{NamedSnapshot, SHARED};

/// So much is kept of all answers together.
const MOST_BYTES: usize = 16 << 20;

/// What decides an answer, but for the moment.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct AnswerKey {
    /// The aggregate's number, which no other ever has.
    pub(crate) aggregate: u64,
    pub(crate) query: Box<str>,
    /// What times that are relative to now come to.
    pub(crate) period: Period,
}

#[derive(Debug, Default)]
struct AnswerCacheState {
    /// Of which moment, by its number, and until when it is shared.
    moment: u64,
    until: Millis,
    known: HashMap<AnswerKey, Arc<str>>,
    bytes: usize,
}

/// The answers at the newest shared moment.
#[derive(Debug, Default)]
pub(crate) struct AnswerCache(Mutex<AnswerCacheState>);

impl AnswerCache {
    /// What a question was answered at a moment.
    pub(crate) fn find(&self, moment: &NamedSnapshot, question: &AnswerKey) -> Option<Arc<str>> {
        let state = self.0.lock();
        let is_of_moment = moment.is_shared() && state.moment == moment.number;
        state.known.get(question).filter(|_| is_of_moment).cloned()
    }

    /// Keeps an answer, if there is room, and no newer moment is shared by now.
    pub(crate) fn keep(&self, moment: &NamedSnapshot, question: AnswerKey, answer: &str) {
        let mut state = self.0.lock();
        if !moment.is_shared() || moment.number < state.moment {
            return;
        }
        if moment.number > state.moment {
            *state = AnswerCacheState {
                moment: moment.number,
                until: moment.snapshot.time().saturating_add(SHARED),
                ..AnswerCacheState::default()
            };
        }
        let bytes = state.bytes + answer.len() + question.query.len();
        if bytes <= MOST_BYTES {
            state.bytes = bytes;
            state.known.insert(question, answer.into());
        }
    }

    /// Forgets what nobody will share any more.
    pub(crate) fn expire(&self, now: Millis) {
        let mut state = self.0.lock();
        if state.until <= now && state.bytes > 0 {
            state.known = HashMap::new();
            state.bytes = 0;
        }
    }
}
