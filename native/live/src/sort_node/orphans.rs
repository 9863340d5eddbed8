//! Reports about queries that are not registered here yet: the request may be behind the log.

use std::collections::{HashMap, VecDeque};

use crate::message::QueryHash;

use super::answers::FilterAnswers;
use super::query::OrphanHistory;
use super::query_write::QueryWrite;

/// What is kept for the registration of a query.
#[derive(Debug, Default)]
pub(super) struct Orphan {
    pub(super) steps: Vec<QueryWrite>,
    pub(super) history: OrphanHistory,
    answers: FilterAnswers,
    /// The activation for which the filter nodes answered.
    activation: u64,
}

impl Orphan {
    /// The answers of an activation.
    pub(super) fn answers(&mut self, activation: u64) -> FilterAnswers {
        let answers = std::mem::take(&mut self.answers);
        if self.activation == activation {
            answers
        } else {
            FilterAnswers::default()
        }
    }
}

/// See the module: by query, for a while.
#[derive(Debug)]
pub(super) struct Orphans {
    waiting: HashMap<QueryHash, Orphan>,
    since: VecDeque<(u64, QueryHash)>,
    count: usize,
    max: usize,
    kept_us: u64,
    /// Until when a query may be registered whose steps were dropped, and the highest of their
    /// transactions.
    dropped: (u64, u64),
}

impl Orphans {
    pub(super) fn new(max: usize, kept_us: u64) -> Self {
        Self {
            waiting: HashMap::new(),
            since: VecDeque::new(),
            count: 0,
            max,
            kept_us,
            dropped: (0, 0),
        }
    }

    pub(super) fn push(&mut self, query: QueryHash, step: QueryWrite, now_us: u64) {
        self.entry(query, now_us).steps.push(step);
        self.count += 1;
        while self.count > self.max {
            let Some(orphan) = self.drop_oldest() else {
                return;
            };
            let xids = orphan.steps.iter().map(|step| step.image.xid);
            self.dropped.0 = now_us.saturating_add(self.kept_us);
            self.dropped.1 = xids.fold(self.dropped.1, u64::max);
        }
    }

    /// A filter node has answered a request that was not read here yet.
    pub(super) fn answered(
        &mut self,
        (query, activation): (QueryHash, u64),
        now_us: u64,
        note: impl FnOnce(&mut FilterAnswers),
    ) {
        let orphan = self.entry(query, now_us);
        if orphan.activation < activation {
            orphan.activation = activation;
            orphan.answers = FilterAnswers::default();
        }
        if orphan.activation == activation {
            note(&mut orphan.answers);
        }
    }

    /// An activation of a query has ended here. Filter nodes may be in the next one already.
    pub(super) fn record_ended(&mut self, query: QueryHash, history: OrphanHistory, now_us: u64) {
        self.entry(query, now_us).history = history;
    }

    pub(super) fn restarted(&mut self, partition: u16) {
        for orphan in self.waiting.values_mut() {
            orphan.answers.restarted(partition);
        }
    }

    fn entry(&mut self, query: QueryHash, now_us: u64) -> &mut Orphan {
        self.waiting.entry(query).or_insert_with(|| {
            self.since.push_back((now_us, query));
            Orphan::default()
        })
    }

    fn drop_oldest(&mut self) -> Option<Orphan> {
        let (_, query) = self.since.pop_front()?;
        let orphan = self.waiting.remove(&query).unwrap_or_default();
        self.count -= orphan.steps.len();
        Some(orphan)
    }

    /// Takes what was kept for a query.
    pub(super) fn adopt(&mut self, query: &QueryHash, now_us: u64) -> Orphan {
        let mut orphan = self.waiting.remove(query).unwrap_or_default();
        self.count -= orphan.steps.len();
        self.since.retain(|(_, other)| other != query);
        if now_us < self.dropped.0 {
            orphan.history.below = orphan.history.below.max(self.dropped.1);
        }
        orphan
    }

    pub(super) fn forget(&mut self, now_us: u64) {
        while let Some((since_us, _)) = self.since.front()
            && since_us.saturating_add(self.kept_us) < now_us
        {
            self.drop_oldest();
        }
    }
}
