//! What is told of queries that nobody has registered here yet: the request may be behind the log.

use std::collections::{HashMap, VecDeque};

use crate::message::QueryHash;

use super::query::Step;

/// Steps by query, for a while.
#[derive(Debug)]
pub(super) struct Orphans {
    steps: HashMap<QueryHash, Vec<Step>>,
    since: VecDeque<(u64, QueryHash)>,
    count: usize,
    max: usize,
    kept_us: u64,
    /// Until when a query may be registered of which steps were dropped.
    dropped_until_us: u64,
    /// Lives of queries that a filter node called too old.
    too_old: HashMap<QueryHash, u64>,
}

impl Orphans {
    pub(super) fn new(max: usize, kept_us: u64) -> Self {
        Self {
            steps: HashMap::new(),
            since: VecDeque::new(),
            count: 0,
            max,
            kept_us,
            dropped_until_us: 0,
            too_old: HashMap::new(),
        }
    }

    pub(super) fn push(&mut self, query: QueryHash, step: Step, now_us: u64) {
        self.entry(query, now_us).push(step);
        self.count += 1;
        while self.count > self.max {
            self.dropped_until_us = now_us.saturating_add(self.kept_us);
            if self.drop_oldest().is_none() {
                return;
            }
        }
    }

    pub(super) fn too_old(&mut self, query: QueryHash, activation: u64, now_us: u64) {
        self.entry(query, now_us);
        self.too_old.insert(query, activation);
    }

    fn entry(&mut self, query: QueryHash, now_us: u64) -> &mut Vec<Step> {
        self.steps.entry(query).or_insert_with(|| {
            self.since.push_back((now_us, query));
            Vec::new()
        })
    }

    fn drop_oldest(&mut self) -> Option<()> {
        let (_, query) = self.since.pop_front()?;
        let steps = self.steps.remove(&query);
        self.too_old.remove(&query);
        self.count -= steps.map_or(0, |steps| steps.len());
        Some(())
    }

    /// What was told of a query in this life, and whether its rows can be believed: that is all, and
    /// no filter node called them too old.
    pub(super) fn adopt(
        &mut self,
        query: &QueryHash,
        activation: u64,
        now_us: u64,
    ) -> (Vec<Step>, bool) {
        let steps = self.steps.remove(query).unwrap_or_default();
        self.count -= steps.len();
        self.since.retain(|(_, other)| other != query);
        let too_old = self.too_old.remove(query) == Some(activation);
        (steps, now_us >= self.dropped_until_us && !too_old)
    }

    pub(super) fn forget(&mut self, now_us: u64) {
        while let Some((since_us, _)) = self.since.front()
            && since_us.saturating_add(self.kept_us) < now_us
        {
            self.drop_oldest();
        }
    }
}
