//! With any log of version 1 the database opens or returns an error.
#![no_main]

mod database;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|changes: &[u8]| database::try_changed_old_log(changes));
