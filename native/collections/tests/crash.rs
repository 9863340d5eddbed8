//! A loss of power at each I/O operation of writes, flushes, definitions and builds: afterwards the
//! entries of all techniques are those of the documents that are stored, and all that was
//! acknowledged is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rillbase_collections::{
    CandidateRequest, CollectionWrite, Collections, IndexBuild, IndexTechnique, NativeDefinition,
    NativeIndex, PlanOrder, ScanPlan,
};
use rillbase_documents::entry::{IndexDefinition, entries, fields};
use rillbase_documents::id::key;
use rillbase_documents::operation::DocumentOperation;
use rillbase_engine::vfs::{Fault, FaultVfs, SeededRandom};
use rillbase_engine::{Clock, Db, DbOptions, Durability, GroupWrite as _, ManualClock};
use rillbase_query::bson::{Document, Value};
use rillbase_query::ejson::parse_document;
use rillbase_query::filter::Filter;
use rillbase_query::index::FieldOrder;

use crate::model::parse_sort;
use crate::opened::{definition, index, index_by_time, write_of};

const IDS: u64 = 30;
const SHOPS: u64 = 3;

/// A step of the workload that failed.
#[derive(Debug)]
struct PowerFailure;

/// The documents' shops and codes by id; `None` for deleted ones.
type Contents = BTreeMap<u64, Option<(u64, u64)>>;

/// A database on a file system that loses power.
struct Shop {
    db: Arc<Db>,
    collections: Collections,
    clock: Arc<ManualClock>,
    acknowledged: Contents,
    /// What a write that was not acknowledged may have written.
    attempted: Contents,
}

fn value(id: u64) -> Value {
    Value::Int32(i32::try_from(id).unwrap())
}

fn first_indexes() -> Vec<NativeIndex> {
    vec![
        index(1, "by code", &[("code", 1)], true),
        index_by_time(2, "newest", &[("shop", 1)], IndexTechnique::Lazy),
        index_by_time(3, "list", &[("shop", 1)], IndexTechnique::Eager),
    ]
}

/// The first indexes, and others that are built.
fn more_indexes(are_ready: bool) -> Vec<NativeIndex> {
    let built = [
        index(4, "by shop", &[("shop", 1), ("code", -1)], false),
        index_by_time(5, "later newest", &[("shop", -1)], IndexTechnique::Lazy),
        index_by_time(6, "later list", &[("shop", 1)], IndexTechnique::Eager),
        index_by_time(7, "embedded", &[("shop", 1)], IndexTechnique::Embedded),
    ];
    let built = built.map(|index| NativeIndex {
        is_ready: are_ready,
        ..index
    });
    let mut indexes = first_indexes();
    indexes.extend(built);
    indexes
}

impl Shop {
    fn open(vfs: &FaultVfs, clock: &Arc<ManualClock>) -> Result<Self, PowerFailure> {
        let options = DbOptions {
            vfs: Arc::new(vfs.clone()),
            clock: Arc::clone(clock) as Arc<dyn Clock>,
            background_threads: 0,
            ..DbOptions::default()
        };
        let embedded = Arc::default();
        let options = Collections::options(options, &embedded);
        let db = Arc::new(Db::open("/db", options).map_err(|_| PowerFailure)?);
        let collections = Collections::open(&db, embedded).map_err(|_| PowerFailure)?;
        Ok(Self {
            collections,
            db,
            clock: Arc::clone(clock),
            acknowledged: Contents::new(),
            attempted: Contents::new(),
        })
    }

    fn define(&self, definition: NativeDefinition) -> Result<(), PowerFailure> {
        let defined = self.collections.define(1, definition);
        defined.map_err(|_| PowerFailure)
    }

    fn flush(&self) -> Result<(), PowerFailure> {
        self.db.flush().map_err(|_| PowerFailure)
    }

    /// Replaces and deletes a few documents as one.
    fn write(&mut self, random: &mut SeededRandom) -> Result<(), PowerFailure> {
        self.clock.advance(random.below(3));
        let (mut changes, mut operations) = (Contents::new(), Vec::new());
        for _ in 0..=random.below(4) {
            let id = random.below(IDS);
            if changes.contains_key(&id) {
                continue;
            }
            let exists = self.acknowledged.get(&id).copied().flatten().is_some();
            if exists && random.one_in(4) {
                changes.insert(id, None);
                operations.push((1, DocumentOperation::delete(value(id)).unwrap()));
                continue;
            }
            // Codes are unique.
            let (shop, code) = (random.below(SHOPS), id + IDS * random.below(3));
            let text = format!("{{\"_id\":{id},\"shop\":{shop},\"code\":{code}}}");
            let document = parse_document(text.as_bytes()).unwrap();
            let put = DocumentOperation::replace(value(id), document.as_ref(), true);
            changes.insert(id, Some((shop, code)));
            operations.push((1, put.unwrap()));
        }
        self.attempted.clone_from(&changes);
        let version = self.collections.definition(1).unwrap().write_version;
        self.commit(write_of(&[1], version, operations, true))?;
        self.attempted.clear();
        self.acknowledged.extend(changes);
        Ok(())
    }

