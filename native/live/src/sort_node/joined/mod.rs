//! The documents of a query that looks others up, and what it knows of those.
//!
//! For each side it keeps the documents to which the query's own documents refer, and as many
//! others as there is room for: spare ones, of which the oldest is evicted first. If a side is
//! known completely, a document that is missing does not exist or is not visible. Otherwise an
//! unknown document that becomes referenced is requested ([`side`]).
//!
//! It shows one row for each own document, in their order, whose version is derived from what it
//! shows.

mod side;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use rillbase_documents::refusal::DocumentRefusal;

use crate::lookups::Join;
use crate::message::{AfterImage, FetchedDocument, QueryHash, ResultRow};

use super::rows::SortedRows;
use crate::sort_order::SortPosition;

use side::JoinedSide;
pub(super) use side::{FetchVerdict, JoinedSides, Judge};

/// The maximum bytes that rows show.
const MAX_BYTES: usize = 256 * 1024 * 1024;

/// One of the query's own documents, and the keys of each side that it refers to.
#[derive(Debug)]
struct OwnDocument {
    row: ResultRow,
    references: Vec<Vec<Arc<[u8]>>>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct JoinedRows {
    join: Arc<Join>,
    sides: Vec<JoinedSide>,
    own: HashMap<Arc<[u8]>, OwnDocument>,
    /// What is shown of them, in order.
    rows: SortedRows,
    /// Own documents whose rows are out of date.
    touched: BTreeSet<Arc<[u8]>>,
    bytes: usize,
}

impl JoinedRows {
    /// The initial state of a query.
    pub(super) fn new(sides: JoinedSides, rows: SortedRows) -> Result<Self, DocumentRefusal> {
        let own = rows.window(0, usize::MAX);
        let mut joined = Self {
            join: sides.join,
            sides: sides.all,
            own: HashMap::new(),
            touched: BTreeSet::new(),
            bytes: own.iter().map(|row| row.body.len()).sum(),
            rows,
        };
        for row in own {
            joined.know(ResultRow::clone(&row), sides.all_read)?;
        }
        for side in &mut joined.sides {
            side.settle();
        }
        joined.refresh()?;
        Ok(joined)
    }

    pub(super) const fn rows(&self) -> &SortedRows {
        &self.rows
    }

    /// Whether the rows are more than may be kept; no more are shown then.
    pub(super) const fn is_overfull(&self) -> bool {
        self.bytes > MAX_BYTES
    }

    /// Whether an unknown document is referred to.
    pub(super) fn has_unknown_references(&self) -> bool {
        self.sides.iter().any(JoinedSide::has_unknown_references)
    }

    /// The unknown documents of each side that are referred to and have not been read.
    pub(super) fn unread(&self) -> Vec<Vec<Arc<[u8]>>> {
        self.sides.iter().map(JoinedSide::unread).collect()
    }

    /// Takes documents that were requested.
    pub(super) fn fetched(&mut self, documents: Vec<Vec<FetchedDocument>>) {
        for (side, read) in self.sides.iter_mut().zip(documents) {
            for document in read {
                side.fetched(document);
            }
        }
    }

    /// Uses documents that were read, as far as they count.
    pub(super) fn resolve(&mut self, judge: &Judge<'_>) {
        for side in &mut self.sides {
            self.touched.extend(side.resolve(judge));
        }
    }

    /// The version of an own document.
    pub(super) fn version(&self, key: &[u8]) -> Option<u64> {
        self.own.get(key).map(|own| own.row.version)
    }

    fn know(&mut self, row: ResultRow, all_read: bool) -> Result<(), DocumentRefusal> {
        let body = std::iter::once(&*row.body);
        let keys = self.join.keys(body)?;
        let mut references = Vec::new();
        for (side, keys) in self.sides.iter_mut().zip(keys) {
            let keys: Vec<Arc<[u8]>> = keys.into_iter().map(Arc::from).collect();
            for key in &keys {
                side.refer(Arc::clone(key), &row.key, all_read || side.complete);
            }
            references.push(keys);
        }
        self.touched.insert(Arc::clone(&row.key));
        let own = OwnDocument { row, references };
        self.own.insert(Arc::clone(&own.row.key), own);
        Ok(())
    }

    /// Removes an own document.
    fn forget(&mut self, key: &[u8]) -> Option<ResultRow> {
        let own = self.own.remove(key)?;
        self.touched.remove(key);
        for (side, keys) in self.sides.iter_mut().zip(&own.references) {
            for other in keys {
                side.release(other, &own.row.key);
            }
        }
        Some(own.row)
    }

    /// Replaces an own document, as [`SortedRows::insert`] does.
    pub(super) fn change(
        &mut self,
        key: &[u8],
        new: Option<(SortPosition, ResultRow)>,
    ) -> Result<Option<Arc<ResultRow>>, DocumentRefusal> {
        let shown = self.rows.index(key).and_then(|index| self.rows.at(index));
        let less = shown.map_or(0, |row| row.body.len());
        self.bytes = self.bytes.saturating_sub(less);
        self.rows.remove(key);
        let Some((place, row)) = new else {
            self.forget(key);
            return Ok(None);
        };
        // A document that both versions refer to must not become spare in between.
        let before = self.own.remove(key);
        self.know(row.clone(), false)?;
        if let Some(before) = before {
            self.release(&before);
        }
        self.bytes += row.body.len();
        let beyond = self.rows.insert(place, row);
        Ok(beyond.map(|beyond| {
            self.bytes = self.bytes.saturating_sub(beyond.body.len());
            self.forget(&beyond.key).map_or(beyond, Arc::new)
        }))
    }

    /// Releases the documents that a previous version referred to.
    fn release(&mut self, before: &OwnDocument) {
        let now = self.own.get(&before.row.key).map(|own| &own.references);
        for (number, (side, keys)) in self.sides.iter_mut().zip(&before.references).enumerate() {
            let stay = now.and_then(|now| now.get(number));
            for key in keys {
                if stay.is_none_or(|stay| !stay.contains(key)) {
                    side.release(key, &before.row.key);
                }
            }
        }
    }

    /// Applies a write of a side. Returns whether it was made under access rules other than the
    /// query's.
    pub(super) fn write(&mut self, side: &QueryHash, image: &AfterImage, may: bool) -> bool {
        let mut outdated = false;
        for known in self.sides.iter_mut().filter(|known| known.hash == *side) {
            let rules = known.rules_version;
            outdated |= rules != 0 && image.rules_version > rules;
            self.touched.extend(known.write(image, may));
        }
        outdated
    }

    /// Updates rows after own documents or others were added or removed.
    pub(super) fn refresh(&mut self) -> Result<(), DocumentRefusal> {
        while let Some(key) = self.touched.pop_first() {
            let Some(own) = self.own.get(&key) else {
                continue;
            };
            let find = |side: usize, key: &[u8]| self.sides.get(side)?.body(key);
            let shown = self.join.row(&own.row, &find)?;
            let more = shown.body.len();
            let less = self.rows.show(&key, shown);
            self.bytes = (self.bytes + more).saturating_sub(less);
        }
        Ok(())
    }
}
