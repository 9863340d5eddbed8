//! Identifiers of documents: in paths, as order-preserving keys, as hashes.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

use rillbase_query::bson::{ObjectId, Value, ValueRef};
use rillbase_query::ejson::{Form, parse_value, value_to_string};
use rillbase_query::key::encode_key;

use crate::refusal::DocumentRefusal;

/// The maximum length of a document's key: well below the limit of a B-tree.
pub const KEY_BYTES: usize = 1_024;

/// The `_id` that a path's segment names, percent-decoded already: 24 hex digits are an ObjectId, a
/// leading `~` denotes Extended JSON, and anything else is a string.
pub fn parse(segment: &str) -> Result<Value, DocumentRefusal> {
    if let Some(text) = segment.strip_prefix('~') {
        return parse_value(text.as_bytes())
            .map_err(|error| DocumentRefusal::new("invalid_id", error.detail));
    }
    if segment.contains('\0') {
        return Err(DocumentRefusal::new(
            "invalid_id",
            "a string must not contain a NUL character",
        ));
    }
    match object_id(segment) {
        Some(id) => Ok(Value::ObjectId(id)),
        None => Ok(Value::String(segment.into())),
    }
}

/// The segment of a path that names an `_id`, percent-encoded.
#[must_use]
pub fn format(id: ValueRef<'_>) -> String {
    match id {
        ValueRef::ObjectId(id) => id.to_hex(),
        ValueRef::String(text) if is_plain(text) => percent_encoded(text),
        other => format!(
            "~{}",
            percent_encoded(&value_to_string(other, Form::Canonical))
        ),
    }
}

fn is_plain(text: &str) -> bool {
    !matches!(text, "" | "." | "..") && !text.starts_with('~') && object_id(text).is_none()
}

fn object_id(text: &str) -> Option<ObjectId> {
    (text.len() == 24).then(|| ObjectId::from_hex(text))?
}

fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            for digit in [byte >> 4, byte & 15] {
                encoded.extend(char::from_digit(digit.into(), 16).map(|c| c.to_ascii_uppercase()));
            }
        }
    }
    encoded
}

/// The key of a document with this `_id`.
pub fn key(id: ValueRef<'_>) -> Result<Vec<u8>, DocumentRefusal> {
    let refused = match id {
        ValueRef::Array(_) => Some("an array"),
        ValueRef::Regex(_) => Some("a regular expression"),
        ValueRef::Undefined => Some("undefined"),
        _ => None,
    };
    if let Some(kind) = refused {
        let detail = format!("an _id cannot be {kind}");
        return Err(DocumentRefusal::new("invalid_id", detail));
    }
    let key = encode_key(id);
    if key.len() > KEY_BYTES {
        let detail = format!("an _id may take at most {KEY_BYTES} bytes");
        return Err(DocumentRefusal::new("invalid_id", detail));
    }
    Ok(key)
}

/// The hash that decides a document's write partition: FNV-1a over the key,
/// folded to 31 bits. It is stored, so it never changes.
#[must_use]
pub fn key_hash(key: &[u8]) -> i32 {
    let hash = key.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let folded = (hash ^ (hash >> 32)) & 0x7fff_ffff;
    i32::try_from(folded).unwrap_or(0)
}

/// A new ObjectId: the time in seconds and nanoseconds, then 34 random bits.
///
/// The usual counter of the process would be shared by all tenants, so that the difference of two
/// ids would reveal how many documents others inserted in between. The time also orders the ids of
/// one caller.
#[must_use]
pub fn new_object_id() -> ObjectId {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    // The format has only 32 bits for seconds.
    let seconds = (now.as_secs() & 0xffff_ffff) << 32;
    let rest = (u64::from(now.subsec_nanos()) << 34) | (random() & RANDOM_BITS);
    let mut bytes = [0; 12];
    let parts = seconds.to_be_bytes().into_iter().take(4);
    bytes
        .iter_mut()
        .zip(parts.chain(rest.to_be_bytes()))
        .for_each(|(byte, part)| *byte = part);
    ObjectId(bytes)
}

const RANDOM_BITS: u64 = (1 << 34) - 1;

/// The standard library seeds its hashers from the system's randomness.
fn random() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u8(0);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_made_later_sort_later_and_their_distance_counts_nothing() {
        let ids: Vec<ObjectId> = (0..1_000)
            .map(|_| {
                std::thread::sleep(std::time::Duration::from_micros(1));
                new_object_id()
            })
            .collect();
        assert!(ids.is_sorted_by_key(|id| id.0));
        let last: std::collections::HashSet<_> = ids.iter().map(|id| id.0[10]).collect();
        assert!(last.len() > 100, "the last bytes are random");
    }
}
