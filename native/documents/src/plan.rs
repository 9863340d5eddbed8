//! The intent of a group of writes, before the documents are known.
//!
//! A group is one transaction. First it locks the rows of the documents that
//! it may affect ([`WritePlan::keys`]), then it decides everything in memory
//! ([`WritePlan::apply`]), then it writes the changes.

use std::collections::BTreeSet;
use std::sync::Arc;

use rillbase_query::bson::Document;
use rillbase_query::filter::Filter;

use crate::definition::CollectionDefinition;
use crate::operation::{DocumentOperation, allows};
use crate::operations::DocumentOperations;
use crate::precondition::Precondition;
use crate::refusal::DocumentRefusal;

/// A collection that the group writes to.
#[derive(Debug, Clone)]
pub struct WriteCollection {
    /// Its id.
    pub id: [u8; 16],
    /// Its definition.
    pub definition: Arc<CollectionDefinition>,
}

/// What a collection's access rules allow a caller, with its claims. An action without a filter is
/// denied.
#[derive(Debug, Clone, Default)]
pub struct AccessFilters {
    /// What it may read.
    pub read: Option<Arc<Filter>>,
    /// What it may create.
    pub create: Option<Arc<Filter>>,
    /// What it may change, before and after.
    pub update: Option<Arc<Filter>>,
    /// What it may delete.
    pub delete: Option<Arc<Filter>>,
}

/// A collection by the name that operations use.
#[derive(Debug, Clone)]
pub struct NamedTarget {
    /// The name; empty for operations that name none.
    pub name: String,
    /// The collection's number among those of the group.
    pub collection: usize,
    /// The caller's access rules; `None` if there are none.
    pub access: Option<AccessFilters>,
}

/// Operations of one caller with a common response.
#[derive(Debug, Clone)]
pub struct WriteRequest {
    /// The operations.
    pub operations: DocumentOperations,
    /// The affected collections.
    pub targets: Vec<NamedTarget>,
    /// Whether all or none are applied.
    pub atomic: bool,
    /// The precondition of each document.
    pub expected: Precondition,
}

impl WriteRequest {
    /// The collection of an operation.
    pub fn target(&self, operation: &DocumentOperation) -> Result<&NamedTarget, DocumentRefusal> {
        let name = operation.collection.as_deref().unwrap_or_default();
        let mut targets = self.targets.iter();
        targets
            .find(|target| target.name == name)
            .ok_or_else(|| DocumentRefusal::new("not_found", "The collection does not exist."))
    }
}

/// A group of writes.
#[derive(Debug)]
pub struct WritePlan {
    /// The collections, in the global lock order.
    pub collections: Vec<WriteCollection>,
    /// The writes, in the order in which they are applied.
    pub writes: Vec<WriteRequest>,
}

impl WritePlan {
    /// The writes whose callers may not read a document of a collection.
    #[must_use]
    pub fn hidden_from(
        &self,
        collection: usize,
        document: Document<'_>,
        now_ms: i64,
    ) -> Vec<usize> {
        let may_read = |target: &NamedTarget| {
            let read = target.access.as_ref().map(|access| access.read.as_deref());
            read.is_none_or(|read| read.is_some_and(|read| allows(read, document, now_ms)))
        };
        let writes = self.writes.iter().enumerate();
        let hidden = writes.filter(|(_, write)| {
            let mut targets = write.targets.iter();
            targets.any(|target| target.collection == collection && !may_read(target))
        });
        hidden.map(|(number, _)| number).collect()
    }

    /// The keys of the documents in a collection that may exist, in the global lock order.
    ///
    /// A document whose `_id` was just created here does not exist, which the insert itself proves;
    /// with `also_new` it is included all the same.
    #[must_use]
    pub fn keys(&self, collection: usize, also_new: bool) -> Vec<&[u8]> {
        let mut keys = BTreeSet::new();
        for write in &self.writes {
            for operation in write.operations.as_slice().iter().flatten() {
                let here = write
                    .target(operation)
                    .is_ok_and(|target| target.collection == collection);
                if here && (also_new || !operation.is_new) {
                    keys.insert(operation.key.as_slice());
                }
            }
        }
        keys.into_iter().collect()
    }
}
