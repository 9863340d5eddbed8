//! The attributes of documents that have embedded indexes, for the zones and attribute maps of
//! tables and for the attribute lists of memtables.
//!
//! An embedded index has no entries of its own: tables record which values the documents of a block
//! have. Tables and memtables that were made before the index was declared do not know its values;
//! everything in them is read. They are recognised by the version of the extractor.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard, RwLock};
use rillbase_documents::entry::{IndexDefinition, entries};
use rillbase_engine::{Extractor, ZoneMap};
use rillbase_query::bson::Document;

use crate::definition::{IndexTechnique, NativeIndex, number_in_collection};
use crate::format::{PREFIX_BYTES, decode_document, prefix, split_document_key};

/// The embedded indexes of all collections.
#[derive(Debug, Default)]
pub struct EmbeddedIndexes {
    indexes: RwLock<HashMap<u64, Vec<IndexDefinition>>>,
    version: AtomicU64,
    /// Held while a definition with new indexes is installed, so that each has its own version.
    installing: Mutex<()>,
}

impl EmbeddedIndexes {
    /// Lets one definition be installed at a time.
    pub(crate) fn lock(&self) -> MutexGuard<'_, ()> {
        self.installing.lock()
    }

    /// The version for indexes that are declared now, if no write so far had a greater sequence.
    pub(crate) fn next_version(&self, sequence: u64) -> u64 {
        self.version().max(sequence).saturating_add(1)
    }

    /// Extracts the attributes of a collection's indexes from now on.
    pub(crate) fn install(&self, collection: u64, indexes: &[NativeIndex]) {
        let embedded = indexes.iter();
        let embedded = embedded.filter(|index| index.technique == IndexTechnique::Embedded);
        let compiled: Vec<IndexDefinition> = embedded
            .clone()
            .map(|index| index.compiled(collection))
            .collect();
        let mut indexes = self.indexes.write();
        if compiled.is_empty() {
            indexes.remove(&collection);
        } else {
            indexes.insert(collection, compiled);
        }
        drop(indexes);
        // Last: what has this version has the attributes.
        let version = embedded.map(|index| index.embedded_since).max();
        self.version
            .fetch_max(version.unwrap_or(0), Ordering::AcqRel);
    }

    pub(crate) fn remove(&self, collection: u64) {
        self.indexes.write().remove(&collection);
    }
}

impl Extractor for EmbeddedIndexes {
    fn name(&self) -> &'static str {
        "embedded-indexes"
    }

    fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    fn is_listed(&self) -> bool {
        self.version() > 0
    }

    fn extract(&self, key: &[u8], value: &[u8], zone: &mut ZoneMap) {
        let Some((collection, _)) = split_document_key(key) else {
            return;
        };
        let indexes = self.indexes.read();
        let Some(indexes) = indexes.get(&collection) else {
            return;
        };
        let Ok((head, body)) = decode_document(value) else {
            return zone.add_unknown();
        };
        if head.is_tombstone {
            return;
        }
        zone.add_time(u64::try_from(head.updated_ms).unwrap_or(0));
        for index in indexes {
            let number = number_in_collection(index.number);
            let place = (collection, number);
            match entries(Document::trusted(body), index) {
                Ok(entries) => {
                    for entry in entries {
                        zone.add_indexed(attribute_of(number), &attribute_value(place, &entry.key));
                    }
                }
                Err(_) => zone.add_unknown(),
            }
        }
    }
}

/// The attribute of an index. Indexes of a collection seldom share one, in whose zones they would
/// cover each other's values; the values differ anyway.
pub(crate) fn attribute_of(index: u32) -> u8 {
    index.to_le_bytes()[0]
}

/// An entry of an index as the value of its attribute.
pub(crate) fn attribute_value((collection, index): (u64, u32), entry: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(PREFIX_BYTES + entry.len());
    value.extend_from_slice(&prefix(collection, index));
    value.extend_from_slice(entry);
    value
}