    fn commit(&self, write: CollectionWrite) -> Result<(), PowerFailure> {
        let mut staged = self.collections.stage(vec![write]);
        let mut results = self.db.write_group(&mut [&mut staged], Durability::Sync);
        let outcome = staged.complete(&mut results).remove(0);
        outcome.map(|_| ()).map_err(|_| PowerFailure)
    }

    /// Builds the indexes that are not ready, and declares them ready.
    fn build(&mut self, random: &mut SeededRandom) -> Result<(), PowerFailure> {
        for number in 4..=7 {
            let mut build = IndexBuild {
                collection: 1,
                write_version: 2,
                index: number,
                after: None,
                documents: 7,
            };
            loop {
                let part = self.collections.build_index(&build);
                build.after = part.map_err(|_| PowerFailure)?.after;
                if build.after.is_none() {
                    break;
                }
                self.write(random)?;
            }
        }
        self.define(definition(3, more_indexes(true)))
    }

    fn work(&mut self, random: &mut SeededRandom) -> Result<(), PowerFailure> {
        self.define(definition(1, first_indexes()))?;
        for round in 0..12 {
            self.write(random)?;
            if round % 5 == 4 {
                self.flush()?;
            }
        }
        self.define(definition(2, more_indexes(false)))?;
        self.build(random)?;
        for _ in 0..4 {
            self.write(random)?;
        }
        self.flush()
    }

    /// Does what is left of the workload after a loss of power.
    fn finish(&mut self, random: &mut SeededRandom) -> Result<(), PowerFailure> {
        if self.collections.definition(1).is_err() {
            self.define(definition(1, first_indexes()))?;
        }
        self.write(random)?;
        if self.collections.definition(1).unwrap().write_version < 3 {
            self.define(definition(2, more_indexes(false)))?;
            self.build(random)?;
        }
        self.write(random)
    }

    /// Compares the documents with what was acknowledged, or with that and the last attempt.
    fn check_documents(&self, context: &str) {
        let stored = self.documents().into_iter();
        let stored: BTreeMap<u64, (u64, u64)> = stored
            .map(|(id, shop, code, _)| (id, (shop, code)))
            .collect();
        let live = |contents: &Contents| -> BTreeMap<u64, (u64, u64)> {
            let all = contents.iter();
            all.filter_map(|(id, body)| Some((*id, (*body)?))).collect()
        };
        let mut attempted = self.acknowledged.clone();
        attempted.extend(self.attempted.clone());
        let is_allowed = [&self.acknowledged, &attempted].map(|one| live(one) == stored);
        assert!(is_allowed.contains(&true), "{context}: {stored:?}");
    }

    /// Id, shop, code and time of each document.
    fn documents(&self) -> Vec<(u64, u64, u64, i64)> {
        let snapshot = self.db.snapshot();
        let plan = ScanPlan::everything();
        let scan = self.collections.candidates(1, &plan, None, &snapshot);
        let documents = scan.unwrap().map(|candidate| {
            let document = candidate.unwrap().document;
            let body = Document::trusted(&document.body);
            let number = |name| u64::try_from(body.get(name).unwrap().as_exact_i64().unwrap());
            let [id, shop, code] = ["_id", "shop", "code"].map(|name| number(name).unwrap());
            (id, shop, code, document.head.updated_ms)
        });
        documents.collect()
    }

