//! Aggregates over one database.

use std::collections::{HashMap, HashSet};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::{Mutex, RwLock};
use rillbase_binary_format::ByteReader;
use rillbase_engine::{
    Db, DbSnapshot, Durability, Expiry, Keyspace, KeyspaceOptions, Lifetime, Millis, WriteBatch,
    prefix_end,
};

use crate::answer::{AnswerRow, answer, answer_json};
use crate::catalog::{AggregateCatalog, AggregateEntry, AggregateState, DefineOutcome};
use crate::claims::Claims;
use crate::definition::{AggregateDefinition, ContributionSource};
use crate::deltas::{AggregateGeneration, Deltas};
use crate::error::Result;
use crate::item_counts::ItemCounts;
use crate::keys;
use crate::plan::AggregatePlan;
use crate::query::AggregateQuery;
use crate::row_scan::ReadSnapshot;
use crate::state::Fold;

const ROWS: &str = "aggregates.rows";
const ITEMS: &str = "aggregates.items";

/// The keyspaces.
#[derive(Debug)]
pub(crate) struct AggregateKeyspaces {
    /// `generation rollup values [bucket] → row`
    pub(crate) rows: Keyspace,
    /// `row measure value → count`
    pub(crate) items: Keyspace,
    /// `aggregate sequence → events`
    pub(crate) facts: Keyspace,
    /// `aggregate event-id →`
    pub(crate) ids: Keyspace,
    /// `generation 'd' document → version, contribution` and `generation 'p' partition → position`
    pub(crate) kept: Keyspace,
}

/// All aggregates of a database.
#[derive(Debug)]
pub struct Aggregates {
    pub(crate) db: Arc<Db>,
    pub(crate) spaces: AggregateKeyspaces,
    pub(crate) catalog: AggregateCatalog,
    lifetimes: Arc<Lifetimes>,
    pub(crate) claims: Claims,
    pub(crate) item_counts: ItemCounts,
    /// Locked shared by writers; exclusively to change what is written to.
    pub(crate) gate: RwLock<()>,
    /// Locked from reading the contributions of documents until the result is written.
    pub(crate) applying: Mutex<()>,
    pub(crate) durability: Durability,
}

/// The start and the end, if given.
pub type Period = (Option<i64>, Option<i64>);

/// The result of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AggregateResult {
    /// Its rows.
    pub rows: Vec<AnswerRow>,
}

impl AggregateResult {
    /// The rows as a JSON array.
    pub fn json(&self) -> String {
        let rows: Vec<&str> = self.rows.iter().map(|row| row.json.as_str()).collect();
        format!("[{}]", rows.join(","))
    }
}

/// The existing generations, from which the expiry of keys of rows and items is computed.
#[derive(Debug, Default)]
pub struct Lifetimes(RwLock<HashMap<u64, Arc<AggregateGeneration>>>);

impl Lifetime for Lifetimes {
    fn expiry(&self, key: &[u8]) -> Option<Millis> {
        let generation = u64::from_be_bytes(*key.first_chunk()?);
        let known = self.0.read();
        let expiry = keys::expiry(key, &known.get(&generation)?.definition)?;
        u64::try_from(expiry).ok()
    }
}

impl Lifetimes {
    /// Makes keys of these generations expire.
    pub(crate) fn register(&self, shape: &AggregateState) {
        let building = shape.building.iter().map(|building| &building.generation);
        let mut known = self.0.write();
        for generation in std::iter::once(&shape.current).chain(building) {
            known.insert(generation.number, Arc::clone(generation));
        }
    }

    fn forget(&self, generation: &AggregateGeneration) {
        self.0.write().remove(&generation.number);
    }
}

/// The options of keyspaces that hold operands: a database that has them is opened with these.
pub fn keyspaces(lifetimes: &Arc<Lifetimes>) -> [(String, KeyspaceOptions); 2] {
    [ROWS, ITEMS].map(|name| (name.to_owned(), folding(lifetimes)))
}

fn folding(lifetimes: &Arc<Lifetimes>) -> KeyspaceOptions {
    KeyspaceOptions {
        merge: Some(Arc::new(Fold)),
        accumulates: true,
        expiry: Expiry::ByKey,
        lifetime: Some(Arc::clone(lifetimes) as Arc<dyn Lifetime>),
        ..KeyspaceOptions::default()
    }
}

