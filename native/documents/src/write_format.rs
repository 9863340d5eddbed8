//! Requests and outcomes of writes as bytes, between an app server and a storage node.
//!
//! ```text
//! request   := 1 atomic:u8 expected count target* count operation*
//! expected  := present:u8 absent:u8 optional(count version:signed*)
//! target    := name:slice collection optional(rule rule rule rule)     read, create, update, delete
//! rule      := optional(filter:slice)
//! operation := 0 refusal | kind:u8 id:slice optional(collection:slice) optional(version:signed) upsert:u8 new:u8 content
//! content   := document:slice                                          insert, replace, merge
//!            | document:slice optional(filters:slice) optional(filter:slice)     update
//!            | optional(filter:slice)                                  delete
//! result    := 1 (0 refusal | 1 count outcome*)
//! outcome   := 0 refusal | 1 id:slice version created updated created:u8 optional(document:slice)
//! refusal   := code:slice pointer:slice detail:slice count (pointer:slice detail:slice)*
//! ```
//!
//! Numbers and counts are varints, documents and filters are BSON, an id is a document with `_id`
//! alone, and `optional(x)` is 0, or 1 and x.

use std::borrow::Cow;
use std::sync::Arc;

use rillbase_binary_format::{ByteReader, ByteWriter as _, ReadResult};
use rillbase_query::bson::{Array, Document, DocumentBuf, Value, validate};
use rillbase_query::error::ParseLocation;
use rillbase_query::filter::Filter;
use rillbase_query::update::Update;

use crate::operation::{DocumentAction, DocumentOperation, id_document};
use crate::operations::DocumentOperations;
use crate::outcome::{DocumentChange, Outcome, Outcomes, WriteResult};
use crate::plan::{AccessFilters, NamedTarget, WriteRequest};
use crate::precondition::Precondition;
use crate::refusal::DocumentRefusal;

const VERSION: u8 = 1;
const REFUSAL: u8 = 0;
const INSERT: u8 = 1;
const REPLACE: u8 = 2;
const UPDATE: u8 = 3;
const MERGE: u8 = 4;
const DELETE: u8 = 5;
/// The longest code of a refusal.
const CODE_BYTES: usize = 64;

impl WriteRequest {
    /// The request as bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.operations.size() + 64);
        out.push(VERSION);
        out.push(u8::from(self.atomic));
        put_precondition(&mut out, &self.expected);
        out.put_varint(self.targets.len() as u64);
        for target in &self.targets {
            put_target(&mut out, target);
        }
        let operations = self.operations.as_slice();
        out.put_varint(operations.len() as u64);
        for operation in operations {
            match operation {
                Ok(operation) => put_operation(&mut out, operation),
                Err(refusal) => {
                    out.push(REFUSAL);
                    put_refusal(&mut out, refusal);
                }
            }
        }
        out
    }

    /// Reads what [`Self::encode`] wrote.
    pub fn decode(bytes: &[u8]) -> ReadResult<Self> {
        let mut reader = ByteReader::new(bytes);
        check_version(&mut reader)?;
        let atomic = reader.flag()?;
        let expected = precondition(&mut reader)?;
        let targets = reader.list(target)?;
        let operations = reader.list(operation)?;
        reader.finish()?;
        Ok(Self {
            operations: DocumentOperations::new(operations),
            targets,
            atomic,
            expected,
        })
    }
}

/// The result of a write as bytes.
#[must_use]
pub fn encode_result(result: &WriteResult) -> Vec<u8> {
    let mut out = vec![VERSION];
    match result {
        Err(refusal) => {
            out.push(0);
            put_refusal(&mut out, refusal);
        }
        Ok(outcomes) => {
            out.push(1);
            out.put_varint(outcomes.len() as u64);
            for outcome in outcomes.iter() {
                put_outcome(&mut out, outcome);
            }
        }
    }
    out
}

/// Reads what [`encode_result`] wrote.
pub fn decode_result(bytes: &[u8]) -> ReadResult<WriteResult> {
    let mut reader = ByteReader::new(bytes);
    check_version(&mut reader)?;
    let result = if reader.flag()? {
        Ok(Outcomes::from(reader.list(outcome)?))
    } else {
        Err(refusal(&mut reader)?)
    };
    reader.finish()?;
    Ok(result)
}

