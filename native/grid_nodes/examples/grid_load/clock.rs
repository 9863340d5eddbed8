//! The system clock, which Valkey also uses.

use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_micros()).unwrap_or(0)
}
