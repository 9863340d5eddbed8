//! Order, index keys and projections.

use crate::common::{any_document, document, scalar, value};
use proptest::prelude::*;
use rillbase_query::bson::ValueRef;
use rillbase_query::ejson::{Form, document_to_string};
use rillbase_query::environment::EvaluationContext;
use rillbase_query::error::ParseLocation;
use rillbase_query::filter::Filter;
use rillbase_query::fuel::Fuel;
use rillbase_query::index::{FieldOrder, IndexField, index_keys};
use rillbase_query::key::encode_key;
use rillbase_query::path::FieldPath;
use rillbase_query::projection::{Matched, Projection};
use rillbase_query::sort::{Sort, SystemFields};

fn sort(text: &str) -> Sort {
    Sort::parse(
        ValueRef::Document(document(text).as_ref()),
        &ParseLocation::root(),
    )
    .expect(text)
}

fn key(sort: &Sort, doc: &str) -> Vec<u8> {
    sort.key(
        document(doc).as_ref(),
        SystemFields::default(),
        &Fuel::default(),
    )
    .expect(doc)
}

#[test]
fn a_sort_is_written_as_it_can_be_read_again() {
    for (given, canonical) in [
        (r#"{"a.b":1,"c":-1.0}"#, r#"[["a.b",1],["c",-1],["_id",1]]"#),
        (r#"{"_id":-1,"a":1}"#, r#"[["_id",-1]]"#),
        (
            r#"{"s":{"$meta":"textScore"},"a":1}"#,
            r#"[["score",{"$meta":"textScore"}],["a",1],["_id",1]]"#,
        ),
        (
            r#"{"$updated":-1,"a":1,"$created":1}"#,
            r#"[["$updated",-1],["a",1],["$created",1],["_id",1]]"#,
        ),
    ] {
        let sort = sort(given);
        assert_eq!(sort.canonical(), canonical);
        let again = Sort::parse(value(canonical).as_ref(), &ParseLocation::root());
        assert_eq!(again.expect(canonical), sort);
    }
}

#[test]
fn documents_stand_in_the_order_of_their_least_elements() {
    for (by, ascending) in [
        (
            r#"{"a":1}"#,
            vec![
                r#"{"a":{"$minKey":1}}"#,
                r#"{"a":[]}"#,
                r#"{"a":null,"_id":1}"#,
                r#"{"_id":2}"#,
                r#"{"a":{"$numberDouble":"NaN"}}"#,
                r#"{"a":[5,1]}"#,
                r#"{"a":2}"#,
                r#"{"a":[3,9]}"#,
                r#"{"a":"x"}"#,
                r#"{"a":{}}"#,
                r#"{"a":[[1]]}"#,
            ],
        ),
        (
            r#"{"a":-1}"#,
            vec![
                r#"{"a":[[1]]}"#,
                r#"{"a":"x"}"#,
                r#"{"a":[3,9]}"#,
                r#"{"a":[5,1]}"#,
                r#"{"a":2}"#,
                r#"{"a":null}"#,
                r#"{"a":[]}"#,
            ],
        ),
        (
            r#"{"a.b":1}"#,
            vec![
                r#"{"a":[],"_id":0}"#,
                r#"{"a":[1],"_id":1}"#,
                r#"{"a":[{"b":3},{}],"_id":2}"#,
                r#"{"a":[{"b":7},{"b":1}]}"#,
                r#"{"a":{"b":2}}"#,
            ],
        ),
        (
            r#"{"a.b":1,"a.c":1}"#,
            vec![
                r#"{"a":[{"b":1,"c":9},{"b":1,"c":2}]}"#,
                r#"{"a":[{"b":1,"c":3},{"b":2,"c":0}]}"#,
                r#"{"a":[{"b":1,"c":4}]}"#,
            ],
        ),
        (
            r#"{"a.0":1}"#,
            vec![r#"{"a":[]}"#, r#"{"a":[1,9]}"#, r#"{"a":[2,0]}"#],
        ),
        (
            r#"{"a":1,"b":-1}"#,
            vec![
                r#"{"a":1,"b":2}"#,
                r#"{"a":1,"b":1}"#,
                r#"{"a":1.0}"#,
                r#"{"a":2,"b":9}"#,
            ],
        ),
        (
            r#"{}"#,
            vec![
                r#"{"_id":1}"#,
                r#"{"_id":"a"}"#,
                r#"{"_id":{"$oid":"000000000000000000000000"}}"#,
            ],
        ),
    ] {
        let by = sort(by);
        for (index, a) in ascending.iter().enumerate() {
            for (other, b) in ascending.iter().enumerate() {
                assert_eq!(
                    key(&by, a).cmp(&key(&by, b)),
                    index.cmp(&other),
                    "{a} and {b} by {by:?}"
                );
            }
        }
    }
}

/// The sort position of a document with these times of creation and change.
fn key_at(sort: &Sort, doc: &str, created_ms: i64, updated_ms: i64) -> Vec<u8> {
    let system = SystemFields {
        created_ms,
        updated_ms,
        ..SystemFields::default()
    };
    let key = sort.key(document(doc).as_ref(), system, &Fuel::default());
    key.expect(doc)
}

#[test]
fn times_order_like_dates_and_ids_break_ties() {
    let last_first = sort(r#"{"$updated":-1}"#);
    let places = [
        key_at(&last_first, r#"{"_id":9}"#, 0, 2_000),
        key_at(&last_first, r#"{"_id":1}"#, 900, 1_000),
        key_at(&last_first, r#"{"_id":2}"#, 100, 1_000),
        key_at(&last_first, r#"{"_id":0}"#, 800, 999),
        key_at(&last_first, r#"{"_id":0}"#, 0, -1),
    ];
    assert!(places.is_sorted_by(|one, next| one < next));
    let oldest_first = sort(r#"{"shop":1,"$created":1}"#);
    let places = [
        key_at(&oldest_first, r#"{"_id":3,"shop":1}"#, 5, 0),
        key_at(&oldest_first, r#"{"_id":2,"shop":1}"#, 6, 0),
        key_at(&oldest_first, r#"{"_id":1,"shop":2}"#, 4, 0),
    ];
    assert!(places.is_sorted_by(|one, next| one < next));
}

#[test]
fn a_field_of_an_array_and_a_time_are_sorted_by_independently() {
    let by = sort(r#"{"a":1,"$updated":1}"#);
    assert_eq!(
        key_at(&by, r#"{"_id":7,"a":[3,1]}"#, 0, 5),
        key_at(&by, r#"{"_id":7,"a":1}"#, 0, 5)
    );
}

#[test]
fn values_that_are_not_stored_documents_cannot_be_sorted_by_times() {
    for text in [r#"{"$updated":1}"#, r#"{"a":1,"$created":-1}"#] {
        let error = Sort::parse_of_values(
            ValueRef::Document(document(text).as_ref()),
            &ParseLocation::root(),
        )
        .expect_err(text);
        assert_eq!(error.code.as_str(), "invalid_sort");
        assert!(error.detail.contains("$updated"), "{}", error.detail);
    }
}

#[test]
fn no_index_has_the_order_of_times() {
    let fields = |paths: &[&str]| -> Vec<IndexField> {
        let fields = paths.iter().map(|path| IndexField {
            path: FieldPath::new(path),
            order: FieldOrder::Ascending,
        });
        fields.collect()
    };
    let by = sort(r#"{"$updated":1}"#);
    assert_eq!(by.direction(&fields(&["$updated"])), None);
    assert_eq!(by.direction(&[]), None);
    let by = sort(r#"{"a":1,"$created":1}"#);
    assert_eq!(by.direction(&fields(&["a"])), None);
}

proptest! {
    #[test]
    fn times_are_sorted_by_after_the_keys_before_them(
        one in (0..3_i64, any::<i64>(), any::<i64>()),
        other in (0..3_i64, any::<i64>(), any::<i64>()),
        descending in any::<bool>(),
    ) {
        let direction = if descending { -1 } else { 1 };
        let by = sort(&format!(r#"{{"$created":{direction},"n":1,"$updated":1}}"#));
        let key = |(n, created_ms, updated_ms)| {
            key_at(&by, &format!(r#"{{"_id":0,"n":{n}}}"#), created_ms, updated_ms)
        };
        let created = one.1.cmp(&other.1);
        let created = if descending { created.reverse() } else { created };
        let expected = created.then(one.0.cmp(&other.0)).then(one.2.cmp(&other.2));
        prop_assert_eq!(key(one).cmp(&key(other)), expected);
    }
}

#[test]
fn arrays_side_by_side_are_sorted_by_field_by_field() {
    let by = sort(r#"{"a":1,"b":-1,"c":1}"#);
    let parallel = key(&by, r#"{"_id":7,"a":[3,1],"b":[2,9],"c":[[4],0]}"#);
    assert_eq!(parallel, key(&by, r#"{"_id":7,"a":1,"b":9,"c":0}"#));
    let nested = sort(r#"{"a.x":1,"b":1,"a.y":1}"#);
    assert_eq!(
        key(
            &nested,
            r#"{"a":[{"x":1,"y":[8,7]},{"x":1,"y":6},{"x":2,"y":0}],"b":[5,4]}"#
        ),
        key(&nested, r#"{"a":{"x":1,"y":6},"b":4}"#)
    );
    let empty = key(&by, r#"{"a":[],"b":[1],"c":[]}"#);
    assert!(empty < key(&by, r#"{"a":null,"b":1,"c":null}"#));
}

#[test]
fn an_array_of_any_allowed_length_can_be_sorted_by() {
    let by = sort(r#"{"a":1,"b":-1}"#);
    let long: Vec<String> = (0..100_000).rev().map(|n| n.to_string()).collect();
    let long = long.join(",");
    assert_eq!(
        key(&by, &format!(r#"{{"a":[{long}],"b":[{long}]}}"#)),
        key(&by, r#"{"a":0,"b":99999}"#)
    );
}

fn numbers() -> impl Strategy<Value = Vec<i32>> {
    prop::collection::vec(0..5_i32, 1..4)
}

proptest! {
    #[test]
    fn each_of_several_arrays_counts_with_its_least_or_greatest_element(
        fields in prop::collection::vec((numbers(), any::<bool>()), 1..5),
    ) {
        let member = |number: usize, value: String| format!(r#""f{number}":{value}"#);
        let whole = |members: Vec<String>| format!("{{{}}}", members.join(","));
        let by = fields.iter().enumerate().map(|(number, (_, down))| {
            member(number, if *down { "-1" } else { "1" }.to_owned())
        });
        let by = sort(&whole(by.collect()));
        let arrays = fields.iter().enumerate().map(|(number, (list, _))| {
            member(number, format!("{list:?}"))
        });
        let single = fields.iter().enumerate().map(|(number, (list, down))| {
            let counts = if *down { list.iter().max() } else { list.iter().min() };
            member(number, counts.copied().unwrap_or_default().to_string())
        });
        prop_assert_eq!(key(&by, &whole(arrays.collect())), key(&by, &whole(single.collect())));
    }

    #[test]
    fn the_least_key_of_an_index_is_the_place_in_its_order(
        doc in any_document(), a in any::<bool>(), b in any::<bool>(), c in any::<bool>(),
    ) {
        let fields: Vec<IndexField> = [("a", a), ("b", b), ("a.b", c)]
            .map(|(path, descending)| IndexField {
                path: FieldPath::new(path),
                order: if descending { FieldOrder::Descending } else { FieldOrder::Ascending },
            })
            .into();
        let doc = document(&doc);
        if let Ok(entries) = index_keys(doc.as_ref(), &fields, &Fuel::default()) {
            for backward in [false, true] {
                let order = Sort::of_fields(&fields, backward);
                let place = order.key_of_fields(doc.as_ref(), &Fuel::default()).expect("a place");
                let place = if backward { place.iter().map(|byte| !byte).collect() } else { place };
                let ordering = entries.iter().filter(|entry| entry.ordering);
                let mut ordering = ordering.map(|entry| &entry.key);
                let end = if backward { ordering.next_back() } else { ordering.next() };
                prop_assert_eq!(Some(&place), end);
            }
        }
    }
}

#[test]
fn malformed_sorts_are_refused() {
    for (text, pointer) in [
        (r#"{"a":2}"#, "/a"),
        (r#"{"a":"asc"}"#, "/a"),
        (r#"{"$a":1}"#, "/$a"),
        (r#"{"a..b":1}"#, "/a..b"),
        (r#"{"a":{"$meta":"x"}}"#, "/a"),
        (r#"{"$updated":2}"#, "/$updated"),
        (r#"{"$created":{"$meta":"textScore"}}"#, "/$created"),
        (r#"{"$updated.a":1}"#, "/$updated.a"),
        (r#"{"a.$updated":1}"#, "/a.$updated"),
        (r#"{"$Updated":1}"#, "/$Updated"),
    ] {
        let error = Sort::parse(
            ValueRef::Document(document(text).as_ref()),
            &ParseLocation::root(),
        )
        .expect_err(text);
        assert_eq!(
            (error.code.as_str(), error.pointer.as_str()),
            ("invalid_sort", pointer)
        );
    }
    let many: Vec<String> = (0..33).map(|n| format!(r#"["f{n}",1]"#)).collect();
    for text in [
        format!(r#"{{"s":[{}]}}"#, many.join(",")),
        r#"{"s":[["a",1],["a",-1]]}"#.into(),
        r#"{"s":[["$updated",1],["$updated",-1]]}"#.into(),
        r#"{"s":[["a"]]}"#.into(),
    ] {
        assert!(
            Sort::parse(
                document(&text).as_ref().get("s").expect("s"),
                &ParseLocation::root()
            )
            .is_err()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn an_index_finds_all_that_matches_and_orders_as_the_sort_does(doc in any_document(), operand in scalar(), path in prop::sample::select(vec!["a", "a.b", "a.0", "b"])) {
        let fuel = Fuel::default();
        let parsed = document(&doc);
        let field = IndexField { path: FieldPath::new(path), order: FieldOrder::Ascending };
        let keys = index_keys(parsed.as_ref(), &[field], &fuel).expect("keys");
        let regex = operand.starts_with(r#"{"$regular"#);
        if !regex {
            let filter = Filter::parse(document(&format!(r#"{{"{path}":{operand}}}"#)).as_ref()).expect("filter");
            if filter.matches(parsed.as_ref()).expect("fuel") {
                let wanted = encode_key(value(&operand).as_ref());
                prop_assert!(keys.iter().any(|entry| entry.key == wanted), "{} in {}", operand, doc);
            }
        }
        let by = sort(&format!(r#"{{"{path}":1}}"#));
        let place = key(&by, &doc);
        let first = keys.iter().find(|entry| entry.ordering).expect("an ordering key");
        prop_assert!(place.starts_with(&first.key));
    }
}

fn project(spec: &str, doc: &str, matched: Matched) -> String {
    let projection = Projection::parse(document(spec).as_ref(), &ParseLocation::root())
        .unwrap_or_else(|e| panic!("{spec}: {e}"));
    let shown = projection
        .apply(
            document(doc).as_ref(),
            matched,
            &EvaluationContext::default(),
        )
        .expect(spec);
    document_to_string(shown.as_ref(), Form::Relaxed)
}

/// Projection, document, what is shown of it.
const SHOWN: &[(&str, &str, &str)] = &[
    (r#"{}"#, r#"{"_id":1,"a":1}"#, r#"{"_id":1,"a":1}"#),
    (
        r#"{"a":1}"#,
        r#"{"_id":1,"b":2,"a":1}"#,
        r#"{"_id":1,"a":1}"#,
    ),
    (
        r#"{"a":1,"_id":0}"#,
        r#"{"_id":1,"b":2,"a":1}"#,
        r#"{"a":1}"#,
    ),
    (
        r#"{"a":0}"#,
        r#"{"_id":1,"b":2,"a":1}"#,
        r#"{"_id":1,"b":2}"#,
    ),
    (r#"{"_id":0}"#, r#"{"_id":1,"b":2}"#, r#"{"b":2}"#),
    (r#"{"_id":1}"#, r#"{"_id":1,"b":2}"#, r#"{"_id":1}"#),
    (
        r#"{"a":0,"_id":1}"#,
        r#"{"_id":1,"a":1,"b":2}"#,
        r#"{"_id":1,"b":2}"#,
    ),
    (r#"{"a.b":1}"#, r#"{"a":{"b":1,"c":2}}"#, r#"{"a":{"b":1}}"#),
    (
        r#"{"a":{"b":1}}"#,
        r#"{"a":{"b":1,"c":2}}"#,
        r#"{"a":{"b":1}}"#,
    ),
    (
        r#"{"a.b":1}"#,
        r#"{"a":[{"b":1,"c":2},5,{"c":1},[{"b":7,"d":1}]]}"#,
        r#"{"a":[{"b":1},{},[{"b":7}]]}"#,
    ),
    (
        r#"{"a.b":0}"#,
        r#"{"a":[{"b":1,"c":2},5,[{"b":7}]]}"#,
        r#"{"a":[{"c":2},5,[{}]]}"#,
    ),
    (r#"{"a.b":1}"#, r#"{"a":5}"#, r#"{}"#),
    (r#"{"a.b":0}"#, r#"{"a":5}"#, r#"{"a":5}"#),
    (r#"{"b":1,"a":1}"#, r#"{"a":1,"b":2}"#, r#"{"a":1,"b":2}"#),
    (
        r#"{"a":{"$slice":2}}"#,
        r#"{"_id":1,"a":[1,2,3],"b":1}"#,
        r#"{"_id":1,"a":[1,2],"b":1}"#,
    ),
    (
        r#"{"a":{"$slice":-2}}"#,
        r#"{"a":[1,2,3]}"#,
        r#"{"a":[2,3]}"#,
    ),
    (
        r#"{"a":{"$slice":[1,1]}}"#,
        r#"{"a":[1,2,3]}"#,
        r#"{"a":[2]}"#,
    ),
    (
        r#"{"a":{"$slice":[-2,1]}}"#,
        r#"{"a":[1,2,3]}"#,
        r#"{"a":[2]}"#,
    ),
    (r#"{"a":{"$slice":0}}"#, r#"{"a":[1]}"#, r#"{"a":[]}"#),
    (
        r#"{"a":{"$slice":1},"b":1}"#,
        r#"{"a":[1,2],"b":1,"c":1}"#,
        r#"{"a":[1],"b":1}"#,
    ),
    (
        r#"{"a":{"$slice":1},"b":0}"#,
        r#"{"a":[1,2],"b":1,"c":1}"#,
        r#"{"a":[1],"c":1}"#,
    ),
    (
        r#"{"a":{"$slice":1}}"#,
        r#"{"a":"text"}"#,
        r#"{"a":"text"}"#,
    ),
    (
        r#"{"a":{"$elemMatch":{"$gt":1}}}"#,
        r#"{"_id":1,"a":[1,2,3],"b":1}"#,
        r#"{"_id":1,"a":[2]}"#,
    ),
    (
        r#"{"a":{"$elemMatch":{"b":2}}}"#,
        r#"{"a":[{"b":1},{"b":2,"c":3},{"b":2}]}"#,
        r#"{"a":[{"b":2,"c":3}]}"#,
    ),
    (
        r#"{"a":{"$elemMatch":{"b":9}}}"#,
        r#"{"_id":1,"a":[{"b":1}]}"#,
        r#"{"_id":1}"#,
    ),
    (
        r#"{"a.$":1}"#,
        r#"{"_id":1,"a":[5,6,7],"b":1}"#,
        r#"{"_id":1,"a":[6]}"#,
    ),
    (
        r#"{"s":{"$meta":"textScore"}}"#,
        r#"{"a":1}"#,
        r#"{"a":1,"s":0.5}"#,
    ),
    (
        r#"{"a":1,"s":{"$meta":"textScore"}}"#,
        r#"{"a":1,"b":1}"#,
        r#"{"a":1,"s":0.5}"#,
    ),
];

#[test]
fn projections_show_parts_as_mongodb_does() {
    for (spec, doc, shown) in SHOWN {
        let matched = Matched {
            position: Some(1),
            text_score: Some(0.5),
        };
        assert_eq!(&project(spec, doc, matched), shown, "{spec} of {doc}");
    }
}

#[test]
fn malformed_projections_are_refused() {
    for (text, code, pointer) in [
        (r#"{"a":1,"b":0}"#, "invalid_projection", "/b"),
        (r#"{"a":1,"a.b":1}"#, "invalid_projection", "/a.b"),
        (r#"{"a.b":1,"a":1}"#, "invalid_projection", "/a"),
        (r#"{"a":{}}"#, "invalid_projection", "/a"),
        (r#"{"a":"$b"}"#, "invalid_projection", "/a"),
        (r#"{"a":{"$add":[1,2]}}"#, "unsupported_operator", "/a/$add"),
        (
            r#"{"a":{"$slice":[1,0]}}"#,
            "invalid_projection",
            "/a/$slice",
        ),
        (r#"{"a":{"$slice":"x"}}"#, "invalid_projection", "/a/$slice"),
        (r#"{"a.$":1,"b.$":1}"#, "invalid_projection", "/b.$"),
        (r#"{"a.$":0}"#, "invalid_projection", "/a.$"),
        (r#"{"a.$.b":1}"#, "invalid_projection", "/a.$.b"),
        (
            r#"{"a":{"$elemMatch":{"$foo":1}}}"#,
            "unsupported_operator",
            "/a/$elemMatch/$foo",
        ),
        (r#"{"a":{"b":1,"c":0}}"#, "invalid_projection", "/a/c"),
    ] {
        let error =
            Projection::parse(document(text).as_ref(), &ParseLocation::root()).expect_err(text);
        assert_eq!(
            (error.code.as_str(), error.pointer.as_str()),
            (code, pointer),
            "{text}: {error}"
        );
    }
}
