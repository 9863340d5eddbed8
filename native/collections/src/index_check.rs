//! Compares the stored entries of indexes with those that the documents have, part by part and while
//! the collection is written.
//!
//! Each part is read at a snapshot of its own: documents and entries of a batch are visible together.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rillbase_documents::bounds::EncodedRange;
use rillbase_documents::entry::entries;
use rillbase_engine::DbSnapshot;
use rillbase_query::bson::Document;

use crate::candidate_scan::{CandidatePosition, DocumentEntry};
use crate::definition::NativeIndex;
use crate::entry_changes::StoredEntry;
use crate::error::{Error, Result};
use crate::format::PREFIX_BYTES;
use crate::index_build::unindexed;
use crate::store::{Collections, InstalledCollection};
use crate::unordered_entries::UnorderedEntries;

/// A part ends after this time, or with this many faults.
const PART_TIME: Duration = Duration::from_millis(20);
const PART_FAULTS: usize = 100;

/// An entry that is missing, or that no document has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryFault {
    /// The number of the index.
    pub index: u32,
    /// The key of the document.
    pub document: Vec<u8>,
}

/// A part that was compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedPart {
    /// How many documents, or entries, were examined.
    pub examined: usize,
    /// What is wrong.
    pub faults: Vec<EntryFault>,
    /// The position after which the next part begins; `None` if this was the last one.
    pub after: Option<CandidatePosition>,
}

impl CheckedPart {
    fn new() -> Self {
        Self {
            examined: 0,
            faults: Vec::new(),
            after: None,
        }
    }

    fn is_full(&self, most: usize, started: Instant) -> bool {
        self.examined >= most
            || self.faults.len() >= PART_FAULTS
            || (self.examined > 0 && started.elapsed() > PART_TIME)
    }
}

impl Collections {
    /// Finds entries that the next documents have and that are not stored.
    pub fn check_documents(
        &self,
        (collection, write_version): (u64, u64),
        after: Option<&[u8]>,
        most: usize,
    ) -> Result<CheckedPart> {
        let (snapshot, started) = (self.db.snapshot(), Instant::now());
        let installed = self.ready_before(collection, write_version, &snapshot)?;
        let mut part = CheckedPart::new();
        let mut scan = self.documents(collection, after, &snapshot)?;
        while let Some(key) = scan.key() {
            let (head, body) = scan.document()?;
            if !head.is_tombstone {
                let missing =
                    self.missing_entries(&installed, (key, body), head.updated_ms, &snapshot)?;
                part.faults.extend(missing);
            }
            part.examined += 1;
            let document = key.to_vec();
            scan.advance()?;
            if part.is_full(most, started) && scan.key().is_some() {
                part.after = Some(CandidatePosition {
                    document,
                    ..CandidatePosition::default()
                });
                break;
            }
        }
        Ok(part)
    }

    fn missing_entries(
        &self,
        installed: &InstalledCollection,
        (key, body): (&[u8], &[u8]),
        updated_ms: i64,
        snapshot: &DbSnapshot,
    ) -> Result<Vec<EntryFault>> {
        let body = Document::trusted(body);
        let mut faults = Vec::new();
        for index in &installed.definition.indexes {
            if !index.is_ready || !index.technique.is_stored() {
                continue;
            }
            let compiled = index.compiled(installed.number);
            let own = entries(body, &compiled).map_err(|refusal| unindexed(body, refusal))?;
            for entry in &own {
                let stored = installed.stored_entry(entry, key, updated_ms);
                if let Some(stored) = stored
                    && !self.has_stored(&stored, snapshot)?
                {
                    faults.push(EntryFault {
                        index: index.number,
                        document: key.to_vec(),
                    });
                    break;
                }
            }
        }
        Ok(faults)
    }

    /// Finds the next entries of an index whose documents do not have them.
    pub fn check_entries(
        &self,
        (collection, write_version): (u64, u64),
        index: u32,
        after: Option<CandidatePosition>,
        most: usize,
    ) -> Result<CheckedPart> {
        let (snapshot, started) = (self.db.snapshot(), Instant::now());
        let installed = self.ready_before(collection, write_version, &snapshot)?;
        let forms = installed.definition.index(index).map(NativeIndex::forms);
        let place = ((collection, index), forms.ok_or(Error::NoIndex)?);
        let everything = EncodedRange::everything();
        let mut stored = UnorderedEntries::new(self, &snapshot, place, &everything, after);
        let mut part = CheckedPart::new();
        while let Some(entry) = stored.next()? {
            if !self.is_entry_of_document(&installed, index, &entry, &snapshot)? {
                part.faults.push(EntryFault {
                    index,
                    document: entry.document.clone(),
                });
            }
            part.examined += 1;
            if part.is_full(most, started) {
                part.after = Some(entry.position);
                break;
            }
        }
        Ok(part)
    }

    fn is_entry_of_document(
        &self,
        installed: &InstalledCollection,
        index: u32,
        entry: &DocumentEntry,
        snapshot: &DbSnapshot,
    ) -> Result<bool> {
        let Some(stored) = self.get(installed.number, &entry.document, Some(snapshot))? else {
            return Ok(false);
        };
        let definition = installed.definition.index(index).ok_or(Error::NoIndex)?;
        let body = Document::trusted(&stored.body);
        let own = entries(body, &definition.compiled(installed.number));
        let own = own.map_err(|refusal| unindexed(body, refusal))?;
        let is_it = |own| {
            let updated_ms = stored.head.updated_ms;
            match installed.stored_entry(own, &entry.document, updated_ms) {
                Some(StoredEntry::Single { key, .. }) => {
                    key.get(PREFIX_BYTES..) == Some(&entry.position.entry)
                }
                // A list that was split has timed entries.
                Some(StoredEntry::Listed(_)) => own.key == entry.entry,
                None => false,
            }
        };
        Ok(own.iter().any(is_it))
    }

    /// The installed collection, if all of its ready indexes were ready at the snapshot.
    fn ready_before(
        &self,
        collection: u64,
        write_version: u64,
        snapshot: &DbSnapshot,
    ) -> Result<Arc<InstalledCollection>> {
        let installed = self.current(collection, write_version)?;
        if snapshot.sequence() < installed.since {
            return Err(Error::Postponed);
        }
        Ok(installed)
    }
}
