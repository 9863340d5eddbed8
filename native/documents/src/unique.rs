//! The keys of unique indexes, and which documents have them.
//!
//! Usually the database finds a key that two documents would have, and the transaction fails. Then
//! the keys that other documents have are looked up, and the group is decided again with them: only
//! the operations that would take one of them are rejected.

use std::collections::HashMap;

use crate::changes::ChangedDocument;
use crate::entry::IndexEntry;
use crate::refusal::DocumentRefusal;

/// A key that a document in the database has.
#[derive(Debug, Clone)]
pub struct OwnedKey {
    /// The index.
    pub index: i64,
    /// The key.
    pub key: Vec<u8>,
    /// The number of the document's collection in the plan.
    pub collection: usize,
    /// The document's key.
    pub document: Vec<u8>,
    /// The writes whose callers may not read the document.
    pub hidden_from: Vec<usize>,
}

/// A key that a document was to get, whether it did or not. If the keys of unique indexes were looked
/// up, a group lists all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedKey {
    /// The index.
    pub index: i64,
    /// The key.
    pub key: Vec<u8>,
    /// The number of the document's collection in the plan.
    pub collection: usize,
    /// The document's key.
    pub document: Vec<u8>,
}

/// The keys that were looked up.
#[derive(Debug, Clone, Default)]
pub struct OwnedKeys {
    /// The names of unique indexes by number.
    pub names: HashMap<i64, String>,
    /// The keys.
    pub keys: Vec<OwnedKey>,
}

/// The owner of a key.
#[derive(Debug, Clone)]
pub(crate) struct KeyOwner {
    /// The document's key.
    pub(crate) document: Vec<u8>,
    /// The writes whose callers may not read it, if the group has not locked it.
    pub(crate) hidden_from: Vec<usize>,
}

/// Who has which keys, as the group leaves them. While an index is being built, several documents may
/// have a key.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeyOwners {
    owners: HashMap<i64, HashMap<Vec<u8>, Vec<KeyOwner>>>,
}

impl KeyOwners {
    /// Gives a document keys.
    pub(crate) fn add<'e>(
        &mut self,
        document: &[u8],
        hidden_from: &[usize],
        entries: impl IntoIterator<Item = &'e IndexEntry>,
    ) {
        for entry in entries {
            let owner = KeyOwner {
                document: document.to_vec(),
                hidden_from: hidden_from.to_vec(),
            };
            let of_index = self.owners.entry(entry.index).or_default();
            let of_key = of_index.entry(entry.key.clone()).or_default();
            of_key.retain(|other| other.document != owner.document);
            of_key.push(owner);
        }
    }

    /// Takes the document's keys before a change, and gives it those after.
    pub(crate) fn change(&mut self, before: &[IndexEntry], changed: &ChangedDocument) {
        for entry in enforced(before) {
            let of_index = self.owners.get_mut(&entry.index);
            if let Some(of_key) = of_index.and_then(|of_index| of_index.get_mut(&entry.key)) {
                of_key.retain(|owner| owner.document != changed.key);
            }
        }
        self.add(&changed.key, &[], enforced(&changed.entries));
    }

    /// The other documents that have keys which a change would take, by index.
    pub(crate) fn conflicts<'s>(
        &'s self,
        changed: &'s ChangedDocument,
    ) -> impl Iterator<Item = (i64, &'s KeyOwner)> {
        enforced(&changed.entries).flat_map(|entry| {
            let of_index = self.owners.get(&entry.index);
            let of_key = of_index.and_then(|of_index| of_index.get(&entry.key));
            let others = of_key.into_iter().flatten();
            let others = others.filter(|owner| owner.document != changed.key);
            others.map(|owner| (entry.index, owner))
        })
    }
}

/// The entries that no other document may have.
pub(crate) fn enforced(entries: &[IndexEntry]) -> impl Iterator<Item = &IndexEntry> {
    entries.iter().filter(|entry| entry.enforced)
}

/// The refusal of a document with keys of these indexes that other documents have.
pub(crate) fn duplicate_key<'n>(names: impl Iterator<Item = &'n str>) -> DocumentRefusal {
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names.dedup();
    let violations = names
        .into_iter()
        .map(|name| (String::new(), format!("index '{name}'")));
    DocumentRefusal {
        violations: violations.collect(),
        ..DocumentRefusal::new(
            "duplicate_key",
            "Another document has the same values in a unique index.",
        )
    }
}
