//! Recently written keys, for detecting conflicts of open transactions.

use std::collections::{BTreeMap, HashMap};

use crate::db::batch::Logged;
use crate::key::hash;
use crate::key::{EntryKind, Sequence};
use crate::wal::WalVersion;

/// The number of keys beyond which those are forgotten that no open transaction needs.
const PRUNE_AT: usize = 1 << 16;

#[derive(Debug)]
struct WrittenRange {
    keyspace: u64,
    start: Vec<u8>,
    end: Vec<u8>,
    sequence: Sequence,
}

/// Writes since the oldest open transaction started. Empty while none is open.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    /// The sequences at which open transactions started, with their numbers.
    open: BTreeMap<Sequence, usize>,
    /// The newest write of each key, by keyspace and hash. Two keys with one hash may cause a false
    /// conflict, but no conflict is missed.
    keys: HashMap<(u64, u64), Sequence>,
    ranges: Vec<WrittenRange>,
    prune_at: usize,
}

impl Recent {
    pub(crate) fn begin(&mut self, at: Sequence) {
        *self.open.entry(at).or_default() += 1;
        self.prune_at = self.prune_at.max(PRUNE_AT);
    }

    pub(crate) fn end(&mut self, at: Sequence) {
        if let Some(count) = self.open.get_mut(&at) {
            *count -= 1;
            if *count == 0 {
                self.open.remove(&at);
            }
        }
        if self.open.is_empty() {
            *self = Self::default();
        }
    }

    /// Records the keys of a logged batch whose last sequence is `last`.
    #[inline]
    pub(crate) fn note(&mut self, record: &[u8], last: Sequence) {
        if !self.open.is_empty() {
            self.note_keys(record, last);
        }
    }

    fn note_keys(&mut self, record: &[u8], last: Sequence) {
        let Ok(logged) = Logged::parse(record, WalVersion::NEWEST) else {
            return;
        };
        for entry in logged.entries().flatten() {
            if entry.kind == EntryKind::RangeDelete {
                self.ranges.push(WrittenRange {
                    keyspace: entry.keyspace,
                    start: entry.key.to_vec(),
                    end: entry.value.to_vec(),
                    sequence: last,
                });
            } else {
                self.keys.insert((entry.keyspace, hash(entry.key)), last);
            }
        }
        if self.keys.len() > self.prune_at {
            let oldest = self.open.keys().next().copied().unwrap_or(last);
            self.keys.retain(|_, sequence| *sequence > oldest);
            self.ranges.retain(|range| range.sequence > oldest);
            self.prune_at = (2 * self.keys.len()).max(PRUNE_AT);
        }
    }

    /// Whether a key was written after `since`, which is not before the start of some open
    /// transaction.
    pub(crate) fn wrote(&self, keyspace: u64, key: &[u8], since: Sequence) -> bool {
        let key_written = self
            .keys
            .get(&(keyspace, hash(key)))
            .is_some_and(|&at| at > since);
        key_written
            || self.ranges.iter().any(|range| {
                range.keyspace == keyspace
                    && range.sequence > since
                    && range.start.as_slice() <= key
                    && key < range.end.as_slice()
            })
    }
}