impl Aggregates {
    /// Opens the aggregates of a database, which was opened with the same lifetimes.
    pub fn open(db: &Arc<Db>, durability: Durability, lifetimes: &Arc<Lifetimes>) -> Result<Self> {
        let plain = |name: &str| db.create_keyspace(name, KeyspaceOptions::default());
        let spaces = AggregateKeyspaces {
            rows: db.create_keyspace(ROWS, folding(lifetimes))?,
            items: db.create_keyspace(ITEMS, folding(lifetimes))?,
            facts: plain("aggregates.facts")?,
            ids: plain("aggregates.ids")?,
            kept: plain("aggregates.kept")?,
        };
        let catalog = AggregateCatalog::open(db, plain("aggregates.catalog")?)?;
        for aggregate in catalog.all() {
            lifetimes.register(&aggregate.shape());
        }
        let opened = Self {
            catalog,
            lifetimes: Arc::clone(lifetimes),
            db: Arc::clone(db),
            claims: Claims::default(),
            item_counts: ItemCounts::new(db, &spaces.rows, &spaces.items),
            spaces,
            gate: RwLock::new(()),
            applying: Mutex::new(()),
            durability,
        };
        opened.sweep()?;
        Ok(opened)
    }

    /// Deletes the remains of dropped data after an interruption.
    fn sweep(&self) -> Result<()> {
        let (mut generations, mut aggregates) = (HashSet::new(), HashSet::new());
        for aggregate in self.catalog.all() {
            let shape = aggregate.shape();
            aggregates.insert(aggregate.number);
            generations.insert(shape.current.number);
            generations.extend(shape.building.iter().map(|one| one.generation.number));
        }
        let AggregateKeyspaces {
            rows,
            items,
            facts,
            ids,
            kept,
        } = &self.spaces;
        let mut batch = WriteBatch::new();
        for (keyspace, known) in [
            (rows, &generations),
            (items, &generations),
            (kept, &generations),
            (facts, &aggregates),
            (ids, &aggregates),
        ] {
            for number in self.numbers(keyspace)? {
                if !known.contains(&number) {
                    delete_all(&mut batch, keyspace, number);
                }
            }
        }
        if !batch.is_empty() {
            self.db.write(batch, self.durability)?;
        }
        Ok(())
    }

    /// The numbers at the start of keys of a keyspace.
    fn numbers(&self, keyspace: &Keyspace) -> Result<Vec<u64>> {
        let mut numbers = Vec::new();
        let now = self.db.snapshot();
        let mut scan = self.db.scan_prefix(keyspace, &[], Some(&now))?;
        scan.first()?;
        while scan.is_valid() {
            let number = ByteReader::new(scan.key()).u64_be()?;
            numbers.push(number);
            match prefix_end(&number.to_be_bytes()) {
                Some(next) => scan.seek(&next)?,
                None => break,
            }
        }
        Ok(numbers)
    }

    /// Creates an aggregate, or returns the one with that definition; with `replaces`, another
    /// generation is built beside it. Returns the generation's number.
    pub fn define(&self, owner: (u64, &str), text: &str, replaces: bool) -> Result<u64> {
        // Writes made without the new generation are visible once there are no writers.
        let alone = self.gate.write();
        let since = || self.db.snapshot().sequence();
        let defined = self.catalog.define(owner, text, replaces, since)?;
        let aggregate = self.find(owner.0, owner.1)?;
        let shape = aggregate.shape();
        self.lifetimes.register(&shape);
        drop(alone);
        let number = match defined {
            DefineOutcome::Same(number) => return Ok(number),
            DefineOutcome::New(number, left) => {
                if let Some(left) = left {
                    self.forget(&left)?;
                }
                number
            }
        };
        let by_others =
            |definition: &AggregateDefinition| definition.source == ContributionSource::View;
        if let Some(building) = &shape.building
            && by_others(&building.generation.definition)
        {
            building.is_ready.store(true, Ordering::Release);
        }
        Ok(number)
    }

    /// Makes the generation that was built current; the previous one is deleted.
    pub fn switch(&self, aggregate: &AggregateEntry, number: u64) -> Result<()> {
        let alone = self.gate.write();
        let left = self.catalog.switch(aggregate, number)?;
        drop(alone);
        match left {
            Some(left) => self.forget(&left),
            None => Ok(()),
        }
    }

