//! The documents of some values that were changed last, by lazy and eager indexes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rillbase_collections::{
    CandidatePosition, CandidateRequest, IndexBuild, IndexTechnique, NativeIndex, PlanOrder,
    ScanPlan,
};
use rillbase_documents::id::key;
use rillbase_documents::operation::DocumentOperation;
use rillbase_engine::vfs::SeededRandom;
use rillbase_query::bson::{Document, Value, ValueRef};
use rillbase_query::ejson::parse_document;
use rillbase_query::filter::Filter;

use crate::model::parse_sort;
use crate::opened::{OpenedCollections, definition, index_by_time, write_of};

const NEWEST_FIRST: &str = "[[\"$updated\",-1]]";
const TECHNIQUES: [IndexTechnique; 3] = [
    IndexTechnique::Lazy,
    IndexTechnique::Eager,
    IndexTechnique::Embedded,
];

/// Documents of some shops with long ids, so that lists become large.
struct Shops {
    opened: OpenedCollections,
    /// The shop of each document, and when it was changed.
    documents: BTreeMap<u64, (u64, i64)>,
    version: u64,
}

fn name(id: u64) -> Value {
    Value::String(format!("{id:0>900}"))
}

impl Shops {
    fn new(indexes: Vec<NativeIndex>) -> Self {
        let opened = OpenedCollections::new();
        opened
            .collections
            .define(1, definition(1, indexes))
            .unwrap();
        Self {
            opened,
            documents: BTreeMap::new(),
            version: 1,
        }
    }

    fn now(&self) -> i64 {
        i64::try_from(self.opened.db.now()).unwrap()
    }

    /// Puts documents, or deletes those without a shop, in one write.
    fn write(&mut self, documents: &[(u64, Option<u64>)]) {
        let now = self.now();
        let mut operations = Vec::new();
        for (id, shop) in documents {
            let Some(shop) = shop else {
                self.documents.remove(id);
                operations.push((1, DocumentOperation::delete(name(*id)).unwrap()));
                continue;
            };
            self.documents.insert(*id, (*shop, now));
            let text = format!("{{\"_id\":\"{id:0>900}\",\"shop\":{shop}}}");
            let document = parse_document(text.as_bytes()).unwrap();
            let put = DocumentOperation::replace(name(*id), document.as_ref(), true);
            operations.push((1, put.unwrap()));
        }
        let write = write_of(&[1], self.version, operations, false);
        self.opened.write(vec![write]).remove(0).unwrap().unwrap();
    }

    fn plan(&self, filter: &str, documents: usize) -> ScanPlan {
        let filter = parse_document(filter.as_bytes()).unwrap();
        let request = CandidateRequest {
            filter: Filter::parse(filter.as_ref()).unwrap(),
            sort: parse_sort(NEWEST_FIRST),
            documents,
            in_order: true,
            is_use: true,
        };
        let snapshot = self.opened.db.snapshot();
        let place = (1, self.version);
        self.opened
            .collections
            .plan(place, &request, &snapshot)
            .unwrap()
    }

    /// The keys of the documents in a plan's order, in a new scan after each part of them.
    fn keys(&self, plan: &ScanPlan, part: usize) -> Vec<Vec<u8>> {
        let snapshot = self.opened.db.snapshot();
        let plan = ScanPlan::decode(&plan.encode()).unwrap();
        let (mut keys, mut after) = (Vec::new(), None::<CandidatePosition>);
        loop {
            let store = &self.opened.collections;
            let scan = store.candidates(1, &plan, after.clone(), &snapshot);
            let mut count = 0;
            for candidate in scan.unwrap().take(part) {
                let candidate = candidate.unwrap();
                after = Some(candidate.position);
                keys.push(candidate.key);
                count += 1;
            }
            if count < part {
                return keys;
            }
        }
    }

    fn expected(&self, shops: impl Fn(u64) -> bool) -> Vec<Vec<u8>> {
        let matching = self.documents.iter().filter(|(_, (shop, _))| shops(*shop));
        let mut order: Vec<(i64, Vec<u8>)> = matching
            .map(|(id, (_, updated))| (-updated, key(name(*id).as_ref()).unwrap()))
            .collect();
        order.sort();
        order.into_iter().map(|(_, key)| key).collect()
    }

    fn check(&self) {
        for part in [7, usize::MAX] {
            let plan = self.plan("{\"shop\":1}", 10);
            assert_eq!(plan.order, PlanOrder::ByTime);
            assert!(self.keys(&plan, part) == self.expected(|shop| shop == 1));
            let plan = self.plan("{\"shop\":{\"$gte\":1}}", 10);
            assert_eq!(plan.order, PlanOrder::ByTime);
            assert!(self.keys(&plan, part) == self.expected(|shop| shop >= 1));
        }
    }
}

