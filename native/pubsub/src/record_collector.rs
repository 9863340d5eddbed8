//! Collecting the records found by a lookup.

use std::collections::HashSet;

use rillbase_engine::Sequence;

use crate::error::Result;
use crate::keys::{PUBLICATIONS, SUBSCRIPTIONS};
use crate::lookup::ListEntry;
use crate::place::{Ids, TopicExtent};
use crate::record::{self, PublicationRecord, StoredRecord, SubscriptionRecord, TimedRecord};
use crate::store::StoreAnswer;

/// Records before an operation, each kept once, however many of its cells matched.
pub(crate) struct RecordCollector<'a> {
    before: Sequence,
    /// The extent that all of them match.
    around: (&'a TopicExtent, Ids),
    keep_publication: &'a dyn Fn(&StoredRecord<PublicationRecord>) -> bool,
    keep_subscription: &'a dyn Fn(&StoredRecord<SubscriptionRecord>) -> bool,
    several: HashSet<(u8, Sequence)>,
    publications: Vec<StoredRecord<PublicationRecord>>,
    subscriptions: Vec<StoredRecord<SubscriptionRecord>>,
}

impl<'a> RecordCollector<'a> {
    pub(crate) fn new(
        (before, around): (Sequence, (&'a TopicExtent, Ids)),
        keep_publication: &'a dyn Fn(&StoredRecord<PublicationRecord>) -> bool,
        keep_subscription: &'a dyn Fn(&StoredRecord<SubscriptionRecord>) -> bool,
    ) -> Self {
        Self {
            before,
            around,
            keep_publication,
            keep_subscription,
            several: HashSet::new(),
            publications: Vec::new(),
            subscriptions: Vec::new(),
        }
    }

    pub(crate) fn take(&mut self, entry: ListEntry<'_>) -> Result<()> {
        match entry.kind {
            PUBLICATIONS => {
                let record = self
                    .read(entry)?
                    .filter(|record| (self.keep_publication)(record));
                self.publications.extend(record);
            }
            SUBSCRIPTIONS => {
                let record = self
                    .read(entry)?
                    .filter(|record| (self.keep_subscription)(record));
                self.subscriptions.extend(record);
            }
            _ => {}
        }
        Ok(())
    }

    /// The record of an entry, unless it is later, a duplicate, or outside the extent.
    fn read<T: TimedRecord>(&mut self, entry: ListEntry<'_>) -> Result<Option<StoredRecord<T>>> {
        let opened = record::open(entry.value, entry.sequence)?;
        let mut is_new = || self.several.insert((entry.kind, opened.sequence));
        if opened.sequence >= self.before || opened.has_several && !is_new() {
            return Ok(None);
        }
        let (extent, ids) = self.around;
        opened.read((entry.id, entry.time), |other| other.matches(extent, ids))
    }

    /// The collected records, in the order of their arrival.
    pub(crate) fn finish(mut self) -> StoreAnswer {
        self.publications
            .sort_unstable_by_key(|record| record.sequence);
        self.subscriptions
            .sort_unstable_by_key(|record| record.sequence);
        StoreAnswer {
            publications: self.publications,
            subscriptions: self.subscriptions,
            ..StoreAnswer::default()
        }
    }
}
