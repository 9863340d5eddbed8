//! Writing documents and arrays.
//!
//! A writer appends to its buffer and patches the length when it is finished. Lengths beyond `i32`
//! cannot be written; users of a finished document check its size ([`super::validate`] or the
//! evaluation's fuel).

use super::{Array, BsonElement, BsonType, Document, ValueRef};

/// Builds a document.
#[derive(Debug, Clone)]
pub struct DocumentWriter {
    bytes: Vec<u8>,
}

impl Default for DocumentWriter {
    fn default() -> Self {
        Self::new()
    }
}

impl DocumentWriter {
    /// An empty document.
    #[must_use]
    pub fn new() -> Self {
        Self::with_capacity(64)
    }

    /// An empty document with room for `bytes` bytes.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        let mut buffer = Vec::with_capacity(bytes);
        buffer.extend_from_slice(&[0; 4]);
        Self { bytes: buffer }
    }

    /// Appends a field. A key must not contain a zero byte; the caller has rejected it, and here
    /// the key would be truncated.
    pub fn append(&mut self, key: &str, value: ValueRef<'_>) {
        self.key(value.kind().code(), key.as_bytes());
        write_value(&mut self.bytes, value);
    }

    /// Appends a field of another document.
    pub fn append_element(&mut self, element: &BsonElement<'_>) {
        self.key(element.kind().code(), element.key_bytes());
        self.bytes.extend_from_slice(element.value_bytes());
    }

    /// Appends a field whose value is already encoded.
    pub fn append_raw(&mut self, key: &str, kind: BsonType, value: &[u8]) {
        self.key(kind.code(), key.as_bytes());
        self.bytes.extend_from_slice(value);
    }

    fn key(&mut self, code: u8, key: &[u8]) {
        self.bytes.push(code);
        let key = key.split(|byte| *byte == 0).next().unwrap_or_default();
        self.bytes.extend_from_slice(key);
        self.bytes.push(0);
    }

    /// Bytes written so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing was appended yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == 4
    }

    /// The finished document.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.push(0);
        let length = i32::try_from(self.bytes.len()).unwrap_or(i32::MAX);
        if let Some(front) = self.bytes.first_chunk_mut::<4>() {
            *front = length.to_le_bytes();
        }
        self.bytes
    }
}

/// Builds an array.
#[derive(Debug, Clone, Default)]
pub struct ArrayWriter {
    document: DocumentWriter,
    count: usize,
}

impl ArrayWriter {
    /// An empty array.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends an element.
    pub fn push(&mut self, value: ValueRef<'_>) {
        self.key(value.kind());
        write_value(&mut self.document.bytes, value);
    }

    /// Appends an element whose value is already encoded.
    pub fn push_raw(&mut self, kind: BsonType, value: &[u8]) {
        self.key(kind);
        self.document.bytes.extend_from_slice(value);
    }

    fn key(&mut self, kind: BsonType) {
        self.document.bytes.push(kind.code());
        push_decimal(&mut self.document.bytes, self.count);
        self.document.bytes.push(0);
        self.count += 1;
    }

    /// Elements written so far.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Bytes written so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.document.len()
    }

    /// Whether nothing was appended yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The finished array.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.document.finish()
    }
}

/// Appends a number in decimal digits without allocating.
fn push_decimal(bytes: &mut Vec<u8>, number: usize) {
    let mut digits = [0_u8; 20];
    let mut left = number;
    let mut count = 0;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + u8::try_from(left % 10).unwrap_or(0);
        left /= 10;
        count += 1;
        if left == 0 {
            break;
        }
    }
    bytes.extend_from_slice(digits.get(20 - count..).unwrap_or_default());
}

fn write_text(bytes: &mut Vec<u8>, text: &str) {
    write_length(bytes, text.len() + 1);
    bytes.extend_from_slice(text.as_bytes());
    bytes.push(0);
}

fn write_length(bytes: &mut Vec<u8>, length: usize) {
    bytes.extend_from_slice(&i32::try_from(length).unwrap_or(i32::MAX).to_le_bytes());
}

/// Appends the value's bytes, without type and key.
pub(crate) fn write_value(bytes: &mut Vec<u8>, value: ValueRef<'_>) {
    match value {
        ValueRef::Double(double) => bytes.extend_from_slice(&double.to_le_bytes()),
        ValueRef::String(text) | ValueRef::Code(text) | ValueRef::Symbol(text) => {
            write_text(bytes, text)
        }
        ValueRef::Document(document) => bytes.extend_from_slice(document_bytes(&document)),
        ValueRef::Array(array) => bytes.extend_from_slice(array_bytes(&array)),
        ValueRef::Binary(binary) => {
            let old = usize::from(binary.subtype == 2) * 4;
            write_length(bytes, binary.bytes.len() + old);
            bytes.push(binary.subtype);
            if old != 0 {
                write_length(bytes, binary.bytes.len());
            }
            bytes.extend_from_slice(binary.bytes);
        }
        ValueRef::ObjectId(id) => bytes.extend_from_slice(&id.0),
        ValueRef::Bool(bool) => bytes.push(u8::from(bool)),
        ValueRef::Date(int) | ValueRef::Int64(int) => bytes.extend_from_slice(&int.to_le_bytes()),
        ValueRef::Regex(regex) => {
            for part in [regex.pattern, regex.options] {
                bytes.extend_from_slice(part.as_bytes());
                bytes.push(0);
            }
        }
        ValueRef::DbPointer(name, id) => {
            write_text(bytes, name);
            bytes.extend_from_slice(&id.0);
        }
        ValueRef::CodeWithScope(code, scope) => {
            write_length(bytes, 4 + 4 + code.len() + 1 + document_bytes(&scope).len());
            write_text(bytes, code);
            bytes.extend_from_slice(document_bytes(&scope));
        }
        ValueRef::Int32(int) => bytes.extend_from_slice(&int.to_le_bytes()),
        ValueRef::Timestamp(int) => bytes.extend_from_slice(&int.to_le_bytes()),
        ValueRef::Decimal(decimal) => bytes.extend_from_slice(&decimal.to_le_bytes()),
        ValueRef::Undefined | ValueRef::Null | ValueRef::MaxKey | ValueRef::MinKey => {}
    }
}

fn document_bytes<'a>(document: &Document<'a>) -> &'a [u8] {
    document.as_bytes()
}

fn array_bytes<'a>(array: &Array<'a>) -> &'a [u8] {
    array.as_bytes()
}
