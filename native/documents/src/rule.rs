//! Access rules: filters in which `{"$auth": "claim"}` stands for a claim of the caller's token.
//!
//! A claim is inserted as a literal, never as an operator: below a field it becomes the operand of
//! `$eq`, in an expression that of `$literal`, and where an operand is a filter or a pattern it is
//! rejected when the rule is written. A claim that is missing, or of a kind that the rule does not
//! accept, makes the rule false.

use rillbase_query::bson::{
    Array, ArrayWriter, BsonType, Document, DocumentBuf, DocumentWriter, ValueRef,
};
use rillbase_query::error::ParseLocation;
use rillbase_query::filter::Filter;
use rillbase_query::limits::FILTER_BYTES;

use crate::refusal::DocumentRefusal;

/// Operators whose operand is a value.
const VALUES: [&str; 6] = ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"];
/// Operators whose operand is a list of values.
const LISTS: [&str; 3] = ["$in", "$nin", "$all"];
/// Connectives of filters.
const CONNECTIVES: [&str; 3] = ["$and", "$or", "$nor"];

/// A rule as it was written.
#[derive(Debug, Clone)]
pub enum AccessRule {
    /// Allows every document.
    Always,
    /// Allows no document.
    Never,
    /// A filter without claims.
    Fixed(Box<Filter>),
    /// A filter with claims.
    Template(DocumentBuf),
}

impl AccessRule {
    /// Parses `true`, `false` or a filter.
    pub fn parse(
        value: ValueRef<'_>,
        location: &ParseLocation<'_>,
    ) -> Result<Self, DocumentRefusal> {
        match value {
            ValueRef::Bool(true) => Ok(Self::Always),
            ValueRef::Bool(false) => Ok(Self::Never),
            ValueRef::Document(document) => {
                let mut sample = Binding::sample();
                let bound = sample.filter(document, location)?;
                let filter = Filter::parse_at(bound.as_ref(), location)?;
                if sample.inserted == 0 {
                    return Ok(Self::Fixed(Box::new(filter)));
                }
                Ok(Self::Template(DocumentBuf::trusted(
                    document.as_bytes().to_vec(),
                )))
            }
            _ => Err(DocumentRefusal::at(
                "invalid_filter",
                location,
                "a rule must be a filter, true or false",
            )),
        }
    }

    /// The rule as a filter for a caller with these claims; `None` for false.
    #[must_use]
    pub fn bind(&self, claims: Option<Document<'_>>) -> Option<Filter> {
        match self {
            Self::Always => Some(Filter::everything()),
            Self::Never => None,
            Self::Fixed(filter) => Some(filter.as_ref().clone()),
            Self::Template(document) => {
                let mut binding = Binding {
                    claims: Some(claims?),
                    inserted: 0,
                    inserted_bytes: 0,
                };
                let bound = binding
                    .filter(document.as_ref(), &ParseLocation::root())
                    .ok()?;
                Filter::parse(bound.as_ref()).ok()
            }
        }
    }
}

/// Inserts claims, or samples of them when a rule is only validated.
struct Binding<'c> {
    claims: Option<Document<'c>>,
    inserted: usize,
    inserted_bytes: usize,
}

/// The form in which a claim is inserted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ClaimForm {
    Value,
    List,
}