    /// Removes an aggregate with its data.
    pub fn remove(&self, aggregate: &AggregateEntry) -> Result<()> {
        let alone = self.gate.write();
        let shape = aggregate.shape();
        self.catalog.remove(aggregate)?;
        drop(alone);
        self.forget(&shape.current)?;
        if let Some(building) = &shape.building {
            self.forget(&building.generation)?;
        }
        let mut batch = WriteBatch::new();
        for keyspace in [&self.spaces.facts, &self.spaces.ids] {
            delete_all(&mut batch, keyspace, aggregate.number);
        }
        self.db.write(batch, self.durability)?;
        Ok(())
    }

    fn forget(&self, generation: &AggregateGeneration) -> Result<()> {
        self.lifetimes.forget(generation);
        let mut batch = WriteBatch::new();
        for keyspace in [&self.spaces.rows, &self.spaces.items, &self.spaces.kept] {
            delete_all(&mut batch, keyspace, generation.number);
        }
        self.db.write(batch, self.durability)?;
        Ok(())
    }

    /// The aggregate with a name.
    pub fn find(&self, namespace: u64, name: &str) -> Result<Arc<AggregateEntry>> {
        self.catalog.find(namespace, name)
    }

    /// All aggregates of a namespace, by name.
    pub fn list(&self, namespace: u64) -> Vec<Arc<AggregateEntry>> {
        self.catalog.of(namespace)
    }

    /// The total number of aggregates.
    pub fn count(&self) -> usize {
        self.catalog.all().len()
    }

    /// Removes all aggregates of a namespace.
    pub fn forget_namespace(&self, namespace: u64) -> Result<()> {
        let own = self.list(namespace);
        own.iter().try_for_each(|aggregate| self.remove(aggregate))
    }

    /// Evaluates a query at a snapshot; a transaction sees its own changes.
    pub fn query(
        &self,
        aggregate: &AggregateEntry,
        query: &AggregateQuery,
        snapshot: &DbSnapshot,
        own: Option<&Deltas>,
    ) -> Result<AggregateResult> {
        let generation = aggregate.generation_at(snapshot.sequence())?;
        let rows = answer(self.read_snapshot(snapshot, own), &generation, query)?;
        Ok(AggregateResult { rows })
    }

    /// Appends the result as a JSON array.
    pub fn query_json(
        &self,
        (aggregate, query): (&AggregateEntry, &AggregateQuery),
        (snapshot, own): (&DbSnapshot, Option<&Deltas>),
        out: &mut String,
    ) -> Result<()> {
        let generation = aggregate.generation_at(snapshot.sequence())?;
        answer_json(self.read_snapshot(snapshot, own), &generation, query, out)
    }

    /// The period of a query: times relative to now differ with each evaluation, but the buckets
    /// that contain them usually do not.
    pub fn period(
        &self,
        aggregate: &AggregateEntry,
        query: &AggregateQuery,
        snapshot: &DbSnapshot,
    ) -> Result<Period> {
        let generation = aggregate.generation_at(snapshot.sequence())?;
        let plan = AggregatePlan::new(&generation.definition, query)?;
        Ok((plan.from, plan.to))
    }

    fn read_snapshot<'a>(
        &'a self,
        snapshot: &'a DbSnapshot,
        own: Option<&'a Deltas>,
    ) -> ReadSnapshot<'a> {
        ReadSnapshot {
            db: &self.db,
            rows: &self.spaces.rows,
            items: &self.spaces.items,
            snapshot,
            own,
        }
    }

    /// The position up to which a view has followed each partition.
    pub fn positions(&self, number: u64) -> Result<Vec<(String, String)>> {
        let mut prefix = number.to_be_bytes().to_vec();
        prefix.push(b'p');
        let mut positions = Vec::new();
        let mut scan = self.db.scan_prefix(&self.spaces.kept, &prefix, None)?;
        scan.first()?;
        while scan.is_valid() {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let partition = scan.key().get(prefix.len()..).unwrap_or_default();
            positions.push((text(partition), text(scan.value())));
            scan.advance()?;
        }
        Ok(positions)
    }
}

/// Deletes all keys that start with a number.
fn delete_all(batch: &mut WriteBatch, keyspace: &Keyspace, number: u64) {
    let start = number.to_be_bytes();
    if let Some(end) = prefix_end(&start) {
        batch.delete_range(keyspace, &start, &end);
    }
}

/// The bounds of all keys with a prefix.
pub(crate) fn bounds<'a>(
    prefix: &'a [u8],
    end: Option<&'a [u8]>,
) -> (Bound<&'a [u8]>, Bound<&'a [u8]>) {
    (
        Bound::Included(prefix),
        end.map_or(Bound::Unbounded, Bound::Excluded),
    )
}
