//! Documents in results, and rows that are made of documents.

use std::sync::Arc;

use rillbase_query::bson::{Document, DocumentWriter, ValueRef};

use super::QueryHash;

/// A document in the result of a query, or a row that a sort node makes of documents.
///
/// A row that stands for a group has the group's values as its key; a document with others that it
/// refers to has the document's key. Neither has a counted version: their version is derived from
/// their content, so that two such rows with one key are equal if and only if their versions are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultRow {
    /// The `_id` in order-preserving bytes.
    pub key: Arc<[u8]>,
    /// Its version.
    pub version: u64,
    /// When it was created.
    pub created_ms: i64,
    /// When it was last written.
    pub updated_ms: i64,
    /// The document in BSON; empty where only membership is reported.
    pub body: Arc<[u8]>,
}

/// Replaces the creation time in a row that stands for a group.
pub(crate) const GROUP_MS: i64 = i64::MIN;
/// Replaces the creation time in a document with others: times and version are in its body.
const JOINED_MS: i64 = i64::MIN + 1;

impl ResultRow {
    /// A row that stands for a group.
    pub(crate) fn of_group(key: Arc<[u8]>, body: Arc<[u8]>) -> Self {
        let content = QueryHash::of(&[&body]);
        Self::made(key, &content, body, GROUP_MS)
    }

    /// A document with others that it refers to: `shown`.
    pub(crate) fn of_join(own: &Self, shown: Document<'_>) -> Self {
        let mut body = DocumentWriter::with_capacity(shown.as_bytes().len() + 96);
        if let Some(id) = Document::trusted(&own.body).get("_id") {
            body.append("_id", id);
        }
        let version = i64::try_from(own.version).unwrap_or(i64::MAX);
        body.append("version", ValueRef::Int64(version));
        body.append("created_ms", ValueRef::Int64(own.created_ms));
        body.append("updated_ms", ValueRef::Int64(own.updated_ms));
        body.append("document", ValueRef::Document(shown));
        // Its version covers its times.
        let content = QueryHash::of(&[&own.version.to_be_bytes(), shown.as_bytes()]);
        Self::made(
            Arc::clone(&own.key),
            &content,
            body.finish().into(),
            JOINED_MS,
        )
    }

    fn made(key: Arc<[u8]>, content: &QueryHash, body: Arc<[u8]>, mark: i64) -> Self {
        let version = content.0.iter().take(8);
        let version = version.fold(0, |number, byte| number << 8 | u64::from(*byte));
        Self {
            key,
            // Python receives versions as signed numbers; zero is not a version.
            version: (version >> 1).max(1),
            created_ms: mark,
            updated_ms: mark,
            body,
        }
    }

    /// Whether it stands for a group.
    pub const fn is_group(&self) -> bool {
        self.created_ms == GROUP_MS
    }

    /// Whether it is a document with others that it refers to.
    pub const fn is_join(&self) -> bool {
        self.created_ms == JOINED_MS
    }

    /// The document's own version, also of a document with others.
    pub fn document_version(&self) -> u64 {
        if self.is_join() {
            let own = self.number("version");
            return u64::try_from(own).unwrap_or(0);
        }
        self.version
    }

    /// When the document was created.
    pub(crate) fn document_created_ms(&self) -> i64 {
        if self.is_join() {
            return self.number("created_ms");
        }
        self.created_ms
    }

    /// When the document was last written.
    pub(crate) fn document_updated_ms(&self) -> i64 {
        if self.is_join() {
            return self.number("updated_ms");
        }
        self.updated_ms
    }

    fn number(&self, name: &str) -> i64 {
        match Document::trusted(&self.body).get(name) {
            Some(ValueRef::Int64(number)) => number,
            _ => 0,
        }
    }

    /// The document that it shows.
    pub(crate) fn document(&self) -> Document<'_> {
        let body = Document::trusted(&self.body);
        if self.is_join() {
            let shown = body.get("document").and_then(|shown| shown.as_document());
            return shown.unwrap_or(body);
        }
        body
    }

    /// BSON of the `_id` alone; empty if the body is.
    pub fn id(&self) -> Arc<[u8]> {
        if self.body.is_empty() {
            return Arc::clone(&self.body);
        }
        let mut writer = DocumentWriter::new();
        if let Some(id) = Document::trusted(&self.body).get("_id") {
            writer.append("_id", id);
        }
        writer.finish().into()
    }
}
