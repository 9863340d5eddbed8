//! The changes of index entries that a batch makes.
//!
//! Lists of eager indexes are read, changed in memory and replaced at the end of the batch. A list
//! that has become too large is split: its documents get timed entries, which later writes change
//! one by one.

use std::collections::{BTreeMap, HashSet};

use rillbase_documents::changes::ChangedDocument;
use rillbase_documents::entry::IndexEntry;
use rillbase_engine::WriteBatch;

use crate::definition::number_in_collection;
use crate::error::Result;
use crate::format::{EntryForm, TimedDocument, entry_key, list_key, timed_key};
use crate::posting_list::{MAX_LIST_BYTES, PostingList};
use crate::store::{Collections, InstalledCollection};

/// How an entry of a document is stored.
#[derive(Debug)]
pub(crate) enum StoredEntry {
    /// As a key with a value.
    Single { key: Vec<u8>, value: Vec<u8> },
    /// In the list of the entry.
    Listed(ListedEntry),
}

/// An entry in a list.
#[derive(Debug)]
pub(crate) struct ListedEntry {
    place: (u64, u32),
    entry: Vec<u8>,
    posting: TimedDocument,
}

/// The changes of a list.
#[derive(Debug, Default)]
struct ListChange {
    removed: Vec<TimedDocument>,
    added: Vec<TimedDocument>,
}

impl ListChange {
    /// The documents of a list after the change, in order, each once.
    fn applied_to(self, mut postings: Vec<TimedDocument>) -> Vec<TimedDocument> {
        let removed: HashSet<TimedDocument> = self.removed.into_iter().collect();
        postings.retain(|posting| !removed.contains(posting));
        postings.extend(self.added);
        // Nearly sorted, which is fast.
        postings.sort();
        postings.dedup();
        postings
    }
}

/// The changes of lists, by index and entry.
#[derive(Debug, Default)]
pub(crate) struct ListChanges {
    changes: BTreeMap<((u64, u32), Vec<u8>), ListChange>,
}

impl ListChanges {
    pub(crate) fn remove(&mut self, listed: ListedEntry) {
        let change = self.changes.entry((listed.place, listed.entry));
        change.or_default().removed.push(listed.posting);
    }

    pub(crate) fn add(&mut self, listed: ListedEntry) {
        let change = self.changes.entry((listed.place, listed.entry));
        change.or_default().added.push(listed.posting);
    }
}

impl InstalledCollection {
    /// How an entry of a document that was changed last at a time is stored.
    pub(crate) fn stored_entry(
        &self,
        entry: &IndexEntry,
        document: &[u8],
        updated_ms: i64,
    ) -> Option<StoredEntry> {
        let number = number_in_collection(entry.index);
        let place = (self.number, number);
        let form = self.definition.index(number)?.form(entry.enforced);
        let timed = || TimedDocument::new(updated_ms, document);
        let (key, value) = match form {
            EntryForm::Unique => (
                entry_key(place, form, &entry.key, document),
                document.to_vec(),
            ),
            EntryForm::Composite => (
                entry_key(place, form, &entry.key, document),
                vec![u8::from(entry.ordering)],
            ),
            EntryForm::Timed => (timed_key(place, &entry.key, &timed()), Vec::new()),
            EntryForm::List => {
                return Some(StoredEntry::Listed(ListedEntry {
                    place,
                    entry: entry.key.clone(),
                    posting: timed(),
                }));
            }
        };
        Some(StoredEntry::Single { key, value })
    }

    /// The entries that a changed document gives up. Those with a time change with each write.
    pub(crate) fn removed_entries<'c>(
        &self,
        changed: &'c ChangedDocument,
    ) -> impl Iterator<Item = &'c IndexEntry> {
        self.not_in(&changed.old, &changed.entries)
    }

    /// The entries that a changed document gets.
    pub(crate) fn added_entries<'c>(
        &self,
        changed: &'c ChangedDocument,
    ) -> impl Iterator<Item = &'c IndexEntry> {
        self.not_in(&changed.entries, &changed.old)
    }

    /// The entries of a sorted list that are not in the other one, or that have a time.
    fn not_in<'c>(
        &self,
        entries: &'c [IndexEntry],
        others: &'c [IndexEntry],
    ) -> impl Iterator<Item = &'c IndexEntry> {
        entries
            .iter()
            .filter(|entry| others.binary_search(entry).is_err() || self.is_by_time(entry.index))
    }

    fn is_by_time(&self, index: i64) -> bool {
        let index = self.definition.index(number_in_collection(index));
        index.is_some_and(|index| index.technique.is_by_time())
    }
}

impl Collections {
    /// Adds the changes of lists to a batch that nothing was written after.
    pub(crate) fn put_lists(&self, batch: &mut WriteBatch, lists: ListChanges) -> Result<()> {
        for ((place, entry), change) in lists.changes {
            let key = list_key(place, &entry);
            let stored = self.db.get(&self.entries, &key)?;
            let stored = stored.map(|value| PostingList::decode(&value));
            match stored.transpose()? {
                Some(PostingList::Split) => {
                    for posting in &change.removed {
                        batch.delete(&self.entries, &timed_key(place, &entry, posting));
                    }
                    self.put_timed(batch, place, (&entry, &change.added));
                }
                Some(PostingList::Listed(postings)) => {
                    self.put_list(batch, (place, &entry), change.applied_to(postings));
                }
                None => self.put_list(batch, (place, &entry), change.applied_to(Vec::new())),
            }
        }
        Ok(())
    }

    fn put_list(
        &self,
        batch: &mut WriteBatch,
        (place, entry): ((u64, u32), &[u8]),
        postings: Vec<TimedDocument>,
    ) {
        let key = list_key(place, entry);
        if postings.is_empty() {
            return batch.delete(&self.entries, &key);
        }
        let list = PostingList::Listed(postings);
        let value = list.encode();
        if value.len() <= MAX_LIST_BYTES {
            return batch.put(&self.entries, &key, &value);
        }
        batch.put(&self.entries, &key, &PostingList::Split.encode());
        if let PostingList::Listed(postings) = list {
            self.put_timed(batch, place, (entry, &postings));
        }
    }

    fn put_timed(
        &self,
        batch: &mut WriteBatch,
        place: (u64, u32),
        (entry, postings): (&[u8], &[TimedDocument]),
    ) {
        for posting in postings {
            batch.put(&self.entries, &timed_key(place, entry, posting), &[]);
        }
    }
}
