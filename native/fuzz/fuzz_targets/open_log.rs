//! With any log the database opens or returns an error.
#![no_main]

mod database;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|changes: &[u8]| database::try_changed(changes, |name| name.ends_with(".wal")));
