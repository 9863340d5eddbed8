//! Many operations in one body: a JSON object, or one line per operation.

use rillbase_query::bson::{Document, Value, ValueRef};
use rillbase_query::ejson::{parse_operations, parse_request};
use rillbase_query::error::ParseLocation;
use rillbase_query::limits::OPERATIONS_BYTES;

use crate::id::new_object_id;
use crate::operation::DocumentOperation;
use crate::operations::DocumentOperations;
use crate::refusal::DocumentRefusal;

/// The operations of a body.
#[derive(Debug)]
pub struct Bulk {
    /// The operations; those that cannot be parsed as errors.
    pub operations: DocumentOperations,
    /// Whether all or none are applied.
    pub ordered: bool,
}

/// How a body is parsed.
#[derive(Debug, Clone, Copy)]
pub struct BulkOptions {
    /// Whether each line is an operation.
    pub lines: bool,
    /// Whether operations name their collection, as in a transaction.
    pub transaction: bool,
    /// The maximum number of operations.
    pub max_operations: usize,
}

/// Parses a body.
pub fn parse(body: &[u8], reading: BulkOptions) -> Result<Bulk, DocumentRefusal> {
    if reading.lines {
        return parse_lines(body, reading);
    }
    let value = parse_operations(body, reading.max_operations)?;
    let Value::Document(document) = &value else {
        return Err(DocumentRefusal::new(
            "invalid_body",
            "an object is expected",
        ));
    };
    let root = ParseLocation::root();
    let mut operations = None;
    let mut ordered = true;
    for (name, value) in document.as_ref().iter() {
        match (name, value) {
            ("operations", ValueRef::Array(array)) => operations = Some(array),
            ("ordered", ValueRef::Bool(given)) if !reading.transaction => ordered = given,
            ("operations" | "ordered", _) if name != "ordered" || !reading.transaction => {
                return Err(DocumentRefusal::at(
                    "invalid_body",
                    &root.key(name),
                    "the wrong type",
                ));
            }
            _ => return Err(unknown(&root.key(name))),
        }
    }
    let Some(operations) = operations else {
        return Err(DocumentRefusal::at(
            "invalid_body",
            &root.key("operations"),
            "is missing",
        ));
    };
    let location = root.key("operations");
    let mut read = Vec::new();
    for (number, value) in operations.iter().enumerate() {
        check_count(number, reading)?;
        let operation = one(value, reading, &location.index(number));
        if ordered {
            read.push(Ok(operation?));
        } else {
            read.push(operation);
        }
    }
    Ok(Bulk {
        operations: DocumentOperations::listed(read),
        ordered,
    })
}

fn parse_lines(body: &[u8], reading: BulkOptions) -> Result<Bulk, DocumentRefusal> {
    let mut operations = Vec::new();
    let mut bytes = 0;
    let lines = body
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty());
    for (number, line) in lines.enumerate() {
        check_count(number, reading)?;
        let root = ParseLocation::root();
        let location = root.key("operations");
        let here = location.index(number);
        let value =
            parse_request(line).map_err(|error| DocumentRefusal::from(error).inside(&here))?;
        bytes += value.as_ref().content_bytes();
        if bytes > OPERATIONS_BYTES {
            let detail = format!("a list of operations may have at most {OPERATIONS_BYTES} bytes");
            return Err(DocumentRefusal::at("document_too_large", &here, detail));
        }
        operations.push(Ok(one(value.as_ref(), reading, &here)?));
    }
    Ok(Bulk {
        operations: DocumentOperations::listed(operations),
        ordered: true,
    })
}

fn check_count(number: usize, reading: BulkOptions) -> Result<(), DocumentRefusal> {
    if number < reading.max_operations {
        return Ok(());
    }
    let detail = format!("at most {} operations at once", reading.max_operations);
    Err(DocumentRefusal::at(
        "invalid_body",
        &ParseLocation::root().key("operations"),
        detail,
    ))
}

fn one(
    value: ValueRef<'_>,
    reading: BulkOptions,
    location: &ParseLocation<'_>,
) -> Result<DocumentOperation, DocumentRefusal> {
    let ValueRef::Document(document) = value else {
        return Err(DocumentRefusal::at(
            "invalid_body",
            location,
            "an operation is an object",
        ));
    };
    let mut parts = OperationParts::default();
    for (name, value) in document.iter() {
        parts.take(name, value, reading, &location.key(name))?;
    }
    let Some((name, argument)) = parts.requested else {
        let detail = "an operation must be one of insert, replace, update, delete";
        return Err(DocumentRefusal::at("invalid_body", location, detail));
    };
    if reading.transaction && parts.collection.is_none() {
        return Err(DocumentRefusal::at(
            "invalid_body",
            &location.key("collection"),
            "is missing",
        ));
    }
    let here = location.key(name);
    let mut operation = operation(name, argument, &here)?;
    operation.collection = parts.collection;
    operation.if_version = parts.if_version;
    Ok(operation)
}

