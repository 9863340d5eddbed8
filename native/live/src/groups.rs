//! Rows that stand for groups of documents.

use std::sync::Arc;

use rillbase_documents::refusal::DocumentRefusal;
use rillbase_query::bson::Document;
use rillbase_query::error::ParseLocation;
use rillbase_query::filter::Filter;
use rillbase_query::group::{GroupDefinition, GroupRow, GroupTable};

use crate::message::{QueryDefinition, ResultRow};
use crate::sort_order::SortOrder;

/// How a query groups documents; `None` if it does not.
pub fn group_of(query: &QueryDefinition) -> Result<Option<Arc<GroupDefinition>>, DocumentRefusal> {
    if !query.is_grouped() {
        return Ok(None);
    }
    let document = Document::parse(&query.group)?;
    let root = ParseLocation::root();
    let group = GroupDefinition::parse(rillbase_query::bson::ValueRef::Document(document), &root)?;
    Ok(Some(Arc::new(group)))
}

/// A group's row, as it is reported.
pub(crate) fn row(shown: &GroupRow) -> ResultRow {
    ResultRow::of_group(Arc::clone(&shown.key), shown.body.as_bytes().into())
}

/// The rows of a query that groups, in order, from all documents that match; offset and limit are
/// still to be applied.
pub(crate) fn rows(
    query: &QueryDefinition,
    group: &Arc<GroupDefinition>,
    documents: &[ResultRow],
) -> Result<Vec<ResultRow>, DocumentRefusal> {
    let mut groups = GroupTable::new(Arc::clone(group));
    for document in documents {
        // Documents that cannot be grouped are omitted, as sort nodes omit them.
        if let Ok(share) = group.share(Document::trusted(&document.body)) {
            groups.add(share);
        }
    }
    let order = SortOrder::parse(query, Filter::everything())?;
    let rows = groups.rows().filter_map(|shown| {
        let row = row(&shown);
        Some((order.sort_position(&row)?, row))
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}
