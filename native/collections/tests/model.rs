//! Random writes, against a map: outcomes, documents, versions, counts, entries of indexes, and
//! queries by each index, now and at snapshots, through flushes, compactions and restarts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rillbase_collections::{
    Candidate, CandidatePosition, CandidateRequest, CollectionSize, CollectionWrite, Collections,
    IndexTechnique, NativeDefinition, NativeIndex, PlanOrder, ScanPlan,
};
use rillbase_documents::bounds::{EncodedRange, bounds};
use rillbase_documents::entry::fields;
use rillbase_documents::id::key;
use rillbase_documents::operation::DocumentOperation;
use rillbase_documents::page::{PageBoundary, ResultPage};
use rillbase_documents::plan::WriteRequest;
use rillbase_documents::selection::{Selection, SelectionProgress};
use rillbase_documents::selection_request::{CandidateOrder, IndexOrder, SelectionRequest};
use rillbase_engine::vfs::SeededRandom;
use rillbase_engine::{Clock as _, Db, DbSnapshot, Millis};
use rillbase_query::bson::{Document, DocumentBuf, Value, ValueRef};
use rillbase_query::ejson::parse_document;
use rillbase_query::error::ParseLocation;
use rillbase_query::filter::Filter;
use rillbase_query::fuel::Fuel;
use rillbase_query::sort::{Sort, SystemFields};

use crate::opened::{OpenedCollections, definition, index, index_by_time, write_of};

const IDS: u64 = 12;
const COLLECTIONS: u64 = 2;
const HOUR_MS: Millis = 3_600_000;
const DAY_MS: Millis = 24 * HOUR_MS;

/// A document of the model: its fields as JSON without `_id`, and its code, which is unique.
#[derive(Debug, Clone, PartialEq)]
struct ModelBody {
    text: String,
    code: u64,
}

#[derive(Debug, Clone)]
struct ModelRow {
    version: i64,
    body: Option<ModelBody>,
    /// When the tombstone expires.
    expiry: Millis,
    created: Millis,
    updated: Millis,
}

#[derive(Debug, Clone, Default)]
struct ModelCollection {
    rows: BTreeMap<u64, ModelRow>,
    /// The versions of tombstones, and when these expire.
    tombstones: Vec<(Millis, i64)>,
}

#[derive(Debug, Clone)]
enum Step {
    Insert(u64, ModelBody),
    Replace(u64, ModelBody),
    Delete(u64),
}

fn document(id: u64, body: &ModelBody) -> DocumentBuf {
    let text = format!("{{\"_id\":{id},\"code\":{},{}}}", body.code, body.text);
    parse_document(text.as_bytes()).unwrap()
}

fn body(random: &mut SeededRandom) -> ModelBody {
    let tags: Vec<String> = (0..random.below(3))
        .map(|_| random.below(4).to_string())
        .collect();
    ModelBody {
        text: format!(
            "\"shop\":{},\"price\":{},\"tags\":[{}]",
            random.below(3),
            random.below(20),
            tags.join(",")
        ),
        code: random.below(16),
    }
}

fn step(random: &mut SeededRandom) -> Step {
    let id = random.below(IDS);
    match random.below(6) {
        0 | 1 => Step::Insert(id, body(random)),
        2..=4 => Step::Replace(id, body(random)),
        _ => Step::Delete(id),
    }
}

fn operation(step: &Step) -> DocumentOperation {
    let value = |id: &u64| Value::Int32(i32::try_from(*id).unwrap());
    match step {
        Step::Insert(id, body) => {
            DocumentOperation::insert(document(*id, body).as_ref(), ValueRef::Null).unwrap()
        }
        Step::Replace(id, body) => {
            DocumentOperation::replace(value(id), document(*id, body).as_ref(), true).unwrap()
        }
        Step::Delete(id) => DocumentOperation::delete(value(id)).unwrap(),
    }
}

/// The steps of a write by collection, and whether it is atomic.
type ModelWrite = (Vec<(u64, Step)>, bool);
type ModelResult = Result<Vec<Result<i64, &'static str>>, &'static str>;

impl ModelCollection {
    fn floor(&self, now: Millis) -> i64 {
        let expired = self.tombstones.iter();
        let expired = expired.filter(|(expiry, _)| expiry / HOUR_MS * HOUR_MS <= now);
        expired.map(|(_, version)| *version).max().unwrap_or(0)
    }

