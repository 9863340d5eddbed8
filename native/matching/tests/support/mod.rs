//! Shared by several test files: filters and documents that often match, and a matcher compared
//! with a plain list of the same queries.
#![allow(dead_code, reason = "each test file uses a part")]

#[path = "../../../query/tests/common/mod.rs"]
pub(crate) mod common;

use std::collections::BTreeMap;

use common::{any_value, document, scalar};
use proptest::prelude::*;
use rillbase_matching::{Matcher, MatcherLimits, QueryId};
use rillbase_query::filter::Filter;

/// The collection of most tests.
pub(crate) const GROUP: [u8; 16] = [1; 16];
/// The tenant of most tests.
pub(crate) const QUOTA: [u8; 16] = [2; 16];

/// The filter of this text.
pub(crate) fn filter(text: &str) -> Filter {
    Filter::parse(document(text).as_ref()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A matcher without limits on residual queries.
pub(crate) fn roomy() -> Matcher {
    Matcher::new(MatcherLimits {
        residual_per_group: usize::MAX,
        residual_per_quota: usize::MAX,
        ..MatcherLimits::default()
    })
}

/// A matcher, and the same queries in a list as its model.
pub(crate) struct MatcherWithModel {
    pub(crate) matcher: Matcher,
    pub(crate) queries: BTreeMap<QueryId, (String, Filter)>,
}

impl MatcherWithModel {
    pub(crate) fn new() -> Self {
        Self {
            matcher: roomy(),
            queries: BTreeMap::new(),
        }
    }

    /// Adds a query, unless its text is not a valid filter.
    pub(crate) fn add(&mut self, text: &str) -> Option<QueryId> {
        let filter = Filter::parse(document(text).as_ref()).ok()?;
        let id = self.matcher.add(GROUP, QUOTA, &filter).expect("room");
        let before = self.queries.insert(id, (text.to_owned(), filter));
        assert!(before.is_none(), "{id:?} is given twice");
        Some(id)
    }

    /// Removes the query at this index, if there are that many.
    pub(crate) fn remove(&mut self, at: usize) {
        if let Some(id) = self.queries.keys().nth(at).copied() {
            self.queries.remove(&id);
            self.matcher.remove(id);
        }
        assert_eq!(self.matcher.len(), self.queries.len());
    }

    /// Checks that the matcher finds the queries whose filters match on their own.
    pub(crate) fn check(&mut self, text: &str) {
        let body = document(text);
        let (mut found, mut failed) = (Vec::new(), Vec::new());
        self.matcher
            .matches(&GROUP, body.as_ref(), &mut found, &mut failed);
        assert!(found.is_sorted() && failed.is_sorted());
        for (id, (query, filter)) in &self.queries {
            let expected = filter.matches(body.as_ref());
            assert_eq!(
                (found.contains(id), failed.contains(id)),
                (expected == Ok(true), expected.is_err()),
                "{query} on {text}, found by {:?}",
                self.matcher.explain(*id),
            );
        }
        let known = |id: &QueryId| self.queries.contains_key(id);
        assert!(found.iter().chain(&failed).all(known));
    }

    /// Checks the same, and that failed evaluations are reported if the filter was evaluated.
    pub(crate) fn check_answers(&mut self, text: &str) {
        let body = document(text);
        let (mut found, mut failed) = (Vec::new(), Vec::new());
        self.matcher
            .matches(&GROUP, body.as_ref(), &mut found, &mut failed);
        for (id, (query, filter)) in &self.queries {
            let expected = filter.matches(body.as_ref());
            assert_eq!(
                (found.contains(id), failed.contains(id) && expected.is_ok()),
                (expected == Ok(true), false),
                "{query} on {text}, found by {:?}",
                self.matcher.explain(*id),
            );
        }
    }
}

/// Scalars with few distinct values, so that they meet bounds.
fn near_scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (0..6_i32).prop_map(|int| int.to_string()),
        1 => prop::sample::select(vec![
            "null", "true", r#""a""#, r#""ab""#, r#""abc""#, r#""xabcx""#, r#""ABC d""#, r#""b""#,
            r#""a long text that begins alike 1""#, r#""a long text that begins alike 2""#,
            r#"{"$regularExpression":{"pattern":"abc","options":""}}"#,
            r#"{"$undefined":true}"#, r#"{"$date":{"$numberLong":"2"}}"#,
        ]).prop_map(String::from),
        2 => scalar(),
    ]
}

