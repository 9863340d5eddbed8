//! The documents of a query that looks others up, and what it knows of those.
//!
//! Of each side the documents are kept to which the query's own refer, and as many others as there is
//! room for: spare ones, of which the oldest goes first. A side may be known as a whole; what is not
//! there does not exist then, or may not be seen. Otherwise a document of which nothing is known, and to
//! which one comes to refer, is asked for ([`side`]).
//!
//! What is shown is a row for each own document, in the order of those, whose version is made of what
//! it shows.

mod side;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use rillbase_documents::refusal::DocumentRefusal;

use crate::lookups::Join;
use crate::message::{AfterImage, FetchedDocument, QueryHash, ResultRow};

use super::order::SortPosition;
use super::rows::SortedRows;

use side::JoinedSide;
pub(super) use side::{JoinedSides, Judge, Worth};

/// What rows show, in bytes.
const MOST_BYTES: usize = 256 * 1024 * 1024;

/// An own document, and to what it refers: of each side the keys.
#[derive(Debug)]
struct Own {
    row: ResultRow,
    references: Vec<Vec<Arc<[u8]>>>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct JoinedRows {
    join: Arc<Join>,
    sides: Vec<JoinedSide>,
    own: HashMap<Arc<[u8]>, Own>,
    /// What is shown of them, in order.
    rows: SortedRows,
    /// Own documents whose rows are older than what they show.
    touched: BTreeSet<Arc<[u8]>>,
    bytes: usize,
}

impl JoinedRows {
    /// What a query begins with.
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
            joined.know(ResultRow::clone(&row), sides.thorough)?;
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

    /// Whether the rows are more than may be kept: no more are shown then.
    pub(super) const fn is_overfull(&self) -> bool {
        self.bytes > MOST_BYTES
    }

    /// Whether something is referred to of which nothing is known.
    pub(super) fn lacks_something(&self) -> bool {
        self.sides.iter().any(JoinedSide::lacks_something)
    }

    /// What is referred to, of each side, of which nothing is known and that nobody has read.
    pub(super) fn unread(&self) -> Vec<Vec<Arc<[u8]>>> {
        self.sides.iter().map(JoinedSide::unread).collect()
    }

    /// Documents were read that were asked for.
    pub(super) fn fetched(&mut self, documents: Vec<Vec<FetchedDocument>>) {
        for (side, read) in self.sides.iter_mut().zip(documents) {
            for document in read {
                side.fetched(document);
            }
        }
    }

    /// Takes what was read, as far as it may count.
    pub(super) fn resolve(&mut self, judge: &Judge<'_>) {
        for side in &mut self.sides {
            self.touched.extend(side.resolve(judge));
        }
    }

    /// The version of an own document.
    pub(super) fn version(&self, key: &[u8]) -> Option<u64> {
        self.own.get(key).map(|own| own.row.version)
    }

    fn know(&mut self, row: ResultRow, thorough: bool) -> Result<(), DocumentRefusal> {
        let body = std::iter::once(&*row.body);
        let keys = self.join.keys(body)?;
        let mut references = Vec::new();
        for (side, keys) in self.sides.iter_mut().zip(keys) {
            let keys: Vec<Arc<[u8]>> = keys.into_iter().map(Arc::from).collect();
            for key in &keys {
                side.refer(Arc::clone(key), &row.key, thorough || side.complete);
            }
            references.push(keys);
        }
        self.touched.insert(Arc::clone(&row.key));
        let own = Own { row, references };
        self.own.insert(Arc::clone(&own.row.key), own);
        Ok(())
    }

    /// Takes an own document out.
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

    /// Puts an own document in the place of what was held of it, as [`SortedRows::insert`] does.
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
        // What both refer to must not be spare between.
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

    /// A document refers to other ones than before.
    fn release(&mut self, before: &Own) {
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

    /// A write of a side. Returns whether it was made under other access rules than the query.
    pub(super) fn write(&mut self, side: &QueryHash, image: &AfterImage, may: bool) -> bool {
        let mut outdated = false;
        for known in self.sides.iter_mut().filter(|known| known.hash == *side) {
            let rules = known.rules_version;
            outdated |= rules != 0 && image.rules_version > rules;
            self.touched.extend(known.write(image, may));
        }
        outdated
    }

    /// Brings rows up to date, after own documents or others came or went.
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
