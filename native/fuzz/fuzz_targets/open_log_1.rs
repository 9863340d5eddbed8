//! Whatever a log of version 1 holds: the database opens or says what is wrong.
#![no_main]

mod database;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|changes: &[u8]| database::try_changed_old_log(changes));
