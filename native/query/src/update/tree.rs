//! A document being changed: decoded along the paths, bytes elsewhere.

use crate::bson::{ArrayWriter, Document, DocumentBuf, DocumentWriter, Value};

/// A value that can be changed in parts.
#[derive(Debug)]
pub(super) enum ValueTree {
    /// Not decoded.
    Value(Value),
    /// The fields of a document.
    Document(Vec<(String, ValueTree)>),
    /// The elements of an array.
    Array(Vec<ValueTree>),
}

impl ValueTree {
    /// The decoded fields of a document.
    pub(super) fn of(document: Document<'_>) -> Self {
        Self::Document(
            document
                .iter()
                .map(|(key, value)| (key.to_owned(), Self::Value(value.into())))
                .collect(),
        )
    }

    /// Decodes a document or array, so that its parts can be reached.
    pub(super) fn open(&mut self) {
        match self {
            Self::Value(Value::Document(document)) => *self = Self::of(document.as_ref()),
            Self::Value(Value::Array(array)) => {
                *self = Self::Array(
                    array
                        .as_ref()
                        .iter()
                        .map(|value| Self::Value(value.into()))
                        .collect(),
                );
            }
            _ => {}
        }
    }

    /// The value as bytes.
    pub(super) fn close(&self) -> Value {
        match self {
            Self::Value(value) => value.clone(),
            Self::Document(fields) => Value::Document(write(fields)),
            Self::Array(elements) => {
                let mut writer = ArrayWriter::new();
                elements
                    .iter()
                    .for_each(|element| writer.push(element.close().as_ref()));
                Value::Array(writer.into())
            }
        }
    }

    /// The whole document as bytes.
    pub(super) fn finish(&self) -> DocumentBuf {
        match self {
            Self::Document(fields) => write(fields),
            _ => DocumentBuf::default(),
        }
    }
}

fn write(fields: &[(String, ValueTree)]) -> DocumentBuf {
    let mut writer = DocumentWriter::new();
    fields
        .iter()
        .for_each(|(key, value)| writer.append(key, value.close().as_ref()));
    writer.into()
}
