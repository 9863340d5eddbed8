//! Any bytes are a document or an error with a location inside them, and reading is deterministic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rillbase_json::{ReadFailure, Ignore, JsonLimits, read};

fuzz_target!(|bytes: &[u8]| {
    let limits = JsonLimits { max_values: 10_000, ..JsonLimits::default() };
    match read(bytes, &limits, &mut Ignore) {
        Ok(()) => assert!(std::str::from_utf8(bytes).is_ok()),
        Err(ReadFailure::Json(error)) => {
            assert!(error.location.offset <= bytes.len());
            assert!(error.location.pointer.len() <= 1_024);
            let Err(ReadFailure::Json(again)) = read(bytes, &limits, &mut Ignore) else {
                panic!("refused once, accepted the second time");
            };
            assert_eq!(error, again);
        }
        Err(ReadFailure::Sink { error, .. }) => match error {},
    }
});