    /// The entries of indexes that are ready are those of the documents.
    fn check_entries(&self, context: &str) {
        let snapshot = self.db.snapshot();
        let installed = self.collections.definition(1).unwrap();
        let everything = ScanPlan::everything();
        let scan = self.collections.candidates(1, &everything, None, &snapshot);
        let documents: Vec<_> = scan.unwrap().map(Result::unwrap).collect();
        let ready = installed.indexes.iter().filter(|index| index.is_ready);
        for index in ready.filter(|index| index.technique != IndexTechnique::Embedded) {
            let compiled = IndexDefinition {
                number: i64::from(index.number),
                fields: fields(&index.fields),
                unique: index.is_unique,
            };
            let mut expected = BTreeSet::new();
            for document in &documents {
                let body = Document::trusted(&document.document.body);
                let own = entries(body, &compiled).unwrap().into_iter();
                expected.extend(own.map(|entry| (entry.key, document.key.clone())));
            }
            let plan = ScanPlan {
                index: index.number,
                order: PlanOrder::Unordered,
                ..ScanPlan::everything()
            };
            let scan = self.collections.candidates(1, &plan, None, &snapshot);
            let stored = scan.unwrap().map(Result::unwrap);
            let stored: BTreeSet<_> = stored.map(|one| (one.entry.unwrap(), one.key)).collect();
            assert!(stored == expected, "{context}: {}", index.name);
        }
    }

    /// Each index by time yields the documents of a shop, the newest first.
    fn check_newest(&self, context: &str) {
        let snapshot = self.db.snapshot();
        let installed = self.collections.definition(1).unwrap();
        for shop in 0..SHOPS {
            let own = self.documents().into_iter();
            let own = own.filter(|(_, other, ..)| *other == shop);
            let mut expected: Vec<_> = own
                .map(|(id, _, _, updated)| (-updated, key(value(id).as_ref()).unwrap()))
                .collect();
            expected.sort();
            let expected: Vec<Vec<u8>> = expected.into_iter().map(|(_, key)| key).collect();
            let filter = parse_document(format!("{{\"shop\":{shop}}}").as_bytes()).unwrap();
            let request = CandidateRequest {
                filter: Filter::parse(filter.as_ref()).unwrap(),
                sort: parse_sort("[[\"$updated\",-1]]"),
                documents: 0,
                in_order: true,
                is_use: true,
            };
            let place = (1, installed.write_version);
            let plan = self.collections.plan(place, &request, &snapshot).unwrap();
            let timed = installed
                .indexes
                .iter()
                .filter(|index| index.is_ready && index.technique != IndexTechnique::Composite);
            for index in timed {
                // The ranges are the same if the directions are.
                if index.fields != [("shop".to_owned(), FieldOrder::Ascending)] {
                    continue;
                }
                let plan = ScanPlan {
                    index: index.number,
                    order: PlanOrder::ByTime,
                    ..plan.clone()
                };
                let scan = self.collections.candidates(1, &plan, None, &snapshot);
                let keys: Vec<Vec<u8>> = scan.unwrap().map(|one| one.unwrap().key).collect();
                assert!(keys == expected, "{context}: {}", index.name);
            }
        }
    }
}

/// Loses power at an I/O operation of the workload. Returns whether it was reached.
fn survives(seed: u64, site: u64) -> bool {
    let context = format!("seed {seed}, site {site}");
    let vfs = FaultVfs::new(seed);
    let clock = Arc::new(ManualClock::new(1_700_000_000_000));
    let mut random = SeededRandom::new(seed);
    vfs.fail_at(site, Fault::Stop);
    let (mut acknowledged, mut attempted) = (Contents::new(), Contents::new());
    let mut is_complete = false;
    if let Ok(mut shop) = Shop::open(&vfs, &clock) {
        is_complete = shop.work(&mut random).is_ok();
        (acknowledged, attempted) = (shop.acknowledged, shop.attempted);
    }
    vfs.crash();
    let mut shop = Shop::open(&vfs, &clock).unwrap_or_else(|_| panic!("{context}"));
    if shop.collections.definition(1).is_ok() {
        (shop.acknowledged, shop.attempted) = (acknowledged, attempted);
        shop.check_documents(&context);
        shop.check_entries(&context);
        shop.check_newest(&context);
        let stored = shop.documents().into_iter();
        let stored = stored.map(|(id, shop, code, _)| (id, Some((shop, code))));
        shop.acknowledged = stored.collect();
    }
    let finished = shop.finish(&mut random);
    assert!(finished.is_ok(), "{context}");
    shop.check_documents(&context);
    shop.check_entries(&context);
    shop.check_newest(&context);
    !is_complete
}

#[test]
fn entries_are_those_of_the_documents_after_a_loss_of_power_at_many_operations() {
    for seed in 0..3 {
        let mut site = seed;
        while survives(seed, site) {
            site += 5;
        }
        assert!(site > 40, "{site}");
    }
}

#[test]
#[ignore = "takes minutes: the long suite runs it"]
fn entries_are_those_of_the_documents_after_a_loss_of_power_at_each_operation() {
    for seed in 100..120 {
        let mut site = 0;
        while survives(seed, site) {
            site += 1;
        }
    }
}
