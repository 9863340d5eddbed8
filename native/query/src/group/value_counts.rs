//! The values of a group's documents in order, with counts: `min` and `max` need the next value
//! when the last document with the current one is removed.

use std::collections::BTreeMap;

use crate::bson::{BsonType, DocumentWriter, ValueRef};
use crate::error::EvaluationFailure;
use crate::key::encode;
use crate::limits::GROUP_VALUE_BYTES;

/// A value in its sortable encoding, followed by its original form: among equal values of different
/// types the same one is always the least.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ordered {
    bytes: Box<[u8]>,
    /// Where the value starts: its kind, then itself.
    at: u32,
}

impl Ordered {
    pub(super) fn of(value: ValueRef<'_>) -> Result<Self, EvaluationFailure> {
        check_value_size(value)?;
        let mut bytes = Vec::with_capacity(24);
        encode(&mut bytes, value);
        let at = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        bytes.push(value.kind().code());
        crate::bson::write_value(&mut bytes, value);
        Ok(Self {
            bytes: bytes.into(),
            at,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    fn write(&self, name: &str, out: &mut DocumentWriter) {
        let written = self.bytes.get(self.at as usize..);
        let parts = written.and_then(<[u8]>::split_first);
        match parts.and_then(|(code, value)| Some((BsonType::from_code(*code)?, value))) {
            Some((kind, value)) => out.append_raw(name, kind, value),
            None => out.append(name, ValueRef::Null),
        }
    }
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub(super) struct ValueCounts(BTreeMap<Ordered, u32>);

impl ValueCounts {
    pub(super) fn add(&mut self, value: &Ordered) {
        if let Some(count) = self.0.get_mut(value) {
            *count += 1;
        } else {
            self.0.insert(value.clone(), 1);
        }
    }

    pub(super) fn take(&mut self, value: &Ordered) {
        if let Some(count) = self.0.get_mut(value) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(value);
            }
        }
    }

    /// Writes the least value, or the greatest; null if there is none.
    pub(super) fn write(&self, greatest: bool, name: &str, out: &mut DocumentWriter) {
        let extreme = if greatest {
            self.0.last_key_value()
        } else {
            self.0.first_key_value()
        };
        match extreme {
            Some((value, _)) => value.write(name, out),
            None => out.append(name, ValueRef::Null),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        /// The overhead of a node in the tree.
        const NODE_OVERHEAD: usize = 40;
        self.0.keys().map(|value| NODE_OVERHEAD + value.len()).sum()
    }
}

/// Rejects a value that would have to be kept and is too large for that.
pub(super) fn check_value_size(value: ValueRef<'_>) -> Result<(), EvaluationFailure> {
    let bytes = match value {
        ValueRef::String(text) | ValueRef::Symbol(text) | ValueRef::Code(text) => text.len(),
        ValueRef::Document(document) => document.as_bytes().len(),
        ValueRef::Array(array) => array.as_bytes().len(),
        ValueRef::Binary(binary) => binary.bytes.len(),
        ValueRef::Regex(regex) => regex.pattern.len() + regex.options.len(),
        ValueRef::DbPointer(name, _) => name.len(),
        ValueRef::CodeWithScope(code, scope) => code.len() + scope.as_bytes().len(),
        _ => 0,
    };
    if bytes > GROUP_VALUE_BYTES {
        return Err(EvaluationFailure::refused(format!(
            "a value to group by, or of `min` and `max`, may have at most {GROUP_VALUE_BYTES} bytes"
        )));
    }
    Ok(())
}
