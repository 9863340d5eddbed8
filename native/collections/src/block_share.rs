//! The share of a collection's blocks that one value of an index leaves to be read if tables record
//! the values of blocks: small for values that grow with the documents' keys, and nearly all for
//! values in no order.
//!
//! It is estimated from the documents at the start of some blocks, whatever the technique of the
//! index, so that the shares of embedded and stored indexes are comparable.

use std::ops::Bound;

use rillbase_documents::entry::{IndexDefinition, entries};
use rillbase_query::bson::Document;

use crate::definition::NativeIndex;
use crate::error::{Error, Result};
use crate::format::{DOCUMENTS, decode_document, prefix};
use crate::store::Collections;

/// At most this many blocks are read.
const MAX_BLOCKS: usize = 256;
/// Fewer blocks say little.
const MIN_BLOCKS: usize = 16;
/// How many documents of a block are read. They have a smaller range of values than all of it, so
/// the share of values in no order is about 8 in 10 instead of nearly 10.
const BLOCK_DOCUMENTS: usize = 8;
/// At most this many values are compared with the blocks.
const MAX_VALUES: usize = 64;
const MILLION: usize = 1_000_000;

/// The values of the documents of a block.
#[derive(Debug, Default)]
struct SampledBlock {
    /// The least and the greatest one.
    bounds: Option<(Vec<u8>, Vec<u8>)>,
    /// Whether some document cannot be indexed, so that the block is read for any value.
    has_unknown: bool,
}

/// Some blocks of a collection.
#[derive(Debug, Default)]
struct BlockSample {
    blocks: Vec<SampledBlock>,
    /// One value of each document that has any.
    values: Vec<Vec<u8>>,
}

impl SampledBlock {
    fn add(&mut self, value: &[u8]) {
        let Some((low, high)) = &mut self.bounds else {
            self.bounds = Some((value.to_vec(), value.to_vec()));
            return;
        };
        if value < low.as_slice() {
            *low = value.to_vec();
        } else if value > high.as_slice() {
            *high = value.to_vec();
        }
    }

    fn may_have(&self, value: &[u8]) -> bool {
        let bounds = self.bounds.as_ref();
        let is_within =
            |(low, high): &(Vec<u8>, Vec<u8>)| (low.as_slice()..=high.as_slice()).contains(&value);
        self.has_unknown || bounds.is_some_and(is_within)
    }
}

impl BlockSample {
    fn add_document(
        &mut self,
        block: &mut SampledBlock,
        body: Document<'_>,
        index: &IndexDefinition,
    ) {
        let Ok(entries) = entries(body, index) else {
            block.has_unknown = true;
            return;
        };
        // Without the mark of a document with several values.
        let values = entries.iter().map(|entry| &entry.key);
        let values: Vec<&Vec<u8>> = values.filter(|value| !value.is_empty()).collect();
        for value in &values {
            block.add(value);
        }
        // Not always the least one.
        let number = self.values.len() % values.len().max(1);
        self.values
            .extend(values.get(number).map(|value| (*value).clone()));
    }

    /// The mean share of the blocks that may have a value, in millionths.
    fn share(&self) -> Option<u32> {
        if self.blocks.len() < MIN_BLOCKS || self.values.is_empty() {
            return None;
        }
        let step = self.values.len().div_ceil(MAX_VALUES);
        let values = || self.values.iter().step_by(step);
        let blocks_of = |value: &Vec<u8>| {
            let blocks = self.blocks.iter();
            blocks.filter(|block| block.may_have(value)).count()
        };
        let remaining: usize = values().map(blocks_of).sum();
        let share = remaining * MILLION / (values().count() * self.blocks.len());
        u32::try_from(share).ok()
    }
}

impl Collections {
    /// The mean share, in millionths, of the blocks of documents that one value of an index's first
    /// field leaves, if their tables record the least and greatest values of blocks, as they do for
    /// an embedded index. `None` if there are too few blocks to tell. At most 2,048 documents are
    /// read.
    pub fn block_share(&self, collection: u64, index: u32) -> Result<Option<u32>> {
        let installed = self.installed(collection)?;
        let index = installed.definition.index(index).ok_or(Error::NoIndex)?;
        Ok(self.sampled_blocks(collection, index)?.share())
    }

    fn sampled_blocks(&self, collection: u64, index: &NativeIndex) -> Result<BlockSample> {
        let mut first_field = index.compiled(collection);
        first_field.fields.truncate(1);
        first_field.unique = false;
        let (start, end) = (
            prefix(collection, DOCUMENTS),
            prefix(collection, DOCUMENTS + 1),
        );
        let snapshot = self.db.snapshot();
        let keys = self
            .db
            .sample_keys(&self.entries, (&start, &end), MAX_BLOCKS)?;
        let mut sample = BlockSample::default();
        if keys.len() < MIN_BLOCKS {
            return Ok(sample);
        }
        let bounds = (Bound::Included(&start[..]), Bound::Excluded(&end[..]));
        let scan = self
            .db
            .scan(&self.entries, bounds.0, bounds.1, Some(&snapshot))?;
        // Many tombstones may have expired: they count as read, too.
        let mut scan = scan.show_expired();
        for (number, key) in keys.iter().enumerate() {
            // A key that was sampled is the last one of its block.
            scan.seek(&[key, &[0][..]].concat())?;
            let next = keys.get(number + 1);
            let mut block = SampledBlock::default();
            let before = sample.values.len();
            for _ in 0..BLOCK_DOCUMENTS {
                if !scan.is_valid() || next.is_some_and(|next| scan.key() > next.as_slice()) {
                    break;
                }
                let (head, body) = decode_document(scan.value())?;
                if !head.is_tombstone {
                    sample.add_document(&mut block, Document::trusted(body), &first_field);
                }
                scan.advance()?;
            }
            if block.has_unknown || sample.values.len() > before {
                sample.blocks.push(block);
            }
        }
        Ok(sample)
    }
}
