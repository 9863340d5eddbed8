//! Documents that are accepted or rejected, grouped by rule.

use crate::tree::{Tree, tree};
use rillbase_json::{Ignore, JsonErrorCode, JsonLimits, JsonLocation, ReadFailure, read};

fn accepted(document: &str) -> Tree {
    tree(document.as_bytes(), &JsonLimits::default())
        .unwrap_or_else(|refusal| panic!("{document:?} was refused: {refusal:?}"))
}

fn refused(document: impl AsRef<[u8]>) -> (JsonErrorCode, JsonLocation) {
    let document = document.as_ref();
    tree(document, &JsonLimits::default()).expect_err(&format!(
        "{:?} was accepted",
        String::from_utf8_lossy(document)
    ))
}

fn assert_all_refused(code: JsonErrorCode, documents: &[&[u8]]) {
    for document in documents {
        assert_eq!(
            refused(document).0,
            code,
            "{:?}",
            String::from_utf8_lossy(document)
        );
    }
}

fn string(text: &str) -> Tree {
    Tree::String(text.to_owned())
}

#[test]
fn every_kind_of_value_is_read_at_top_level() {
    assert_eq!(accepted("null"), Tree::Null);
    assert_eq!(accepted("true"), Tree::Boolean(true));
    assert_eq!(accepted("false"), Tree::Boolean(false));
    assert_eq!(accepted("7"), Tree::Integer(7));
    assert_eq!(accepted("1.5"), Tree::Double(1.5));
    assert_eq!(accepted("\"a\""), string("a"));
    assert_eq!(accepted("[]"), Tree::Array(vec![]));
    assert_eq!(accepted("{}"), Tree::Object(vec![]));
}

#[test]
fn members_keep_their_order_and_values_nest() {
    let read = accepted(" {\t\"b\" : [ 1 , { \"x\":null } ,[ ] ]\r\n, \"a\":{} } ");
    let inner = Tree::Object(vec![("x".into(), Tree::Null)]);
    let list = Tree::Array(vec![Tree::Integer(1), inner, Tree::Array(vec![])]);
    assert_eq!(
        read,
        Tree::Object(vec![("b".into(), list), ("a".into(), Tree::Object(vec![]))])
    );
}