fn check_version(reader: &mut ByteReader<'_>) -> ReadResult<()> {
    let version = reader.byte()?;
    reader.check((version == VERSION).then_some(()), "version 1")
}

/// Versions and times are never negative.
fn put_number(out: &mut Vec<u8>, number: i64) {
    out.put_varint(u64::try_from(number).unwrap_or(0));
}

fn number(reader: &mut ByteReader<'_>) -> ReadResult<i64> {
    let number = reader.varint()?;
    reader.check(i64::try_from(number).ok(), "a number of 63 bits")
}

fn text(reader: &mut ByteReader<'_>) -> ReadResult<String> {
    Ok(reader.text()?.to_owned())
}

fn document<'a>(reader: &mut ByteReader<'a>) -> ReadResult<Document<'a>> {
    let bytes = reader.slice()?;
    reader.check(validate(bytes).ok(), "a document")?;
    Ok(Document::trusted(bytes))
}

fn filter(reader: &mut ByteReader<'_>) -> ReadResult<Arc<Filter>> {
    let parsed = Filter::parse(document(reader)?);
    reader.check(parsed.ok().map(Arc::new), "a filter")
}

fn id(reader: &mut ByteReader<'_>) -> ReadResult<Value> {
    let id = document(reader)?.get("_id").map(Value::from);
    reader.check(id, "an _id")
}

fn put_id(out: &mut Vec<u8>, id: &Value) {
    out.put_slice(id_document(id.as_ref()).as_bytes());
}

fn put_precondition(out: &mut Vec<u8>, expected: &Precondition) {
    out.push(u8::from(expected.present));
    out.push(u8::from(expected.absent));
    out.push(u8::from(expected.versions.is_some()));
    if let Some(versions) = &expected.versions {
        out.put_varint(versions.len() as u64);
        for version in versions {
            out.put_signed(i128::from(*version));
        }
    }
}

fn precondition(reader: &mut ByteReader<'_>) -> ReadResult<Precondition> {
    let (present, absent) = (reader.flag()?, reader.flag()?);
    let versions = reader.optional(|reader| reader.list(ByteReader::signed_64))?;
    Ok(Precondition {
        versions,
        present,
        absent,
    })
}

fn put_target(out: &mut Vec<u8>, target: &NamedTarget) {
    out.put_slice(target.name.as_bytes());
    out.put_varint(target.collection as u64);
    out.push(u8::from(target.access.is_some()));
    if let Some(access) = &target.access {
        for rule in [&access.read, &access.create, &access.update, &access.delete] {
            out.put_optional_slice(rule.as_ref().map(|rule| rule.canonical().as_bytes()));
        }
    }
}

fn target(reader: &mut ByteReader<'_>) -> ReadResult<NamedTarget> {
    let name = text(reader)?;
    let collection = usize::try_from(reader.varint()?).ok();
    let collection = reader.check(collection, "the number of a collection")?;
    let access = reader.optional(|reader| {
        Ok(AccessFilters {
            read: reader.optional(filter)?,
            create: reader.optional(filter)?,
            update: reader.optional(filter)?,
            delete: reader.optional(filter)?,
        })
    })?;
    Ok(NamedTarget {
        name,
        collection,
        access,
    })
}

fn put_operation(out: &mut Vec<u8>, operation: &DocumentOperation) {
    out.push(match &operation.action {
        DocumentAction::Insert(_) => INSERT,
        DocumentAction::Replace(_) => REPLACE,
        DocumentAction::Update(..) => UPDATE,
        DocumentAction::Merge(_) => MERGE,
        DocumentAction::Delete(_) => DELETE,
    });
    put_id(out, &operation.id);
    out.put_optional_slice(operation.collection.as_ref().map(String::as_bytes));
    out.push(u8::from(operation.if_version.is_some()));
    if let Some(version) = operation.if_version {
        out.put_signed(i128::from(version));
    }
    out.push(u8::from(operation.upsert));
    out.push(u8::from(operation.is_new));
    let of_filter = |filter: &Option<Arc<Filter>>| {
        let filter = filter.as_ref().map(|filter| filter.canonical().as_bytes());
        filter.map(<[u8]>::to_vec)
    };
    match &operation.action {
        DocumentAction::Insert(document)
        | DocumentAction::Replace(document)
        | DocumentAction::Merge(document) => out.put_slice(document.as_bytes()),
        DocumentAction::Update(update, filter) => {
            let source = update.source();
            let filters = source.array_filters.as_ref();
            out.put_slice(source.document.as_bytes());
            out.put_optional_slice(filters.map(|filters| filters.as_ref().as_bytes()));
            out.put_optional_slice(of_filter(filter).as_deref());
        }
        DocumentAction::Delete(filter) => out.put_optional_slice(of_filter(filter).as_deref()),
    }
}

