//! What queries and writes count, and the shares of blocks that values leave.

use rillbase_collections::{
    CandidateRequest, CollectionUsage, Error, IndexTechnique, IndexUsage, NativeIndex,
};
use rillbase_documents::operation::DocumentOperation;
use rillbase_engine::vfs::SeededRandom;
use rillbase_query::bson::{Value, ValueRef};
use rillbase_query::ejson::parse_document;
use rillbase_query::filter::Filter;

use crate::model::parse_sort;
use crate::opened::{OpenedCollections, definition, index, index_by_time, write_of};

const NEWEST_FIRST: &str = "[[\"$updated\",-1]]";
const SMALL_BLOCKS: usize = 128;

fn insert(text: &str) -> (u64, DocumentOperation) {
    let document = parse_document(text.as_bytes()).unwrap();
    let insert = DocumentOperation::insert(document.as_ref(), ValueRef::Null);
    (1, insert.unwrap())
}

fn write(opened: &OpenedCollections, version: u64, operations: Vec<(u64, DocumentOperation)>) {
    let write = write_of(&[1], version, operations, false);
    opened.write(vec![write]).remove(0).unwrap().unwrap();
}

fn opened(indexes: Vec<NativeIndex>) -> OpenedCollections {
    let opened = OpenedCollections::new();
    let definition = definition(1, indexes);
    opened.collections.define(1, definition).unwrap();
    opened
}

/// Plans a query for some documents; returns whether it could be planned.
fn plan(
    opened: &OpenedCollections,
    version: u64,
    (filter, sort): (&str, &str),
    documents: usize,
) -> bool {
    let filter = parse_document(filter.as_bytes()).unwrap();
    let request = CandidateRequest {
        filter: Filter::parse(filter.as_ref()).unwrap(),
        sort: parse_sort(sort),
        documents,
        in_order: true,
        is_use: true,
    };
    let snapshot = opened.db.snapshot();
    let plan = opened.collections.plan((1, version), &request, &snapshot);
    plan.is_ok()
}

fn usage(opened: &OpenedCollections) -> CollectionUsage {
    opened.collections.usage(1).unwrap()
}

fn by_time(number: u32, name: &str) -> NativeIndex {
    index_by_time(number, name, &[(name, 1)], IndexTechnique::Lazy)
}

#[test]
fn queries_count_for_each_ready_index_that_could_serve_them() {
    let mut building = index(3, "in building", &[("shop", 1)], false);
    building.is_ready = false;
    let by_price = index(1, "by price", &[("price", 1)], false);
    let opened = opened(vec![by_price, by_time(2, "shop"), building]);
    let documents =
        (0..10).map(|id| insert(&format!("{{\"_id\":{id},\"price\":{id},\"shop\":1}}")));
    write(&opened, 1, documents.collect());
    let both = "{\"shop\":1,\"price\":{\"$in\":[1,2,5,7]}}";
    assert!(plan(&opened, 1, (both, "[]"), 10));
    let usages = usage(&opened).indexes;
    let bounded = |number: u32, entries: u64| IndexUsage {
        number,
        lookups: 1,
        counted: 1,
        entries,
        ..IndexUsage::default()
    };
    let unused = IndexUsage {
        number: 3,
        ..IndexUsage::default()
    };
    assert_eq!(usages, [bounded(1, 4), bounded(2, 10), unused.clone()]);
    // A page that is too large, and one of the newest, whose entries are not counted.
    let of_shop = ("{\"shop\":1}", NEWEST_FIRST);
    assert!(plan(&opened, 1, of_shop, 101));
    assert!(plan(&opened, 1, of_shop, 100));
    let of_two = usage(&opened).indexes[1].clone();
    assert_eq!((of_two.lookups, of_two.newest, of_two.counted), (3, 1, 1));
    // An order without bounds, one of an index by time, and one after an equality.
    assert!(plan(&opened, 1, ("{}", "[[\"price\",-1]]"), 10));
    assert!(plan(&opened, 1, ("{\"price\":3}", "[[\"shop\",1]]"), 10));
    let ordered = |opened: &OpenedCollections| {
        let usages = usage(opened).indexes.into_iter();
        usages.map(|index| index.ordered).collect::<Vec<_>>()
    };
    assert_eq!(ordered(&opened), [1, 1, 0]);
    let usages = usage(&opened);
    assert_eq!(usages.indexes[0].lookups, 2);
    assert_eq!(usages.indexes[2], unused);
    assert_eq!(usages.reads, 5);
}

