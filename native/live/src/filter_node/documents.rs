//! What a filter node remembers of documents: versions, and which queries they match.

use std::collections::VecDeque;
use std::sync::Arc;

use super::incremental_map::{DocumentId, IncrementalMap};
use super::queries::QueryHandle;

/// The maximum number of documents that one sweep examines.
const SWEEP: usize = 10_000;

/// A document that was written recently or that is in some query's result.
#[derive(Debug, Default)]
pub(super) struct TrackedDocument {
    /// The highest version whose after-image was handled; 0 if none was.
    pub(super) handled: u64,
    /// The queries whose results contain it, in ascending order. Some may have ended.
    pub(super) members: Vec<QueryHandle>,
    /// The lower versions that were seen: bit 0 is the one directly below `handled`.
    seen_below: u64,
    /// A version above `handled` was seen whose content is unknown.
    pub(super) has_unknown_above: bool,
    /// A version below `handled` was seen whose content is unknown.
    pub(super) has_unknown_below: bool,
    touched_us: u64,
}

impl TrackedDocument {
    /// Advances to a higher version.
    pub(super) fn advance(&mut self, version: u64) {
        let distance = version.saturating_sub(self.handled);
        let shift = u32::try_from(distance).unwrap_or(u32::MAX);
        self.seen_below = self.seen_below.checked_shl(shift).unwrap_or(0);
        if self.handled > 0 {
            self.seen_below |= 1_u64.checked_shl(shift.saturating_sub(1)).unwrap_or(0);
        }
        self.handled = version;
    }

    /// Records a version below the handled one. Returns whether it was seen for the first time, as
    /// far as that is remembered.
    pub(super) fn record_lower_version(&mut self, version: u64) -> bool {
        let below = self.handled.checked_sub(version + 1);
        let below = below.and_then(|below| u32::try_from(below).ok());
        let Some(bit) = below.and_then(|below| 1_u64.checked_shl(below)) else {
            return false;
        };
        let first = self.seen_below & bit == 0;
        self.seen_below |= bit;
        first
    }

    /// Whether a query's result contains it.
    pub(super) fn has(&self, member: QueryHandle) -> bool {
        let index = self.members.binary_search_by_key(&member.id, |m| m.id);
        index.is_ok_and(|index| self.members.get(index) == Some(&member))
    }

    /// Records that a query's result contains it. Returns whether it already did.
    pub(super) fn join(&mut self, member: QueryHandle) -> bool {
        match self.members.binary_search_by_key(&member.id, |m| m.id) {
            Ok(index) => match self.members.get_mut(index) {
                Some(held) => std::mem::replace(held, member) == member,
                None => false,
            },
            Err(index) => {
                self.members.insert(index, member);
                false
            }
        }
    }

    /// Records that a query's result does not contain it. Returns whether it did before.
    pub(super) fn leave(&mut self, member: QueryHandle) -> bool {
        match self.members.binary_search_by_key(&member.id, |m| m.id) {
            Ok(index) => self.members.remove(index) == member,
            Err(_) => false,
        }
    }
}

/// All remembered documents, by collection and key.
#[derive(Debug)]
pub(super) struct TrackedDocuments {
    known: IncrementalMap<TrackedDocument>,
    /// When to check whether a document may be forgotten. Each document is here once.
    due: VecDeque<(u64, DocumentId)>,
    remembered_us: u64,
}

impl TrackedDocuments {
    pub(super) fn new(remembered_us: u64) -> Self {
        Self {
            known: IncrementalMap::default(),
            due: VecDeque::new(),
            remembered_us,
        }
    }

    /// Returns the document and remembers it from now on.
    pub(super) fn touch(
        &mut self,
        collection: [u8; 16],
        key: &Arc<[u8]>,
        now_us: u64,
    ) -> &mut TrackedDocument {
        let name = self.known.name(collection, key);
        let known = self.known.get_or_insert_with(name.clone(), || {
            let due_us = now_us.saturating_add(self.remembered_us);
            self.due.push_back((due_us, name));
            TrackedDocument::default()
        });
        known.touched_us = now_us;
        known
    }

    /// The document, if it is remembered.
    pub(super) fn get_mut(
        &mut self,
        collection: &[u8; 16],
        key: &Arc<[u8]>,
    ) -> Option<&mut TrackedDocument> {
        let name = self.known.name(*collection, key);
        self.known.get_mut(&name)
    }

    /// Forgets documents that have not been written for a while and are in no result.
    pub(super) fn sweep(&mut self, now_us: u64, is_alive: impl Fn(QueryHandle) -> bool) {
        for _ in 0..SWEEP {
            match self.due.pop_front() {
                Some((due_us, name)) if due_us <= now_us => self.sweep_one(now_us, name, &is_alive),
                Some(later) => return self.due.push_front(later),
                None => return,
            }
        }
    }

    fn sweep_one(
        &mut self,
        now_us: u64,
        name: DocumentId,
        is_alive: &impl Fn(QueryHandle) -> bool,
    ) {
        let Some(known) = self.known.get_mut(&name) else {
            return;
        };
        known.members.retain(|member| is_alive(*member));
        let until_us = known.touched_us.saturating_add(self.remembered_us);
        if until_us > now_us || !known.members.is_empty() {
            let again_us = until_us.max(now_us.saturating_add(1));
            let again_us = if known.members.is_empty() {
                again_us
            } else {
                now_us.saturating_add(self.remembered_us)
            };
            self.due.push_back((again_us, name));
            return;
        }
        self.known.remove(&name);
    }

    pub(super) fn len(&self) -> usize {
        self.due.len()
    }
}
