//! The canonical form: one text for all filters that differ only in order.
//!
//! It is itself a filter: parsing it yields the same tree, and so the same bytes. Children of a
//! connective are sorted by their canonical bytes, and duplicates are dropped.

use super::{FilterClause, Predicate, Test, Whole};
use crate::bson::{ArrayWriter, Document, DocumentWriter, Regex, Value, ValueRef};
use crate::pattern::Pattern;

/// Sorts a tree in normal form; also returns its canonical bytes.
pub(super) fn canonical(node: FilterClause) -> (FilterClause, Vec<u8>) {
    match node {
        FilterClause::And(children) => connective(children, "$and"),
        FilterClause::Or(children) => connective(children, "$or"),
        leaf => {
            let leaf = sort_leaf(leaf);
            let bytes = leaf_document(&leaf);
            (leaf, bytes)
        }
    }
}

fn connective(children: Vec<FilterClause>, name: &str) -> (FilterClause, Vec<u8>) {
    let mut sorted = Vec::with_capacity(children.len());
    for child in children {
        match canonical(child) {
            // Dropping duplicates may have left a connective of the same name.
            (FilterClause::And(inner), _) if name == "$and" => {
                sorted.extend(inner.into_iter().map(canonical))
            }
            (FilterClause::Or(inner), _) if name == "$or" => {
                sorted.extend(inner.into_iter().map(canonical))
            }
            other => sorted.push(other),
        }
    }
    sorted.sort_by(|a, b| a.1.cmp(&b.1));
    sorted.dedup_by(|a, b| a.1 == b.1);
    if sorted.len() == 1
        && let Some(only) = sorted.pop()
    {
        return only;
    }
    let bytes = match (name, sorted.is_empty()) {
        ("$and", true) => DocumentWriter::new().finish(),
        (_, true) => of_documents(
            "$nor",
            [DocumentWriter::new().finish().as_slice()].into_iter(),
        ),
        (name, false) => of_documents(name, sorted.iter().map(|(_, bytes)| bytes.as_slice())),
    };
    let children = sorted.into_iter().map(|(node, _)| node).collect();
    (
        if name == "$and" {
            FilterClause::And(children)
        } else {
            FilterClause::Or(children)
        },
        bytes,
    )
}

/// `{name: [documents…]}`
fn of_documents<'a>(name: &str, documents: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut array = ArrayWriter::new();
    documents.for_each(|bytes| array.push(ValueRef::Document(Document::trusted(bytes))));
    one(name, Value::Array(array.into()).as_ref())
}

/// `{name: value}`
fn one(name: &str, value: ValueRef<'_>) -> Vec<u8> {
    let mut writer = DocumentWriter::new();
    writer.append(name, value);
    writer.finish()
}

/// Sorts what is inside a leaf.
fn sort_leaf(leaf: FilterClause) -> FilterClause {
    match leaf {
        FilterClause::Not(inner) => FilterClause::Not(Box::new(sort_leaf(*inner))),
        FilterClause::Field(Predicate { path, test }) => {
            let test = match test {
                Test::ElementDocument(inner) => {
                    Test::ElementDocument(Box::new(canonical(*inner).0))
                }
                Test::ElementValue(inner) => Test::ElementValue(Box::new(sort_conditions(*inner))),
                test => test,
            };
            FilterClause::Field(Predicate { path, test })
        }
        other => other,
    }
}

fn leaf_document(leaf: &FilterClause) -> Vec<u8> {
    match leaf {
        FilterClause::Not(inner) => match inner.as_ref() {
            FilterClause::Field(predicate) => {
                let inner = test_document(&predicate.test);
                let not = one("$not", ValueRef::Document(Document::trusted(&inner)));
                one(
                    &predicate.path.text(),
                    ValueRef::Document(Document::trusted(&not)),
                )
            }
            other => of_documents("$nor", [leaf_document(other).as_slice()].into_iter()),
        },
        FilterClause::Field(predicate) => predicate.canonical(),
        FilterClause::Whole(whole) => match whole.as_ref() {
            Whole::Expression(source, _) => one("$expr", source.as_ref()),
            Whole::Schema(source, _) => one("$jsonSchema", source.as_ref()),
            Whole::Text(text) => one("$text", text.source().as_ref()),
        },
        FilterClause::And(_) | FilterClause::Or(_) => canonical(leaf.clone()).1,
    }
}

impl Predicate {
    /// Bytes that are equal iff two predicates of canonical filters are.
    pub(crate) fn canonical(&self) -> Vec<u8> {
        let inner = test_document(&self.test);
        one(
            &self.path.text(),
            ValueRef::Document(Document::trusted(&inner)),
        )
    }
}

