//! Data and filters: documents stored as BSON, which clients see as Extended JSON or as BSON.

use rillbase_query::bson::Document;
use rillbase_query::ejson::{self, Form};

use crate::refusal::Result;
use crate::resp::ReplyWriter;

/// The format of documents on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Format {
    #[default]
    Json,
    Bson,
}

/// A document from Extended JSON.
pub(crate) fn from_json(text: &[u8]) -> Result<Vec<u8>> {
    Ok(ejson::parse_document(text)?.into_bytes())
}

/// A document from its bytes.
pub(crate) fn from_bson(bytes: &[u8]) -> Result<Vec<u8>> {
    Document::parse(bytes)?;
    Ok(bytes.to_vec())
}

/// Writes a document; empty bytes stand for none.
pub(crate) fn write(reply: &mut ReplyWriter<'_>, bytes: &[u8], format: Format) {
    if bytes.is_empty() {
        return reply.null();
    }
    match (format, Document::parse(bytes)) {
        (Format::Json, Ok(document)) => {
            reply.text(&ejson::document_to_string(document, Form::Relaxed));
        }
        _ => reply.bulk(bytes),
    }
}