#[test]
fn reads_and_writes_are_counted_by_documents() {
    let opened = opened(Vec::new());
    write(
        &opened,
        1,
        vec![insert("{\"_id\":1}"), insert("{\"_id\":2}")],
    );
    assert_eq!(usage(&opened).writes, 2);
    let delete = |id| (1, DocumentOperation::delete(Value::Int32(id)).unwrap());
    write(&opened, 1, vec![delete(2)]);
    assert_eq!(usage(&opened).writes, 3);
    // Writes with another version, and those that are refused, change no documents.
    let stale = write_of(&[1], 2, vec![delete(1)], false);
    assert!(opened.write(vec![stale]).remove(0).is_err());
    let repeated = write_of(&[1], 1, vec![insert("{\"_id\":1}")], false);
    assert!(opened.write(vec![repeated]).remove(0).unwrap().is_ok());
    assert_eq!(usage(&opened).writes, 3);
    assert!(plan(&opened, 1, ("{\"_id\":1}", "[]"), 1));
    assert!(!plan(&opened, 2, ("{\"_id\":1}", "[]"), 1));
    opened.collections.count_reads(1, 7);
    opened.collections.count_reads(2, 7);
    assert_eq!(usage(&opened).reads, 8);
    assert!(matches!(
        opened.collections.usage(2),
        Err(Error::NoCollection)
    ));
}

#[test]
fn counters_continue_in_the_next_definition_and_start_again_with_the_node() {
    let opened = opened(vec![by_time(1, "shop"), by_time(2, "price")]);
    write(&opened, 1, vec![insert("{\"_id\":1}")]);
    let of_shop = ("{\"shop\":1,\"price\":1}", NEWEST_FIRST);
    assert!(plan(&opened, 1, of_shop, 10));
    let next = definition(2, vec![by_time(2, "price"), by_time(3, "shop")]);
    opened.collections.define(1, next).unwrap();
    let lookups = |opened: &OpenedCollections| {
        let usages = usage(opened).indexes.into_iter();
        let lookups = usages.map(|index| (index.number, index.lookups, index.newest));
        lookups.collect::<Vec<_>>()
    };
    assert_eq!(lookups(&opened), [(2, 1, 1), (3, 0, 0)]);
    assert!(plan(&opened, 2, of_shop, 10));
    assert_eq!(lookups(&opened), [(2, 2, 2), (3, 1, 1)]);
    let usages = usage(&opened);
    assert_eq!((usages.reads, usages.writes), (2, 1));
    let opened = opened.reopened();
    assert_eq!(lookups(&opened), [(2, 0, 0), (3, 0, 0)]);
    assert_eq!((usage(&opened).reads, usage(&opened).writes), (0, 0));
}

/// The block shares of a field that grows with the documents' keys, one in no order, one with a
/// single value, and a pair of the first and the second, in this order.
fn shares(documents: u64, technique: IndexTechnique) -> [Option<u32>; 4] {
    let opened = OpenedCollections::with_blocks(SMALL_BLOCKS);
    let fields: [&[(&str, i32)]; 4] = [
        &[("day", -1)],
        &[("tags", 1)],
        &[("shop", 1)],
        &[("day", 1), ("tags", 1)],
    ];
    let numbered = (1..).zip(fields);
    let indexes = numbered.map(|(number, fields)| index_by_time(number, "", fields, technique));
    let definition = definition(1, indexes.collect());
    opened.collections.define(1, definition).unwrap();
    let mut random = SeededRandom::new(5);
    for part in 0..documents.div_ceil(500) {
        let ids = part * 500..documents.min(part * 500 + 500);
        let inserts = ids.map(|id| {
            let (day, tag) = (id / 3, random.below(1_000_000));
            insert(&format!(
                "{{\"_id\":{id},\"day\":{day},\"tags\":[{tag}],\"shop\":7}}"
            ))
        });
        write(&opened, 1, inserts.collect());
    }
    // Documents that were deleted are in blocks, and have no values.
    let deleted = (0..documents).step_by(10);
    let deleted = deleted.map(|id| {
        let id = Value::Int32(i32::try_from(id).unwrap());
        (1, DocumentOperation::delete(id).unwrap())
    });
    write(&opened, 1, deleted.collect());
    opened.db.flush().unwrap();
    [1, 2, 3, 4].map(|number| opened.collections.block_share(1, number).unwrap())
}

#[test]
fn values_that_grow_with_the_documents_leave_few_blocks() {
    for technique in [IndexTechnique::Composite, IndexTechnique::Embedded] {
        let [growing, unordered, single, pair] = shares(8_000, technique).map(Option::unwrap);
        assert!((1..50_000).contains(&growing), "{growing}");
        assert!((600_001..=1_000_000).contains(&unordered), "{unordered}");
        assert_eq!(single, 1_000_000);
        assert!(pair < 50_000, "{pair}");
    }
}

#[test]
fn few_blocks_have_no_share() {
    assert_eq!(shares(1_000, IndexTechnique::Composite), [None; 4]);
    let opened = opened(Vec::new());
    let share = opened.collections.block_share(1, 1);
    assert!(matches!(share, Err(Error::NoIndex)));
}
