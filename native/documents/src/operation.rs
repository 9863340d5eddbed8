//! One change of one document: the request and its effect.

use std::sync::Arc;

use rillbase_query::bson::{
    Array, Document, DocumentBuf, DocumentWriter, Value, ValueRef, validate,
};
use rillbase_query::environment::EvaluationContext;
use rillbase_query::error::ParseLocation;
use rillbase_query::filter::Filter;
use rillbase_query::merge_patch::merge_patch;
use rillbase_query::order::equal;
use rillbase_query::update::{Applied, Update};

use crate::id::key;
use crate::refusal::DocumentRefusal;

/// The kind of change.
#[derive(Debug, Clone)]
pub enum DocumentAction {
    /// Insert a document that does not exist.
    Insert(DocumentBuf),
    /// Replace or create the document.
    Replace(DocumentBuf),
    /// Apply update operators; with a filter, only while the document still
    /// matches it, which is where the positional `$` comes from.
    Update(Arc<Update>, Option<Arc<Filter>>),
    /// Apply a JSON Merge Patch.
    Merge(DocumentBuf),
    /// Delete it; with a filter, only while it still matches.
    Delete(Option<Arc<Filter>>),
}

/// A change of one document.
#[derive(Debug, Clone)]
pub struct DocumentOperation {
    /// The kind of change.
    pub action: DocumentAction,
    /// The document's `_id`.
    pub id: Value,
    /// Its key.
    pub key: Vec<u8>,
    /// The collection, if the operation names one.
    pub collection: Option<String>,
    /// The required version of the document, if any.
    pub if_version: Option<i64>,
    /// Whether a missing document is created.
    pub upsert: bool,
    /// Whether it creates a document whose `_id` cannot have been used before.
    pub is_new: bool,
    /// The approximate size of its content.
    pub size: usize,
}

/// The access rules that apply to the caller; `None` where no rule does.
#[derive(Debug, Clone, Copy, Default)]
pub struct WriteRules<'r> {
    /// What a new document must match.
    pub create: Option<&'r Filter>,
    /// What a changed document must match, before and after.
    pub update: Option<&'r Filter>,
    /// What a removed document must have matched.
    pub delete: Option<&'r Filter>,
}

impl DocumentOperation {
    fn new(action: DocumentAction, id: Value, size: usize) -> Result<Self, DocumentRefusal> {
        let key = key(id.as_ref())?;
        Ok(Self {
            action,
            id,
            key,
            collection: None,
            if_version: None,
            upsert: false,
            is_new: false,
            size,
        })
    }

    /// An insert. A document without `_id` receives `fresh`, which is unique.
    pub fn insert(document: Document<'_>, fresh: ValueRef<'_>) -> Result<Self, DocumentRefusal> {
        let own_id = document.get("_id");
        let id = Value::from(own_id.unwrap_or(fresh));
        let document = with_id_first(document, id.as_ref());
        validate(document.as_bytes())?;
        let size = document.as_bytes().len();
        let operation = Self::new(DocumentAction::Insert(document), id, size)?;
        Ok(Self {
            is_new: own_id.is_none(),
            ..operation
        })
    }

    /// A replacement, which also creates a missing document.
    pub fn replace(
        id: Value,
        document: Document<'_>,
        upsert: bool,
    ) -> Result<Self, DocumentRefusal> {
        check_same_id(document, id.as_ref())?;
        let document = with_id_first(document, id.as_ref());
        validate(document.as_bytes())?;
        let size = document.as_bytes().len();
        let operation = Self::new(DocumentAction::Replace(document), id, size)?;
        Ok(Self {
            upsert,
            ..operation
        })
    }

    /// An update by operators, which are at `location`.
    pub fn update(
        id: Value,
        (update, location): (Document<'_>, &ParseLocation<'_>),
        array_filters: Option<Array<'_>>,
        upsert: bool,
    ) -> Result<Self, DocumentRefusal> {
        let parsed = Update::parse(update, array_filters, location)?;
        Self::update_by(id, Arc::new(parsed), upsert)
    }

