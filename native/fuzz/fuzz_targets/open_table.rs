//! Whatever a table holds: the database opens or says what is wrong.
#![no_main]

mod database;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|changes: &[u8]| database::try_changed(changes, |name| name.ends_with(".table")));
