//! All documents of a collection, in the order of their keys. Nothing is copied, so a reader can skip
//! documents by their keys.

use std::ops::Bound;

use rillbase_engine::{DbSnapshot, Scan};

use crate::error::Result;
use crate::format::{DOCUMENTS, DocumentHead, PREFIX_BYTES, decode_document, document_key, prefix};
use crate::store::Collections;

/// The documents and tombstones of a collection.
#[derive(Debug)]
pub struct DocumentScan {
    scan: Scan,
}

impl Collections {
    /// Starts at the first document after a key, or at the first of all.
    pub fn documents(
        &self,
        collection: u64,
        after: Option<&[u8]>,
        snapshot: &DbSnapshot,
    ) -> Result<DocumentScan> {
        let start = match after {
            Some(key) => Bound::Excluded(document_key(collection, key)),
            None => Bound::Included(document_key(collection, &[])),
        };
        let start = start.as_ref().map(Vec::as_slice);
        let end = prefix(collection, DOCUMENTS + 1);
        let end = Bound::Excluded(end.as_slice());
        let mut scan = self.db.scan(&self.entries, start, end, Some(snapshot))?;
        scan.first()?;
        Ok(DocumentScan { scan })
    }
}

impl DocumentScan {
    /// The key of the document; `None` at the end.
    pub fn key(&self) -> Option<&[u8]> {
        let key = self.scan.is_valid().then(|| self.scan.key())?;
        Some(key.get(PREFIX_BYTES..).unwrap_or_default())
    }

    /// The document, or its tombstone. Only before the end.
    pub fn document(&self) -> Result<(DocumentHead, &[u8])> {
        decode_document(self.scan.value())
    }

    /// Goes to the next document.
    pub fn advance(&mut self) -> Result<()> {
        Ok(self.scan.advance()?)
    }
}
