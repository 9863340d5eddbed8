//! What is folded, kept and dropped: the common rules of flushes and compactions.
//!
//! Snapshots divide history into stripes: two entries are in the same stripe if no snapshot is
//! between them. For each key, from the newest entry to the oldest:
//!
//! - After a put or delete, or under a range delete, everything of the same stripe is dropped.
//! - Operands are folded only with neighbours of the same stripe; into a put or delete below them,
//!   or into nothing if nothing older can be below. If the merge is unknown they stay, with what
//!   they would have been folded into.
//! - A delete is dropped if it is in the oldest stripe and nothing older can be below; so is a
//!   value that is nothing according to the merge.
//! - What has expired at the oldest snapshot's time: by key, it is dropped, since all versions of
//!   the key have expired; by entry, a put becomes a delete, and is treated as one. So dropping
//!   never revives an older entry.
//! - If keys determine their own expiry, all versions of an expired key are dropped.
//! - Sequences do not change.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::horizon::Horizon;
use crate::key::{EntryKind, Sequence, Tag, split_expiry};
use crate::lifetime::Lifetime;
use crate::merge::Merge;
use crate::options::{Expiry, KeyspaceOptions};
use crate::range_delete::{RangeDelete, RangeDeletes};

/// The number of operands of one key that are folded before the next are read.
const MAX_OPERANDS: usize = 512;

/// Receives the entries that are kept.
pub(crate) trait EntrySink {
    /// Keeps an entry; they come in order.
    fn keep(&mut self, key: &[u8], tag: Tag, value: &[u8]) -> Result<()>;
}

/// Applies the rules to entries that come in order.
pub(crate) struct CompactionRules<'a> {
    pub(crate) merge: Option<Arc<dyn Merge>>,
    pub(crate) expiry: Expiry,
    pub(crate) horizon: &'a Horizon,
    pub(crate) ranges: &'a RangeDeletes,
    /// Whether nothing older than the inputs can lie below a key.
    pub(crate) is_bottom: &'a dyn Fn(&[u8]) -> bool,
    key: Vec<u8>,
    begun: bool,
    /// Whether deletes describe what they delete.
    has_zones: bool,
    lifetime: Option<Arc<dyn Lifetime>>,
    /// All versions of the key have expired.
    is_gone: bool,
    /// The stripe in which a newer entry hides the following ones.
    hidden: Option<usize>,
    operands: Vec<(Tag, Vec<u8>)>,
    operands_stripe: usize,
}

impl<'a> CompactionRules<'a> {
    pub(crate) fn new(
        options: &KeyspaceOptions,
        horizon: &'a Horizon,
        ranges: &'a RangeDeletes,
        is_bottom: &'a dyn Fn(&[u8]) -> bool,
    ) -> Self {
        Self {
            merge: options.merge.clone(),
            expiry: options.expiry,
            horizon,
            ranges,
            is_bottom,
            key: Vec::new(),
            begun: false,
            has_zones: options.extractor.is_some(),
            lifetime: options.lifetime.clone(),
            is_gone: false,
            hidden: None,
            operands: Vec::new(),
            operands_stripe: 0,
        }
    }