impl Binding<'_> {
    const fn sample() -> Self {
        Self {
            claims: None,
            inserted: 0,
            inserted_bytes: 0,
        }
    }

    fn filter(
        &mut self,
        filter: Document<'_>,
        location: &ParseLocation<'_>,
    ) -> Result<DocumentBuf, DocumentRefusal> {
        let mut writer = DocumentWriter::with_capacity(filter.as_bytes().len());
        for (name, value) in filter.iter() {
            let here = location.key(name);
            if CONNECTIVES.contains(&name)
                && let ValueRef::Array(children) = value
            {
                let mut list = ArrayWriter::new();
                for (index, child) in children.iter().enumerate() {
                    match child {
                        ValueRef::Document(child) => {
                            let bound = self.filter(child, &here.index(index))?;
                            list.push(ValueRef::Document(bound.as_ref()));
                        }
                        other => list.push(other),
                    }
                }
                writer.append_raw(name, BsonType::Array, &list.finish());
            } else if name == "$expr" {
                self.expression(&mut ClaimSink::Member(&mut writer, name), value, &here)?;
            } else if name.starts_with('$') {
                refuse_claims(value, &here)?;
                writer.append(name, value);
            } else {
                self.field(&mut writer, name, value, &here)?;
            }
        }
        Ok(DocumentBuf::trusted(writer.finish()))
    }

    /// The condition on a field.
    fn field(
        &mut self,
        writer: &mut DocumentWriter,
        name: &str,
        value: ValueRef<'_>,
        location: &ParseLocation<'_>,
    ) -> Result<(), DocumentRefusal> {
        if let Some(claim) = claim(value) {
            let mut equal = DocumentWriter::with_capacity(32);
            self.insert(
                &mut ClaimSink::Member(&mut equal, "$eq"),
                claim,
                ClaimForm::Value,
                location,
            )?;
            let equal = equal.finish();
            writer.append(name, ValueRef::Document(Document::trusted(&equal)));
            return Ok(());
        }
        match value {
            ValueRef::Document(operators) if is_operators(operators) => {
                let bound = self.operators(operators, location)?;
                writer.append(name, ValueRef::Document(bound.as_ref()));
                Ok(())
            }
            other => self.literal(&mut ClaimSink::Member(writer, name), other, location),
        }
    }

    fn operators(
        &mut self,
        operators: Document<'_>,
        location: &ParseLocation<'_>,
    ) -> Result<DocumentBuf, DocumentRefusal> {
        let mut writer = DocumentWriter::with_capacity(operators.as_bytes().len());
        for (name, value) in operators.iter() {
            let here = location.key(name);
            let sink = &mut ClaimSink::Member(&mut writer, name);
            match (name, value) {
                (name, value) if VALUES.contains(&name) => {
                    self.value(sink, value, ClaimForm::Value, &here)?;
                }
                (name, value) if LISTS.contains(&name) => {
                    self.value(sink, value, ClaimForm::List, &here)?;
                }
                ("$not", ValueRef::Document(inner))
                    if is_operators(inner) && claim(value).is_none() =>
                {
                    let bound = self.operators(inner, &here)?;
                    sink.put(ValueRef::Document(bound.as_ref()));
                }
                ("$elemMatch", ValueRef::Document(inner)) if claim(value).is_none() => {
                    let bound = if is_operators(inner) && !is_connective(inner) {
                        self.operators(inner, &here)?
                    } else {
                        self.filter(inner, &here)?
                    };
                    sink.put(ValueRef::Document(bound.as_ref()));
                }
                (_, value) => {
                    refuse_claims(value, &here)?;
                    sink.put(value);
                }
            }
        }
        Ok(DocumentBuf::trusted(writer.finish()))
    }

    fn value(
        &mut self,
        sink: &mut ClaimSink<'_>,
        value: ValueRef<'_>,
        form: ClaimForm,
        location: &ParseLocation<'_>,
    ) -> Result<(), DocumentRefusal> {
        match claim(value) {
            Some(claim) => self.insert(sink, claim, form, location),
            None => self.literal(sink, value, location),
        }
    }

    /// A literal that may contain claims.
    fn literal(
        &mut self,
        sink: &mut ClaimSink<'_>,
        value: ValueRef<'_>,
        location: &ParseLocation<'_>,
    ) -> Result<(), DocumentRefusal> {
        if let Some(claim) = claim(value) {
            return self.insert(sink, claim, ClaimForm::Value, location);
        }
        match value {
            ValueRef::Document(inner) => {
                let mut writer = DocumentWriter::with_capacity(inner.as_bytes().len());
                for (name, value) in inner.iter() {
                    self.literal(
                        &mut ClaimSink::Member(&mut writer, name),
                        value,
                        &location.key(name),
                    )?;
                }
                let bytes = writer.finish();
                sink.put(ValueRef::Document(Document::trusted(&bytes)));
            }
            ValueRef::Array(inner) => {
                let mut writer = ArrayWriter::new();
                for (index, value) in inner.iter().enumerate() {
                    self.literal(
                        &mut ClaimSink::Element(&mut writer),
                        value,
                        &location.index(index),
                    )?;
                }
                let bytes = writer.finish();
                sink.put(ValueRef::Array(Array::trusted(&bytes)));
            }
            other => sink.put(other),
        }
        Ok(())
    }

    /// An expression, in which a claim becomes a `$literal`.
    fn expression(
        &mut self,
        sink: &mut ClaimSink<'_>,
        value: ValueRef<'_>,
        location: &ParseLocation<'_>,
    ) -> Result<(), DocumentRefusal> {
        if let Some(claim) = claim(value) {
            let mut literal = DocumentWriter::with_capacity(32);
            self.insert(
                &mut ClaimSink::Member(&mut literal, "$literal"),
                claim,
                ClaimForm::Value,
                location,
            )?;
            let literal = literal.finish();
            sink.put(ValueRef::Document(Document::trusted(&literal)));
            return Ok(());
        }
        match value {
            ValueRef::Document(inner) => {
                let mut writer = DocumentWriter::with_capacity(inner.as_bytes().len());
                for (name, value) in inner.iter() {
                    let here = location.key(name);
                    if name == "$literal" {
                        refuse_claims(value, &here)?;
                        writer.append(name, value);
                    } else {
                        self.expression(&mut ClaimSink::Member(&mut writer, name), value, &here)?;
                    }
                }
                let bytes = writer.finish();
                sink.put(ValueRef::Document(Document::trusted(&bytes)));
            }
            ValueRef::Array(inner) => {
                let mut writer = ArrayWriter::new();
                for (index, value) in inner.iter().enumerate() {
                    self.expression(
                        &mut ClaimSink::Element(&mut writer),
                        value,
                        &location.index(index),
                    )?;
                }
                let bytes = writer.finish();
                sink.put(ValueRef::Array(Array::trusted(&bytes)));
            }
            other => sink.put(other),
        }
        Ok(())
    }

    fn insert(
        &mut self,
        sink: &mut ClaimSink<'_>,
        claim: &str,
        form: ClaimForm,
        location: &ParseLocation<'_>,
    ) -> Result<(), DocumentRefusal> {
        self.inserted += 1;
        let Some(claims) = self.claims else {
            match form {
                ClaimForm::Value => sink.put(ValueRef::String("")),
                ClaimForm::List => sink.put(ValueRef::Array(Array::trusted(&[5, 0, 0, 0, 0]))),
            }
            return Ok(());
        };
        let value = look_up(claims, claim).ok_or_else(|| {
            DocumentRefusal::at("missing_claim", location, "the claim is missing")
        })?;
        self.inserted_bytes += value.content_bytes();
        if self.inserted_bytes > FILTER_BYTES {
            // A rule may repeat a long claim very often.
            let detail =
                format!("a rule may have at most {FILTER_BYTES} bytes including its claims");
            return Err(DocumentRefusal::at("filter_too_large", location, detail));
        }
        sink.put(value);
        Ok(())
    }
}