    /// Applies a step; returns the new version, or the code of the refusal. `is_unique`: codes of
    /// other documents are rejected.
    fn apply(&mut self, step: &Step, now: Millis, is_unique: bool) -> Result<i64, &'static str> {
        let (id, body) = match step {
            Step::Insert(id, body) | Step::Replace(id, body) => (*id, Some(body)),
            Step::Delete(id) => (*id, None),
        };
        let row = self.rows.get(&id);
        let row = row.filter(|row| row.body.is_some() || row.expiry > now);
        let version = row.map_or_else(|| self.floor(now), |row| row.version) + 1;
        let exists = row.is_some_and(|row| row.body.is_some());
        match step {
            Step::Insert(..) if exists => return Err("duplicate_id"),
            Step::Delete(_) if !exists => return Err("not_found"),
            _ => {}
        }
        let has_other = |body: &ModelBody| {
            let mut others = self.rows.iter().filter(|(other, _)| **other != id);
            others.any(|(_, row)| row.body.as_ref().is_some_and(|own| own.code == body.code))
        };
        if is_unique && body.is_some_and(has_other) {
            return Err("duplicate_key");
        }
        let expiry = now + DAY_MS;
        let created = row
            .filter(|row| row.body.is_some())
            .map_or(now, |row| row.created);
        let body = body.cloned();
        self.rows.insert(
            id,
            ModelRow {
                version,
                body,
                expiry,
                created,
                updated: now,
            },
        );
        Ok(version)
    }

    /// Records the tombstones that a group leaves: documents that it deletes and creates again have
    /// none.
    fn finish_group(&mut self, before: &Self) {
        for (id, row) in &self.rows {
            let version = before.rows.get(id).map(|row| row.version);
            if row.body.is_none() && version != Some(row.version) {
                self.tombstones.push((row.expiry, row.version));
            }
        }
    }

    fn has_equal_codes(&self) -> bool {
        let codes = self.rows.values().filter_map(|row| row.body.as_ref());
        let mut codes: Vec<u64> = codes.map(|body| body.code).collect();
        codes.sort_unstable();
        codes.windows(2).any(|pair| pair[0] == pair[1])
    }

    fn live(&self) -> impl Iterator<Item = (u64, &ModelRow, DocumentBuf)> {
        self.rows.iter().filter_map(|(id, row)| {
            let body = row.body.as_ref()?;
            Some((*id, row, document(*id, body)))
        })
    }
}

/// Both collections have composite and embedded indexes; the first one also has those with times.
fn model_definition(number: u64) -> NativeDefinition {
    let mut indexes = vec![
        index(1, "by code", &[("code", 1)], true),
        index(2, "by shop", &[("shop", 1), ("price", -1)], false),
        index(3, "by tag", &[("tags", 1)], false),
        index_by_time(4, "newest of shop", &[("shop", 1)], IndexTechnique::Lazy),
        index_by_time(5, "newest of tag", &[("tags", -1)], IndexTechnique::Lazy),
        index_by_time(
            6,
            "list of shop",
            &[("shop", -1), ("price", 1)],
            IndexTechnique::Eager,
        ),
        index_by_time(7, "list of tag", &[("tags", 1)], IndexTechnique::Eager),
        index_by_time(
            8,
            "embedded shop",
            &[("shop", 1), ("price", 1)],
            IndexTechnique::Embedded,
        ),
        index_by_time(9, "embedded tag", &[("tags", -1)], IndexTechnique::Embedded),
    ];
    let is_timed = |index: &NativeIndex| {
        matches!(
            index.technique,
            IndexTechnique::Lazy | IndexTechnique::Eager
        )
    };
    indexes.retain(|index| number == 0 || !is_timed(index));
    definition(1, indexes)
}

/// A write of one collection or of both, with its steps by collection.
fn write(random: &mut SeededRandom) -> (CollectionWrite, Vec<(u64, Step)>) {
    let only = (!random.one_in(4)).then(|| random.below(COLLECTIONS));
    let steps = (0..=random.below(2)).map(|_| {
        let collection = only.unwrap_or_else(|| random.below(COLLECTIONS));
        (collection, step(random))
    });
    let steps: Vec<(u64, Step)> = steps.collect();
    // In any order: the positions of targets are those of the write.
    let mut numbers: Vec<u64> = only.map_or_else(|| vec![1, 0], |only| vec![only]);
    if random.one_in(2) {
        numbers.reverse();
    }
    let operations = steps.iter();
    let operations = operations.map(|(collection, step)| (*collection, operation(step)));
    let write = write_of(&numbers, 1, operations.collect(), random.one_in(2));
    (write, steps)
}

