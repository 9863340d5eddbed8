//! Names of namespaces and topics.

use crate::refusal::{CommandRefusal, Result};

const MAX_BYTES: usize = 128;

/// Rejects an invalid name.
pub(crate) fn check(name: &str) -> Result<()> {
    let begins = name
        .as_bytes()
        .first()
        .is_some_and(u8::is_ascii_alphanumeric);
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if begins && name.len() <= MAX_BYTES && name.bytes().all(fits) {
        return Ok(());
    }
    Err(CommandRefusal::syntax(
        "a name has 1 to 128 letters, digits, '_', '-' and '.', a letter or digit first",
    ))
}