fn near_value() -> impl Strategy<Value = String> {
    near_scalar().prop_recursive(3, 10, 3, |inner| {
        let field = prop::sample::select(vec!["b", "b", "c", "0", "1"]);
        let object =
            (field, inner.clone()).prop_map(|(key, value)| format!(r#"{{"{key}":{value}}}"#));
        let list =
            prop::collection::vec(inner, 0..4).prop_map(|list| format!("[{}]", list.join(",")));
        let geometry = prop::sample::select(GEOMETRIES.to_vec()).prop_map(String::from);
        let part = prop::sample::select(PARTS.to_vec()).prop_map(String::from);
        let parts = prop::collection::vec(part, 1..4);
        let parts = parts.prop_map(|parts| format!("[{}]", parts.join(",")));
        prop_oneof![3 => list, 3 => object, 3 => parts, 1 => geometry]
    })
}

/// Elements of arrays.
const PARTS: &[&str] = &[
    "{}",
    "1",
    r#"{"b":1}"#,
    r#"{"b":5}"#,
    r#"{"b":null}"#,
    r#"{"c":1}"#,
    "[1,2]",
    "[]",
    r#"[{"b":2}]"#,
];

/// Geometries.
const GEOMETRIES: &[&str] = &[
    r#"{"type":"Point","coordinates":[10,50]}"#,
    r#"{"type":"Point","coordinates":[-179.99,0]}"#,
    r#"{"type":"Point","coordinates":[0,90]}"#,
    r#"{"type":"LineString","coordinates":[[9,49],[12,52]]}"#,
    r#"{"type":"Polygon","coordinates":[[[0,0],[20,0],[20,60],[0,60],[0,0]]]}"#,
    r#"{"type":"LineString","coordinates":[[-150,0],[-60,0],[30,0]]}"#,
    "[10,50]",
    "[1000,-5]",
    r#"{"x":10.5,"y":50.5}"#,
];

/// A document with few fields.
pub(crate) fn any_near_document() -> impl Strategy<Value = String> {
    let value = || prop_oneof![4 => near_value().boxed(), 1 => any_value().boxed()];
    let fields = (
        prop::option::weighted(
            0.9,
            prop_oneof![
                5 => value().boxed(),
                1 => prop::sample::select(GEOMETRIES.to_vec()).prop_map(String::from).boxed(),
            ],
        ),
        prop::option::weighted(0.7, value()),
        prop::option::weighted(0.3, value()),
    );
    fields.prop_map(|(a, b, zero)| {
        let fields: Vec<String> = [("a", a), ("b", b), ("0", zero)]
            .into_iter()
            .filter_map(|(key, value)| value.map(|value| format!(r#""{key}":{value}"#)))
            .collect();
        format!("{{{}}}", fields.join(","))
    })
}

fn pattern() -> impl Strategy<Value = (&'static str, &'static str)> {
    let source = prop::sample::select(vec![
        "a",
        "^a",
        "^ab",
        "abc",
        "b$",
        "^abc$",
        "ab?c",
        "(ab|b)c",
        "^(a|x)",
        "a.*c",
        "long text",
        "^a long text that begins alike [12]",
        "[ab]c",
        "",
        "K",
        "s",
        "a{2}",
        "alike 2",
    ]);
    (source, prop::sample::select(vec!["", "", "i", "im", "x"]))
}

fn pattern_value() -> impl Strategy<Value = String> {
    pattern().prop_map(|(source, options)| {
        format!(r#"{{"$regularExpression":{{"pattern":"{source}","options":"{options}"}}}}"#)
    })
}

/// The operators of one field, as the inside of a document.
fn condition() -> impl Strategy<Value = String> {
    let comparison = (
        prop::sample::select(vec!["$eq", "$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]),
        near_value(),
    )
        .prop_map(|(name, value)| format!(r#""{name}":{value}"#));
    let list = (
        prop::sample::select(vec!["$in", "$in", "$nin", "$all"]),
        prop::collection::vec(
            prop_oneof![4 => near_value().boxed(), 1 => pattern_value().boxed()],
            0..4,
        ),
    )
        .prop_map(|(name, values)| format!(r#""{name}":[{}]"#, values.join(",")));
    let range = (
        prop::sample::select(vec!["$gt", "$gte"]),
        near_scalar(),
        prop::sample::select(vec!["$lt", "$lte"]),
        near_scalar(),
    )
        .prop_map(|(low, from, high, to)| format!(r#""{low}":{from},"{high}":{to}"#));
    let regex = pattern()
        .prop_map(|(source, options)| format!(r#""$regex":"{source}","$options":"{options}""#));
    let fixed = prop::sample::select(FIXED.to_vec()).prop_map(String::from);
    prop_oneof![5 => comparison, 3 => list, 4 => range, 3 => fixed, 2 => regex].prop_recursive(
        2,
        6,
        2,
        |inner| {
            let within = prop::sample::select(vec!["b", "c", "0", "b.c", "0.b"]);
            prop_oneof![
                2 => inner.clone().prop_map(|inner| format!(r#""$elemMatch":{{{inner}}}"#)),
                2 => (within, inner.clone()).prop_map(|(path, inner)| format!(r#""$elemMatch":{{"{path}":{{{inner}}}}}"#)),
                1 => inner.prop_map(|inner| format!(r#""$not":{{{inner}}}"#)),
            ]
        },
    )
}

/// Operators with fixed operands.
const FIXED: &[&str] = &[
    r#""$exists":true"#,
    r#""$exists":false"#,
    r#""$size":1"#,
    r#""$type":"string""#,
    r#""$type":"number""#,
    r#""$type":["array","null"]"#,
    r#""$mod":[2,1]"#,
    r#""$bitsAllSet":1"#,
    r#""$bitsAnyClear":[0,1]"#,
    r#""$geoWithin":{"$box":[[0,0],[20,60]]}"#,
    r#""$geoWithin":{"$center":[[10,50],1]}"#,
    r#""$geoWithin":{"$centerSphere":[[10,50],0.01]}"#,
    r#""$geoWithin":{"$centerSphere":[[180,0],0.01]}"#,
    r#""$geoWithin":{"$polygon":[[0,0],[20,0],[20,60]]}"#,
    r#""$geoWithin":{"$geometry":{"type":"Polygon","coordinates":[[[0,0],[20,0],[20,60],[0,60],[0,0]]]}}"#,
    r#""$geoIntersects":{"$geometry":{"type":"LineString","coordinates":[[9,51],[12,49]]}}"#,
    r#""$geoIntersects":{"$geometry":{"type":"Point","coordinates":[10,50]}}"#,
    r#""$geoIntersects":{"$geometry":{"type":"Point","coordinates":[0,0]}}"#,
];

fn any_path() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "a", "a", "a", "a", "b", "a.b", "a.b", "a.0", "a.b.c", "a.0.b", "a.0.0", "a.b.0", "0",
    ])
}

/// Conditions at the root of a filter.
const WHOLE: &[&str] = &[
    "{}",
    r#"{"$expr":{"$gt":["$a","$b"]}}"#,
    r#"{"$jsonSchema":{"required":["a"]}}"#,
    r#"{"$text":{"$search":"text abc"}}"#,
    r#"{"$text":{"$search":"\"long text\" -abc"}}"#,
    r#"{"$text":{"$search":"Texts","$language":"none","$caseSensitive":true}}"#,
    r#"{"a":{"$near":[10,50],"$maxDistance":1}}"#,
    r#"{"a":{"$nearSphere":[10,50],"$maxDistance":0.01}}"#,
    r#"{"a":{"$near":{"$geometry":{"type":"Point","coordinates":[10,50]},"$maxDistance":100000,"$minDistance":10}}}"#,
    r#"{"a":{"$near":[10,50]}}"#,
];

/// A filter, sometimes an invalid one. Most are small, because in a large one other parts often
/// hide the error of one part.
pub(crate) fn any_filter() -> impl Strategy<Value = String> {
    let field = || {
        (any_path(), condition()).prop_map(|(path, inner)| format!(r#"{{"{path}":{{{inner}}}}}"#))
    };
    let frequent = prop::sample::select(FREQUENT.to_vec())
        .prop_map(|(path, inner)| format!(r#"{{"{path}":{{{inner}}}}}"#));
    let whole = prop::sample::select(WHOLE.to_vec()).prop_map(String::from);
    let leaf = prop_oneof![12 => field(), 1 => whole];
    let large = leaf.prop_recursive(3, 10, 3, |inner| {
        (
            prop::sample::select(vec!["$and", "$and", "$or", "$or", "$nor"]),
            prop::collection::vec(inner, 1..4),
        )
            .prop_map(|(name, inner)| format!(r#"{{"{name}":[{}]}}"#, inner.join(",")))
    });
    prop_oneof![2 => field().boxed(), 1 => frequent.boxed(), 2 => large.boxed()]
}

/// Conditions that documents satisfy in several ways.
const FREQUENT: &[(&str, &str)] = &[
    ("a.b", r#""$eq":null"#),
    ("a.c", r#""$eq":null"#),
    ("a.b", r#""$exists":false"#),
    ("a.0", r#""$exists":false"#),
    ("a.1", r#""$exists":false"#),
    ("a", r#""$regex":"abc""#),
    ("a.b", r#""$gt":1,"$lt":4"#),
    ("a", r#""$elemMatch":{"b":null}"#),
    ("a", r#""$elemMatch":{"$gt":1,"$lt":4}"#),
    (
        "a",
        r#""$geoIntersects":{"$geometry":{"type":"Point","coordinates":[0,0]}}"#,
    ),
];
