//! The maximum number of values in a document.
//!
//! A filter uses about one step of its fuel for each value that it examines. The limit is far below
//! the fuel of one evaluation, so that ordinary filters can be evaluated on every document.

use rillbase_query::bson::{Array, Document, ValueRef};
use rillbase_query::error::ParseLocation;

use crate::refusal::DocumentRefusal;

/// The minimum size of a value in BSON: its type and an empty key.
const MIN_VALUE_BYTES: usize = 2;

/// The limits of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentLimits {
    /// Elements of one array.
    pub array_elements: usize,
    /// Values at all levels, documents and arrays included.
    pub values: usize,
}

impl Default for DocumentLimits {
    fn default() -> Self {
        Self {
            array_elements: usize::MAX,
            values: usize::MAX,
        }
    }
}

impl DocumentLimits {
    /// Rejects a document that exceeds them.
    pub fn check(&self, document: Document<'_>) -> Result<(), DocumentRefusal> {
        let max = document.as_bytes().len() / MIN_VALUE_BYTES;
        if max <= self.array_elements.min(self.values) {
            return Ok(());
        }
        ValueCounter {
            limits: self,
            values: 0,
        }
        .document(document, &ParseLocation::root())
    }
}

struct ValueCounter<'l> {
    limits: &'l DocumentLimits,
    values: usize,
}

impl ValueCounter<'_> {
    fn document(
        &mut self,
        document: Document<'_>,
        location: &ParseLocation<'_>,
    ) -> Result<(), DocumentRefusal> {
        for (name, value) in document.iter() {
            self.value(value, &location.key(name))?;
        }
        Ok(())
    }

    fn array(
        &mut self,
        array: Array<'_>,
        location: &ParseLocation<'_>,
    ) -> Result<(), DocumentRefusal> {
        for (index, value) in array.iter().enumerate() {
            if index >= self.limits.array_elements {
                let max = self.limits.array_elements;
                let detail = format!("an array has at most {max} elements");
                return Err(DocumentRefusal::at("array_too_long", location, detail));
            }
            self.value(value, &location.index(index))?;
        }
        Ok(())
    }

    fn value(
        &mut self,
        value: ValueRef<'_>,
        location: &ParseLocation<'_>,
    ) -> Result<(), DocumentRefusal> {
        self.values += 1;
        if self.values > self.limits.values {
            let max = self.limits.values;
            let detail = format!("a document has at most {max} values at all levels");
            return Err(DocumentRefusal::new("document_too_complex", detail));
        }
        match value {
            ValueRef::Document(inner) => self.document(inner, location),
            ValueRef::Array(inner) => self.array(inner, location),
            _ => Ok(()),
        }
    }
}