fn by_index(index: u32, ranges: Vec<EncodedRange>, order: PlanOrder) -> ScanPlan {
    ScanPlan {
        index,
        ranges,
        has_entries: false,
        order,
        is_backward: false,
        entries: None,
    }
}

struct World {
    opened: Option<OpenedCollections>,
    models: Vec<ModelCollection>,
    snapshots: Vec<(DbSnapshot, Vec<ModelCollection>)>,
}

impl World {
    fn new() -> Self {
        let opened = OpenedCollections::new();
        for number in 0..COLLECTIONS {
            opened
                .collections
                .define(number, model_definition(number))
                .unwrap();
        }
        Self {
            opened: Some(opened),
            models: vec![ModelCollection::default(); usize::try_from(COLLECTIONS).unwrap()],
            snapshots: Vec::new(),
        }
    }

    fn reopen(&mut self) {
        self.snapshots.clear();
        self.opened = self.opened.take().map(OpenedCollections::reopened);
    }

    fn opened(&self) -> &OpenedCollections {
        self.opened.as_ref().unwrap()
    }

    fn db(&self) -> &Db {
        &self.opened().db
    }

    fn store(&self) -> &Collections {
        &self.opened().collections
    }

    /// Writes a group, and compares each outcome with the model's.
    fn write(&mut self, random: &mut SeededRandom) {
        let mut writes = Vec::new();
        let mut expected = Vec::new();
        for _ in 0..=random.below(3) {
            let (write, steps) = write(random);
            expected.push((steps, write.request.atomic));
            // What a server sends and a node reads.
            let request = WriteRequest::decode(&write.request.encode()).unwrap();
            writes.push(CollectionWrite { request, ..write });
        }
        let is_joint = writes.iter().any(|write| write.collections.len() > 1);
        let outcomes = self.opened().write(writes);
        let now = self.opened().clock.now();
        let models = self.models.clone();
        let mut results = self.apply(&expected, now, &[false, false]);
        // Documents may exchange codes within a group: writes of one collection, or of both if one
        // write has both.
        let is_unique = self.models.iter().map(ModelCollection::has_equal_codes);
        let mut is_unique: Vec<bool> = is_unique.collect();
        if is_joint && is_unique != [false, false] {
            is_unique = vec![true, true];
        }
        if is_unique != [false, false] {
            self.models.clone_from(&models);
            results = self.apply(&expected, now, &is_unique);
        }
        for ((outcome, result), (steps, _)) in outcomes.into_iter().zip(results).zip(expected) {
            let shown = outcome.unwrap();
            let shown = shown.as_ref().map(|outcomes| {
                let each = outcomes.iter().map(|one| match one {
                    Ok(change) => Ok(change.version),
                    Err(refusal) => Err(&*refusal.code),
                });
                each.collect::<Vec<Result<i64, &str>>>()
            });
            assert_eq!(shown.map_err(|refusal| &*refusal.code), result, "{steps:?}");
        }
        for (model, before) in self.models.iter_mut().zip(&models) {
            model.finish_group(before);
        }
    }

    /// Applies writes to the models. Returns the result of each operation, or that of the first
    /// rejected operation of an atomic write.
    fn apply(
        &mut self,
        writes: &[ModelWrite],
        now: Millis,
        is_unique: &[bool],
    ) -> Vec<ModelResult> {
        let mut results = Vec::new();
        for (steps, is_atomic) in writes {
            let before = self.models.clone();
            let each = steps.iter().map(|(collection, step)| {
                let place = usize::try_from(*collection).unwrap();
                self.models[place].apply(step, now, is_unique[place])
            });
            let each: Vec<Result<i64, &str>> = each.collect();
            let refused = each.iter().find_map(|one| one.err()).filter(|_| *is_atomic);
            results.push(match refused {
                Some(code) => {
                    self.models = before;
                    Err(code)
                }
                None => Ok(each),
            });
        }
        results
    }

