//! The maximum number of values in a document.

use proptest::prelude::*;
use rillbase_documents::elements::DocumentLimits;
use rillbase_query::ejson::parse_document;

const LIMITS: DocumentLimits = DocumentLimits {
    array_elements: 10,
    values: 40,
};

fn refusal(text: &str) -> Option<(String, String)> {
    let document = parse_document(text.as_bytes()).unwrap();
    let refusal = LIMITS.check(document.as_ref()).err()?;
    Some((refusal.code.into_owned(), refusal.pointer))
}

fn array(length: usize) -> String {
    format!("[{}]", vec!["0"; length].join(","))
}

#[test]
fn an_array_that_is_too_long_is_named_wherever_it_stands() {
    let long = array(11);
    for (text, pointer) in [
        (format!(r#"{{"a":{long}}}"#), "/a"),
        (
            format!(r#"{{"x":{{"a/b":[1,{{"c":{long}}}]}}}}"#),
            "/x/a~1b/1/c",
        ),
        (format!(r#"{{"a":[[1],{long}]}}"#), "/a/1"),
    ] {
        let expected = ("array_too_long".to_owned(), pointer.to_owned());
        assert_eq!(refusal(&text), Some(expected), "{text}");
    }
    assert_eq!(refusal(&format!(r#"{{"a":{}}}"#, array(10))), None);
}

proptest! {
    #[test]
    fn values_count_at_all_levels(arrays in prop::collection::vec(0..10_usize, 0..8)) {
        let values = arrays.len() + arrays.iter().sum::<usize>();
        let members = arrays.iter().enumerate();
        let members = members.map(|(number, length)| format!(r#""a{number}":{}"#, array(*length)));
        let text = format!("{{{}}}", members.collect::<Vec<_>>().join(","));
        let expected = (values > 40).then(|| ("document_too_complex".to_owned(), String::new()));
        prop_assert_eq!(refusal(&text), expected);
    }
}
