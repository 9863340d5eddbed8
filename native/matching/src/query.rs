//! One live query, and statistics on how well its predicate was chosen.

use crate::check::Check;
use crate::class::Class;
use crate::group::AccessPath;

/// The number of proposals after which their usefulness is checked.
const PROPOSALS: u16 = 32;
/// A query is reconsidered when fewer than one in this many proposals matched.
const MATCH_RATIO: u16 = 8;
/// The maximum number of times that the interval between reconsiderations doubles.
const MAX_DOUBLINGS: u8 = 9;

/// A live query.
#[derive(Debug)]
pub(crate) struct IndexedQuery {
    pub(crate) group: u32,
    /// The quota that it counts against, if it is residual.
    pub(crate) quota: u32,
    pub(crate) access: AccessPath,
    pub(crate) check: Check,
    pub(crate) class: Class,
    /// The expected share of documents for which it is proposed.
    pub(crate) selectivity: f32,
    pub(crate) trials: Trials,
}

/// How often a query was proposed, and how often it matched.
#[derive(Debug)]
pub(crate) struct Trials {
    /// The group's number of documents when counting began.
    since: u32,
    proposed: u16,
    matched: u16,
    /// How often it was reconsidered without a change.
    doublings: u8,
}

impl IndexedQuery {
    /// Its approximate size in bytes, besides the struct.
    pub(crate) fn memory(&self) -> usize {
        self.check.memory() + self.access.memory()
    }
}

impl Trials {
    /// Starts counting after `documents` documents.
    pub(crate) const fn since(documents: u32) -> Self {
        Self {
            since: documents,
            proposed: 0,
            matched: 0,
            doublings: 0,
        }
    }

    /// Counts a proposal; returns whether the query should be reconsidered.
    pub(crate) fn count(&mut self, matched: bool, documents: u32) -> bool {
        self.proposed += 1;
        self.matched += u16::from(matched);
        if self.proposed < PROPOSALS << self.doublings {
            return false;
        }
        let vain = self.matched < self.proposed / MATCH_RATIO;
        if !vain {
            self.restart(documents);
        }
        vain
    }

    /// The share of documents for which it was proposed.
    pub(crate) fn observed(&self, documents: u32) -> f64 {
        let passed = documents.wrapping_sub(self.since).max(1);
        (f64::from(self.proposed) / f64::from(passed)).min(1.0)
    }

    /// Restarts the count.
    pub(crate) const fn restart(&mut self, documents: u32) {
        (self.proposed, self.matched, self.since) = (0, 0, documents);
    }

    /// Doubles the interval until the next reconsideration, because this one changed nothing.
    pub(crate) fn double_interval(&mut self) {
        self.doublings = (self.doublings + 1).min(MAX_DOUBLINGS);
    }
}