    fn check(&self, models: &[ModelCollection], snapshot: &DbSnapshot) {
        for (number, model) in (0..COLLECTIONS).zip(models) {
            self.check_documents(number, model, snapshot);
            self.check_entries(number, model, snapshot);
            for filter in [
                "{\"shop\":1}",
                "{\"shop\":{\"$gte\":1},\"price\":{\"$lt\":9}}",
                "{\"shop\":2,\"price\":{\"$gt\":4,\"$lte\":12}}",
                "{\"tags\":{\"$gt\":0,\"$lt\":3}}",
                "{\"tags\":2}",
                "{\"code\":{\"$in\":[1,5,9]}}",
                "{\"code\":{\"$gt\":7}}",
            ] {
                self.check_query(number, model, filter, snapshot);
                for sort in [
                    "[]",
                    "[[\"price\",1]]",
                    "[[\"shop\",1],[\"price\",-1]]",
                    "[[\"shop\",-1],[\"price\",1]]",
                    "[[\"tags\",1]]",
                    "[[\"tags\",-1]]",
                    "[[\"code\",1]]",
                    "[[\"$updated\",-1]]",
                    "[[\"shop\",1],[\"$created\",1]]",
                    "[[\"$created\",-1],[\"tags\",1]]",
                ] {
                    self.check_pages(number, model, (filter, sort), snapshot);
                }
            }
        }
    }

    /// All candidates of a plan; reading continues after some of them in a new scan.
    fn candidates(&self, number: u64, plan: &ScanPlan, snapshot: &DbSnapshot) -> Vec<Candidate> {
        let plan = ScanPlan::decode(&plan.encode()).unwrap();
        let mut candidates = Vec::<Candidate>::new();
        loop {
            let after = candidates.last().map(|last| last.position.clone());
            let more = self
                .store()
                .candidates(number, &plan, after, snapshot)
                .unwrap();
            let before = candidates.len();
            candidates.extend(more.map(Result::unwrap).take(3));
            if candidates.len() == before {
                return candidates;
            }
        }
    }

    fn check_documents(&self, number: u64, model: &ModelCollection, snapshot: &DbSnapshot) {
        let mut expected = CollectionSize::default();
        for id in 0..IDS {
            let name = key(ValueRef::Int32(i32::try_from(id).unwrap())).unwrap();
            let stored = self.store().get(number, &name, Some(snapshot)).unwrap();
            let row = model.rows.get(&id).filter(|row| row.body.is_some());
            assert_eq!(
                stored.as_ref().map(|stored| stored.head.version),
                row.map(|row| row.version)
            );
            if let (Some(stored), Some(row)) = (stored, row) {
                let own = document(id, row.body.as_ref().unwrap());
                assert_eq!(stored.body, own.as_bytes());
                assert_eq!(stored.head.rules_version, 5);
                assert!(stored.batch <= snapshot.sequence());
                expected.documents += 1;
                expected.bytes += own.as_bytes().len() as u64;
            }
        }
        let counts = self.store().counts(number, Some(snapshot)).unwrap();
        assert_eq!(counts, expected);
        let plan = ScanPlan::everything();
        let scanned = self.candidates(number, &plan, snapshot);
        assert_eq!(scanned.len() as u64, expected.documents);
        assert!(scanned.is_sorted_by(|one, other| one.row().key < other.row().key));
    }

    /// The entries of each index are those that its documents have.
    fn check_entries(&self, number: u64, model: &ModelCollection, snapshot: &DbSnapshot) {
        let compiled = rillbase_documents::definition::CollectionDefinition::new(
            None,
            model_definition(number)
                .indexes
                .iter()
                .filter(|index| index.technique != IndexTechnique::Embedded)
                .map(|index| rillbase_documents::entry::IndexDefinition {
                    number: i64::from(index.number),
                    fields: fields(&index.fields),
                    unique: index.is_unique,
                })
                .collect(),
        )
        .unwrap();
        let mut expected = BTreeSet::new();
        for (id, _, document) in model.live() {
            let name = key(ValueRef::Int32(i32::try_from(id).unwrap())).unwrap();
            for entry in compiled.entries(document.as_ref()).unwrap() {
                expected.insert((entry.index, entry.key, name.clone()));
            }
        }
        let mut stored = BTreeSet::new();
        let indexes = model_definition(number).indexes.into_iter();
        for index in indexes.filter(|index| index.technique != IndexTechnique::Embedded) {
            let plan = by_index(
                index.number,
                EncodedRange::everything(),
                PlanOrder::Unordered,
            );
            let entries = self.entries(number, &plan, snapshot);
            let own: BTreeSet<(Vec<u8>, Vec<u8>)> = entries.iter().cloned().collect();
            assert_eq!(own.len(), entries.len(), "an entry is returned twice");
            if index.technique == IndexTechnique::Composite {
                self.check_order(number, index.number, &own, snapshot);
            }
            let own = own.into_iter();
            stored.extend(own.map(|(entry, document)| (i64::from(index.number), entry, document)));
        }
        assert_eq!(stored, expected);
    }