/// Where a bound value is written.
enum ClaimSink<'w> {
    Member(&'w mut DocumentWriter, &'w str),
    Element(&'w mut ArrayWriter),
}

impl ClaimSink<'_> {
    fn put(&mut self, value: ValueRef<'_>) {
        match self {
            Self::Member(writer, name) => writer.append(name, value),
            Self::Element(writer) => writer.push(value),
        }
    }
}

/// The claim's name, if the value is `{"$auth": "name"}`.
fn claim(value: ValueRef<'_>) -> Option<&str> {
    let document = value.as_document()?;
    let mut members = document.iter();
    match (members.next(), members.next()) {
        (Some(("$auth", ValueRef::String(name))), None) => Some(name),
        _ => None,
    }
}

/// A claim by its whole name, which may hold dots, or by a dotted path.
fn look_up<'c>(claims: Document<'c>, name: &str) -> Option<ValueRef<'c>> {
    if let Some(claim) = claims.get(name) {
        return Some(claim);
    }
    let (first, rest) = name.split_once('.')?;
    look_up(claims.get(first)?.as_document()?, rest)
}

fn is_operators(document: Document<'_>) -> bool {
    document
        .elements()
        .next()
        .is_some_and(|element| element.key_bytes().starts_with(b"$"))
}

fn is_connective(document: Document<'_>) -> bool {
    document
        .iter()
        .next()
        .is_some_and(|(name, _)| CONNECTIVES.contains(&name))
}

/// Rejects claims where they would be more than a literal.
fn refuse_claims(value: ValueRef<'_>, location: &ParseLocation<'_>) -> Result<(), DocumentRefusal> {
    match value {
        ValueRef::Document(inner) => {
            for (name, value) in inner.iter() {
                let here = location.key(name);
                if name == "$auth" {
                    return Err(DocumentRefusal::at(
                        "invalid_filter",
                        &here,
                        "a claim is a literal, which is not allowed here",
                    ));
                }
                refuse_claims(value, &here)?;
            }
            Ok(())
        }
        ValueRef::Array(inner) => inner
            .iter()
            .enumerate()
            .try_for_each(|(index, value)| refuse_claims(value, &location.index(index))),
        _ => Ok(()),
    }
}
