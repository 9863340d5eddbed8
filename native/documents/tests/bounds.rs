//! The bounds of an index contain every document that matches.

#![allow(
    clippy::needless_raw_string_hashes,
    reason = "rows of a table look alike"
)]

use crate::common::{any_document, any_value, document, scalar};
use proptest::prelude::*;
use rillbase_documents::bounds::{EncodedRange, IndexBounds, bounds, id_bounds};
use rillbase_documents::entry::{ENTRY_BYTES, IndexDefinition, entries, fields};
use rillbase_documents::id::key;
use rillbase_query::filter::Filter;
use rillbase_query::index::FieldOrder;

fn filter(text: &str) -> Option<Filter> {
    Filter::parse(document(text).as_ref()).ok()
}

fn index(pairs: &[(&str, i32)]) -> IndexDefinition {
    let pairs: Vec<(String, FieldOrder)> = pairs
        .iter()
        .map(|(path, direction)| ((*path).to_owned(), FieldOrder::directed(*direction)))
        .collect();
    IndexDefinition {
        number: 1,
        fields: fields(&pairs),
        unique: false,
    }
}

fn holds(ranges: &[EncodedRange], key: &[u8]) -> bool {
    ranges.iter().any(|range| {
        key >= range.low.as_slice() && range.high.as_ref().is_none_or(|high| key < high.as_slice())
    })
}

/// Whether the ranges hold an entry of the document; none where two arrays
/// side by side have no entries.
fn finds(bounds: &IndexBounds, doc: &str, index: &IndexDefinition) -> Option<bool> {
    let entries = entries(document(doc).as_ref(), index).ok()?;
    Some(
        entries
            .iter()
            .any(|entry| holds(&bounds.ranges, &entry.key)),
    )
}

/// Scalars of one type more often than not, so that ranges meet values.
fn near_scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => (0..4_i32).prop_map(|int| int.to_string()),
        1 => prop::sample::select(vec!["null", r#""a""#, r#""ab""#, r#""abc""#, r#""b""#]).prop_map(String::from),
        1 => (1020..1030_usize, "[a-b]").prop_map(|(length, end)| format!("\"{}{end}\"", "a".repeat(length))),
        2 => scalar(),
    ]
}