    fn entries(
        &self,
        number: u64,
        plan: &ScanPlan,
        snapshot: &DbSnapshot,
    ) -> Vec<(Vec<u8>, Vec<u8>)> {
        let candidates = self.candidates(number, plan, snapshot);
        let entries = candidates
            .iter()
            .map(|one| (one.row().entry.unwrap().to_vec(), one.row().key.to_vec()));
        entries.collect()
    }

    /// In the order of an index, documents ascend within an entry in both directions.
    fn check_order(
        &self,
        number: u64,
        index: u32,
        expected: &BTreeSet<(Vec<u8>, Vec<u8>)>,
        snapshot: &DbSnapshot,
    ) {
        for is_backward in [false, true] {
            let plan = ScanPlan {
                is_backward,
                ..by_index(index, EncodedRange::everything(), PlanOrder::ByIndex)
            };
            let entries = self.entries(number, &plan, snapshot);
            let is_ordered = entries.is_sorted_by(|one, other| {
                if is_backward && one.0 != other.0 {
                    one.0 > other.0
                } else {
                    one < other
                }
            });
            assert!(is_ordered, "{entries:?}");
            let entries: BTreeSet<_> = entries.into_iter().collect();
            // Read backward, a range from the beginning ends before the marks.
            let marks = expected.iter().filter(|(entry, _)| entry.is_empty());
            assert!(is_backward || entries == *expected);
            assert!(entries.len() + marks.count() >= expected.len());
        }
    }

    /// What an index yields for a filter's bounds is what a full scan yields.
    fn check_query(
        &self,
        number: u64,
        model: &ModelCollection,
        filter: &str,
        snapshot: &DbSnapshot,
    ) {
        let parsed = parse_document(filter.as_bytes()).unwrap();
        let filter = Filter::parse(parsed.as_ref()).unwrap();
        let expected: BTreeSet<Vec<u8>> = model
            .live()
            .filter(|(_, _, document)| filter.matches(document.as_ref()).unwrap())
            .map(|(id, ..)| key(ValueRef::Int32(i32::try_from(id).unwrap())).unwrap())
            .collect();
        for index in &model_definition(number).indexes {
            let Some(limits) = bounds(&filter, &fields(&index.fields)) else {
                continue;
            };
            let orders: &[PlanOrder] = match index.technique {
                IndexTechnique::Composite => &[PlanOrder::Unordered, PlanOrder::ByIndex],
                IndexTechnique::Embedded => &[PlanOrder::Unordered, PlanOrder::ByTime],
                _ => &[PlanOrder::Unordered],
            };
            for order in orders {
                let plan = ScanPlan {
                    has_entries: limits.are_entries,
                    ..by_index(index.number, limits.ranges.clone(), *order)
                };
                let candidates = self.candidates(number, &plan, snapshot);
                let matching = candidates
                    .iter()
                    .filter(|one| filter.matches(Document::trusted(one.row().body)).unwrap());
                let keys: BTreeSet<Vec<u8>> = matching.map(|one| one.row().key.to_vec()).collect();
                assert_eq!(keys, expected, "{filter:?} by {}", index.name);
            }
        }
    }
}

impl World {
    /// A query yields the documents of the model in its order, page by page.
    fn check_pages(
        &self,
        number: u64,
        model: &ModelCollection,
        (filter, sort): (&str, &str),
        snapshot: &DbSnapshot,
    ) {
        let filter = parse_document(filter.as_bytes()).unwrap();
        let filter = Arc::new(Filter::parse(filter.as_ref()).unwrap());
        let sort = parse_sort(sort);
        let mut expected: Vec<_> = model
            .live()
            .filter(|(_, _, document)| filter.matches(document.as_ref()).unwrap())
            .collect();
        expected.sort_by_cached_key(|(_, row, document)| {
            let system = SystemFields {
                created_ms: i64::try_from(row.created).unwrap(),
                updated_ms: i64::try_from(row.updated).unwrap(),
                ..SystemFields::default()
            };
            let fuel = Fuel::default();
            sort.key(document.as_ref(), system, &fuel).unwrap()
        });
        let request = SelectionRequest {
            filter,
            sort,
            offset: 0,
            limit: 1,
            after: None,
            now_ms: 0,
            max_bytes: usize::MAX,
            page_bytes: usize::MAX,
            group: None,
            lookups: None,
            readable: None,
        };
        let (mut shown, mut boundary) = (Vec::new(), None);
        loop {
            let page = self.page(number, &request, boundary.as_ref(), snapshot);
            shown.extend(page.bodies().map(<[u8]>::to_vec));
            boundary = page.next;
            if boundary.is_none() {
                break;
            }
        }
        let expected = expected.into_iter();
        let expected: Vec<Vec<u8>> = expected
            .map(|(_, _, document)| document.into_bytes())
            .collect();
        assert_eq!(shown, expected, "{request:?}");
    }