fn operation(
    reader: &mut ByteReader<'_>,
) -> ReadResult<Result<DocumentOperation, DocumentRefusal>> {
    let kind = reader.byte()?;
    if kind == REFUSAL {
        return Ok(Err(refusal(reader)?));
    }
    let id = id(reader)?;
    let collection = reader.optional(text)?;
    let if_version = reader.optional(ByteReader::signed_64)?;
    let (upsert, is_new) = (reader.flag()?, reader.flag()?);
    let built = match kind {
        INSERT => DocumentOperation::insert(document(reader)?, id.as_ref()),
        REPLACE => DocumentOperation::replace(id, document(reader)?, upsert),
        UPDATE => {
            let update = update(reader)?;
            match reader.optional(filter)? {
                Some(filter) => DocumentOperation::update_found(id, update, filter),
                None => DocumentOperation::update_by(id, update, upsert),
            }
        }
        MERGE => DocumentOperation::merge(id, document(reader)?, upsert),
        DELETE => match reader.optional(filter)? {
            Some(filter) => DocumentOperation::delete_found(id, filter),
            None => DocumentOperation::delete(id),
        },
        _ => return Err(reader.error("an operation")),
    };
    let operation = reader.check(built.ok(), "a valid operation")?;
    Ok(Ok(DocumentOperation {
        collection,
        if_version,
        upsert,
        is_new,
        ..operation
    }))
}

fn update(reader: &mut ByteReader<'_>) -> ReadResult<Arc<Update>> {
    let operators = document(reader)?;
    let filters = reader.optional(document)?;
    let filters = filters.map(|filters| Array::trusted(filters.as_bytes()));
    let parsed = Update::parse(operators, filters, &ParseLocation::root());
    reader.check(parsed.ok().map(Arc::new), "an update")
}

fn put_refusal(out: &mut Vec<u8>, refusal: &DocumentRefusal) {
    for text in [&*refusal.code, &*refusal.pointer, &*refusal.detail] {
        out.put_slice(text.as_bytes());
    }
    out.put_varint(refusal.violations.len() as u64);
    for (pointer, detail) in &refusal.violations {
        out.put_slice(pointer.as_bytes());
        out.put_slice(detail.as_bytes());
    }
}

fn refusal(reader: &mut ByteReader<'_>) -> ReadResult<DocumentRefusal> {
    let code = text(reader)?;
    reader.check((code.len() <= CODE_BYTES).then_some(()), "a code")?;
    Ok(DocumentRefusal {
        code: Cow::Owned(code),
        pointer: text(reader)?,
        detail: text(reader)?,
        violations: reader.list(|reader| Ok((text(reader)?, text(reader)?)))?,
    })
}

fn put_outcome(out: &mut Vec<u8>, outcome: &Outcome) {
    out.push(u8::from(outcome.is_ok()));
    match outcome {
        Err(refusal) => put_refusal(out, refusal),
        Ok(change) => {
            put_id(out, &change.id);
            put_number(out, change.version);
            put_number(out, change.created_ms);
            put_number(out, change.updated_ms);
            out.push(u8::from(change.created));
            out.put_optional_slice(change.body.as_ref().map(|body| body.as_bytes()));
        }
    }
}

fn outcome(reader: &mut ByteReader<'_>) -> ReadResult<Outcome> {
    if !reader.flag()? {
        return Ok(Err(refusal(reader)?));
    }
    Ok(Ok(DocumentChange {
        id: id(reader)?,
        version: number(reader)?,
        created_ms: number(reader)?,
        updated_ms: number(reader)?,
        created: reader.flag()?,
        body: reader
            .optional(document)?
            .map(|body| Arc::new(DocumentBuf::from(body))),
    }))
}
