//! Documents that exist before the run and move between groups: each write moves one of them to
//! another group, so that two rows change.

use rillbase_documents::id::key_hash;
use rillbase_live::message::{QueryDefinition, ResultRow};
use rillbase_query::bson::{DocumentWriter, ValueRef};
use rillbase_query::ejson::parse_document;

use crate::Fallible;
use crate::options::LoadOptions;
use crate::workload::{ExpectedWrite, WorkloadRandom, hash, plain};

/// See the module. Queries share documents and groups equally.
pub(crate) struct GroupedDocuments {
    queries: u64,
    documents: u64,
    /// The number of groups of a query.
    groups: u64,
}

impl GroupedDocuments {
    pub(crate) fn make(options: &LoadOptions) -> Self {
        let queries = (options.queries as u64).max(1);
        Self {
            queries,
            documents: options.documents.max(1),
            groups: (options.groups / queries).max(1),
        }
    }

    pub(crate) fn definition(number: u64) -> Fallible<QueryDefinition> {
        let filter = parse_document(format!(r#"{{"q":{number}}}"#).as_bytes())?;
        let group = parse_document(
            br#"{"by":["v"],"measures":{"count":{"op":"count"},"total":{"op":"sum","field":"n"},
                "least":{"op":"min","field":"n"}}}"#,
        )?;
        Ok(QueryDefinition {
            filter: filter.as_bytes().into(),
            group: group.as_bytes().into(),
            sorted: true,
            ..plain(hash(number), number)
        })
    }

    /// The documents of a query before the run.
    pub(crate) fn rows(&self, number: u64) -> Vec<ResultRow> {
        let step = usize::try_from(self.queries).unwrap_or(usize::MAX);
        let documents = (number..self.documents).step_by(step);
        let rows = documents.map(|document| ResultRow {
            key: id(document).as_bytes().into(),
            version: 1,
            created_ms: 0,
            updated_ms: 0,
            body: self.body(document, 1).into(),
        });
        rows.collect()
    }

    /// The next version of a document, and the number of rows that it changes.
    pub(crate) fn write(&self, number: u64) -> ExpectedWrite {
        // Consecutive writes change unrelated documents.
        let document = number.wrapping_mul(2_147_483_647) % self.documents;
        let version = 2 + number / self.documents;
        let moves = self.group(document, version) != self.group(document, version - 1);
        let id = id(document);
        ExpectedWrite {
            version,
            partition: key_hash(id.as_bytes()).unsigned_abs().into(),
            body: self.body(document, version),
            expected: if moves { 2 } else { 1 },
            id,
        }
    }

    fn group(&self, document: u64, version: u64) -> u64 {
        WorkloadRandom(document << 20 | version).below(self.groups)
    }

    fn body(&self, document: u64, version: u64) -> Vec<u8> {
        let number = |number: u64| ValueRef::Int64(number.cast_signed());
        let mut body = DocumentWriter::with_capacity(96);
        body.append("_id", ValueRef::String(&id(document)));
        body.append("q", number(document % self.queries));
        body.append("v", number(self.group(document, version)));
        // Unique to the version, so that rows always differ.
        body.append("n", number(document * 1_000 + version));
        body.finish()
    }
}

fn id(document: u64) -> String {
    format!("document {document}")
}
