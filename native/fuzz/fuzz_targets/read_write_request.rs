//! Any request of a write is read or rejected, and what was read is written as it was read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rillbase_documents::plan::WriteRequest;
use rillbase_documents::{row_format, write_format};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(request) = WriteRequest::decode(bytes) {
        let encoded = request.encode();
        let again = WriteRequest::decode(&encoded).expect("what was written is read");
        assert_eq!(again.encode(), encoded);
    }
    if let Ok(result) = write_format::decode_result(bytes) {
        let encoded = write_format::encode_result(&result);
        assert!(write_format::decode_result(&encoded).is_ok());
    }
    let _ = row_format::rows(bytes);
});
