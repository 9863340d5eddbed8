//! The order over all values, and its keys.

use std::cmp::Ordering;

use crate::common::{any_value, value};
use proptest::prelude::*;
use rillbase_query::key::{encode_descending, encode_key};
use rillbase_query::order::compare;

/// Groups in ascending order; the values of one group are equal.
const ASCENDING: &[&[&str]] = &[
    &[r#"{"$minKey":1}"#],
    &[r#"{"$undefined":true}"#],
    &["null"],
    &[
        r#"{"$numberDouble":"NaN"}"#,
        r#"{"$numberDecimal":"NaN"}"#,
        r#"{"$numberDecimal":"-NaN"}"#,
    ],
    &[
        r#"{"$numberDouble":"-Infinity"}"#,
        r#"{"$numberDecimal":"-Infinity"}"#,
    ],
    &[r#"{"$numberDecimal":"-1E+6000"}"#],
    &["-1.7976931348623157e308"],
    &[
        r#"{"$numberLong":"-9223372036854775808"}"#,
        "-9223372036854775808.0",
    ],
    &[
        r#"{"$numberLong":"-9007199254740993"}"#,
        r#"{"$numberDecimal":"-9007199254740993"}"#,
    ],
    &[r#"{"$numberDecimal":"-9007199254740992.5"}"#],
    &[
        "-9007199254740992.0",
        r#"{"$numberLong":"-9007199254740992"}"#,
    ],
    &[
        "-1",
        "-1.0",
        r#"{"$numberLong":"-1"}"#,
        r#"{"$numberDecimal":"-1.000"}"#,
    ],
    &["-5e-324"],
    &[r#"{"$numberDecimal":"-1E-6000"}"#],
    &[
        "0",
        "0.0",
        "-0.0",
        r#"{"$numberDecimal":"0E+10"}"#,
        r#"{"$numberDecimal":"-0"}"#,
    ],
    &[r#"{"$numberDecimal":"1E-6000"}"#],
    &["5e-324"],
    &[r#"{"$numberDecimal":"0.1"}"#],
    &["0.1"],
    &["1", r#"{"$numberDecimal":"1"}"#],
    &[
        "9007199254740992.0",
        r#"{"$numberLong":"9007199254740992"}"#,
    ],
    &[r#"{"$numberDecimal":"9007199254740992.5"}"#],
    &[
        r#"{"$numberLong":"9007199254740993"}"#,
        r#"{"$numberDecimal":"9007199254740993.0"}"#,
    ],
    &["9007199254740994.0"],
    &[r#"{"$numberLong":"9223372036854775807"}"#],
    &[
        "9223372036854775808.0",
        r#"{"$numberDecimal":"9223372036854775808"}"#,
    ],
    &["1.7976931348623157e308"],
    &[r#"{"$numberDecimal":"1E+6000"}"#],
    &[
        r#"{"$numberDouble":"Infinity"}"#,
        r#"{"$numberDecimal":"Infinity"}"#,
    ],
    &[r#""""#],
    &[r#""a""#, r#"{"$symbol":"a"}"#],
    &[r#""a\u0001""#],
    &[r#""ab""#],
    &[r#""é""#],
    &["{}"],
    &[r#"{"b":1}"#, r#"{"b":1.0}"#],
    &[r#"{"b":1,"a":2}"#],
    &[r#"{"b":2}"#],
    &[r#"{"a":"x"}"#],
    &[r#"{"a":{}}"#],
    &["[]"],
    &["[1]"],
    &["[1,2]"],
    &["[2]"],
    &[r#"["a"]"#],
    &[r#"{"$binary":{"base64":"/w==","subType":"80"}}"#],
    &[r#"{"$binary":{"base64":"AQI=","subType":"00"}}"#],
    &[r#"{"$binary":{"base64":"AQI=","subType":"04"}}"#],
    &[r#"{"$oid":"000000000000000000000000"}"#],
    &[r#"{"$oid":"ffffffffffffffffffffffff"}"#],
    &["false"],
    &["true"],
    &[r#"{"$date":{"$numberLong":"-9223372036854775808"}}"#],
    &[r#"{"$date":{"$numberLong":"-1"}}"#],
    &[r#"{"$date":{"$numberLong":"0"}}"#],
    &[r#"{"$timestamp":{"t":0,"i":1}}"#],
    &[r#"{"$timestamp":{"t":1,"i":0}}"#],
    &[r#"{"$regularExpression":{"pattern":"a","options":""}}"#],
    &[r#"{"$regularExpression":{"pattern":"a","options":"i"}}"#],
    &[r#"{"$dbPointer":{"$ref":"b","$id":{"$oid":"56e1fc72e0c917e9c4714161"}}}"#],
    &[r#"{"$code":"a"}"#],
    &[r#"{"$code":"a","$scope":{}}"#],
    &[r#"{"$maxKey":1}"#],
];

#[test]
fn all_values_stand_in_mongodbs_order_and_so_do_their_keys() {
    let flat: Vec<(usize, &str)> = ASCENDING
        .iter()
        .enumerate()
        .flat_map(|(rank, group)| group.iter().map(move |text| (rank, *text)))
        .collect();
    for (rank_a, a) in &flat {
        for (rank_b, b) in &flat {
            let (x, y) = (value(a), value(b));
            assert_eq!(
                compare(x.as_ref(), y.as_ref()),
                rank_a.cmp(rank_b),
                "{a} against {b}"
            );
            assert_eq!(
                encode_key(x.as_ref()).cmp(&encode_key(y.as_ref())),
                rank_a.cmp(rank_b),
                "keys of {a}, {b}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn keys_have_the_order_of_their_values(a in any_value(), b in any_value()) {
        let (x, y) = (value(&a), value(&b));
        let order = compare(x.as_ref(), y.as_ref());
        let (key_x, key_y) = (encode_key(x.as_ref()), encode_key(y.as_ref()));
        prop_assert_eq!(key_x.cmp(&key_y), order);
        if order != Ordering::Equal {
            prop_assert!(!key_x.starts_with(&key_y), "a key is no prefix of another");
        }
        let (mut down_x, mut down_y) = (Vec::new(), Vec::new());
        encode_descending(&mut down_x, x.as_ref());
        encode_descending(&mut down_y, y.as_ref());
        prop_assert_eq!(down_x.cmp(&down_y), order.reverse());
    }

    #[test]
    fn the_order_is_total(a in any_value(), b in any_value(), c in any_value()) {
        let (x, y, z) = (value(&a), value(&b), value(&c));
        let (xy, yz, xz) = (compare(x.as_ref(), y.as_ref()), compare(y.as_ref(), z.as_ref()), compare(x.as_ref(), z.as_ref()));
        prop_assert_eq!(compare(y.as_ref(), x.as_ref()), xy.reverse());
        if xy == yz {
            prop_assert_eq!(xz, xy);
        }
    }
}