fn random_part(random: &mut SeededRandom, ids: u64) -> Vec<(u64, Option<u64>)> {
    let mut part = BTreeMap::new();
    for _ in 0..40 {
        let shop = (!random.one_in(8)).then(|| random.below(4).min(2));
        part.insert(random.below(ids), shop);
    }
    part.into_iter().collect()
}

#[test]
fn newest_documents_are_first_also_once_lists_are_split() {
    for technique in TECHNIQUES {
        let index = index_by_time(1, "by shop", &[("shop", 1)], technique);
        let mut shops = Shops::new(vec![index]);
        let mut random = SeededRandom::new(7);
        // Of 800 documents, more than 300 are in shop 2: 900 bytes each.
        for round in 0..60 {
            let part = random_part(&mut random, 800);
            let deleted = part.iter().filter(|(_, shop)| shop.is_none());
            let exist = deleted.filter(|(id, _)| shops.documents.contains_key(id));
            let exist: Vec<u64> = exist.map(|(id, _)| *id).collect();
            let part: Vec<_> = part
                .into_iter()
                .filter(|(id, shop)| shop.is_some() || exist.contains(id))
                .collect();
            shops.write(&part);
            shops.opened.clock.advance(random.below(2));
            if round % 12 == 11 {
                shops.opened.db.flush().unwrap();
                shops.check();
            }
        }
        let of_two = shops.expected(|shop| shop == 2);
        assert!(of_two.len() > 300, "{}", of_two.len());
    }
}

#[test]
fn a_built_index_has_the_times_of_the_documents() {
    for technique in TECHNIQUES {
        let mut shops = Shops::new(Vec::new());
        for id in [3, 1, 2, 5, 4, 6] {
            shops.write(&[(id, Some(id % 2))]);
            shops.opened.clock.advance(10);
            if id == 2 {
                // Some documents are in a table, the others in memory.
                shops.opened.db.flush().unwrap();
            }
        }
        let mut index = index_by_time(1, "by shop", &[("shop", 1)], technique);
        index.is_ready = false;
        shops.version = 2;
        let define = |shops: &Shops, index: &NativeIndex| {
            let definition = definition(shops.version, vec![index.clone()]);
            shops.opened.collections.define(1, definition).unwrap();
        };
        define(&shops, &index);
        shops.write(&[(1, Some(1)), (2, None)]);
        let mut build = IndexBuild {
            collection: 1,
            write_version: 2,
            index: 1,
            after: None,
            documents: 2,
        };
        loop {
            let part = shops.opened.collections.build_index(&build).unwrap();
            build.after = part.after;
            if build.after.is_none() {
                break;
            }
        }
        index.is_ready = true;
        shops.version = 3;
        define(&shops, &index);
        let plan = shops.plan("{\"shop\":{\"$in\":[0,1]}}", 0);
        assert_eq!(plan.order, PlanOrder::ByTime);
        assert_eq!(shops.keys(&plan, 2), shops.expected(|_| true));
        shops.opened = shops.opened.reopened();
        shops.write(&[(6, Some(1))]);
        assert_eq!(shops.keys(&plan, 2), shops.expected(|_| true));
    }
}

#[test]
fn a_document_with_several_values_is_returned_once() {
    for technique in TECHNIQUES {
        let opened = OpenedCollections::new();
        let index = index_by_time(1, "by tag", &[("tags", 1)], technique);
        let definition = definition(1, vec![index]);
        opened.collections.define(1, definition).unwrap();
        for text in ["{\"_id\":2,\"tags\":[1,2,3]}", "{\"_id\":1,\"tags\":[2,3]}"] {
            let document = parse_document(text.as_bytes()).unwrap();
            let insert = DocumentOperation::insert(document.as_ref(), ValueRef::Null).unwrap();
            let write = write_of(&[1], 1, vec![(1, insert)], false);
            opened.write(vec![write]).remove(0).unwrap().unwrap();
        }
        let filter = parse_document(b"{\"tags\":{\"$gt\":0}}").unwrap();
        let request = CandidateRequest {
            filter: Filter::parse(filter.as_ref()).unwrap(),
            sort: parse_sort(NEWEST_FIRST),
            documents: 0,
            in_order: true,
            is_use: true,
        };
        let snapshot = opened.db.snapshot();
        let plan = opened
            .collections
            .plan((1, 1), &request, &snapshot)
            .unwrap();
        assert_eq!(plan.order, PlanOrder::ByTime);
        let scan = opened.collections.candidates(1, &plan, None, &snapshot);
        let ids = scan.unwrap().map(|candidate| {
            let body = candidate.unwrap().document.body;
            Document::trusted(&body)
                .get("_id")
                .and_then(|id| id.as_exact_i64())
        });
        // Of the same time, in the order of ids.
        assert_eq!(ids.collect::<Vec<_>>(), [Some(1), Some(2)]);
    }
}