#[test]
fn the_same_key_may_stand_in_different_objects() {
    accepted(r#"{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}"#);
}

#[test]
fn the_empty_key_is_a_key() {
    assert_eq!(
        accepted(r#"{"":0}"#),
        Tree::Object(vec![(String::new(), Tree::Integer(0))])
    );
}

#[test]
fn integers_are_exact_at_every_size() {
    assert_eq!(accepted("9223372036854775807"), Tree::Integer(i64::MAX));
    assert_eq!(accepted("-9223372036854775808"), Tree::Integer(i64::MIN));
    assert_eq!(
        accepted("9223372036854775808"),
        Tree::Large("9223372036854775808".into())
    );
    assert_eq!(
        accepted("-9223372036854775809"),
        Tree::Large("-9223372036854775809".into())
    );
    assert_eq!(
        accepted("999999999999999999"),
        Tree::Integer(999_999_999_999_999_999)
    );
    assert_eq!(
        accepted("-100000000000000000"),
        Tree::Integer(-100_000_000_000_000_000)
    );
}

#[test]
fn fractions_and_exponents_are_the_nearest_double() {
    for (written, value) in [
        ("0.1", 0.1),
        ("-2.5e-3", -0.0025),
        ("1E2", 100.0),
        ("1e+2", 100.0),
        ("0e0", 0.0),
        ("1.7976931348623157e308", f64::MAX),
        ("5e-324", 5e-324),
        ("1e-999", 0.0),
    ] {
        assert_eq!(accepted(written), Tree::Double(value), "{written}");
    }
}

#[test]
fn minus_zero_keeps_its_sign() {
    for written in ["-0", "-0.0", "-0e5"] {
        let Tree::Double(value) = accepted(written) else {
            panic!("{written} is a double")
        };
        assert!(value == 0.0 && value.is_sign_negative(), "{written}");
    }
}

#[test]
fn numbers_beyond_any_double_or_too_long_are_out_of_range() {
    let longest = "1".repeat(4_000);
    assert_eq!(accepted(&longest), Tree::Large(longest.clone()));
    let too_long = "1".repeat(4_001);
    assert_all_refused(
        JsonErrorCode::NumberOutOfRange,
        &[
            b"1e309",
            b"-1e999",
            b"1e99999999999999999999",
            too_long.as_bytes(),
        ],
    );
}

#[test]
fn numbers_outside_the_grammar_are_malformed() {
    assert_all_refused(
        JsonErrorCode::Malformed,
        &[
            b"01",
            b"-01",
            b"00",
            b"+1",
            b".5",
            b"1.",
            b"1.e1",
            b"-",
            b"--1",
            b"1e",
            b"1e+",
            b"0x10",
            b"1_000",
            b"NaN",
            b"-NaN",
            b"Infinity",
            b"-Infinity",
            b"inf",
            b"1.2.3",
            b"1,2",
            "\u{ff11}".as_bytes(),
        ],
    );
}

#[test]
fn escapes_stand_for_their_characters() {
    assert_eq!(
        accepted(r#""\"\\\/\b\f\n\r\t""#),
        string("\"\\/\u{8}\u{c}\n\r\t")
    );
    assert_eq!(
        accepted(r#""\u0041\u00e9\u20AC\ud83d\uDE00""#),
        string("Aé€😀")
    );
    assert_eq!(
        accepted(r#""\uffff\uFFFE\ud7ff\ue000""#),
        string("\u{ffff}\u{fffe}\u{d7ff}\u{e000}")
    );
    assert_eq!(
        accepted(r#"{"\u0061b":1}"#),
        Tree::Object(vec![("ab".into(), Tree::Integer(1))])
    );
}

#[test]
fn text_beyond_ascii_stands_for_itself() {
    assert_eq!(
        accepted("\"é€😀\u{7f}\u{2028}\""),
        string("é€😀\u{7f}\u{2028}")
    );
}

#[test]
fn strings_of_every_length_end_at_their_quote() {
    for length in 0..40 {
        for special in ["", "\\n", "é", "\\\\"] {
            let text = "x".repeat(length);
            let plain = special.replace("\\n", "\n").replace("\\\\", "\\");
            let document = format!("[\"{text}{special}{text}\",1]");
            let expected = Tree::Array(vec![
                string(&format!("{text}{plain}{text}")),
                Tree::Integer(1),
            ]);
            assert_eq!(accepted(&document), expected, "{document}");
        }
    }
}

#[test]
fn strings_outside_the_grammar_are_malformed() {
    assert_all_refused(
        JsonErrorCode::Malformed,
        &[
            b"\"",
            b"\"abc",
            b"'a'",
            b"\"\\x41\"",
            b"\"\\\"",
            b"\"\\u12\"",
            b"\"\\u12G4\"",
            b"\"\\U0041\"",
            b"\"\n\"",
            b"\"\t\"",
            b"\"\x1f\"",
            b"\"\\",
            b"\"\\u",
            b"\"\\ud83d\\u\"",
            "\"\\é\"".as_bytes(),
        ],
    );
}

#[test]
fn half_a_surrogate_pair_is_refused_in_strings_and_keys() {
    assert_all_refused(
        JsonErrorCode::LoneSurrogate,
        &[
            br#""\ud800""#,
            br#""\udc00""#,
            br#""\ud800\ud800""#,
            br#""\udc00\ud800""#,
            br#""\ud800x""#,
            br#""\ud800\n""#,
            br#""\ud800\u0041""#,
            br#"{"\udfff":1}"#,
        ],
    );
}

#[test]
fn nul_is_refused_in_strings_and_keys_raw_and_escaped() {
    assert_all_refused(
        JsonErrorCode::NulInString,
        &[
            b"\"a\0b\"",
            br#""a\u0000b""#,
            b"{\"\0\":1}",
            br#"{"k\u0000":1}"#,
        ],
    );
}

#[test]
fn a_key_given_twice_is_refused_however_it_is_written() {
    assert_all_refused(
        JsonErrorCode::DuplicateKey,
        &[
            br#"{"a":1,"a":1}"#,
            br#"{"a":1,"b":2,"a":3}"#,
            br#"{"a":1,"\u0061":1}"#,
            br#"{"":1,"":2}"#,
            br#"[{"x":{"a":{"b":1},"a":2}}]"#,
            "{\"é\":1,\"\\u00e9\":2}".as_bytes(),
        ],
    );
}

#[test]
fn a_key_given_twice_is_found_in_objects_of_every_size() {
    for size in 1..60 {
        let members: Vec<String> = (0..size)
            .map(|n| format!("\"k{n}\":{{\"k{n}\":1}}"))
            .collect();
        accepted(&format!("{{{}}}", members.join(",")));
        for again in 0..size {
            let (code, location) = refused(format!("{{{},\"k{again}\":1}}", members.join(",")));
            assert_eq!(
                (code, location.pointer),
                (JsonErrorCode::DuplicateKey, format!("/k{again}"))
            );
        }
    }
}

#[test]
fn the_grammar_is_kept_to_the_letter() {
    assert_all_refused(
        JsonErrorCode::Malformed,
        &[
            b"",
            b" ",
            b"\n",
            b"[",
            b"]",
            b"{",
            b"}",
            b"[1",
            b"[1,",
            b"[1,]",
            b"[,1]",
            b"[1 2]",
            b"[1}",
            b"{\"a\":1]",
            b"{\"a\"}",
            b"{\"a\":}",
            b"{\"a\":1,}",
            b"{,}",
            b"{a:1}",
            b"{1:1}",
            b"{\"a\" 1}",
            b"{\"a\"::1}",
            b"{\"a\":1 \"b\":2}",
            b"nul",
            b"True",
            b"TRUE",
            b"tru",
            b"nullx",
            b"1 1",
            b"{}{}",
            b"[]]",
            b"// c\n1",
            b"/* c */1",
            b"1 #",
            b"\x0b1",
            b"\x0c1",
            b"\0",
            b"1\0",
            "\u{a0}1".as_bytes(),
            "1\u{2028}".as_bytes(),
            "[1\u{feff}]".as_bytes(),
            b"undefined",
            b"[1,,2]",
            b":",
            b",",
        ],
    );
}

#[test]
fn a_byte_order_mark_is_refused() {
    assert_all_refused(
        JsonErrorCode::ByteOrderMark,
        &[b"\xef\xbb\xbf{}", b"\xef\xbb\xbf"],
    );
}

#[test]
fn bytes_that_are_not_utf8_are_refused_where_they_stand() {
    let cases: [(&[u8], usize); 11] = [
        (b"\xff", 0),
        (b"\"\xff\"", 1),
        (b"\"a\xc3\"", 2),            // a sequence that ends early
        (b"\"\xc0\xaf\"", 1),         // overlong
        (b"\"\xe0\x80\x80\"", 1),     // overlong
        (b"\"\xed\xa0\x80\"", 1),     // a surrogate
        (b"\"\xf4\x90\x80\x80\"", 1), // beyond U+10FFFF
        (b"\"\xfe\xff\"", 1),
        (b"{}\xff", 2),
        (b"[1\xff]", 2),
        (b"\xff\xfe[\x00]\x00", 0), // UTF-16
    ];
    for (document, offset) in cases {
        let (code, location) = refused(document);
        assert_eq!(
            (code, location.offset),
            (JsonErrorCode::BadUtf8, offset),
            "{document:?}"
        );
    }
}

#[test]
fn the_first_thing_that_is_wrong_is_the_one_that_is_named() {
    assert_eq!(refused(b"[1,}\xff").0, JsonErrorCode::Malformed);
    assert_eq!(refused(b"[\"\xff\",}").0, JsonErrorCode::BadUtf8);
}

#[test]
fn depth_is_bounded() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let nested = |depth: usize| format!("{}1{}", open.repeat(depth), close.repeat(depth));
        accepted(&nested(100));
        assert_eq!(refused(nested(101)).0, JsonErrorCode::TooDeep);
    }
    assert_eq!(refused("[".repeat(1_000_000)).0, JsonErrorCode::TooDeep);
}

#[test]
fn siblings_do_not_count_as_depth() {
    accepted(&format!("[{}1]", "[[]],".repeat(1_000)));
}

#[test]
fn depth_zero_allows_scalars_only() {
    let limits = JsonLimits {
        max_depth: 0,
        ..JsonLimits::default()
    };
    assert_eq!(tree(b"1", &limits), Ok(Tree::Integer(1)));
    assert_eq!(tree(b"[]", &limits).unwrap_err().0, JsonErrorCode::TooDeep);
}

#[test]
fn the_number_of_values_is_bounded() {
    let limits = JsonLimits {
        max_values: 4,
        ..JsonLimits::default()
    };
    assert!(tree(br#"{"a":[1,2]}"#, &limits).is_ok());
    let (code, location) = tree(br#"{"a":[1,2,3]}"#, &limits).unwrap_err();
    assert_eq!(
        (code, location.pointer.as_str()),
        (JsonErrorCode::TooManyValues, "/a/2")
    );
}

#[test]
fn errors_name_offset_line_and_column() {
    let (_, location) = refused("{\n  \"é\": 1,\n  \"né\": tru\n}");
    assert_eq!(
        (location.offset, location.line, location.column),
        (22, 3, 9)
    );
}

#[test]
fn pointers_name_the_innermost_value_that_had_begun() {
    for (document, pointer) in [
        ("", ""),
        ("nope", ""),
        ("[1,nope]", "/1"),
        ("[1 2]", ""),
        (r#"{"a":nope}"#, "/a"),
        (r#"{"a" nope}"#, "/a"),
        (r#"{"a":1 nope}"#, ""),
        (r#"{"a":[[],[0,{"b":[nope]}]]}"#, "/a/1/1/b/0"),
        (r#"{"a":{"b":1},"c":{"d":[nope]}}"#, "/c/d/0"),
        (r#"{"a/b":{"m~n":{"":nope}}}"#, "/a~1b/m~0n/"),
        (r#"{"a":{"b":{}},nope}"#, ""),
        (r#"{"a":[{"b":1,"b":2}]}"#, "/a/0/b"),
        ("[0,1", ""),
    ] {
        assert_eq!(refused(document).1.pointer, pointer, "{document}");
    }
}

#[test]
fn pointers_are_cut_to_an_enclosing_value_when_long() {
    let long = "k".repeat(2_000);
    assert_eq!(
        refused(format!("{{\"a\":[{{\"{long}\":[nope]}}]}}"))
            .1
            .pointer,
        "/a/0"
    );
    let key = "k".repeat(400);
    let (_, location) = refused(format!("{{\"{key}\":{{\"{key}\":{{\"{key}\":nope}}}}}}"));
    assert_eq!(location.pointer, format!("/{key}/{key}"));
}

#[test]
fn a_document_can_be_validated_without_building_anything() {
    assert!(
        read(
            b"{\"a\":[1,2.5,\"x\\n\",null,true]}",
            &JsonLimits::default(),
            &mut Ignore
        )
        .is_ok()
    );
    let Err(ReadFailure::Json(error)) = read(b"[1,]", &JsonLimits::default(), &mut Ignore) else {
        panic!("a trailing comma is refused");
    };
    assert_eq!(error.to_string(), "expected a value at line 1 column 4");
}
