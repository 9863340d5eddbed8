//! Shared by several test files: parsing of values, and random values.
#![allow(dead_code, reason = "tests of other crates include a part of it")]
#![allow(
    clippy::panic,
    reason = "text of a test that does not parse is a mistake in the test"
)]

use proptest::prelude::*;
use rillbase_query::bson::{DocumentBuf, Value};
use rillbase_query::ejson::{parse_document, parse_value};

/// The document of this text.
pub(crate) fn document(text: &str) -> DocumentBuf {
    parse_document(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The value of this text.
pub(crate) fn value(text: &str) -> Value {
    parse_value(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Text of a scalar, from a small set, so that random pairs often meet.
pub(crate) fn scalar() -> impl Strategy<Value = String> {
    let edge = prop::sample::select(vec![
        "null",
        "true",
        "false",
        "0",
        "1",
        "-1",
        "2",
        "1.0",
        "1.5",
        "-0.0",
        r#""""#,
        r#""a""#,
        r#""ab""#,
        r#""b""#,
        r#"{"$numberDouble":"NaN"}"#,
        r#"{"$numberDouble":"Infinity"}"#,
        r#"{"$numberDouble":"-Infinity"}"#,
        r#"{"$numberDecimal":"1.00"}"#,
        r#"{"$numberDecimal":"0.1"}"#,
        "0.1",
        r#"{"$numberDecimal":"NaN"}"#,
        r#"{"$numberDecimal":"1E+6000"}"#,
        r#"{"$numberDecimal":"-1E-6000"}"#,
        r#"{"$numberDecimal":"Infinity"}"#,
        r#"{"$numberLong":"9007199254740992"}"#,
        r#"{"$numberLong":"9007199254740993"}"#,
        "9007199254740992.0",
        r#"{"$numberDecimal":"9007199254740993"}"#,
        r#"{"$numberDecimal":"9007199254740992.5"}"#,
        r#"{"$numberLong":"9223372036854775807"}"#,
        "9223372036854775808.0",
        "5e-324",
        r#"{"$oid":"507f1f77bcf86cd799439011"}"#,
        r#"{"$oid":"507f1f77bcf86cd799439012"}"#,
        r#"{"$date":{"$numberLong":"-1"}}"#,
        r#"{"$date":{"$numberLong":"1"}}"#,
        r#"{"$timestamp":{"t":1,"i":1}}"#,
        r#"{"$minKey":1}"#,
        r#"{"$maxKey":1}"#,
        r#"{"$binary":{"base64":"AQID","subType":"00"}}"#,
        r#"{"$binary":{"base64":"AQ==","subType":"80"}}"#,
        r#"{"$regularExpression":{"pattern":"a","options":""}}"#,
        r#"{"$symbol":"a"}"#,
        r#"{"$code":"f"}"#,
    ])
    .prop_map(String::from);
    let random = prop_oneof![
        any::<i64>().prop_map(|int| format!(r#"{{"$numberLong":"{int}"}}"#)),
        any::<f64>().prop_map(|double| {
            if double.is_finite() {
                format!(r#"{{"$numberDouble":"{double:?}"}}"#)
            } else {
                "1".into()
            }
        }),
        (any::<i64>(), -40..40_i32)
            .prop_map(|(int, exponent)| format!(r#"{{"$numberDecimal":"{int}E{exponent}"}}"#)),
    ];
    prop_oneof![4 => edge, 1 => random]
}

/// Text of a value, arrays and documents included.
pub(crate) fn any_value() -> impl Strategy<Value = String> {
    scalar().prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|values| format!("[{}]", values.join(","))),
            fields(inner),
        ]
    })
}

/// Text of a document with fields of a small alphabet.
pub(crate) fn any_document() -> impl Strategy<Value = String> {
    fields(any_value())
}

fn fields(inner: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    prop::collection::btree_map(
        prop::sample::select(vec!["a", "b", "c", "0", "1"]),
        inner,
        0..4,
    )
    .prop_map(|fields| {
        let fields: Vec<String> = fields
            .into_iter()
            .map(|(key, value)| format!(r#""{key}":{value}"#))
            .collect();
        format!("{{{}}}", fields.join(","))
    })
}
