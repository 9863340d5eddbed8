//! Extended JSON and BSON: values round-trip, and errors are located.

use proptest::prelude::*;
use rillbase_query::bson::{Document, DocumentBuf, ValueRef, validate};
use rillbase_query::decimal::Decimal;
use rillbase_query::ejson::{
    Form, document_to_string, parse_document, parse_message, parse_operations, parse_request,
    value_to_string,
};
use rillbase_query::error::ErrorCode;
use rillbase_query::limits::FILTER_BYTES;

fn canonical(text: &str) -> String {
    let document = parse_document(text.as_bytes()).expect(text);
    document_to_string(document.as_ref(), Form::Canonical)
}

fn relaxed(text: &str) -> String {
    let document = parse_document(text.as_bytes()).expect(text);
    document_to_string(document.as_ref(), Form::Relaxed)
}

#[test]
fn every_type_round_trips_in_canonical_form() {
    for value in [
        r#"{"$numberInt":"-2147483648"}"#,
        r#"{"$numberLong":"9223372036854775807"}"#,
        r#"{"$numberDouble":"-0.0"}"#,
        r#"{"$numberDouble":"NaN"}"#,
        r#"{"$numberDouble":"-Infinity"}"#,
        r#"{"$numberDouble":"1e100"}"#,
        r#"{"$numberDecimal":"9007199254740993.10"}"#,
        r#"{"$numberDecimal":"-0E-6176"}"#,
        r#"{"$numberDecimal":"9.999999999999999999999999999999999E+6144"}"#,
        r#"{"$numberDecimal":"NaN"}"#,
        r#""text \" \\ \n é 😀""#,
        r#"{"$oid":"507f1f77bcf86cd799439011"}"#,
        r#"{"$date":{"$numberLong":"-1"}}"#,
        r#"{"$timestamp":{"t":4294967295,"i":1}}"#,
        r#"{"$binary":{"base64":"AQID","subType":"80"}}"#,
        r#"{"$binary":{"base64":"AQID","subType":"02"}}"#,
        r#"{"$regularExpression":{"pattern":"^a","options":"im"}}"#,
        r#"{"$dbPointer":{"$ref":"b","$id":{"$oid":"56e1fc72e0c917e9c4714161"}}}"#,
        r#"{"$code":"f()"}"#,
        r#"{"$code":"f()","$scope":{"x":{"$numberInt":"1"}}}"#,
        r#"{"$symbol":"s"}"#,
        r#"{"$undefined":true}"#,
        r#"{"$minKey":1}"#,
        r#"{"$maxKey":1}"#,
        r"[null,true,false,[],{}]",
    ] {
        let text = format!(r#"{{"v":{value}}}"#);
        assert_eq!(canonical(&text), text);
    }
}

#[test]
fn relaxed_form_keeps_large_integers_and_odd_doubles_typed() {
    let text = r#"{"a":1,"b":9007199254740992,"c":{"$numberLong":"9007199254740993"},"d":{"$numberDouble":"NaN"},"e":1.0,"f":{"$date":"1970-01-01T00:00:00Z"},"g":{"$date":{"$numberLong":"-1"}}}"#;
    assert_eq!(relaxed(text), text);
}

#[test]
fn plain_integers_take_the_smallest_type_that_holds_them() {
    assert_eq!(
        canonical(r#"{"a":2147483648}"#),
        r#"{"a":{"$numberLong":"2147483648"}}"#
    );
    assert_eq!(
        canonical(r#"{"a":9223372036854775808}"#),
        r#"{"a":{"$numberDouble":"9.223372036854776e18"}}"#
    );
}

#[test]
fn older_forms_are_read() {
    assert_eq!(
        canonical(r#"{"a":{"$uuid":"73ffd264-44b3-4c69-90e8-e7d1dfc035d4"}}"#),
        r#"{"a":{"$binary":{"base64":"c//SZESzTGmQ6OfR38A11A==","subType":"04"}}}"#
    );
    assert_eq!(
        canonical(r#"{"a":{"$binary":"AQID","$type":"0"}}"#),
        r#"{"a":{"$binary":{"base64":"AQID","subType":"00"}}}"#
    );
    assert_eq!(
        canonical(r#"{"a":{"$regex":"^a","$options":"i"}}"#),
        r#"{"a":{"$regularExpression":{"pattern":"^a","options":"i"}}}"#
    );
}

#[test]
fn operators_are_not_taken_for_types() {
    let text = r#"{"a":{"$gt":{"$numberInt":"1"}},"$or":[]}"#;
    assert_eq!(canonical(text), text);
}

#[test]
fn invalid_values_are_rejected_with_a_pointer() {
    for (text, code, pointer) in [
        (
            r#"{"a":{"b":{"$oid":"12"}}}"#,
            ErrorCode::InvalidJson,
            "/a/b",
        ),
        (
            r#"{"a":[1,{"$numberInt":"2147483648"}]}"#,
            ErrorCode::InvalidJson,
            "/a/1",
        ),
        (r#"{"a":{"$numberLong":5}}"#, ErrorCode::InvalidJson, "/a"),
        (
            r#"{"a":{"$numberDecimal":"12345678901234567890123456789012345"}}"#,
            ErrorCode::InvalidJson,
            "/a",
        ),
        (
            r#"{"a":{"$numberDouble":"1_0"}}"#,
            ErrorCode::InvalidJson,
            "/a",
        ),
        (
            r#"{"a":{"$date":"2023-02-29T00:00:00Z"}}"#,
            ErrorCode::InvalidJson,
            "/a",
        ),
        (
            r#"{"a":{"$oid":"507f1f77bcf86cd799439011","x":1}}"#,
            ErrorCode::InvalidJson,
            "/a",
        ),
        (
            r#"{"a":{"$regularExpression":{"pattern":"a","options":"mi"}}}"#,
            ErrorCode::InvalidJson,
            "/a",
        ),
        (r#"{"a":"\u0000"}"#, ErrorCode::InvalidJson, "/a"),
        (r#"{"a":"\ud800"}"#, ErrorCode::InvalidJson, "/a"),
        (r#"{"a":1,"a":2}"#, ErrorCode::InvalidJson, "/a"),
        (r#"{"a":1e999}"#, ErrorCode::InvalidJson, "/a"),
        (r"[1]", ErrorCode::InvalidJson, ""),
    ] {
        let error = parse_document(text.as_bytes()).expect_err(text);
        assert_eq!(
            (error.code, error.pointer.as_str()),
            (code, pointer),
            "{text}"
        );
    }
}

#[test]
fn a_hundred_levels_are_allowed_and_one_more_is_not() {
    let nested = |levels: usize| format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
    assert!(parse_document(nested(100).as_bytes()).is_ok());
    let error = parse_document(nested(101).as_bytes()).expect_err("too deep");
    assert_eq!(error.code, ErrorCode::NestingTooDeep);
}

#[test]
fn broken_bson_is_refused_whatever_byte_is_broken() {
    let text = r#"{"a":"text","b":[1,{"$numberLong":"2"}],"c":{"d":{"$binary":{"base64":"AQID","subType":"02"}}},"e":{"$code":"f()","$scope":{}}}"#;
    let good = parse_document(text.as_bytes()).expect(text).into_bytes();
    validate(&good).expect("valid");
    for length in 0..good.len() {
        assert!(validate(&good[..length]).is_err());
    }
    for position in 0..good.len() {
        for value in [0, 1, 0x7F, 0xFF] {
            let mut broken = good.clone();
            broken[position] = value;
            // Valid or not, reading and printing must terminate.
            let _ = validate(&broken);
            let _ = document_to_string(Document::trusted(&broken), Form::Canonical);
        }
    }
}

#[test]
fn decimal_arithmetic_is_exact_or_rounded_half_to_even() {
    let decimal = |text: &str| Decimal::parse_exact(text).expect(text);
    for (left, operator, right, result) in [
        ("0.1", '+', "0.2", "0.3"),
        (
            "9999999999999999999999999999999999",
            '+',
            "1",
            "1.000000000000000000000000000000000E+34",
        ),
        ("1E+40", '+', "1", "1.000000000000000000000000000000000E+40"),
        ("1", '+', "-1", "0"),
        ("1.00", '-', "0.10", "0.90"),
        ("1E-6176", '-', "2E-6176", "-1E-6176"),
        ("1.20", '*', "3", "3.60"),
        (
            "9.999999999999999999999999999999999E+6144",
            '*',
            "10",
            "Infinity",
        ),
        ("1", '/', "3", "0.3333333333333333333333333333333333"),
        ("2", '/', "3", "0.6666666666666666666666666666666667"),
        ("6", '/', "2", "3"),
        ("1", '/', "0", "Infinity"),
        ("0", '/', "0", "NaN"),
        ("-7", '%', "3", "-1"),
        ("1E+30", '%', "7", "1"),
        ("5", '%', "1E+40", "5"),
        ("Infinity", '-', "Infinity", "NaN"),
    ] {
        let (a, b) = (decimal(left), decimal(right));
        let got = match operator {
            '+' => a.plus(b),
            '-' => a.minus(b),
            '*' => a.times(b),
            '/' => a.divided_by(b),
            _ => a.remainder(b),
        };
        assert_eq!(got.to_string(), result, "{left} {operator} {right}");
    }
    assert_eq!(
        decimal("2").square_root().to_string(),
        "1.414213562373095048801688724209698"
    );
    assert_eq!(decimal("16").square_root().to_string(), "4");
    assert_eq!(Decimal::from_f64(0.1).to_string(), "0.100000000000000");
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse_document(&bytes);
        if let Ok(document) = DocumentBuf::parse(bytes) {
            let text = document_to_string(document.as_ref(), Form::Canonical);
            let again = parse_document(text.as_bytes());
            // Only duplicate keys and keys that look like types prevent a round trip.
            if let Ok(again) = again {
                prop_assert_eq!(document_to_string(again.as_ref(), Form::Canonical), text);
            }
        }
    }

    #[test]
    fn decimals_print_and_parse_to_the_same_number(bytes in any::<[u8; 16]>()) {
        let decimal = Decimal::from_le_bytes(bytes);
        let again = Decimal::parse_exact(&decimal.to_string()).expect("its own text");
        prop_assert_eq!(again.total_cmp(decimal), std::cmp::Ordering::Equal);
        prop_assert_eq!(again.to_string(), Decimal::parse_exact(&again.to_string()).expect("text").to_string());
    }

    #[test]
    fn decimal_division_undoes_multiplication(a in 1_i64..1_000_000_000, b in 1_i64..1_000_000_000) {
        let product = Decimal::from(a).times(Decimal::from(b));
        prop_assert_eq!(product.divided_by(Decimal::from(b)).to_exact_i64(), Some(a));
        prop_assert!(product.remainder(Decimal::from(b)).is_zero());
    }
}

/// A request with one member, whose text is a repeated part.
fn request(member: &str, part: &str, count: usize) -> String {
    format!(
        r#"{{"{member}":{{"a":[{}0]}}}}"#,
        format!("{part},").repeat(count)
    )
}

#[test]
fn a_member_of_a_request_is_refused_as_soon_as_it_exceeds_its_bound() {
    for (member, code) in [
        ("filter", ErrorCode::FilterTooLarge),
        ("sort", ErrorCode::InvalidSort),
        ("projection", ErrorCode::InvalidProjection),
        ("group", ErrorCode::InvalidGroup),
        ("lookup", ErrorCode::InvalidLookup),
        ("array_filters", ErrorCode::InvalidUpdate),
    ] {
        for part in ["1", r#"{"$numberLong":"1"}"#, r#"{"key":[]}"#, r#""text""#] {
            // The rest is not valid JSON, and is never read.
            let text = format!("{} oops", request(member, part, 70_000));
            let error = parse_request(text.as_bytes()).expect_err(member);
            assert_eq!(error.code, code, "{member} {part}");
            assert_eq!(error.pointer, format!("/{member}"));
        }
        let text = format!(r#"{{"{member}":"{}"}}"#, "x".repeat(FILTER_BYTES + 1));
        assert_eq!(parse_request(text.as_bytes()).expect_err(member).code, code);
        let text = format!(r#"{{"{member}":{{"{}":1}}}}"#, "x".repeat(FILTER_BYTES + 1));
        assert_eq!(parse_request(text.as_bytes()).expect_err(member).code, code);
    }
}

#[test]
fn a_message_is_read_to_its_end_without_the_members_that_exceed_their_bounds() {
    let large = "1,".repeat(140_000);
    for filter in [
        format!(r#"{{"a":{{"$in":[[{large}1],{{"b":[]}}]}},"c":[{{}}]}}"#),
        format!("[{large}1]"),
        format!(r#""{large}""#),
        format!(r#"{{"{large}":{{"x":1}},"y":[1]}}"#),
    ] {
        let text = format!(r#"{{"filter":{filter},"sort":[["a",1]],"id":"s","lookup":{filter}}}"#);
        let (message, refused) = parse_message(text.as_bytes()).expect("JSON");
        assert_eq!(
            value_to_string(message.as_ref(), Form::Relaxed),
            r#"{"sort":[["a",1]],"id":"s"}"#
        );
        let refused = refused.expect("a refusal");
        assert_eq!(refused.code, ErrorCode::FilterTooLarge);
        assert_eq!(refused.pointer, "/filter");
        let broken = format!("{} oops", text.trim_end_matches('}'));
        assert_eq!(
            parse_message(broken.as_bytes()).expect_err("no JSON").code,
            ErrorCode::InvalidJson
        );
    }
}

#[test]
fn members_of_a_request_are_bounded_one_by_one_by_the_bytes_that_they_become() {
    // A wrapper is much longer as text than as a value.
    let value = r#"{"$numberLong":"1"}"#;
    let text = request("filter", value, 16_000);
    assert!(text.len() > FILTER_BYTES);
    assert!(parse_request(text.as_bytes()).is_ok());
    // The length, the type, the name, the length of the text, and three NULs.
    let exact = FILTER_BYTES - (4 + 1 + 1 + 4 + 3);
    for (bytes, fits) in [(exact, true), (exact + 1, false)] {
        let filter = format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes));
        let text = format!(r#"{{"filter":{filter},"sort":{filter}}}"#);
        assert_eq!(parse_request(text.as_bytes()).is_ok(), fits, "{bytes}");
    }
    let large = request("document", "1", 1_000_000);
    assert!(parse_request(large.as_bytes()).is_ok());
    let larger = request("document", "1", 1_500_000);
    let error = parse_request(larger.as_bytes()).expect_err("16 MiB");
    assert_eq!(error.code, ErrorCode::DocumentTooLarge);
    let listed = request("operations", "1", 1_500_000);
    assert!(parse_request(listed.as_bytes()).is_ok());
}

#[test]
fn operations_beyond_their_bounds_are_not_built() {
    let listed = r#"{"delete":{"id":1}},"#.repeat(100_000);
    let text = format!(r#"{{"operations":[{listed}0]}}"#);
    let body = parse_operations(text.as_bytes(), 500).expect("JSON");
    let ValueRef::Document(body) = body.as_ref() else {
        panic!("an object");
    };
    let Some(ValueRef::Array(listed)) = body.get("operations") else {
        panic!("a list");
    };
    assert_eq!(listed.iter().count(), 501);
    let broken = format!("{} oops", text.trim_end_matches('}'));
    assert!(parse_operations(broken.as_bytes(), 500).is_err());
    let one = format!(
        r#"{{"operations":[{{"insert":{{"a":[{}1]}}}}]}}"#,
        "1,".repeat(6_000_000)
    );
    let error = parse_operations(one.as_bytes(), 500).expect_err("64 MiB");
    assert_eq!(error.code, ErrorCode::DocumentTooLarge);
}