fn near_value() -> impl Strategy<Value = String> {
    near_scalar().prop_recursive(3, 8, 3, |inner| {
        let field = prop::sample::select(vec!["b", "b", "c", "0"]);
        let object =
            (field, inner.clone()).prop_map(|(key, value)| format!(r#"{{"{key}":{value}}}"#));
        let list =
            prop::collection::vec(inner, 0..4).prop_map(|list| format!("[{}]", list.join(",")));
        prop_oneof![2 => list, 2 => object]
    })
}

fn near_document() -> impl Strategy<Value = String> {
    let value = || prop_oneof![4 => near_value().boxed(), 1 => any_value().boxed()];
    (
        prop::option::weighted(0.9, value()),
        prop::option::weighted(0.7, value()),
    )
        .prop_map(|(a, b)| {
            let fields: Vec<String> = [("a", a), ("b", b)]
                .into_iter()
                .filter_map(|(key, value)| value.map(|value| format!(r#""{key}":{value}"#)))
                .collect();
            format!("{{{}}}", fields.join(","))
        })
}

fn condition() -> impl Strategy<Value = String> {
    let comparison = || {
        (
            prop::sample::select(vec!["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]),
            near_value(),
        )
            .prop_map(|(name, value)| format!(r#""{name}":{value}"#))
    };
    let pattern = || {
        prop::sample::select(vec![
            "^a", "^ab?", "^ab", "b", "^", "^a|b", "^a{0}", "^é*", "^abc",
        ])
    };
    let list = (
        prop::sample::select(vec!["$in", "$in", "$nin", "$all"]),
        prop::collection::vec(
            prop_oneof![
                4 => near_value().boxed(),
                1 => pattern()
                    .prop_map(|pattern| format!(r#"{{"$regularExpression":{{"pattern":"{pattern}","options":""}}}}"#))
                    .boxed(),
            ],
            0..4,
        ),
    )
        .prop_map(|(name, values)| format!(r#""{name}":[{}]"#, values.join(",")));
    let range = (near_scalar(), near_scalar())
        .prop_map(|(low, high)| format!(r#""$gte":{low},"$lt":{high}"#));
    let fixed = prop::sample::select(vec![
        r#""$exists":true"#,
        r#""$exists":false"#,
        r#""$size":1"#,
        r#""$type":"string""#,
    ])
    .prop_map(String::from);
    let regex = pattern().prop_map(|pattern| format!(r#""$regex":"{pattern}""#));
    prop_oneof![4 => comparison(), 3 => list, 3 => range, 1 => fixed, 1 => regex].prop_recursive(
        2,
        6,
        2,
        |inner| {
            let within = prop::sample::select(vec!["b", "c", "0", "b.c"]);
            prop_oneof![
                2 => inner.clone().prop_map(|inner| format!(r#""$elemMatch":{{{inner}}}"#)),
                2 => (within, inner.clone()).prop_map(|(path, inner)| format!(r#""$elemMatch":{{"{path}":{{{inner}}}}}"#)),
                1 => inner.prop_map(|inner| format!(r#""$not":{{{inner}}}"#)),
            ]
        },
    )
}

fn any_path() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "a", "a", "a", "b", "a.b", "a.b", "a.0", "a.b.c", "a.0.b",
    ])
}

fn any_filter() -> impl Strategy<Value = String> {
    let leaf =
        (any_path(), condition()).prop_map(|(path, inner)| format!(r#"{{"{path}":{{{inner}}}}}"#));
    leaf.prop_recursive(3, 10, 3, |inner| {
        (
            prop::sample::select(vec!["$and", "$and", "$or", "$or", "$nor"]),
            prop::collection::vec(inner, 1..4),
        )
            .prop_map(|(name, inner)| format!(r#"{{"{name}":[{}]}}"#, inner.join(",")))
    })
}

fn any_index() -> impl Strategy<Value = Vec<(&'static str, i32)>> {
    prop::collection::vec((any_path(), prop::sample::select(vec![1, -1])), 1..4)
}

/// Checks that every matching document has an entry inside the bounds; returns how many pairs the
/// bounds decided.
fn check_superset(
    text: &str,
    docs: &[String],
    pairs: &[(&str, i32)],
) -> Result<usize, TestCaseError> {
    let Some(filter) = filter(text) else {
        return Ok(0);
    };
    let index = index(pairs);
    let Some(bounds) = bounds(&filter, &index.fields) else {
        return Ok(0);
    };
    for (range, next) in bounds.ranges.iter().zip(bounds.ranges.iter().skip(1)) {
        prop_assert!(
            range.high.as_ref().is_some_and(|high| *high <= next.low),
            "ranges are apart and in order"
        );
    }
    for doc in docs {
        let body = document(doc);
        if filter.matches(body.as_ref()) == Ok(true) {
            prop_assert_ne!(
                finds(&bounds, doc, &index),
                Some(false),
                "{} with {:?} for {}",
                text,
                pairs,
                doc
            );
        }
    }
    Ok(docs.len())
}

fn check_ids(text: &str, ids: &[String]) -> Result<(), TestCaseError> {
    let Some(filter) = filter(&text.replace(r#""a""#, r#""_id""#)) else {
        return Ok(());
    };
    let Some(ranges) = id_bounds(&filter) else {
        return Ok(());
    };
    for id in ids {
        let body = document(&format!(r#"{{"_id":{id}}}"#));
        let Some(key) = body.as_ref().get("_id").and_then(|id| key(id).ok()) else {
            continue;
        };
        if filter.matches(body.as_ref()) == Ok(true) {
            prop_assert!(holds(&ranges, &key), "{} for {}", text, id);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn every_match_has_an_entry_inside_the_bounds(
        text in any_filter(), docs in prop::collection::vec(near_document(), 1..8), pairs in any_index(),
    ) {
        check_superset(&text, &docs, &pairs)?;
    }

    #[test]
    fn every_match_has_its_key_inside_the_bounds_of_its_id(
        text in any_filter(), ids in prop::collection::vec(near_value(), 1..8),
    ) {
        check_ids(&text, &ids)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100_000))]

    #[test]
    #[ignore = "minutes: a million pairs of document and filter"]
    fn bounds_hold_for_a_million_pairs(
        text in any_filter(),
        docs in prop::collection::vec(prop_oneof![3 => near_document().boxed(), 1 => any_document().boxed()], 10),
        pairs in any_index(),
    ) {
        check_superset(&text, &docs, &pairs)?;
    }
}

/// A filter, an index, a document inside the bounds, and one outside.
type Narrow = (&'static str, Fields, &'static str, &'static str);
type Fields = &'static [(&'static str, i32)];
const NARROW: &[Narrow] = &[
    (r#"{"a":5}"#, &[("a", 1)], r#"{"a":5.0}"#, r#"{"a":6}"#),
    (
        r#"{"a":{"$gte":1,"$lt":5}}"#,
        &[("a", 1)],
        r#"{"a":4}"#,
        r#"{"a":7}"#,
    ),
    (
        r#"{"a":{"$gte":1,"$lt":5}}"#,
        &[("a", -1)],
        r#"{"a":4}"#,
        r#"{"a":7}"#,
    ),
    // 0 and 7 together satisfy both conditions.
    (
        r#"{"a":{"$gte":1,"$lt":5}}"#,
        &[("a", 1)],
        r#"{"a":[0,7]}"#,
        r#"{"a":0}"#,
    ),
    (
        r#"{"a":{"$elemMatch":{"$gte":1,"$lt":5}}}"#,
        &[("a", 1)],
        r#"{"a":[9,3]}"#,
        r#"{"a":[0,7]}"#,
    ),
    (
        r#"{"a":{"$elemMatch":{"b":5}}}"#,
        &[("a.b", 1)],
        r#"{"a":[{"b":5}]}"#,
        r#"{"a":[{"b":6}]}"#,
    ),
    (
        r#"{"a":{"$in":[1,3]}}"#,
        &[("a", 1)],
        r#"{"a":[3]}"#,
        r#"{"a":2}"#,
    ),
    (
        r#"{"$or":[{"a":1},{"a":{"$gt":8}}]}"#,
        &[("a", 1)],
        r#"{"a":9}"#,
        r#"{"a":2}"#,
    ),
    (
        r#"{"a":{"$regex":"^ab"}}"#,
        &[("a", 1)],
        r#"{"a":"abc"}"#,
        r#"{"a":"b"}"#,
    ),
    (r#"{"a":null}"#, &[("a", 1)], "{}", r#"{"a":0}"#),
    (
        r#"{"a":{"$exists":false}}"#,
        &[("a", 1)],
        "{}",
        r#"{"a":0}"#,
    ),
    (
        r#"{"a":{"$gt":5}}"#,
        &[("a", 1)],
        r#"{"a":6}"#,
        r#"{"a":"6"}"#,
    ),
    (
        r#"{"a":1,"b":{"$gt":3}}"#,
        &[("a", 1), ("b", -1)],
        r#"{"a":1,"b":4}"#,
        r#"{"a":1,"b":2}"#,
    ),
    (
        r#"{"a.0":2}"#,
        &[("a.0", 1)],
        r#"{"a":[2]}"#,
        r#"{"a":[3,2]}"#,
    ),
    (
        r#"{"a":1,"$nor":[{"b":1}]}"#,
        &[("a", 1)],
        r#"{"a":1}"#,
        r#"{"a":2}"#,
    ),
];

#[test]
fn bounds_are_narrow_where_they_can_be() {
    for (text, pairs, inside, outside) in NARROW {
        let index = index(pairs);
        let bounds = filter(text).and_then(|filter| bounds(&filter, &index.fields));
        let found = |doc| {
            bounds
                .as_ref()
                .and_then(|bounds| finds(bounds, doc, &index))
        };
        assert_eq!(found(inside), Some(true), "{text} finds {inside}");
        assert_eq!(found(outside), Some(false), "{text} passes over {outside}");
    }
}

#[test]
fn a_list_with_regular_expressions_is_bounded_by_values_and_prefixes() {
    let text = r#"{"a":{"$in":[3,null,{"$regularExpression":{"pattern":"^ab","options":""}}]}}"#;
    let index = index(&[("a", 1)]);
    let bounds = filter(text).and_then(|filter| bounds(&filter, &index.fields));
    for (doc, inside) in [
        (r#"{"a":3}"#, true),
        ("{}", true),
        (r#"{"a":"abc"}"#, true),
        (r#"{"a":4}"#, false),
        (r#"{"a":"b"}"#, false),
    ] {
        let found = bounds
            .as_ref()
            .and_then(|bounds| finds(bounds, doc, &index));
        assert_eq!(found, Some(inside), "{doc}");
    }
}

#[test]
fn a_filter_that_does_not_restrict_the_first_field_has_no_bounds() {
    for text in [
        r#"{"b":1}"#,
        r#"{"a":{"$ne":1}}"#,
        r#"{"$or":[{"a":1},{"b":1}]}"#,
        r#"{"a.b":1}"#,
        // An element that is an array has no field b either.
        r#"{"a":{"$elemMatch":{"b":null}}}"#,
    ] {
        let filter = filter(text);
        for path in ["a", "a.b"] {
            let found = filter
                .as_ref()
                .and_then(|filter| bounds(filter, &index(&[(path, 1)]).fields));
            assert!(
                found.is_none() || (path, text) == ("a.b", r#"{"a.b":1}"#),
                "{text} at {path}"
            );
        }
    }
}

#[test]
fn many_long_lists_are_intersected_in_one_pass_each() {
    let list: Vec<String> = (0..1000).map(|int| int.to_string()).collect();
    let one = format!(r#"{{"a":{{"$in":[{}]}}}}"#, list.join(","));
    let all = vec![one; 20].join(",");
    let index = index(&[("a", 1)]);
    let bounds = filter(&format!(r#"{{"$and":[{all},{{"a":{{"$gte":990}}}}]}}"#))
        .and_then(|filter| bounds(&filter, &index.fields));
    // Ten values, and the documents with several.
    assert_eq!(bounds.map(|bounds| bounds.ranges.len()), Some(11));
}

#[test]
fn long_keys_are_cut_and_still_found() {
    let index = index(&[("a", 1)]);
    let long = "x".repeat(3 * ENTRY_BYTES);
    let doc = format!(r#"{{"a":"{long}y"}}"#);
    for text in [
        format!(r#"{{"a":"{long}y"}}"#),
        format!(r#"{{"a":{{"$gt":"{long}"}}}}"#),
        format!(r#"{{"a":{{"$lt":"{long}z"}}}}"#),
        format!(r#"{{"a":{{"$regex":"^{long}"}}}}"#),
    ] {
        let bounds = filter(&text).and_then(|filter| bounds(&filter, &index.fields));
        let found = bounds.and_then(|bounds| finds(&bounds, &doc, &index));
        assert_eq!(found, Some(true));
    }
}
