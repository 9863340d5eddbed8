//! What a group of writes wants done, before anything is known of the documents.
//!
//! A group is one transaction. First it locks the rows of the documents that
//! it may find ([`WritePlan::keys`]), then it decides everything in memory
//! ([`WritePlan::apply`]), then it writes the changes.

use std::collections::BTreeSet;
use std::sync::Arc;

use rillbase_query::filter::Filter;

use crate::definition::CollectionDefinition;
use crate::operation::DocumentOperation;
use crate::operations::DocumentOperations;
use crate::precondition::Precondition;
use crate::refusal::DocumentRefusal;

/// A collection that the group writes to.
#[derive(Debug, Clone)]
pub struct WriteCollection {
    /// Its id.
    pub id: [u8; 16],
    /// What it prescribes.
    pub definition: Arc<CollectionDefinition>,
}

/// What a collection's access rules let a caller do, with its claims. An action
/// without a filter is denied.
#[derive(Debug, Clone, Default)]
pub struct AccessFilters {
    /// What it may see.
    pub read: Option<Arc<Filter>>,
    /// What it may make.
    pub create: Option<Arc<Filter>>,
    /// What it may change, before and after.
    pub update: Option<Arc<Filter>>,
    /// What it may remove.
    pub delete: Option<Arc<Filter>>,
}

/// A collection by the name that operations use.
#[derive(Debug, Clone)]
pub struct NamedTarget {
    /// The name; empty for operations that name none.
    pub name: String,
    /// The collection's number among those of the group.
    pub collection: usize,
    /// The rules that bind the caller; none: no rule does.
    pub access: Option<AccessFilters>,
}

/// Operations of one caller that are answered together.
#[derive(Debug, Clone)]
pub struct WriteRequest {
    /// What is to be done.
    pub operations: DocumentOperations,
    /// The collections concerned.
    pub targets: Vec<NamedTarget>,
    /// Whether all or none are done.
    pub atomic: bool,
    /// What is expected of each document.
    pub expected: Precondition,
}

impl WriteRequest {
    /// Where an operation goes.
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
    /// The collections, in the order in which everybody locks them.
    pub collections: Vec<WriteCollection>,
    /// The writes, in the order in which they are done.
    pub writes: Vec<WriteRequest>,
}

impl WritePlan {
    /// The keys of the documents in a collection that may be there, in the order
    /// in which everybody locks them.
    ///
    /// A document whose `_id` was just made here is not there, which the insert
    /// itself proves; with `also_new` it is looked for all the same.
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