    /// Processes an entry.
    pub(crate) fn take(
        &mut self,
        key: &[u8],
        tag: Tag,
        value: &[u8],
        keep: &mut dyn EntrySink,
    ) -> Result<()> {
        if !self.begun || self.key != key {
            self.end_key(keep)?;
            self.key.clear();
            self.key.extend_from_slice(key);
            self.begun = true;
            self.hidden = None;
            let lifetime = self.lifetime.as_ref();
            let expiry = lifetime.and_then(|lifetime| lifetime.expiry(key));
            self.is_gone = expiry.is_some_and(|at| at <= self.horizon.time);
        }
        if self.is_gone {
            return Ok(());
        }
        let stripe = self.horizon.stripe(tag.sequence());
        if self.hidden == Some(stripe) {
            return Ok(());
        }
        if !self.operands.is_empty() && self.operands_stripe != stripe {
            self.keep_operands(keep)?;
        }
        if self.is_covered(tag.sequence(), stripe) {
            return self.end_stripe(stripe, tag, None, keep);
        }
        match tag.kind() {
            Some(EntryKind::Merge) => self.take_operand(tag, value, stripe, keep),
            Some(EntryKind::Put) => {
                self.end_stripe(stripe, tag, Some((EntryKind::Put, value)), keep)
            }
            Some(kind @ EntryKind::PutExpiring) => {
                let split = split_expiry(kind, value).ok_or_else(malformed)?;
                if split.0.is_some_and(|at| at <= self.horizon.time) {
                    self.take_expired(tag, stripe, split.1, keep)
                } else {
                    self.end_stripe(stripe, tag, Some((kind, value)), keep)
                }
            }
            Some(EntryKind::Delete) => {
                self.take_delete(tag, stripe, (EntryKind::Delete, &[]), keep)
            }
            Some(kind @ EntryKind::DeleteWith) => {
                self.take_delete(tag, stripe, (kind, value), keep)
            }
            Some(EntryKind::RangeDelete) | None => Err(malformed()),
        }
    }

    /// Ends the input.
    pub(crate) fn finish(&mut self, keep: &mut dyn EntrySink) -> Result<()> {
        self.end_key(keep)
    }

    /// Whether a range delete of the same stripe hides an entry.
    fn is_covered(&self, sequence: Sequence, stripe: usize) -> bool {
        if self.ranges.is_empty() {
            return false;
        }
        let seen = self
            .horizon
            .sequences
            .get(stripe)
            .copied()
            .unwrap_or(Sequence::MAX);
        self.ranges.covering(&self.key, seen) >= sequence
    }

    fn take_operand(
        &mut self,
        tag: Tag,
        value: &[u8],
        stripe: usize,
        keep: &mut dyn EntrySink,
    ) -> Result<()> {
        self.operands.push((tag, value.to_vec()));
        self.operands_stripe = stripe;
        if self.operands.len() >= MAX_OPERANDS {
            self.fold_partially();
            if self.operands.len() >= MAX_OPERANDS {
                // Operands that cannot be folded together are kept as they are.
                self.keep_operands(keep)?;
            }
        }
        Ok(())
    }

    /// Replaces operands by one equivalent operand, if there is one.
    fn fold_partially(&mut self) {
        let Some(merge) = self.merge.as_deref() else {
            return;
        };
        let [(newest, _), _, ..] = self.operands.as_slice() else {
            return;
        };
        let newest = *newest;
        if let Some(one) = merge.partial(&self.key, &oldest_first(&self.operands)) {
            self.operands = vec![(newest, one)];
        }
    }

    fn keep_operands(&mut self, keep: &mut dyn EntrySink) -> Result<()> {
        self.fold_partially();
        for (tag, operand) in self.operands.drain(..) {
            keep.keep(&self.key, tag, &operand)?;
        }
        Ok(())
    }

    /// An entry hides all older ones of its stripe: it has a value, or it is a delete that need not
    /// be kept itself.
    fn end_stripe(
        &mut self,
        stripe: usize,
        tag: Tag,
        value: Option<(EntryKind, &[u8])>,
        keep: &mut dyn EntrySink,
    ) -> Result<()> {
        self.hidden = Some(stripe);
        let is_last = stripe == 0 && (self.is_bottom)(&self.key);
        if self.keep_folded(value, is_last, keep)? {
            return Ok(());
        }
        let merge = self.merge.as_deref();
        match value {
            Some((EntryKind::Put, value))
                if is_last && merge.is_some_and(|m| m.is_nothing(value)) =>
            {
                Ok(())
            }
            Some((_, value)) => keep.keep(&self.key, tag, value),
            None => Ok(()),
        }
    }

