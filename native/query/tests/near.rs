//! `$near` within a distance that is chosen while an index is read.
#![allow(
    clippy::panic,
    reason = "a filter that does not parse is a mistake in the test"
)]

use rillbase_query::bson::ValueRef;
use rillbase_query::filter::Filter;
use rillbase_query::geo::Space;
use rillbase_query::index::FieldOrder;
use rillbase_query::key::{encode_key, leading_double};

use crate::common::document;

const FORMS: [&str; 5] = [
    r#"{"a":{"$near":{"$geometry":{"type":"Point","coordinates":[1,2]}}}}"#,
    r#"{"a":{"$near":{"$geometry":{"type":"Point","coordinates":[1,2]},"$maxDistance":9e6,"$minDistance":5}}}"#,
    r#"{"a":{"$nearSphere":[1,2],"$maxDistance":2,"$minDistance":0.1}}"#,
    r#"{"a":{"$near":[1,2]}}"#,
    r#"{"$and":[{"a":{"$near":[1,2],"$maxDistance":50}},{"b":{"$gt":5}}]}"#,
];

fn filter(text: &str) -> Filter {
    Filter::parse(document(text).as_ref()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn a_lesser_distance_is_that_of_a_filter_with_it() {
    let with_distance = [
        r#"{"a":{"$near":{"$geometry":{"type":"Point","coordinates":[1,2]},"$maxDistance":0.5}}}"#,
        r#"{"a":{"$near":{"$geometry":{"type":"Point","coordinates":[1,2]},"$minDistance":5,"$maxDistance":0.5}}}"#,
        r#"{"a":{"$nearSphere":[1,2],"$minDistance":0.1,"$maxDistance":0.5}}"#,
        r#"{"a":{"$near":[1,2],"$maxDistance":0.5}}"#,
        r#"{"$and":[{"a":{"$near":[1,2],"$maxDistance":0.5}},{"b":{"$gt":5}}]}"#,
    ];
    for (text, expected) in FORMS.into_iter().zip(with_distance) {
        let within = filter(text).within(0.5);
        assert_eq!(within.hash(), filter(expected).hash(), "{text}");
        let again = Filter::parse(within.canonical()).unwrap();
        assert_eq!(within.hash(), again.hash(), "{text}");
    }
}

#[test]
fn all_matches_are_within_the_farthest_distance() {
    let orders = FORMS.map(|text| filter(text).near().unwrap().1.span().order);
    let (sphere, plane) = (FieldOrder::Sphere, FieldOrder::Plane);
    assert_eq!(orders, [sphere, sphere, sphere, plane, plane]);
    for text in FORMS {
        let any = filter(text);
        let span = any.near().unwrap().1.span();
        assert!(0.0 < span.first && span.first < span.widest, "{text}");
        let (all, part) = (any.within(span.farthest), any.within(span.widest));
        for doc in [
            r#"{"a":[1,2],"b":6}"#,
            r#"{"a":[-179,-2],"b":6}"#,
            r#"{"a":[60,-2],"b":6}"#,
        ] {
            let doc = document(doc);
            assert_eq!(
                all.matches(doc.as_ref()),
                any.matches(doc.as_ref()),
                "{text}"
            );
        }
        assert!(part.near().unwrap().1.region().is_some(), "{text}");
    }
}

#[test]
fn the_box_of_everything_is_only_that_of_an_index() {
    let any = filter(FORMS[0]);
    let near = any.near().unwrap().1;
    assert!(near.indexed_region().is_none(), "without a distance");
    let all = any.within(near.span().farthest);
    let near = all.near().unwrap().1;
    assert!(near.region().is_none());
    let everything = near.indexed_region().unwrap();
    assert_eq!(everything.space, Space::Part);
    assert!(everything.low.iter().all(|low| *low <= -1.0));
    assert!(everything.high.iter().all(|high| *high >= 1.0));
}

#[test]
fn a_sort_position_begins_with_the_distance() {
    for number in [0.0, 1e-300, 0.5, 20_000_000.0, -3.5, f64::MAX] {
        let mut key = encode_key(ValueRef::Double(number));
        assert_eq!(leading_double(&key), Some(number));
        key.extend(encode_key(ValueRef::String("a")));
        assert_eq!(leading_double(&key), Some(number));
    }
    let others = [
        ValueRef::String("abcdefghijk"),
        ValueRef::Int64((1 << 60) + 1),
        ValueRef::Null,
    ];
    for other in others {
        assert_eq!(leading_double(&encode_key(other)), None);
    }
    assert_eq!(leading_double(&[]), None);
}
