//! Other documents that a document refers to by their `_id`.
//!
//! `[{"from": "users", "local": "owner", "as": "by"}]` shows with each document, as `by`, the one
//! of `users` whose `_id` is in `owner`. One-time and live queries use the same code.
//!
//! ```text
//! {"_id": 1, "owner": "ann"}             →  {…, "by": {"_id": "ann", …}}
//! {"_id": 2, "owner": ["ann", "bob"]}    →  {…, "by": [{"_id": "ann", …}, {"_id": "bob", …}]}
//! {"_id": 3}                             →  {…, "by": null}
//! ```
//!
//! A path passes through documents, and through arrays into each of their documents. If an array is
//! on the path, there may be many references, and the result is a list of the documents that exist,
//! in the order of the references. Otherwise there is one, and the result is a document or null. A
//! reference that is null, or not a valid `_id`, refers to nothing.
//!
//! Lookups read only the document's own fields: no lookup reads the result of another. A field that
//! already has the name is replaced in place; others are appended.

use crate::bson::{ArrayWriter, Document, DocumentBuf, DocumentWriter, Value, ValueRef};
use crate::error::{Error, ErrorCode, EvaluationFailure, ParseLocation};
use crate::limits::{LOOKUP_REFERENCES, LOOKUPS};
use crate::path::{FieldPath, PathSegment, is_field_name};

/// One field of documents that refers to others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookupField {
    /// The collection that they are in, by name.
    pub from: String,
    local: FieldPath,
    name: String,
}

/// What is looked up for each document, in order. See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookupFields(Vec<LookupField>);

/// The documents to which a document refers.
#[derive(Debug, Clone)]
pub struct References<'a> {
    /// Whether there may be several.
    pub many: bool,
    /// Their `_id`s.
    pub ids: Vec<ValueRef<'a>>,
}

impl LookupField {
    /// Returns the documents to which a document refers.
    pub fn references<'a>(
        &self,
        document: Document<'a>,
    ) -> Result<References<'a>, EvaluationFailure> {
        let mut references = References {
            many: false,
            ids: Vec::new(),
        };
        references.gather(ValueRef::Document(document), self.local.segments())?;
        Ok(references)
    }
}

impl<'a> References<'a> {
    fn gather(
        &mut self,
        value: ValueRef<'a>,
        path: &[PathSegment],
    ) -> Result<(), EvaluationFailure> {
        match (value, path.split_first()) {
            (ValueRef::Array(array), rest) => {
                self.many = true;
                for item in array.iter() {
                    match (item, rest) {
                        (ValueRef::Document(_), Some(_)) => self.gather(item, path)?,
                        (_, Some(_)) => {}
                        (_, None) => self.push(item)?,
                    }
                }
                Ok(())
            }
            (_, None) => self.push(value),
            (ValueRef::Document(document), Some((first, rest))) => {
                match document.get(&first.name) {
                    Some(value) => self.gather(value, rest),
                    None => Ok(()),
                }
            }
            (_, Some(_)) => Ok(()),
        }
    }

    fn push(&mut self, id: ValueRef<'a>) -> Result<(), EvaluationFailure> {
        let names = !matches!(
            id,
            ValueRef::Null | ValueRef::Undefined | ValueRef::Array(_) | ValueRef::Regex(_)
        );
        if names {
            self.ids.push(id);
        }
        if self.ids.len() > LOOKUP_REFERENCES {
            return Err(EvaluationFailure::refused(format!(
                "a document may refer to at most {LOOKUP_REFERENCES} others by one lookup"
            )));
        }
        Ok(())
    }
}

impl LookupFields {
    /// Parses lookups.
    pub fn parse(value: ValueRef<'_>, location: &ParseLocation<'_>) -> Result<Self, Error> {
        let Some(list) = value.as_array() else {
            return Err(refuse(location, "a list of lookups is expected"));
        };
        let mut lookups: Vec<LookupField> = Vec::new();
        for (index, item) in list.iter().enumerate() {
            let here = location.index(index);
            let lookup = parse_one(item, &here)?;
            if lookups.iter().any(|earlier| earlier.name == lookup.name) {
                return Err(refuse(&here.key("as"), "a lookup already has this name"));
            }
            lookups.push(lookup);
        }
        if lookups.is_empty() || lookups.len() > LOOKUPS {
            let detail = format!("a query may have one to {LOOKUPS} lookups");
            return Err(refuse(location, detail));
        }
        Ok(Self(lookups))
    }

