//! The changes of index entries that a batch makes.
//!
//! Lists of eager indexes are read, changed in memory and replaced at the end of the batch. A list
//! that has become too large is split: its documents get timed entries, which later writes change
//! one by one.

use std::collections::{BTreeMap, HashSet};

use rillbase_documents::changes::ChangedDocument;
use rillbase_documents::entry::IndexEntry;
use rillbase_engine::{DbSnapshot, WriteBatch};

use crate::definition::number_in_collection;
use crate::entry_list::{EntryList, MAX_LIST_BYTES};
use crate::error::Result;
use crate::format::{EntryForm, TimedDocument, entry_key, list_key, timed_key};
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
    document: TimedDocument,
}

/// The changes of a list.
#[derive(Debug, Default)]
struct ListChange {
    removed: Vec<TimedDocument>,
    added: Vec<TimedDocument>,
}

impl ListChange {
    /// The documents of a list after the change, in order, each once.
    fn applied_to(self, mut documents: Vec<TimedDocument>) -> Vec<TimedDocument> {
        let removed: HashSet<TimedDocument> = self.removed.into_iter().collect();
        documents.retain(|document| !removed.contains(document));
        documents.extend(self.added);
        // Nearly sorted, which is fast.
        documents.sort();
        documents.dedup();
        documents
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
        change.or_default().removed.push(listed.document);
    }

    pub(crate) fn add(&mut self, listed: ListedEntry) {
        let change = self.changes.entry((listed.place, listed.entry));
        change.or_default().added.push(listed.document);
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
                    document: timed(),
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
    /// Whether an entry is stored as it should be.
    pub(crate) fn has_stored(&self, entry: &StoredEntry, snapshot: &DbSnapshot) -> Result<bool> {
        let listed = match entry {
            StoredEntry::Single { key, value } => {
                let stored = self.db.get_at(&self.entries, key, snapshot)?;
                return Ok(stored.is_some_and(|stored| *stored == **value));
            }
            StoredEntry::Listed(listed) => listed,
        };
        let key = list_key(listed.place, &listed.entry);
        let stored = self.db.get_at(&self.entries, &key, snapshot)?;
        let list = stored.map(|value| EntryList::decode(&value)).transpose()?;
        Ok(match list {
            Some(EntryList::Listed(documents)) => documents.contains(&listed.document),
            Some(EntryList::Split) => {
                let key = timed_key(listed.place, &listed.entry, &listed.document);
                self.db.get_at(&self.entries, &key, snapshot)?.is_some()
            }
            None => false,
        })
    }

    /// Adds the changes of lists to a batch that nothing was written after.
    pub(crate) fn put_lists(&self, batch: &mut WriteBatch, lists: ListChanges) -> Result<()> {
        for ((place, entry), change) in lists.changes {
            let key = list_key(place, &entry);
            let stored = self.db.get(&self.entries, &key)?;
            let stored = stored.map(|value| EntryList::decode(&value));
            match stored.transpose()? {
                Some(EntryList::Split) => {
                    for document in &change.removed {
                        batch.delete(&self.entries, &timed_key(place, &entry, document));
                    }
                    self.put_timed(batch, place, (&entry, &change.added));
                }
                Some(EntryList::Listed(documents)) => {
                    self.put_list(batch, (place, &entry), change.applied_to(documents));
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
        documents: Vec<TimedDocument>,
    ) {
        let key = list_key(place, entry);
        if documents.is_empty() {
            return batch.delete(&self.entries, &key);
        }
        let list = EntryList::Listed(documents);
        let value = list.encode();
        if value.len() <= MAX_LIST_BYTES {
            return batch.put(&self.entries, &key, &value);
        }
        batch.put(&self.entries, &key, &EntryList::Split.encode());
        if let EntryList::Listed(documents) = list {
            self.put_timed(batch, place, (entry, &documents));
        }
    }

    fn put_timed(
        &self,
        batch: &mut WriteBatch,
        place: (u64, u32),
        (entry, documents): (&[u8], &[TimedDocument]),
    ) {
        for document in documents {
            batch.put(&self.entries, &timed_key(place, entry, document), &[]);
        }
    }
}
