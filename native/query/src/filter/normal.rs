//! Negation normal form.
//!
//! Negations move to the leaves by De Morgan's laws; `$and` inside `$and` and
//! `$or` inside `$or` dissolve; what is always true or false disappears. A
//! negated test stays one: over arrays "not greater" is not "less or equal".

use super::{Comparison, FilterClause, List, Predicate, Test};
use crate::bson::{ArrayWriter, Document, DocumentBuf, DocumentWriter, Value, ValueRef};
use crate::number;

/// The normal form of a filter.
pub(super) fn normal(node: FilterClause) -> FilterClause {
    push_down(node, false)
}

fn push_down(node: FilterClause, negated: bool) -> FilterClause {
    match node {
        FilterClause::Not(inner) => push_down(*inner, !negated),
        FilterClause::And(children) => connect(children, negated, negated),
        FilterClause::Or(children) => connect(children, negated, !negated),
        leaf @ (FilterClause::Field(_) | FilterClause::Whole(_)) => match simplify(leaf) {
            FilterClause::Or(none) if negated && none.is_empty() => FilterClause::And(none),
            simple if negated => FilterClause::Not(Box::new(simple)),
            simple => simple,
        },
    }
}

/// A connective of normal children: `Or` when `any`, else `And`.
fn connect(children: Vec<FilterClause>, negated: bool, any: bool) -> FilterClause {
    let mut flat = Vec::with_capacity(children.len());
    for child in children {
        match push_down(child, negated) {
            // The absorbing element: one true in $or, one false in $and.
            FilterClause::And(inner) if any && inner.is_empty() => return FilterClause::And(inner),
            FilterClause::Or(inner) if !any && inner.is_empty() => return FilterClause::Or(inner),
            FilterClause::Or(inner) if any => flat.extend(inner),
            FilterClause::And(inner) if !any => flat.extend(inner),
            other => flat.push(other),
        }
    }
    if flat.len() == 1 {
        return flat.pop().unwrap_or(FilterClause::And(Vec::new()));
    }
    if any {
        FilterClause::Or(flat)
    } else {
        FilterClause::And(flat)
    }
}

/// A leaf in its simplest form.
fn simplify(leaf: FilterClause) -> FilterClause {
    let FilterClause::Field(Predicate { path, test }) = leaf else {
        return leaf;
    };
    let test = match test {
        Test::In(list) => match simplify_list(list) {
            Some(test) => test,
            None => return FilterClause::Or(Vec::new()),
        },
        Test::ElementDocument(inner) => match normal(*inner) {
            FilterClause::Or(none) if none.is_empty() => return FilterClause::Or(none),
            inner => Test::ElementDocument(Box::new(inner)),
        },
        Test::ElementValue(inner) => match normal(*inner) {
            FilterClause::Or(none) if none.is_empty() => return FilterClause::Or(none),
            inner => Test::ElementValue(Box::new(inner)),
        },
        test => test,
    };
    FilterClause::Field(Predicate { path, test })
}

/// `$in` of nothing is false, of one value `$eq`.
fn simplify_list(list: List) -> Option<Test> {
    match (list.values(), list.patterns()) {
        ([], []) => None,
        ([value], []) => Some(Test::Compare(Comparison::Equal, value.clone())),
        ([], [pattern]) => Some(Test::Regex(pattern.clone())),
        _ => Some(Test::In(list)),
    }
}

/// An operand of a comparison, with each number in the first type of int,
/// long, double, decimal that holds it exactly, and symbols as strings. Equal
/// operands become equal bytes.
pub(super) fn operand(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Symbol(text) => Value::String(text.into()),
        ValueRef::Document(document) => Value::Document(operand_document(document)),
        ValueRef::Array(array) => {
            let mut writer = ArrayWriter::new();
            array
                .iter()
                .for_each(|value| writer.push(operand(value).as_ref()));
            Value::Array(writer.into())
        }
        number if number.is_number() => operand_number(number),
        other => other.into(),
    }
}

fn operand_document(document: Document<'_>) -> DocumentBuf {
    let mut writer = DocumentWriter::with_capacity(document.as_bytes().len());
    for (key, value) in document.iter() {
        writer.append(key, operand(value).as_ref());
    }
    writer.into()
}

fn operand_number(value: ValueRef<'_>) -> Value {
    if value.is_nan() {
        return Value::Double(f64::NAN);
    }
    if let Some(int) = value.as_exact_i64() {
        return i32::try_from(int).map_or(Value::Int64(int), Value::Int32);
    }
    match value {
        ValueRef::Decimal(decimal) => {
            let double = decimal.to_f64();
            if number::compare(value, ValueRef::Double(double)).is_eq() {
                Value::Double(double)
            } else {
                Value::Decimal(decimal.normalized())
            }
        }
        other => other.into(),
    }
}
