//! Any text is a valid document or an error, and the canonical form round-trips.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rillbase_query::bson::validate;
use rillbase_query::ejson::{Form, document_to_string, parse_document};

fuzz_target!(|bytes: &[u8]| {
    let Ok(document) = parse_document(bytes) else {
        return;
    };
    assert!(validate(document.as_bytes()).is_ok());
    let text = document_to_string(document.as_ref(), Form::Canonical);
    let again = parse_document(text.as_bytes()).expect("the canonical form is Extended JSON");
    assert_eq!(document_to_string(again.as_ref(), Form::Canonical), text);
});
