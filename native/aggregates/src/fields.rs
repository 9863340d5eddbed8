//! Fields of an event or document, by name.
//!
//! Most events are flat: an object of strings and numbers. Those are read in one pass into a list
//! of members, without building a document. Events with nested values or Extended JSON wrappers,
//! and invalid ones, are read again as documents, which also locates errors.

use std::ops::Range;

use rillbase_json::{Integer, JsonLimits, JsonSink, read};
use rillbase_query::bson::{Document, DocumentBuf, ValueRef};
use rillbase_query::ejson;

use crate::definition::DottedField;
use crate::error::{AggregateErrorCode, Error, Result};

/// The maximum number of members of a flat event; larger ones are read as documents.
const MAX_MEMBERS: usize = 64;

const USUAL_MEMBERS: usize = 8;

/// The source of fields.
#[derive(Debug, Clone, Copy)]
pub enum Fields<'a> {
    /// A document.
    Document(Document<'a>),
    /// A flat event.
    Flat(&'a Flat),
}

impl<'a> Fields<'a> {
    /// The value of a field. Arrays are not searched.
    pub fn find(self, field: &DottedField) -> Option<ValueRef<'a>> {
        match self {
            Self::Document(document) => field.find(document),
            Self::Flat(flat) => flat.get(field.single()?),
        }
    }

    /// The value of a member.
    pub fn get(self, name: &str) -> Option<ValueRef<'a>> {
        match self {
            Self::Document(document) => document.get(name),
            Self::Flat(flat) => flat.get(name),
        }
    }
}

/// A parsed event.
#[derive(Debug)]
pub(crate) enum ParsedEvent<'a> {
    Document(DocumentBuf),
    Flat(&'a Flat),
}

impl<'a> ParsedEvent<'a> {
    /// Parses an event into `room`, which may be reused.
    pub(crate) fn event(json: &[u8], room: &'a mut Flat) -> Result<Self> {
        room.clear();
        // Names and strings are part of the event; few have more members.
        room.text.reserve(json.len());
        room.members.reserve(USUAL_MEMBERS);
        if read(json, &JsonLimits::default(), room).is_ok() {
            return Ok(Self::Flat(room));
        }
        let parsed = ejson::parse_document(json);
        let parsed = parsed.map_err(|error| {
            Error::at(AggregateErrorCode::BadEvent, error.pointer, error.detail)
        })?;
        Ok(Self::Document(parsed))
    }

    pub(crate) fn fields(&self) -> Fields<'_> {
        match self {
            Self::Document(document) => Fields::Document(document.as_ref()),
            Self::Flat(flat) => Fields::Flat(flat),
        }
    }
}

#[derive(Debug, Clone)]
enum FlatValue {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(Range<usize>),
}

/// The members of an object without nesting.
#[derive(Debug, Default)]
pub struct Flat {
    /// All names and strings, concatenated.
    text: String,
    members: Vec<(Range<usize>, FlatValue)>,
    /// The name of the next value.
    name: Range<usize>,
    is_begun: bool,
}

/// The event is not flat.
#[derive(Debug, Clone, Copy)]
pub struct NestedEvent;

impl Flat {
    fn clear(&mut self) {
        self.text.clear();
        self.members.clear();
        self.is_begun = false;
    }

    fn get(&self, name: &str) -> Option<ValueRef<'_>> {
        let text = |range: &Range<usize>| self.text.get(range.clone()).unwrap_or_default();
        let (_, value) = self.members.iter().find(|(own, _)| text(own) == name)?;
        Some(match value {
            FlatValue::Null => ValueRef::Null,
            FlatValue::Bool(bool) => ValueRef::Bool(*bool),
            FlatValue::Int(int) => ValueRef::Int64(*int),
            FlatValue::Double(double) => ValueRef::Double(*double),
            FlatValue::Text(range) => ValueRef::String(text(range)),
        })
    }

    fn keep(&mut self, text: &str) -> Range<usize> {
        let start = self.text.len();
        self.text.push_str(text);
        start..self.text.len()
    }

    fn take(&mut self, value: FlatValue) -> std::result::Result<(), NestedEvent> {
        if !self.is_begun || self.members.len() >= MAX_MEMBERS {
            return Err(NestedEvent);
        }
        self.members.push((self.name.clone(), value));
        Ok(())
    }
}

