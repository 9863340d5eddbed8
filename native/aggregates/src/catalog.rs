//! The existing aggregates: read from memory, stored in a keyspace.
//!
//! ```text
//! key   := 'next'                         the next number of an aggregate or generation
//!        | 'a' namespace{8} name          an aggregate
//! value := number generation definition{slice} [building definition{slice} since]
//! ```
//!
//! Numbers are varints and never reused, so any remains of a dropped generation belong to none. A
//! definition is stored as it was written.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use rillbase_binary_format::{ByteReader, ByteWriter as _};
use rillbase_engine::{Db, Durability, Keyspace, Millis, Sequence, WriteBatch};

use crate::definition::{AggregateDefinition, ContributionSource};
use crate::deltas::AggregateGeneration;
use crate::error::{AggregateErrorCode, Error, Result};

const NEXT: &[u8] = b"next";
/// The maximum number of aggregates in a namespace.
const MAX_AGGREGATES: usize = 10_000;
/// How long, in milliseconds, snapshots from before a switch can be queried at least.
const REMEMBERED: Millis = 120_000;

/// A generation that is being built beside the current one.
#[derive(Debug, Clone)]
pub struct GenerationBuild {
    /// It already receives writes.
    pub generation: Arc<AggregateGeneration>,
    /// Its definition, as it was written.
    pub text: String,
    /// Stored events up to here must still be added; later ones are added as they are written.
    pub since: Sequence,
    /// All of them have been added.
    pub is_ready: Arc<AtomicBool>,
}

/// The current state of an aggregate.
#[derive(Debug, Clone)]
pub struct AggregateState {
    /// The generation that queries see.
    pub current: Arc<AggregateGeneration>,
    /// Its definition, as it was written.
    pub text: String,
    /// The generation being built.
    pub building: Option<GenerationBuild>,
}

/// A former generation.
#[derive(Debug)]
struct FormerGeneration {
    generation: Arc<AggregateGeneration>,
    /// The sequences for which it answers: from its switch up to its replacement.
    answers: Range<Sequence>,
    left_at: Millis,
}

/// Which generation answers at which snapshots. Rows of a generation are complete from its switch
/// on.
#[derive(Debug, Default)]
struct GenerationHistory {
    /// The first sequence for which the current generation answers.
    since: Sequence,
    past: Vec<FormerGeneration>,
}

/// An aggregate.
#[derive(Debug)]
pub struct AggregateEntry {
    /// Its namespace.
    pub namespace: u64,
    /// Its name.
    pub name: String,
    /// Never used twice.
    pub number: u64,
    shape: RwLock<Arc<AggregateState>>,
    /// Changed together with the shape, under its lock.
    history: RwLock<GenerationHistory>,
    /// The last write that changed it, as far as this process knows.
    changed: AtomicU64,
    dropped: AtomicBool,
}

impl AggregateEntry {
    fn new((namespace, name): (u64, String), number: u64, shape: AggregateState) -> Self {
        Self {
            namespace,
            name,
            number,
            shape: RwLock::new(Arc::new(shape)),
            history: RwLock::default(),
            changed: AtomicU64::new(0),
            dropped: AtomicBool::new(false),
        }
    }

    /// Whether the current generation has rows for this snapshot; otherwise an earlier one answers,
    /// or none.
    pub fn answers_at(&self, moment: Sequence) -> bool {
        moment >= self.history.read().since
    }

    /// The generation that a query at this sequence reads.
    pub(crate) fn generation_at(&self, moment: Sequence) -> Result<Arc<AggregateGeneration>> {
        let shape = self.shape.read();
        let history = self.history.read();
        if moment >= history.since {
            return Ok(Arc::clone(&shape.current));
        }
        let past = history
            .past
            .iter()
            .find(|one| one.answers.contains(&moment));
        let detail = "the snapshot is older than the first rows of this aggregate";
        past.map(|one| Arc::clone(&one.generation))
            .ok_or_else(|| Error::new(AggregateErrorCode::SnapshotExpired, detail))
    }

    /// From `since` on, the generation of another shape is current.
    fn switch(&self, shape: AggregateState, since: Sequence, now: Millis) {
        let mut current = self.shape.write();
        let mut history = self.history.write();
        history
            .past
            .retain(|one| one.left_at.saturating_add(REMEMBERED) > now);
        if shape.current.number != current.current.number {
            let past = FormerGeneration {
                generation: Arc::clone(&current.current),
                answers: history.since..since,
                left_at: now,
            };
            history.past.push(past);
        }
        history.since = since;
        *current = Arc::new(shape);
    }

    /// Its current state.
    pub fn shape(&self) -> Arc<AggregateState> {
        Arc::clone(&self.shape.read())
    }

    /// The last write that changed its visible rows, as far as this process knows.
    pub fn changed(&self) -> Sequence {
        self.changed.load(Ordering::Acquire)
    }

    pub(crate) fn note(&self, sequence: Sequence) {
        self.changed.fetch_max(sequence, Ordering::AcqRel);
    }

