//! Collecting what a look comes to.

use std::collections::HashSet;

use rillbase_engine::Sequence;

use crate::error::{Error, Result};
use crate::keys::{PUBLICATIONS, SUBSCRIPTIONS};
use crate::look::Entry;
use crate::record::{self, Publication, Record, Stored, Subscription};
use crate::store::Answer;

/// Records before an operation that are kept, each once, however many of its cells were met.
pub(crate) struct Gather<'a> {
    before: Sequence,
    keep_publication: &'a dyn Fn(&Stored<Publication>) -> bool,
    keep_subscription: &'a dyn Fn(&Stored<Subscription>) -> bool,
    several: HashSet<(u8, Sequence)>,
    publications: Vec<Stored<Publication>>,
    subscriptions: Vec<Stored<Subscription>>,
}

impl<'a> Gather<'a> {
    pub(crate) fn new(
        before: Sequence,
        keep_publication: &'a dyn Fn(&Stored<Publication>) -> bool,
        keep_subscription: &'a dyn Fn(&Stored<Subscription>) -> bool,
    ) -> Self {
        Self {
            before,
            keep_publication,
            keep_subscription,
            several: HashSet::new(),
            publications: Vec::new(),
            subscriptions: Vec::new(),
        }
    }

    pub(crate) fn take(&mut self, entry: Entry<'_>) -> Result<()> {
        match entry.kind {
            PUBLICATIONS => {
                let found = self
                    .read(entry)?
                    .filter(|found| (self.keep_publication)(found));
                self.publications.extend(found);
            }
            SUBSCRIPTIONS => {
                let found = self
                    .read(entry)?
                    .filter(|found| (self.keep_subscription)(found));
                self.subscriptions.extend(found);
            }
            _ => {}
        }
        Ok(())
    }

    /// The record of an entry, unless it comes later or was there already.
    fn read<T: Record>(&mut self, entry: Entry<'_>) -> Result<Option<Stored<T>>> {
        let what = "an entry of a topic is malformed although its checksum matches";
        let named = record::named(entry.value, entry.sequence).ok_or(Error::Malformed { what })?;
        if named >= self.before {
            return Ok(None);
        }
        let place = (entry.id, entry.time, entry.sequence);
        let (stored, has_several) = record::decode(entry.value, place)?;
        if has_several && !self.several.insert((entry.kind, named)) {
            return Ok(None);
        }
        Ok(Some(stored))
    }

    /// What was kept, in the order in which it came.
    pub(crate) fn finish(mut self) -> Answer {
        self.publications
            .sort_unstable_by_key(|found| found.sequence);
        self.subscriptions
            .sort_unstable_by_key(|found| found.sequence);
        Answer {
            publications: self.publications,
            subscriptions: self.subscriptions,
            ..Answer::default()
        }
    }
}
