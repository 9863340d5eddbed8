//! One live query, and whether its predicate is well chosen.

use crate::check::Check;
use crate::group::AccessPath;
use crate::placement::Class;

/// The number of proposals after which their usefulness is checked.
const PROPOSALS: u16 = 32;
/// Proposals are in vain when fewer than one of this many matched.
const VAIN: u16 = 8;
/// Most times that the patience with a query doubles.
const PATIENCE: u8 = 9;

/// A live query.
#[derive(Debug)]
pub(crate) struct IndexedQuery {
    pub(crate) group: u32,
    /// Whose quota it counts against; only residual queries do.
    pub(crate) quota: u32,
    pub(crate) access: AccessPath,
    pub(crate) check: Check,
    pub(crate) class: Class,
    /// Expected, as a share of the documents.
    pub(crate) selectivity: f32,
    pub(crate) trials: Trials,
}

/// How often a query was proposed, and in vain.
#[derive(Debug)]
pub(crate) struct Trials {
    /// The group's number of documents when counting began.
    since: u32,
    proposed: u16,
    matched: u16,
    /// How often it was reconsidered for nothing.
    patience: u8,
}

impl IndexedQuery {
    /// Its approximate size in bytes, besides the struct.
    pub(crate) fn memory(&self) -> usize {
        self.check.memory() + self.access.memory()
    }
}

impl Trials {
    /// None so far, after `documents` documents.
    pub(crate) const fn since(documents: u32) -> Self {
        Self {
            since: documents,
            proposed: 0,
            matched: 0,
            patience: 0,
        }
    }

    /// Counts a proposal; whether it is time to reconsider.
    pub(crate) fn count(&mut self, matched: bool, documents: u32) -> bool {
        self.proposed += 1;
        self.matched += u16::from(matched);
        if self.proposed < PROPOSALS << self.patience {
            return false;
        }
        let vain = self.matched < self.proposed / VAIN;
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

    /// It was reconsidered for nothing: the next time comes later.
    pub(crate) fn be_patient(&mut self) {
        self.patience = (self.patience + 1).min(PATIENCE);
    }
}