    /// The lookups in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &LookupField> {
        self.0.iter()
    }

    /// The collections that are looked up, each once, in the order of the lookups.
    pub fn collections(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for lookup in &self.0 {
            if !names.contains(&&*lookup.from) {
                names.push(&lookup.from);
            }
        }
        names
    }

    /// For each lookup, the index of its collection in [`LookupFields::collections`].
    pub fn collection_numbers(&self) -> Vec<usize> {
        let names = self.collections();
        let number = |lookup: &LookupField| names.iter().position(|name| *name == lookup.from);
        self.0.iter().filter_map(number).collect()
    }

    /// The lookups as [`LookupFields::parse`] reads them: equal lookups have equal bytes.
    #[must_use]
    pub fn canonical(&self) -> DocumentBuf {
        let mut list = ArrayWriter::new();
        for lookup in &self.0 {
            let mut one = DocumentWriter::new();
            one.append("from", ValueRef::String(&lookup.from));
            one.append("local", ValueRef::String(&lookup.local.text()));
            one.append("as", ValueRef::String(&lookup.name));
            let one = DocumentBuf::from(one);
            list.push(ValueRef::Document(one.as_ref()));
        }
        let mut whole = DocumentWriter::new();
        whole.append("lookup", Value::Array(list.into()).as_ref());
        whole.into()
    }

    /// A document with those that it refers to. `find` is called with the lookup's number and the
    /// `_id`.
    pub fn embed<'f>(
        &self,
        document: Document<'_>,
        find: &dyn Fn(usize, ValueRef<'_>) -> Option<Document<'f>>,
    ) -> Result<DocumentBuf, EvaluationFailure> {
        let shown = self.0.iter().enumerate().map(|(number, lookup)| {
            let references = lookup.references(document)?;
            let mut documents = references.ids.iter().filter_map(|id| find(number, *id));
            Ok(if references.many {
                let mut list = ArrayWriter::new();
                for each in documents {
                    list.push(ValueRef::Document(each));
                }
                Value::Array(list.into())
            } else {
                let documents = documents.next().map(DocumentBuf::from);
                documents.map_or(Value::Null, Value::Document)
            })
        });
        let shown = shown.collect::<Result<Vec<Value>, EvaluationFailure>>()?;
        let named = |name: &str| {
            let mut all = self.0.iter().zip(&shown);
            all.find_map(|(lookup, value)| (lookup.name == name).then_some(value))
        };
        let mut out = DocumentWriter::with_capacity(document.as_bytes().len() + 256);
        for element in document.elements() {
            match element.key().and_then(|name| Some((name, named(name)?))) {
                Some((name, value)) => out.append(name, value.as_ref()),
                None => out.append_element(&element),
            }
        }
        for (lookup, value) in self.0.iter().zip(&shown) {
            if document.get(&lookup.name).is_none() {
                out.append(&lookup.name, value.as_ref());
            }
        }
        Ok(out.into())
    }
}

fn refuse(location: &ParseLocation<'_>, detail: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidLookup, location, detail)
}

fn parse_one(value: ValueRef<'_>, location: &ParseLocation<'_>) -> Result<LookupField, Error> {
    let Some(written) = value.as_document() else {
        let detail = "a lookup is an object with `from`, `local` and `as`";
        return Err(refuse(location, detail));
    };
    let (mut from, mut local, mut name) = (None, None, None);
    for (member, value) in written.iter() {
        let here = location.key(member);
        let text = value.as_str();
        match member {
            "from" => from = Some(collection(text, &here)?),
            "local" => {
                let detail = "a field is expected, as `a` or `a.b`";
                let path = text.and_then(FieldPath::of_field);
                local = Some(path.ok_or_else(|| refuse(&here, detail))?);
            }
            "as" => {
                let plain = text.filter(|text| is_field_name(text) && *text != "_id");
                let plain = plain.ok_or_else(|| refuse(&here, "not a valid name for a lookup"))?;
                name = Some(plain.to_owned());
            }
            _ => return Err(refuse(&here, "a lookup has `from`, `local` and `as`")),
        }
    }
    match (from, local, name) {
        (Some(from), Some(local), Some(name)) => Ok(LookupField { from, local, name }),
        (None, ..) => Err(refuse(location, "`from` is missing")),
        (_, None, _) => Err(refuse(location, "`local` is missing")),
        (.., None) => Err(refuse(location, "`as` is missing")),
    }
}

fn collection(text: Option<&str>, location: &ParseLocation<'_>) -> Result<String, Error> {
    let named = text.filter(|text| !text.is_empty());
    let named = named.ok_or_else(|| refuse(location, "the name of a collection is expected"))?;
    Ok(named.to_owned())
}