    /// An update by operators that were parsed.
    pub fn update_by(
        id: Value,
        update: Arc<Update>,
        upsert: bool,
    ) -> Result<Self, DocumentRefusal> {
        let size = update.source().document.as_bytes().len();
        let operation = Self::new(DocumentAction::Update(update, None), id, size)?;
        Ok(Self {
            upsert,
            ..operation
        })
    }

    /// An update of a document that was found by a filter.
    pub fn update_found(
        id: Value,
        update: Arc<Update>,
        filter: Arc<Filter>,
    ) -> Result<Self, DocumentRefusal> {
        Self::new(DocumentAction::Update(update, Some(filter)), id, 64)
    }

    /// A merge patch.
    pub fn merge(id: Value, patch: Document<'_>, upsert: bool) -> Result<Self, DocumentRefusal> {
        check_same_id(patch, id.as_ref())?;
        validate(patch.as_bytes())?;
        let size = patch.as_bytes().len();
        let patch = DocumentBuf::trusted(patch.as_bytes().to_vec());
        let operation = Self::new(DocumentAction::Merge(patch), id, size)?;
        Ok(Self {
            upsert,
            ..operation
        })
    }

    /// A delete.
    pub fn delete(id: Value) -> Result<Self, DocumentRefusal> {
        Self::new(DocumentAction::Delete(None), id, 16)
    }

    /// A delete of a document that was found by a filter.
    pub fn delete_found(id: Value, filter: Arc<Filter>) -> Result<Self, DocumentRefusal> {
        Self::new(DocumentAction::Delete(Some(filter)), id, 16)
    }

    /// The name of the operation.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self.action {
            DocumentAction::Insert(_) => "insert",
            DocumentAction::Replace(_) => "replace",
            DocumentAction::Update(..) => "update",
            DocumentAction::Merge(_) => "merge",
            DocumentAction::Delete(_) => "delete",
        }
    }

    /// The document after this operation; `None` if it was deleted.
    pub fn after(
        &self,
        before: Option<Document<'_>>,
        now_ms: i64,
    ) -> Result<Option<DocumentBuf>, DocumentRefusal> {
        match (&self.action, before) {
            (DocumentAction::Insert(_), Some(_)) => Err(DocumentRefusal::new(
                "duplicate_id",
                "a document with this _id exists",
            )),
            (DocumentAction::Insert(document), None) => Ok(Some(document.clone())),
            (_, None) if !self.upsert => Err(DocumentRefusal::new(
                "not_found",
                "the document does not exist",
            )),
            (DocumentAction::Replace(document), _) => Ok(Some(document.clone())),
            (DocumentAction::Merge(patch), before) => self.merged(patch, before).map(Some),
            (DocumentAction::Update(update, filter), before) => self
                .updated(update, filter.as_deref(), before, now_ms)
                .map(Some),
            (DocumentAction::Delete(filter), Some(before)) => {
                still_matches(filter.as_deref(), before, now_ms)?;
                Ok(None)
            }
            (DocumentAction::Delete(_), None) => Err(DocumentRefusal::new(
                "not_found",
                "the document does not exist",
            )),
        }
    }

    fn merged(
        &self,
        patch: &DocumentBuf,
        before: Option<Document<'_>>,
    ) -> Result<DocumentBuf, DocumentRefusal> {
        let made = id_document(self.id.as_ref());
        let after = merge_patch(before.unwrap_or(made.as_ref()), patch.as_ref());
        check_same_id(after.as_ref(), self.id.as_ref())?;
        if after.as_ref().get("_id").is_none() {
            return Err(DocumentRefusal::at(
                "invalid_update",
                &ParseLocation::root().key("_id"),
                "a patch cannot remove _id",
            ));
        }
        validate(after.as_bytes())?;
        Ok(after)
    }

    fn updated(
        &self,
        update: &Update,
        filter: Option<&Filter>,
        before: Option<Document<'_>>,
        now_ms: i64,
    ) -> Result<DocumentBuf, DocumentRefusal> {
        let environment = EvaluationContext::at(now_ms);
        let Some(before) = before else {
            let made = id_document(self.id.as_ref());
            let applied = Applied {
                position: None,
                inserting: true,
            };
            return Ok(update.apply(made.as_ref(), applied, &environment)?);
        };
        let position = still_matches(filter, before, now_ms)?;
        let applied = Applied {
            position,
            inserting: false,
        };
        Ok(update.apply(before, applied, &environment)?)
    }
}