    /// Whether it was dropped.
    pub fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    fn key(&self) -> Vec<u8> {
        key(self.namespace, &self.name)
    }

    /// The generation with a number: the current one or the one being built.
    pub(crate) fn generation(&self, number: u64) -> Result<Arc<AggregateGeneration>> {
        let shape = self.shape();
        let building = shape.building.iter().map(|building| &building.generation);
        let mut all = std::iter::once(&shape.current).chain(building);
        let generation = all.find(|generation| generation.number == number);
        let refusal = || {
            Error::new(
                AggregateErrorCode::NoGeneration,
                "the generation does not exist (any more)",
            )
        };
        generation.cloned().ok_or_else(refusal)
    }
}

fn key(namespace: u64, name: &str) -> Vec<u8> {
    [b"a", &namespace.to_be_bytes()[..], name.as_bytes()].concat()
}

/// The stored state of an aggregate.
fn value(number: u64, shape: &AggregateState) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_varint(number);
    out.put_varint(shape.current.number);
    out.put_slice(shape.text.as_bytes());
    if let Some(building) = &shape.building {
        out.put_varint(building.generation.number);
        out.put_slice(building.text.as_bytes());
        out.put_varint(building.since);
    }
    out
}

fn generation(number: u64, text: &str) -> Result<Arc<AggregateGeneration>> {
    let definition = AggregateDefinition::parse(text.as_bytes())?;
    Ok(Arc::new(AggregateGeneration { number, definition }))
}

fn read(key: &[u8], value: &[u8]) -> Result<AggregateEntry> {
    let mut name = ByteReader::new(key.get(1..).unwrap_or_default());
    let namespace = name.u64_be()?;
    let mut reader = ByteReader::new(value);
    let number = reader.varint()?;
    let (current, current_text) = (reader.varint()?, reader.text()?);
    let mut building = None;
    if !reader.is_empty() {
        building = Some((reader.varint()?, reader.text()?, reader.varint()?));
    }
    let shape = || -> Result<AggregateState> {
        let building = match building {
            None => None,
            Some((number, text, since)) => Some(GenerationBuild {
                generation: generation(number, text)?,
                text: text.to_owned(),
                since,
                is_ready: Arc::default(),
            }),
        };
        Ok(AggregateState {
            current: generation(current, current_text)?,
            text: current_text.to_owned(),
            building,
        })
    };
    let name = String::from_utf8_lossy(name.rest()).into_owned();
    Ok(AggregateEntry::new((namespace, name), number, shape()?))
}

type AggregatesByName = BTreeMap<(u64, String), Arc<AggregateEntry>>;

/// All aggregates.
#[derive(Debug)]
pub(crate) struct AggregateCatalog {
    db: Arc<Db>,
    keyspace: Keyspace,
    /// The next number; locked during any change.
    next: Mutex<u64>,
    known: RwLock<AggregatesByName>,
}

/// The outcome of a definition.
pub(crate) enum DefineOutcome {
    /// The definition is unchanged.
    Same(u64),
    /// It is new, or a new generation; with the previous one, to be deleted.
    New(u64, Option<Arc<AggregateGeneration>>),
}

impl AggregateCatalog {
    pub(crate) fn open(db: &Arc<Db>, keyspace: Keyspace) -> Result<Self> {
        let next = match db.get(&keyspace, NEXT)? {
            Some(value) => ByteReader::new(&value).varint()?,
            None => 1,
        };
        let newest = db.snapshot().sequence();
        let mut known = AggregatesByName::new();
        let mut scan = db.scan_prefix(&keyspace, b"a", None)?;
        scan.first()?;
        while scan.is_valid() {
            let aggregate = read(scan.key(), scan.value())?;
            // The time of the last write is not stored: it may have been just now.
            aggregate.note(newest);
            known.insert(
                (aggregate.namespace, aggregate.name.clone()),
                Arc::new(aggregate),
            );
            scan.advance()?;
        }
        Ok(Self {
            db: Arc::clone(db),
            keyspace,
            next: Mutex::new(next),
            known: RwLock::new(known),
        })
    }

    pub(crate) fn find(&self, namespace: u64, name: &str) -> Result<Arc<AggregateEntry>> {
        let known = self.known.read();
        let existing = known.get(&(namespace, name.to_owned())).cloned();
        existing
            .ok_or_else(|| Error::new(AggregateErrorCode::Unknown, "the aggregate does not exist"))
    }

    pub(crate) fn all(&self) -> Vec<Arc<AggregateEntry>> {
        self.known.read().values().cloned().collect()
    }

    pub(crate) fn of(&self, namespace: u64) -> Vec<Arc<AggregateEntry>> {
        let known = self.known.read();
        let own = known.range((namespace, String::new())..);
        let own = own.take_while(|((of, _), _)| *of == namespace);
        own.map(|(_, aggregate)| Arc::clone(aggregate)).collect()
    }