    /// Folds all operands into the value below them. Returns whether there were any and their merge
    /// is known: otherwise the value below must still be kept. `is_last`: no older entry of the key
    /// stays, so that a value that is nothing need not be kept.
    fn keep_folded(
        &mut self,
        below: Option<(EntryKind, &[u8])>,
        is_last: bool,
        keep: &mut dyn EntrySink,
    ) -> Result<bool> {
        let Some(merge) = self.merge.as_deref() else {
            self.keep_operands(keep)?;
            return Ok(false);
        };
        let Some((newest, _)) = self.operands.first() else {
            return Ok(false);
        };
        let operands = oldest_first(&self.operands);
        let sequence = newest.sequence();
        match below {
            Some((kind @ EntryKind::PutExpiring, value)) => {
                let (_, bare) = split_expiry(kind, value).ok_or_else(malformed)?;
                let mut folded = value
                    .get(..crate::key::EXPIRY_BYTES)
                    .unwrap_or_default()
                    .to_vec();
                folded.extend_from_slice(&merge.full(&self.key, Some(bare), &operands));
                keep.keep(&self.key, Tag::new(sequence, kind), &folded)?;
            }
            below => {
                let folded = merge.full(&self.key, below.map(|(_, value)| value), &operands);
                if !(is_last && merge.is_nothing(&folded)) {
                    keep.keep(&self.key, Tag::new(sequence, EntryKind::Put), &folded)?;
                }
            }
        }
        self.operands.clear();
        Ok(true)
    }

    fn take_delete(
        &mut self,
        tag: Tag,
        stripe: usize,
        (kind, about): (EntryKind, &[u8]),
        keep: &mut dyn EntrySink,
    ) -> Result<()> {
        self.hidden = Some(stripe);
        let is_last = stripe == 0 && (self.is_bottom)(&self.key);
        if self.keep_folded(None, is_last, keep)? || is_last {
            return Ok(());
        }
        keep.keep(&self.key, Tag::new(tag.sequence(), kind), about)
    }

    /// An expired put leaves a delete with the same zone.
    fn take_expired(
        &mut self,
        tag: Tag,
        stripe: usize,
        value: &[u8],
        keep: &mut dyn EntrySink,
    ) -> Result<()> {
        match self.expiry {
            Expiry::ByKey => self.end_stripe(stripe, tag, None, keep),
            Expiry::ByEntry if self.has_zones => {
                self.take_delete(tag, stripe, (EntryKind::DeleteWith, value), keep)
            }
            Expiry::ByEntry => self.take_delete(tag, stripe, (EntryKind::Delete, &[]), keep),
        }
    }

    fn end_key(&mut self, keep: &mut dyn EntrySink) -> Result<()> {
        if self.operands.is_empty() {
            return Ok(());
        }
        if (self.is_bottom)(&self.key) && self.keep_folded(None, true, keep)? {
            return Ok(());
        }
        self.keep_operands(keep)
    }
}

fn oldest_first(operands: &[(Tag, Vec<u8>)]) -> Vec<&[u8]> {
    operands
        .iter()
        .rev()
        .map(|(_, operand)| operand.as_slice())
        .collect()
}

fn malformed() -> Error {
    Error::InvalidArgument {
        what: "an entry is malformed although its checksum matches".into(),
    }
}

/// The range deletes that are kept: the newest of each stripe, except those below which nothing
/// older can be. Ordered by start, then newest first.
pub(crate) fn kept_ranges(
    ranges: &RangeDeletes,
    horizon: &Horizon,
    is_bottom: &dyn Fn(&[u8], &[u8]) -> bool,
) -> Vec<RangeDelete> {
    let mut kept = Vec::new();
    for (start, end, sequences) in ranges.iter() {
        let mut last = None;
        for &sequence in sequences {
            let stripe = horizon.stripe(sequence);
            if last == Some(stripe) {
                continue;
            }
            last = Some(stripe);
            if stripe > 0 || !is_bottom(start, end) {
                kept.push(RangeDelete {
                    start: start.to_vec(),
                    end: end.to_vec(),
                    sequence,
                });
            }
        }
    }
    kept
}
