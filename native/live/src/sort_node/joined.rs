//! The documents of a query that looks others up, and what it knows of those.
//!
//! Of each side the documents are kept to which the query's own refer, and as many others as there is
//! room for: spare ones, of which the oldest goes first. A side may be known as a whole; what is not
//! there does not exist then, or may not be seen. Otherwise a reference to a document of which nothing
//! is known makes the rows be read again, as the end of a window does that is out of sight.
//!
//! What is shown is a row for each own document, in the order of those, whose version is made of what
//! it shows.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use rillbase_documents::lookups;
use rillbase_documents::refusal::Refusal;
use rillbase_query::lookup::Lookups;

use crate::lookups::row;
use crate::message::{AfterImage, Content, Definition, Foreign, QueryHash, Row};

use super::order::Place;
use super::rows::Rows;

/// Documents of a side that nothing refers to, and their bytes.
const SPARE: usize = 1_000;
const SPARE_BYTES: usize = 4 * 1024 * 1024;
/// What rows show, in bytes.
const MOST_BYTES: usize = 256 * 1024 * 1024;
/// Documents of a side while all of it is told.
const GATHERED: usize = 100_000;

/// A document of a side.
#[derive(Debug, Default)]
struct Other {
    /// Its version, and its content if it may be seen; none: nothing is known of it.
    known: Option<(u64, Option<Arc<[u8]>>)>,
    /// The own documents that refer to it.
    by: HashSet<Arc<[u8]>>,
    /// If none does: its place among the spare ones, and its bytes.
    spare: Option<(u64, usize)>,
}

impl Other {
    fn bytes(&self) -> usize {
        let body = self.known.as_ref().and_then(|(_, body)| body.as_ref());
        128 + body.map_or(0, |body| body.len())
    }
}

/// What is known of a collection that is looked up.
#[derive(Debug)]
pub(super) struct Side {
    hash: QueryHash,
    rules_version: u64,
    others: HashMap<Arc<[u8]>, Other>,
    /// Documents that nothing refers to, the oldest first.
    spare: BTreeMap<u64, Arc<[u8]>>,
    spare_bytes: usize,
    spared: u64,
    /// Whether nothing else exists that may be seen.
    complete: bool,
    /// How many documents are referred to of which nothing is known.
    unknown: usize,
}

impl Side {
    fn new(hash: QueryHash, rules_version: u64, complete: bool) -> Self {
        Self {
            hash,
            rules_version,
            others: HashMap::new(),
            spare: BTreeMap::new(),
            spare_bytes: 0,
            spared: 0,
            complete,
            unknown: 0,
        }
    }

    /// Takes a document in that was read.
    fn read(&mut self, row: &Row) {
        if self.others.len() >= GATHERED {
            self.complete = false;
            return;
        }
        let other = self.others.entry(Arc::clone(&row.key)).or_default();
        other.known = Some((row.version, Some(Arc::clone(&row.body))));
    }

    /// An own document refers to it. `absent`: if nothing is known of it, it does not exist.
    fn refer(&mut self, key: Arc<[u8]>, own: &Arc<[u8]>, absent: bool) {
        let other = self.others.entry(key).or_insert_with(|| {
            self.unknown += usize::from(!absent);
            Other {
                known: absent.then_some((0, None)),
                ..Other::default()
            }
        });
        other.by.insert(Arc::clone(own));
        if let Some((place, bytes)) = other.spare.take() {
            self.spare.remove(&place);
            self.spare_bytes -= bytes;
        }
    }

    /// An own document does not refer to it any more.
    fn release(&mut self, key: &Arc<[u8]>, own: &Arc<[u8]>) {
        let Some(other) = self.others.get_mut(key) else {
            return;
        };
        other.by.remove(own);
        if !other.by.is_empty() {
            return;
        }
        if other.known.is_some() {
            self.spare(key);
        } else {
            self.others.remove(key);
            self.unknown -= 1;
        }
    }

    /// Nothing refers to a document.
    fn spare(&mut self, key: &Arc<[u8]>) {
        let Some(other) = self.others.get_mut(key) else {
            return;
        };
        let bytes = other.bytes();
        let (place, before) = other.spare.unwrap_or((self.spared, 0));
        if before == 0 {
            self.spared += 1;
            self.spare.insert(place, Arc::clone(key));
        }
        other.spare = Some((place, bytes));
        self.spare_bytes = self.spare_bytes - before + bytes;
        while self.spare.len() > SPARE || self.spare_bytes > SPARE_BYTES {
            let oldest = self.spare.pop_first();
            let Some(gone) = oldest.and_then(|(_, key)| self.others.remove(&key)) else {
                return;
            };
            self.spare_bytes -= gone.spare.map_or(0, |(_, bytes)| bytes);
            self.complete = false;
        }
    }

    /// All that nothing refers to is spare.
    fn settle(&mut self) {
        let unused = self.others.iter().filter(|(_, other)| other.by.is_empty());
        let unused: Vec<_> = unused.map(|(key, _)| Arc::clone(key)).collect();
        for key in unused {
            self.spare(&key);
        }
    }

