//! A sample of documents of a group, for finding the rarest predicate.

use rillbase_query::bson::Document;
use rillbase_query::environment::EvaluationContext;
use rillbase_query::filter::FilterClause;

/// The number of documents in a sample.
const DOCUMENTS: usize = 32;
/// Larger documents are not kept, in bytes.
const DOCUMENT_BYTES: usize = 4096;
/// One in this many documents replaces another.
const REPLACE: u32 = 64;

/// A sample of the documents that were matched, biased toward recent ones.
#[derive(Debug, Default)]
pub(crate) struct DocumentSample {
    documents: Vec<Box<[u8]>>,
    /// Documents since one was last kept.
    passed: u32,
    /// The index of the document that is replaced next.
    next: usize,
    bytes: usize,
}

impl DocumentSample {
    /// Keeps a document if it is its turn; at most `room` bytes may be added.
    pub(crate) fn offer(&mut self, document: Document<'_>, room: usize) {
        self.passed += 1;
        let full = self.documents.len() >= DOCUMENTS;
        let bytes = document.as_bytes();
        if bytes.len() > DOCUMENT_BYTES.min(room) || (full && self.passed < REPLACE) {
            return;
        }
        self.passed = 0;
        self.bytes += bytes.len();
        if let Some(slot) = self.documents.get_mut(self.next).filter(|_| full) {
            self.bytes -= slot.len();
            *slot = bytes.into();
            self.next = (self.next + 1) % DOCUMENTS;
        } else {
            self.documents.push(bytes.into());
        }
    }

    /// The share of documents for which all of the nodes hold; the default counts as much as one
    /// document. If the fuel does not suffice, only the default is used.
    pub(crate) fn selectivity(
        &self,
        nodes: &[&FilterClause],
        usual: f64,
        environment: &EvaluationContext,
    ) -> f64 {
        let (mut met, mut all) = (usual, 1.0);
        for bytes in &self.documents {
            let document = Document::trusted(bytes);
            let mut holds = true;
            for node in nodes {
                match node.matches_in(document, environment) {
                    Ok(answer) => holds &= answer,
                    Err(_) => return usual,
                }
            }
            all += 1.0;
            met += f64::from(u8::from(holds));
        }
        met / all
    }

    /// Its approximate size in bytes.
    pub(crate) const fn memory(&self) -> usize {
        self.bytes + self.documents.capacity() * size_of::<Box<[u8]>>()
    }
}
