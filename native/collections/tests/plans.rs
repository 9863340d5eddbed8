//! Which plans are chosen.

use rillbase_collections::{CandidateRequest, PlanOrder, ScanPlan};
use rillbase_documents::operation::DocumentOperation;
use rillbase_query::bson::ValueRef;
use rillbase_query::ejson::parse_document;
use rillbase_query::filter::Filter;

use crate::model::parse_sort;
use crate::opened::{OpenedCollections, definition, index, write_of};

fn opened(documents: &[&str]) -> OpenedCollections {
    let opened = OpenedCollections::new();
    let mut building = index(2, "by price", &[("price", 1)], false);
    building.is_ready = false;
    let indexes = vec![index(1, "by tag", &[("tags", 1)], false), building];
    opened
        .collections
        .define(1, definition(1, indexes))
        .unwrap();
    let inserts = documents.iter().map(|text| {
        let document = parse_document(text.as_bytes()).unwrap();
        let insert = DocumentOperation::insert(document.as_ref(), ValueRef::Null);
        (1, insert.unwrap())
    });
    let write = write_of(&[1], 1, inserts.collect(), true);
    opened.write(vec![write]).remove(0).unwrap().unwrap();
    opened
}

/// The plan for a page of one document.
fn plan(opened: &OpenedCollections, filter: &str, sort: &str, in_order: bool) -> ScanPlan {
    let filter = parse_document(filter.as_bytes()).unwrap();
    let request = CandidateRequest {
        filter: Filter::parse(filter.as_ref()).unwrap(),
        sort: parse_sort(sort),
        documents: 1,
        in_order,
        is_use: true,
    };
    let snapshot = opened.db.snapshot();
    let plan = opened.collections.plan((1, 1), &request, &snapshot);
    plan.unwrap()
}

const SINGLE: [&str; 6] = [
    r#"{"_id":1,"tags":2}"#,
    r#"{"_id":2,"tags":2}"#,
    r#"{"_id":3,"tags":2}"#,
    r#"{"_id":4,"tags":2}"#,
    r#"{"_id":5,"tags":2}"#,
    r#"{"_id":6,"tags":7}"#,
];
const RANGE: &str = r#"{"tags":{"$gt":0,"$lt":3}}"#;
const LAST_FIRST: &str = r#"[["tags",-1]]"#;

#[test]
fn a_page_of_many_documents_is_read_in_the_order_of_an_index() {
    let opened = opened(&SINGLE);
    let chosen = plan(&opened, RANGE, LAST_FIRST, true);
    assert_eq!(chosen.order, PlanOrder::ByIndex);
    assert_eq!((chosen.index, chosen.entries), (1, Some(5)));
    assert!(chosen.is_backward);
    let sorted = plan(&opened, RANGE, LAST_FIRST, false);
    assert_eq!((sorted.index, sorted.order), (1, PlanOrder::Unordered));
    // A single document is read and sorted, whatever the index's order.
    let few = plan(&opened, r#"{"tags":{"$gt":6}}"#, LAST_FIRST, true);
    assert_eq!(few.order, PlanOrder::Unordered);
}

/// The greatest of its values is beyond the range: read backward, it would come after a page of
/// others, though it is the first.
#[test]
fn an_index_does_not_give_the_order_of_values_that_are_not_read() {
    let several = [&SINGLE[..], &[r#"{"_id":7,"tags":[1,3]}"#]].concat();
    let opened = opened(&several);
    let chosen = plan(&opened, RANGE, LAST_FIRST, true);
    assert_eq!((chosen.index, chosen.order), (1, PlanOrder::Unordered));
    // Without a range, all of its values are read.
    let all = plan(&opened, "{}", LAST_FIRST, true);
    assert_eq!((all.index, all.order), (1, PlanOrder::ByIndex));
}

#[test]
fn an_index_that_is_being_built_is_not_read() {
    let opened = opened(&SINGLE);
    let chosen = plan(&opened, r#"{"price":{"$lt":5}}"#, r#"[["price",1]]"#, true);
    assert_eq!((chosen.index, chosen.order), (0, PlanOrder::Unordered));
    let by_id = plan(&opened, r#"{"_id":{"$gte":3}}"#, "[]", true);
    assert_eq!((by_id.index, by_id.order), (0, PlanOrder::ById));
    assert_eq!(by_id.ranges.len(), 1);
}

/// When all matches are read, reading by an index pays if it leaves a small part of the documents.
#[test]
fn all_matches_are_read_by_an_index_with_many_entries_if_there_are_many_more_documents() {
    let documents: Vec<String> = (0..45_000)
        .map(|n| format!(r#"{{"_id":{n},"tags":{}}}"#, if n < 2_200 { 1 } else { 2 }))
        .collect();
    let documents: Vec<&str> = documents.iter().map(String::as_str).collect();
    let opened = opened(&documents);
    let chosen = |filter| plan(&opened, filter, "[]", false).index;
    assert_eq!(chosen(r#"{"tags":1}"#), 1);
    assert_eq!(chosen(r#"{"tags":2}"#), 0);
    assert_eq!(plan(&opened, r#"{"tags":1}"#, "[]", true).index, 0);
}