    /// A write of it; `may` tells whether it may be seen now. Returns who is to be shown anew.
    fn write(&mut self, image: &AfterImage, may: bool) -> Vec<Arc<[u8]>> {
        let body = match &image.content {
            Content::Document(body) if may => Some(Arc::clone(body)),
            _ => None,
        };
        let other = self.others.entry(Arc::clone(&image.key)).or_default();
        let held = other.known.as_ref().map(|(version, _)| *version);
        if held.is_some_and(|held| held >= image.version) {
            return Vec::new();
        }
        if held.is_none() && !other.by.is_empty() {
            self.unknown -= 1;
        }
        other.known = Some((image.version, body));
        let shown_by: Vec<_> = other.by.iter().cloned().collect();
        if shown_by.is_empty() {
            self.spare(&image.key);
        }
        shown_by
    }

    fn body(&self, key: &[u8]) -> Option<Arc<[u8]>> {
        let (_, body) = self.others.get(key)?.known.as_ref()?;
        body.clone()
    }
}

/// The sides of a query, while they are told.
#[derive(Debug)]
pub(super) struct Sides {
    lookups: Arc<Lookups>,
    all: Vec<Side>,
    /// Whether whatever the query's documents refer to was read, if it exists.
    thorough: bool,
}

impl Sides {
    /// Nothing yet; `complete` tells of each side whether all of it will be told.
    pub(super) fn new(
        query: &Definition,
        lookups: Arc<Lookups>,
        complete: impl Fn(usize) -> bool,
    ) -> Self {
        let sides = query.sides.iter().enumerate();
        let sides = sides.map(|(at, side)| Side::new(side.hash, side.rules_version, complete(at)));
        Self {
            lookups,
            all: sides.collect(),
            thorough: false,
        }
    }

    /// What a registration brings.
    pub(super) fn read(query: &Definition, lookups: Arc<Lookups>, foreign: &[Foreign]) -> Self {
        let complete = |at: usize| foreign.get(at).is_some_and(|side| side.complete);
        let mut sides = Self::new(query, lookups, complete);
        sides.thorough = true;
        for (side, read) in sides.all.iter_mut().zip(foreign) {
            for row in &read.rows {
                side.read(row);
            }
        }
        sides
    }

    pub(super) fn push(&mut self, side: &QueryHash, row: &Row) {
        for known in self.all.iter_mut().filter(|known| known.hash == *side) {
            known.read(row);
        }
    }
}

/// An own document, and to what it refers: of each side the keys.
#[derive(Debug)]
struct Own {
    row: Row,
    references: Vec<Vec<Arc<[u8]>>>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Joined {
    lookups: Arc<Lookups>,
    sides: Vec<Side>,
    own: HashMap<Arc<[u8]>, Own>,
    /// What is shown of them, in order.
    rows: Rows,
    /// Own documents whose rows are older than what they show.
    touched: BTreeSet<Arc<[u8]>>,
    bytes: usize,
}

impl Joined {
    /// What a query begins with.
    pub(super) fn new(sides: Sides, rows: Rows) -> Result<Self, Refusal> {
        let own = rows.window(0, usize::MAX);
        let mut joined = Self {
            lookups: sides.lookups,
            sides: sides.all,
            own: HashMap::new(),
            touched: BTreeSet::new(),
            bytes: own.iter().map(|row| row.body.len()).sum(),
            rows,
        };
        for row in own {
            joined.know(Row::clone(&row), sides.thorough)?;
        }
        for side in &mut joined.sides {
            side.settle();
        }
        joined.refresh()?;
        Ok(joined)
    }

    pub(super) const fn rows(&self) -> &Rows {
        &self.rows
    }

    /// Whether the rows are more than may be kept: no more are shown then.
    pub(super) const fn is_overfull(&self) -> bool {
        self.bytes > MOST_BYTES
    }

    /// Whether something is referred to of which nothing is known.
    pub(super) fn lacks_something(&self) -> bool {
        self.sides.iter().any(|side| side.unknown > 0)
    }

    /// The version of an own document.
    pub(super) fn version(&self, key: &[u8]) -> Option<u64> {
        self.own.get(key).map(|own| own.row.version)
    }

    fn know(&mut self, row: Row, thorough: bool) -> Result<(), Refusal> {
        let body = std::iter::once(&*row.body);
        let keys = lookups::keys(&self.lookups, body)?;
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
    fn forget(&mut self, key: &[u8]) -> Option<Row> {
        let own = self.own.remove(key)?;
        self.touched.remove(key);
        for (side, keys) in self.sides.iter_mut().zip(&own.references) {
            for other in keys {
                side.release(other, &own.row.key);
            }
        }
        Some(own.row)
    }

    /// Puts an own document in the place of what was held of it, as [`Rows::insert`] does.
    pub(super) fn change(
        &mut self,
        key: &[u8],
        new: Option<(Place, Row)>,
    ) -> Result<Option<Arc<Row>>, Refusal> {
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
    pub(super) fn refresh(&mut self) -> Result<(), Refusal> {
        while let Some(key) = self.touched.pop_first() {
            let Some(own) = self.own.get(&key) else {
                continue;
            };
            let find = |side: usize, key: &[u8]| self.sides.get(side)?.body(key);
            let shown = row(&self.lookups, &own.row, &find)?;
            let more = shown.body.len();
            let less = self.rows.show(&key, shown);
            self.bytes = (self.bytes + more).saturating_sub(less);
        }
        Ok(())
    }
}
