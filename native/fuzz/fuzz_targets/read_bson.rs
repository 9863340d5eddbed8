//! Any bytes are a valid document or an error, and a valid document round-trips through text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rillbase_query::bson::{Document, validate};
use rillbase_query::ejson::{Form, document_to_string, parse_document};
use rillbase_query::key::encode_key;
use rillbase_query::order::documents;

fuzz_target!(|bytes: &[u8]| {
    // Reading bytes that were never validated ends early and does not panic.
    let document = Document::trusted(bytes);
    let text = document_to_string(document, Form::Canonical);
    let _ = encode_key(rillbase_query::bson::ValueRef::Document(document));
    if validate(bytes).is_ok()
        && let Ok(again) = parse_document(text.as_bytes())
    {
        assert_eq!(document_to_string(again.as_ref(), Form::Canonical), text);
        let _ = documents(document, again.as_ref());
    }
});