/// `{operator: argument}`
fn test_document(test: &Test) -> Vec<u8> {
    match test {
        Test::Compare(comparison, value) => one(comparison.name(), value.as_ref()),
        Test::In(list) => {
            let mut array = ArrayWriter::new();
            list.values()
                .iter()
                .for_each(|value| array.push(value.as_ref()));
            list.patterns()
                .iter()
                .for_each(|pattern| array.push(regex(pattern)));
            one("$in", Value::Array(array.into()).as_ref())
        }
        Test::Exists => one("$exists", ValueRef::Bool(true)),
        Test::Type(kinds) => {
            let mut array = ArrayWriter::new();
            kinds
                .iter()
                .for_each(|kind| array.push(ValueRef::String(kind.alias())));
            one("$type", Value::Array(array.into()).as_ref())
        }
        Test::Mod { divisor, remainder } => {
            let mut array = ArrayWriter::new();
            array.push(ValueRef::Int64(*divisor));
            array.push(ValueRef::Int64(*remainder));
            one("$mod", Value::Array(array.into()).as_ref())
        }
        Test::Regex(pattern) => one("$regex", regex(pattern)),
        Test::Size(size) => one("$size", ValueRef::Int64(size.cast_signed())),
        Test::Bits(test) => {
            let mut array = ArrayWriter::new();
            test.positions
                .iter()
                .for_each(|position| array.push(ValueRef::Int64(i64::from(*position))));
            one(test.bits.name(), Value::Array(array.into()).as_ref())
        }
        Test::Geo(test) => {
            let (name, argument) = test.source();
            one(name, argument.as_ref())
        }
        Test::Near(near) => near.source().as_bytes().to_vec(),
        Test::ElementDocument(inner) => {
            let (_, inner) = canonical(inner.as_ref().clone());
            one("$elemMatch", ValueRef::Document(Document::trusted(&inner)))
        }
        Test::ElementValue(inner) => {
            let inner = conditions(inner);
            one("$elemMatch", ValueRef::Document(Document::trusted(&inner)))
        }
    }
}

fn regex(pattern: &Pattern) -> ValueRef<'_> {
    ValueRef::Regex(Regex {
        pattern: pattern.source(),
        options: pattern.options(),
    })
}

/// Sorts conditions on one value.
fn sort_conditions(node: FilterClause) -> FilterClause {
    let sorted = |children: Vec<FilterClause>| {
        let mut keyed: Vec<(Vec<u8>, FilterClause)> = children
            .into_iter()
            .map(|child| {
                let child = sort_conditions(child);
                (conditions(&child), child)
            })
            .collect();
        keyed.sort_by(|a, b| a.0.cmp(&b.0));
        keyed.dedup_by(|a, b| a.0 == b.0);
        keyed
            .into_iter()
            .map(|(_, child)| child)
            .collect::<Vec<_>>()
    };
    match node {
        FilterClause::And(children) => alone(sorted(children), FilterClause::And),
        FilterClause::Or(children) => alone(sorted(children), FilterClause::Or),
        leaf => sort_leaf(leaf),
    }
}

fn alone(
    mut children: Vec<FilterClause>,
    connective: fn(Vec<FilterClause>) -> FilterClause,
) -> FilterClause {
    match children.pop() {
        Some(only) if children.is_empty() => only,
        Some(last) => {
            children.push(last);
            connective(children)
        }
        None => connective(children),
    }
}

/// Conditions on one value as adjacent operators. They contain no `$or`, which is written as the
/// negation of the negated conditions.
fn conditions(node: &FilterClause) -> Vec<u8> {
    let mut writer = DocumentWriter::new();
    append_conditions(&mut writer, node);
    writer.finish()
}

fn append_conditions(writer: &mut DocumentWriter, node: &FilterClause) {
    match node {
        // An empty document would be a condition on documents.
        FilterClause::And(children) if children.is_empty() => {
            writer.append("$nin", Value::Array(ArrayWriter::new().into()).as_ref());
        }
        FilterClause::And(children) => children
            .iter()
            .for_each(|child| append_conditions(writer, child)),
        FilterClause::Or(children) => {
            let mut inner = DocumentWriter::new();
            children
                .iter()
                .for_each(|child| append_negated(&mut inner, child));
            let inner = inner.finish();
            writer.append("$not", ValueRef::Document(Document::trusted(&inner)));
        }
        FilterClause::Not(inner) => {
            let inner = conditions(inner);
            writer.append("$not", ValueRef::Document(Document::trusted(&inner)));
        }
        // There is no whole document inside `$elemMatch`.
        FilterClause::Whole(_) => {}
        FilterClause::Field(predicate) => {
            let test = test_document(&predicate.test);
            for element in Document::trusted(&test).elements() {
                writer.append_element(&element);
            }
        }
    }
}

fn append_negated(writer: &mut DocumentWriter, node: &FilterClause) {
    match node {
        FilterClause::Not(inner) => append_conditions(writer, inner),
        other => {
            let inner = conditions(other);
            writer.append("$not", ValueRef::Document(Document::trusted(&inner)));
        }
    }
}
