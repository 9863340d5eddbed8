//! Any bytes of a client are parsed within bounds, and with the same result if they arrive one by
//! one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rillbase_storage_node::resp::{RequestLimits, RequestParser, RequestSyntaxError};

const LIMITS: RequestLimits = RequestLimits { words: 16, word_bytes: 256, request_bytes: 1024 };

/// The words of all requests, and the error that ended parsing.
fn requests(bytes: &[u8], step: usize) -> (Vec<Vec<Vec<u8>>>, Option<RequestSyntaxError>) {
    let (mut found, mut begin, mut parser) = (Vec::new(), 0, RequestParser::default());
    let mut seen = step.min(bytes.len());
    loop {
        match parser.parse(&bytes[begin..seen], &LIMITS) {
            Err(error) => return (found, Some(error)),
            Ok(None) if seen == bytes.len() => return (found, None),
            Ok(None) => seen = (seen + step).min(bytes.len()),
            Ok(Some(length)) => {
                assert!(length > 0 && length == parser.length() && begin + length <= seen);
                let words = parser.words(&bytes[begin..seen]);
                assert!(words.len() <= LIMITS.words);
                found.push(words.iter().map(|word| word.to_vec()).collect());
                begin += length;
                parser.reset();
            }
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let (whole, error) = requests(bytes, usize::MAX);
    let (pieces, other) = requests(bytes, 1);
    assert_eq!(whole, pieces);
    assert_eq!(error.is_some(), other.is_some());
});