#[derive(Default)]
struct OperationParts<'a> {
    requested: Option<(&'a str, Document<'a>)>,
    collection: Option<String>,
    if_version: Option<i64>,
}

impl<'a> OperationParts<'a> {
    fn take(
        &mut self,
        name: &'a str,
        value: ValueRef<'a>,
        reading: BulkOptions,
        location: &ParseLocation<'_>,
    ) -> Result<(), DocumentRefusal> {
        match (name, value) {
            ("insert" | "replace" | "update" | "delete", ValueRef::Document(argument)) => {
                if self.requested.replace((name, argument)).is_some() {
                    return Err(DocumentRefusal::at(
                        "invalid_body",
                        location,
                        "only one operation is allowed",
                    ));
                }
            }
            ("if_version", number) => {
                self.if_version = Some(number.as_exact_i64().ok_or_else(|| {
                    DocumentRefusal::at("invalid_body", location, "a version must be an integer")
                })?);
            }
            ("collection", ValueRef::String(text)) if reading.transaction => {
                self.collection = Some(text.into());
            }
            ("insert" | "replace" | "update" | "delete", _) => {
                return Err(DocumentRefusal::at(
                    "invalid_body",
                    location,
                    "an object is expected",
                ));
            }
            _ => return Err(unknown(location)),
        }
        Ok(())
    }
}

fn operation(
    name: &str,
    argument: Document<'_>,
    location: &ParseLocation<'_>,
) -> Result<DocumentOperation, DocumentRefusal> {
    if name == "insert" {
        let fresh = ValueRef::ObjectId(new_object_id());
        return DocumentOperation::insert(argument, fresh)
            .map_err(|refused| refused.inside(location));
    }
    let allowed: &[&str] = match name {
        "replace" => &["id", "document", "upsert"],
        "update" => &["id", "update", "array_filters", "upsert"],
        _ => &["id"],
    };
    for (member, _) in argument.iter() {
        if !allowed.contains(&member) {
            return Err(unknown(&location.key(member)));
        }
    }
    let id = argument
        .get("id")
        .map(Value::from)
        .ok_or_else(|| DocumentRefusal::at("invalid_body", &location.key("id"), "is missing"))?;
    match name {
        "replace" => {
            let document = member(argument, "document", location)?;
            let upsert = flag(argument, "upsert", true, location)?;
            DocumentOperation::replace(id, document, upsert)
                .map_err(|refused| refused.inside(&location.key("document")))
        }
        "update" => {
            let update = member(argument, "update", location)?;
            let filters = array_filters(argument, location)?;
            let upsert = flag(argument, "upsert", false, location)?;
            let root = ParseLocation::root();
            DocumentOperation::update(id, (update, &root.key("update")), filters, upsert)
                .map_err(|refused| refused.inside(location))
        }
        _ => DocumentOperation::delete(id).map_err(|refused| refused.inside(&location.key("id"))),
    }
}

fn array_filters<'a>(
    argument: Document<'a>,
    location: &ParseLocation<'_>,
) -> Result<Option<rillbase_query::bson::Array<'a>>, DocumentRefusal> {
    match argument.get("array_filters") {
        None | Some(ValueRef::Null) => Ok(None),
        Some(ValueRef::Array(array)) => Ok(Some(array)),
        Some(_) => {
            let location = location.key("array_filters");
            Err(DocumentRefusal::at(
                "invalid_body",
                &location,
                "an array is expected",
            ))
        }
    }
}

fn member<'a>(
    argument: Document<'a>,
    name: &str,
    location: &ParseLocation<'_>,
) -> Result<Document<'a>, DocumentRefusal> {
    match argument.get(name) {
        Some(ValueRef::Document(document)) => Ok(document),
        Some(_) => Err(DocumentRefusal::at(
            "invalid_body",
            &location.key(name),
            "an object is expected",
        )),
        None => Err(DocumentRefusal::at(
            "invalid_body",
            &location.key(name),
            "is missing",
        )),
    }
}

fn flag(
    argument: Document<'_>,
    name: &str,
    otherwise: bool,
    location: &ParseLocation<'_>,
) -> Result<bool, DocumentRefusal> {
    match argument.get(name) {
        None => Ok(otherwise),
        Some(ValueRef::Bool(given)) => Ok(given),
        Some(_) => Err(DocumentRefusal::at(
            "invalid_body",
            &location.key(name),
            "true or false is expected",
        )),
    }
}

fn unknown(location: &ParseLocation<'_>) -> DocumentRefusal {
    DocumentRefusal::at("invalid_body", location, "unknown member")
}