    fn page(
        &self,
        number: u64,
        request: &SelectionRequest,
        boundary: Option<&PageBoundary>,
        snapshot: &DbSnapshot,
    ) -> ResultPage {
        for in_order in [true, false] {
            let parameters = CandidateRequest {
                filter: Filter::clone(&request.filter),
                sort: request.sort.clone(),
                // Even few documents are read in order.
                documents: 0,
                in_order,
                is_use: true,
            };
            let plan = self
                .store()
                .plan((number, 1), &parameters, snapshot)
                .unwrap();
            let order = match plan.order {
                PlanOrder::Unordered => CandidateOrder::Unordered,
                PlanOrder::ById | PlanOrder::ByTime => CandidateOrder::Ordered,
                PlanOrder::ByIndex => {
                    let definition = model_definition(number);
                    let fields = fields(&definition.index(plan.index).unwrap().fields);
                    let limits = bounds(&request.filter, &fields);
                    let order = IndexOrder::new(fields, limits.as_ref(), plan.is_backward);
                    CandidateOrder::ByIndex(order)
                }
            };
            let after = boundary.map(|boundary| CandidatePosition {
                entry: boundary.entry.clone(),
                document: boundary.key.clone(),
            });
            let after = after.filter(|after| match plan.order {
                PlanOrder::Unordered => false,
                PlanOrder::ById => true,
                PlanOrder::ByIndex | PlanOrder::ByTime => !after.entry.is_empty(),
            });
            let request = SelectionRequest {
                after: boundary.map(|boundary| boundary.sort_position.clone()),
                ..request.clone()
            };
            let scan = self.store().candidates(number, &plan, after, snapshot);
            let candidates: Vec<Candidate> = scan.unwrap().map(Result::unwrap).collect();
            let mut selection = Selection::new(request, order);
            let progress = selection.feed(candidates.iter().map(Candidate::row));
            if progress.unwrap() != SelectionProgress::Misplaced {
                return selection.finish();
            }
        }
        panic!("candidates that are sorted afterwards are never misplaced")
    }
}

pub(crate) fn parse_sort(text: &str) -> Sort {
    let document = parse_document(format!("{{\"sort\":{text}}}").as_bytes()).unwrap();
    let sort = document.as_ref().get("sort").unwrap();
    Sort::parse(sort, &ParseLocation::root()).unwrap()
}

fn run(seed: u64) {
    let mut random = SeededRandom::new(seed);
    let mut world = World::new();
    for _ in 0..120 {
        match random.below(14) {
            0 => world.db().flush().unwrap(),
            1 => {
                for space in world.db().keyspaces() {
                    world.db().compact(&space).unwrap();
                }
            }
            2 => world.reopen(),
            3 => world.opened().clock.advance(random.below(2 * DAY_MS)),
            4 if world.snapshots.len() < 3 => {
                let snapshot = world.db().snapshot();
                let models = world.models.clone();
                world.snapshots.push((snapshot, models));
            }
            5 if !world.snapshots.is_empty() => {
                let (snapshot, models) = world.snapshots.remove(0);
                world.check(&models, &snapshot);
            }
            _ => {
                world.opened().clock.advance(random.below(3));
                world.write(&mut random);
            }
        }
        if random.one_in(8) {
            let snapshot = world.db().snapshot();
            world.check(&world.models, &snapshot);
        }
    }
    let snapshot = world.db().snapshot();
    world.check(&world.models, &snapshot);
}

#[test]
fn random_histories_agree_with_a_map() {
    (0..12).for_each(run);
}

#[test]
#[ignore = "takes minutes: the long suite runs it"]
fn many_random_histories_agree_with_a_map() {
    (1000..3000).for_each(run);
}
