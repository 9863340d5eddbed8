//! The result of a query: the rows of a page, in order, and their representation.

use rillbase_query::bson::{Document, ValueRef};
use rillbase_query::ejson::Form;
use rillbase_query::environment::EvaluationContext;
use rillbase_query::lookup::LookupFields;
use rillbase_query::projection::{Matched, Projection};

use crate::envelope::{Meta, write};
use crate::lookups::{self, ReferencedDocuments};
use crate::refusal::DocumentRefusal;
use crate::selection_request::SelectionRequest;
use crate::unevaluated::UnevaluatedDocuments;

/// A row of the page.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PageRow {
    /// The sort position.
    pub(crate) sort_position: Vec<u8>,
    pub(crate) key: Vec<u8>,
    pub(crate) entry: Vec<u8>,
    pub(crate) body: Vec<u8>,
    pub(crate) version: i64,
    pub(crate) created_ms: i64,
    pub(crate) updated_ms: i64,
    pub(crate) position: Option<u32>,
    /// The document with those that it refers to, if they are shown.
    pub(crate) embedded: Option<Vec<u8>>,
}

impl PageRow {
    pub(crate) fn size(&self) -> usize {
        self.sort_position.len() + self.body.len() + 96
    }
}

/// The position after which the next page starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageBoundary {
    /// The sort position.
    pub sort_position: Vec<u8>,
    /// The index entry, if one was read.
    pub entry: Vec<u8>,
    /// The document's key.
    pub key: Vec<u8>,
}

/// A page of results.
#[derive(Debug)]
pub struct ResultPage {
    pub(crate) rows: Vec<PageRow>,
    /// Where the next page starts, if there is one.
    pub next: Option<PageBoundary>,
}

impl ResultPage {
    /// The number of rows.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The bodies in order.
    pub fn bodies(&self) -> impl Iterator<Item = &[u8]> {
        self.rows.iter().map(|row| row.body.as_slice())
    }

    /// Key, metadata and body of each row, in order.
    pub fn documents(&self) -> impl Iterator<Item = (&[u8], Meta, &[u8])> {
        self.rows.iter().map(|row| {
            let meta = Meta {
                version: row.version,
                created_ms: row.created_ms,
                updated_ms: row.updated_ms,
            };
            (row.key.as_slice(), meta, row.body.as_slice())
        })
    }

    /// Embeds into each document those that it refers to, as [`lookups::embed`] does. They may have
    /// at most `max` bytes together.
    pub fn embed<B: AsRef<[u8]>>(
        &mut self,
        lookups: &LookupFields,
        referenced: &[ReferencedDocuments<B>],
        max: usize,
    ) -> Result<(), DocumentRefusal> {
        let mut bytes = 0;
        for row in &mut self.rows {
            let embedded = lookups::embed(lookups, &row.body, referenced)?.into_bytes();
            bytes += embedded.len();
            row.embedded = Some(embedded);
            if bytes > max {
                let detail = "the documents and their lookups are too large together";
                return Err(DocumentRefusal::new("query_too_expensive", detail));
            }
        }
        Ok(())
    }

    /// The page as a JSON array of envelopes. Documents to which the projection cannot be applied
    /// are counted.
    pub fn render(
        &self,
        request: &SelectionRequest,
        projection: Option<&Projection>,
        form: Form,
        unevaluated: &mut UnevaluatedDocuments,
    ) -> String {
        let bytes: usize = self.rows.iter().map(|row| row.body.len() * 2 + 128).sum();
        let mut out = String::with_capacity(bytes);
        out.push('[');
        for (number, row) in self.rows.iter().enumerate() {
            if number > 0 {
                out.push(',');
            }
            let own = Document::trusted(&row.body);
            let document = Document::trusted(row.embedded.as_ref().unwrap_or(&row.body));
            let id = own.get("_id").unwrap_or(ValueRef::Null);
            let meta = Meta {
                version: row.version,
                created_ms: row.created_ms,
                updated_ms: row.updated_ms,
            };
            match projection {
                None => write(&mut out, meta, id, document, form),
                Some(projection) => {
                    let environment = EvaluationContext::at(request.now_ms);
                    let text = request.filter.text();
                    let score = text.map(|text| text.score(own, &environment.fuel));
                    let matched = Matched {
                        position: row.position,
                        text_score: score.and_then(Result::ok).flatten(),
                    };
                    let (shown, failure) = projection.apply_or_id(document, matched, &environment);
                    if let Some(failure) = failure {
                        unevaluated.note(&row.key, own, &failure, request.now_ms);
                    }
                    write(&mut out, meta, id, shown.as_ref(), form);
                }
            }
        }
        out.push(']');
        out
    }
}