    /// Creates an aggregate, or returns the existing one, or starts another generation beside it.
    /// `since` is the newest write that did not see it.
    pub(crate) fn define(
        &self,
        (namespace, name): (u64, &str),
        text: &str,
        replaces: bool,
        since: impl FnOnce() -> Sequence,
    ) -> Result<DefineOutcome> {
        let definition = AggregateDefinition::parse(text.as_bytes())?;
        let mut next = self.next.lock();
        let existing = self.find(namespace, name).ok();
        let known = existing.as_ref().map(|existing| existing.shape());
        if let (Some(known), false) = (&known, replaces) {
            if known.current.definition == definition {
                return Ok(DefineOutcome::Same(known.current.number));
            }
            let detail = "the aggregate exists with another definition";
            return Err(Error::new(AggregateErrorCode::Exists, detail));
        }
        if existing.is_none() && self.of(namespace).len() >= MAX_AGGREGATES {
            let detail = "a namespace may have at most 10,000 aggregates";
            return Err(Error::new(AggregateErrorCode::TooMany, detail));
        }
        let number = *next;
        let fresh = Arc::new(AggregateGeneration { number, definition });
        let mut left = None;
        if let (Some(aggregate), Some(known)) = (existing, known) {
            let before = known.building.as_ref();
            left = before.map(|one| Arc::clone(&one.generation));
            let building = Some(GenerationBuild {
                generation: fresh,
                text: text.to_owned(),
                since: since(),
                is_ready: Arc::default(),
            });
            let shape = AggregateState {
                building,
                ..AggregateState::clone(&known)
            };
            let sequence = self.keep(&aggregate, &shape, number + 1)?;
            *aggregate.shape.write() = Arc::new(shape);
            aggregate.note(sequence);
            *next = number + 1;
        } else {
            let shape = AggregateState {
                current: fresh,
                text: text.to_owned(),
                building: None,
            };
            self.make((namespace, name), number + 1, shape)?;
            *next = number + 2;
        }
        Ok(DefineOutcome::New(number, left))
    }

    fn make(
        &self,
        (namespace, name): (u64, &str),
        number: u64,
        shape: AggregateState,
    ) -> Result<()> {
        let mut batch = WriteBatch::new();
        self.put_next(&mut batch, number + 1);
        batch.put(
            &self.keyspace,
            &key(namespace, name),
            &value(number, &shape),
        );
        self.db.write(batch, Durability::Sync)?;
        let aggregate = AggregateEntry::new((namespace, name.to_owned()), number, shape);
        let mut known = self.known.write();
        known.insert((namespace, name.to_owned()), Arc::new(aggregate));
        Ok(())
    }

    fn put_next(&self, batch: &mut WriteBatch, next: u64) {
        let mut value = Vec::new();
        value.put_varint(next);
        batch.put(&self.keyspace, NEXT, &value);
    }

    /// Stores the new state of an aggregate.
    fn keep(
        &self,
        aggregate: &AggregateEntry,
        shape: &AggregateState,
        next: u64,
    ) -> Result<Sequence> {
        let mut batch = WriteBatch::new();
        self.put_next(&mut batch, next);
        batch.put(
            &self.keyspace,
            &aggregate.key(),
            &value(aggregate.number, shape),
        );
        Ok(self.db.write(batch, Durability::Sync)?)
    }

    /// Makes the generation that was built current; returns the previous one. There are no writes
    /// meanwhile.
    pub(crate) fn switch(
        &self,
        aggregate: &AggregateEntry,
        number: u64,
    ) -> Result<Option<Arc<AggregateGeneration>>> {
        let next = self.next.lock();
        let shape = aggregate.shape();
        let now = self.db.now();
        if shape.current.number == number {
            // The first rows of a view are complete from here on.
            if shape.current.definition.source == ContributionSource::View
                && aggregate.answers_at(0)
            {
                aggregate.switch(
                    AggregateState::clone(&shape),
                    self.db.snapshot().sequence(),
                    now,
                );
            }
            return Ok(None);
        }
        aggregate.generation(number)?;
        let Some(building) = shape.building.clone() else {
            return Ok(None);
        };
        if !building.is_ready.load(Ordering::Acquire) {
            let detail = "the generation is still being filled";
            return Err(Error::new(AggregateErrorCode::NotReady, detail));
        }
        let switched = AggregateState {
            current: building.generation,
            text: building.text,
            building: None,
        };
        let sequence = self.keep(aggregate, &switched, *next)?;
        aggregate.switch(switched, sequence, now);
        aggregate.note(sequence);
        Ok(Some(Arc::clone(&shape.current)))
    }

    /// Removes an aggregate; the caller deletes its data.
    pub(crate) fn remove(&self, aggregate: &AggregateEntry) -> Result<()> {
        let _changing = self.next.lock();
        let mut batch = WriteBatch::new();
        batch.delete(&self.keyspace, &aggregate.key());
        self.db.write(batch, Durability::Sync)?;
        let mut known = self.known.write();
        known.remove(&(aggregate.namespace, aggregate.name.clone()));
        aggregate.dropped.store(true, Ordering::Release);
        Ok(())
    }
}
