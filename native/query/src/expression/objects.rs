//! Documents.

use super::function::Function as F;
use super::item::{Args, NULL, Out, array, count, document, is_null, own};
use crate::bson::{Document, DocumentWriter, Value, ValueRef};
use crate::error::EvaluationFailure;

pub(super) fn call<'a>(
    function: F,
    args: &Args<'_>,
    root: Document<'_>,
) -> Result<Out<'a>, EvaluationFailure> {
    match function {
        F::ObjectToArray => to_array(args),
        F::MergeObjects => merge(args),
        F::GetField => get(args, root),
        F::SetField => set(args, args.get(2)),
        F::UnsetField => set(args, None),
        F::BinarySize => match args.get(0) {
            value if is_null(value) => Ok(NULL),
            Some(ValueRef::String(text)) => Ok(count(text.len())),
            Some(ValueRef::Binary(binary)) => Ok(count(binary.bytes.len())),
            _ => Err(args.wrong(0, "a string or binary data")),
        },
        _ if args.is_null(0) => Ok(NULL),
        _ => Ok(count(args.document(0)?.as_bytes().len())),
    }
}

fn to_array<'a>(args: &Args<'_>) -> Result<Out<'a>, EvaluationFailure> {
    if args.is_null(0) {
        return Ok(NULL);
    }
    let pairs: Vec<Value> = args
        .document(0)?
        .iter()
        .map(|(key, value)| {
            let mut writer = DocumentWriter::new();
            writer.append("k", ValueRef::String(key));
            writer.append("v", value);
            Value::Document(writer.into())
        })
        .collect();
    Ok(array(pairs.iter().map(Value::as_ref)))
}

/// Later values win; a field keeps its first position.
fn merge<'a>(args: &Args<'_>) -> Result<Out<'a>, EvaluationFailure> {
    let alone = (args.len() == 1)
        .then(|| args.get(0).and_then(|value| value.as_array()))
        .flatten();
    let values: Vec<Option<ValueRef<'_>>> = match alone {
        Some(array) => array.iter().map(Some).collect(),
        None => args.iter().collect(),
    };
    let mut fields: Vec<(&str, ValueRef<'_>)> = Vec::new();
    for value in values {
        match value {
            value if is_null(value) => {}
            Some(ValueRef::Document(document)) => {
                for (key, value) in document.iter() {
                    match fields.iter_mut().find(|(known, _)| *known == key) {
                        Some((_, slot)) => *slot = value,
                        None => fields.push((key, value)),
                    }
                }
            }
            _ => return Err(args.refuse("takes documents")),
        }
    }
    let mut writer = DocumentWriter::new();
    fields
        .iter()
        .for_each(|(key, value)| writer.append(key, *value));
    Ok(document(writer.into()))
}

/// The field by its literal name, dots and dollar signs included.
fn get<'a>(args: &Args<'_>, root: Document<'_>) -> Result<Out<'a>, EvaluationFailure> {
    let name = args.text(0)?;
    if !args.given(1) {
        return Ok(root.get(name).and_then(|value| own(value.into())));
    }
    match args.get(1) {
        Some(ValueRef::Document(input)) => Ok(input.get(name).and_then(|value| own(value.into()))),
        Some(ValueRef::Null | ValueRef::Undefined) => Ok(NULL),
        _ => Ok(None),
    }
}

/// The input with the field set, or without it when there is no value.
fn set<'a>(args: &Args<'_>, value: Option<ValueRef<'_>>) -> Result<Out<'a>, EvaluationFailure> {
    let name = args.text(0)?;
    if args.is_null(1) {
        return Ok(NULL);
    }
    let input = args.document(1)?;
    let mut writer = DocumentWriter::with_capacity(input.as_bytes().len());
    let mut is_set = false;
    for element in input.elements() {
        if element.key_bytes() != name.as_bytes() {
            writer.append_element(&element);
        } else if let Some(value) = value.filter(|_| !std::mem::replace(&mut is_set, true)) {
            writer.append(name, value);
        }
    }
    if let Some(value) = value.filter(|_| !is_set) {
        writer.append(name, value);
    }
    Ok(document(writer.into()))
}