/// The time that the newest documents of a range take, if a document has so many values.
fn time_of_range(values: usize) -> Duration {
    let index = index_by_time(1, "by tag", &[("shop", 1)], IndexTechnique::Embedded);
    let shops = Shops::new(vec![index]);
    let list: Vec<String> = (0..values).map(|value| value.to_string()).collect();
    let text = format!("{{\"_id\":1,\"shop\":[{}]}}", list.join(","));
    let document = parse_document(text.as_bytes()).unwrap();
    for is_last in [false, true] {
        let put = DocumentOperation::replace(Value::Int32(1), document.as_ref(), true);
        let write = write_of(&[1], 1, vec![(1, put.unwrap())], false);
        shops.opened.write(vec![write]).remove(0).unwrap().unwrap();
        if !is_last {
            // The next memtable lists values from its beginning.
            shops.opened.db.flush().unwrap();
        }
    }
    let times = (0..5).map(|_| {
        let started = Instant::now();
        let plan = shops.plan("{\"shop\":{\"$gte\":5}}", 10);
        assert_eq!(shops.keys(&plan, usize::MAX).len(), 1);
        started.elapsed()
    });
    times.min().unwrap()
}

#[test]
fn a_document_with_many_values_is_examined_once() {
    // Ten times as many values take ten times as long, and not a hundred times.
    let (few, many) = (time_of_range(900), time_of_range(9_000));
    assert!(many < 40 * few, "{few:?} and {many:?}");
}

#[test]
fn a_query_fails_if_its_embedded_index_is_dropped() {
    let index = index_by_time(1, "by shop", &[("shop", 1)], IndexTechnique::Embedded);
    let mut shops = Shops::new(vec![index]);
    shops.write(&[(0, Some(0))]);
    shops.opened.db.flush().unwrap();
    shops.write(&[(1, Some(1)), (2, Some(1)), (3, Some(2))]);
    let plan = shops.plan("{\"shop\":1}", 10);
    let collections = &shops.opened.collections;
    let snapshot = shops.opened.db.snapshot();
    let scan = collections.candidates(1, &plan, None, &snapshot).unwrap();
    collections.check_index(1, &plan).unwrap();
    collections.define(1, definition(2, Vec::new())).unwrap();
    let read = scan.map(Result::unwrap).count();
    assert!(read < 2, "values are not extracted any more");
    let error = collections.check_index(1, &plan).unwrap_err();
    assert_eq!(error.code(), "no_index");
    collections.check_index(1, &ScanPlan::everything()).unwrap();
}

/// The candidates of a range in any order, of documents with a thousand values each.
fn unordered_keys(technique: IndexTechnique) -> Vec<Vec<u8>> {
    let index = index_by_time(1, "by shop", &[("shop", 1)], technique);
    let shops = Shops::new(vec![index]);
    let list: Vec<String> = (0..1_000).map(|value| value.to_string()).collect();
    for id in 0..3 {
        let text = format!("{{\"_id\":{id},\"shop\":[{}]}}", list.join(","));
        let document = parse_document(text.as_bytes()).unwrap();
        let put = DocumentOperation::replace(Value::Int32(id), document.as_ref(), true);
        let write = write_of(&[1], 1, vec![(1, put.unwrap())], false);
        shops.opened.write(vec![write]).remove(0).unwrap().unwrap();
    }
    let filter = parse_document(b"{\"shop\":{\"$gte\":5}}").unwrap();
    let request = CandidateRequest {
        filter: Filter::parse(filter.as_ref()).unwrap(),
        sort: parse_sort("[[\"other\",1]]"),
        documents: 10,
        in_order: false,
        is_use: true,
    };
    let snapshot = shops.opened.db.snapshot();
    let collections = &shops.opened.collections;
    let plan = collections.plan((1, 1), &request, &snapshot).unwrap();
    assert_eq!((plan.index, plan.order), (1, PlanOrder::Unordered));
    let scan = collections.candidates(1, &plan, None, &snapshot);
    let keys = scan.unwrap().without_repetitions();
    keys.map(|candidate| candidate.unwrap().key).collect()
}

#[test]
fn a_document_with_many_values_is_read_a_few_times_if_the_order_does_not_matter() {
    for technique in [
        IndexTechnique::Composite,
        IndexTechnique::Lazy,
        IndexTechnique::Eager,
    ] {
        let mut keys = unordered_keys(technique);
        // Each once, and again after every thousand entries that were skipped.
        assert!(
            (3..10).contains(&keys.len()),
            "{} {technique:?}",
            keys.len()
        );
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 3);
    }
}
