//! The rows of a query as they are shown, from the documents of its registration.

use rillbase_documents::refusal::DocumentRefusal;

use crate::message::{Foreign, QueryDefinition, ResultRow};
use crate::{groups, lookups};

/// The rows of a query in order: documents, documents with others, or rows that stand for groups of
/// them. For groups, offset and limit are still to be applied.
pub fn rows(
    query: &QueryDefinition,
    documents: Vec<ResultRow>,
    foreign: &[Foreign],
) -> Result<Vec<ResultRow>, DocumentRefusal> {
    if let Some(group) = groups::group_of(query)? {
        return groups::rows(query, &group, &documents);
    }
    match lookups::join_of(query)? {
        Some(join) => lookups::rows(&join, &documents, foreign),
        None => Ok(documents),
    }
}