/// Rejects a document that has changed and no longer matches or can no longer be evaluated;
/// otherwise returns the position for the positional `$`.
fn still_matches(
    filter: Option<&Filter>,
    before: Document<'_>,
    now_ms: i64,
) -> Result<Option<u32>, DocumentRefusal> {
    let Some(filter) = filter else {
        return Ok(None);
    };
    let position = filter.position_in(before, &EvaluationContext::at(now_ms));
    let position = position.ok().flatten();
    position.ok_or_else(|| DocumentRefusal::new("not_found", "the document no longer matches"))
}

/// Rejects what the caller's access rules do not allow.
pub(crate) fn check_rules(
    before: Option<Document<'_>>,
    after: Option<Document<'_>>,
    now_ms: i64,
    rules: WriteRules<'_>,
) -> Result<(), DocumentRefusal> {
    let (rule, tested) = match (before, after) {
        (None, after) => (rules.create, [None, after]),
        (before, None) => (rules.delete, [before, None]),
        (before, after) => (rules.update, [before, after]),
    };
    let Some(rule) = rule else {
        return Ok(());
    };
    let mut tested = tested.into_iter().flatten();
    if tested.all(|document| allows(rule, document, now_ms)) {
        Ok(())
    } else {
        Err(forbidden_by_rule())
    }
}

/// Whether a rule allows a document. If it cannot be evaluated, with fuel of its own, the document
/// is not allowed.
pub(crate) fn allows(rule: &Filter, document: Document<'_>, now_ms: i64) -> bool {
    rule.matches_in(document, &EvaluationContext::at(now_ms)) == Ok(true)
}

/// The error for a document that a rule does not allow.
pub(crate) fn forbidden_by_rule() -> DocumentRefusal {
    let detail = "the collection's access rules do not allow it";
    DocumentRefusal::new("forbidden_by_rule", detail)
}

fn check_same_id(document: Document<'_>, id: ValueRef<'_>) -> Result<(), DocumentRefusal> {
    match document.get("_id") {
        Some(given) if !equal(given, id) => Err(DocumentRefusal::at(
            "invalid_document",
            &ParseLocation::root().key("_id"),
            "the document's _id differs from the one in the URL",
        )),
        _ => Ok(()),
    }
}

/// A document of the `_id` alone.
/// A document with an `_id` alone.
#[must_use]
pub fn id_document(id: ValueRef<'_>) -> DocumentBuf {
    let mut writer = DocumentWriter::with_capacity(32);
    writer.append("_id", id);
    DocumentBuf::trusted(writer.finish())
}

/// `_id` is first in every stored document.
fn with_id_first(document: Document<'_>, id: ValueRef<'_>) -> DocumentBuf {
    let first = document.elements().next();
    if first.is_some_and(|element| element.key_bytes() == b"_id") {
        return DocumentBuf::trusted(document.as_bytes().to_vec());
    }
    let mut writer = DocumentWriter::with_capacity(document.as_bytes().len() + 24);
    writer.append("_id", id);
    for element in document.elements() {
        if element.key_bytes() != b"_id" {
            writer.append_element(&element);
        }
    }
    DocumentBuf::trusted(writer.finish())
}
