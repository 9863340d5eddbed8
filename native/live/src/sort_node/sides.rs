//! Reports about collections that queries look up, and the queries that use them.
//!
//! A side is shared, so its reports go to all queries that look it up. Some of them may not be
//! known here yet, because their requests are read later than the log; the reports are kept for
//! them for a while. A filter node that was rebuilt reports lower versions again; those below a
//! reported version are dropped.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use crate::message::{self, QueryDefinition, QueryHash};

use super::query_write::QueryWrite;

#[derive(Debug, Default)]
struct SharedSide {
    users: BTreeSet<QueryHash>,
    /// Recent reports.
    steps: VecDeque<(u64, QueryWrite)>,
    /// The highest reported versions, and when they were reported.
    reported: HashMap<Arc<[u8]>, (u64, u64)>,
    reported_since: VecDeque<(u64, Arc<[u8]>)>,
    /// The highest transaction of dropped steps, and until when it matters.
    dropped: (u64, u64),
}

/// See the module.
#[derive(Debug)]
pub(super) struct SharedSides {
    known: HashMap<QueryHash, SharedSide>,
    /// How many steps are kept of one side, and for how long.
    most: usize,
    kept_us: u64,
    remembered_us: u64,
}

impl SharedSides {
    pub(super) fn new(most: usize, kept_us: u64, remembered_us: u64) -> Self {
        Self {
            known: HashMap::new(),
            most,
            kept_us,
            remembered_us,
        }
    }

    /// Subscribes a query to its sides. Returns what was recently reported about them, and up to
    /// which transaction some of that is missing.
    pub(super) fn join(&mut self, query: &QueryDefinition, now_us: u64) -> (Vec<QueryWrite>, u64) {
        let (mut steps, mut below) = (Vec::new(), 0);
        for side in query.sides.iter() {
            let known = self.known.entry(side.hash).or_default();
            known.users.insert(query.hash);
            steps.extend(known.steps.iter().map(|(_, step)| step.clone()));
            if now_us < known.dropped.1 {
                below = below.max(known.dropped.0);
            }
        }
        (steps, below)
    }

    /// Removes an ended query.
    pub(super) fn leave(&mut self, query: &QueryHash, sides: &[message::LookupSide]) {
        for side in sides {
            if let Some(known) = self.known.get_mut(&side.hash) {
                known.users.remove(query);
                if known.users.is_empty() {
                    self.known.remove(&side.hash);
                }
            }
        }
    }

    /// The highest version of a document that was reported lately.
    pub(super) fn latest_version(&self, side: &QueryHash, key: &[u8]) -> Option<u64> {
        let reported = self.known.get(side)?.reported.get(key);
        reported.map(|(version, _)| *version)
    }

    /// Adds a step. Returns the queries that it concerns; `None` if it belongs to no side.
    pub(super) fn take(
        &mut self,
        hash: &QueryHash,
        step: &QueryWrite,
        now_us: u64,
    ) -> Option<Vec<QueryHash>> {
        let (most, kept_us, remembered_us) = (self.most, self.kept_us, self.remembered_us);
        let side = self.known.get_mut(hash)?;
        side.forget(now_us, kept_us, remembered_us);
        let image = &step.image;
        let reported = side.reported.get(&image.key);
        if reported.is_some_and(|(version, _)| *version > image.version) {
            return Some(Vec::new());
        }
        side.reported
            .insert(Arc::clone(&image.key), (image.version, now_us));
        side.reported_since
            .push_back((now_us, Arc::clone(&image.key)));
        side.steps.push_back((now_us, step.clone()));
        if side.steps.len() > most
            && let Some((_, step)) = side.steps.pop_front()
        {
            side.dropped.0 = side.dropped.0.max(step.image.xid);
            side.dropped.1 = now_us.saturating_add(kept_us);
        }
        Some(side.users.iter().copied().collect())
    }
}

impl SharedSide {
    fn forget(&mut self, now_us: u64, kept_us: u64, remembered_us: u64) {
        let old = |since_us: u64, for_us: u64| since_us.saturating_add(for_us) < now_us;
        while self
            .steps
            .front()
            .is_some_and(|(since_us, _)| old(*since_us, kept_us))
        {
            self.steps.pop_front();
        }
        while let Some((since_us, key)) = self.reported_since.front()
            && old(*since_us, remembered_us)
        {
            let last = self
                .reported
                .get(key)
                .is_some_and(|(_, last_us)| last_us == since_us);
            if last {
                self.reported.remove(key);
            }
            self.reported_since.pop_front();
        }
    }
}