impl JsonSink for Flat {
    type Error = NestedEvent;

    fn null(&mut self) -> std::result::Result<(), NestedEvent> {
        self.take(FlatValue::Null)
    }

    fn boolean(&mut self, value: bool) -> std::result::Result<(), NestedEvent> {
        self.take(FlatValue::Bool(value))
    }

    fn integer(&mut self, value: Integer<'_>) -> std::result::Result<(), NestedEvent> {
        match value {
            Integer::Small(int) => self.take(FlatValue::Int(int)),
            Integer::Large(_) => Err(NestedEvent),
        }
    }

    fn double(&mut self, value: f64) -> std::result::Result<(), NestedEvent> {
        self.take(FlatValue::Double(value))
    }

    fn string(&mut self, value: &str) -> std::result::Result<(), NestedEvent> {
        let range = self.keep(value);
        self.take(FlatValue::Text(range))
    }

    fn begin_object(&mut self) -> std::result::Result<(), NestedEvent> {
        if std::mem::replace(&mut self.is_begun, true) {
            return Err(NestedEvent);
        }
        Ok(())
    }

    fn key(&mut self, key: &str) -> std::result::Result<(), NestedEvent> {
        if key.starts_with('$') {
            return Err(NestedEvent);
        }
        self.name = self.keep(key);
        Ok(())
    }

    fn end_object(&mut self) -> std::result::Result<(), NestedEvent> {
        Ok(())
    }

    fn begin_array(&mut self) -> std::result::Result<(), NestedEvent> {
        Err(NestedEvent)
    }

    fn end_array(&mut self) -> std::result::Result<(), NestedEvent> {
        Err(NestedEvent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::DimensionValue;
    use proptest::prelude::*;

    #[test]
    fn flat_events_are_read_as_documents_are() {
        let json = br#"{"a":"x\u00e9","n":-3,"d":1.5,"t":true,"z":null,"e":""}"#;
        let mut room = Flat::default();
        let flat = ParsedEvent::event(json, &mut room).unwrap();
        assert!(matches!(flat, ParsedEvent::Flat(_)));
        let document = ejson::parse_document(json).unwrap();
        for name in ["a", "n", "d", "t", "z", "e", "missing"] {
            let of_document = DimensionValue::of(document.as_ref().get(name));
            assert_eq!(
                DimensionValue::of(flat.fields().get(name)),
                of_document,
                "{name}"
            );
        }
    }

    #[test]
    fn nested_fields_are_a_document() {
        let mut room = Flat::default();
        for json in [
            r#"{"a":{"b":1}}"#,
            r#"{"a":[1]}"#,
            r#"{"a":{"$numberLong":"1"}}"#,
        ] {
            let read = ParsedEvent::event(json.as_bytes(), &mut room).unwrap();
            assert!(matches!(read, ParsedEvent::Document(_)), "{json}");
        }
        for json in ["1", "[]", r#"{"a":1,"a":2}"#, r#"{"a":1"#, "\"a\""] {
            assert!(
                ParsedEvent::event(json.as_bytes(), &mut room).is_err(),
                "{json}"
            );
        }
    }

    proptest! {
        #[test]
        fn fields_are_rejected_exactly_if_the_document_is(json in "[{}\\[\\]\"a:,1e. -]{0,12}") {
            let as_document = ejson::parse_document(json.as_bytes());
            let mut room = Flat::default();
            // Earlier contents do not matter.
            let before = ParsedEvent::event(br#"{"a":1"#, &mut room).is_ok();
            prop_assert!(!before);
            let read = ParsedEvent::event(json.as_bytes(), &mut room);
            prop_assert_eq!(read.is_ok(), as_document.is_ok());
        }
    }
}
