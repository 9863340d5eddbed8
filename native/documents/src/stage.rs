//! Writes applied in order to locked rows in memory.
//!
//! A pure function of rows, operations and a time. A rejected write has no effect on the others.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use rillbase_query::bson::{Document, DocumentBuf};
use rillbase_query::error::ParseLocation;
use rillbase_query::filter::Filter;

use crate::changes::{ChangedDocument, GroupChanges};
use crate::columns::unix_ms;
use crate::entry::IndexEntry;
use crate::id::key_hash;
use crate::operation::{
    DocumentAction, DocumentOperation, WriteRules, allows, check_rules, forbidden_by_rule,
    id_document,
};
use crate::outcome::{DocumentChange, Outcome, WriteResult};
use crate::plan::{AccessFilters, NamedTarget, WriteCollection, WritePlan, WriteRequest};
use crate::precondition::Precondition;
use crate::refusal::DocumentRefusal;
use crate::unique::{KeyOwners, OwnedKeys, RequestedKey, duplicate_key, enforced};

/// A document as it was locked.
#[derive(Debug, Clone)]
pub struct LockedRow {
    /// Its version.
    pub version: i64,
    /// BSON; `None` for a tombstone.
    pub body: Option<Vec<u8>>,
    /// When it was created, in microseconds since 2000.
    pub created_us: i64,
}

impl LockedRow {
    fn document(&self) -> Option<Document<'_>> {
        self.body.as_deref().map(Document::trusted)
    }
}

/// The rows that a group locked.
#[derive(Debug, Default)]
pub struct LockedRows {
    /// By collection, rows by key.
    pub rows: Vec<HashMap<Vec<u8>, LockedRow>>,
    /// By collection, the version after which missing documents continue.
    pub floors: Vec<i64>,
    /// The transaction's time, in milliseconds since 1970.
    pub now_ms: i64,
}

type Documents<'p> = HashMap<&'p [u8], ChangedDocument>;

struct WriteStaging<'p> {
    plan: &'p WritePlan,
    locked: &'p LockedRows,
    /// By collection, the documents as the group leaves them.
    documents: Vec<Documents<'p>>,
    /// The documents that the current write has replaced, for undoing it.
    replaced: Vec<(usize, &'p [u8], Option<ChangedDocument>)>,
    /// Once keys of unique indexes have been looked up.
    unique: Option<UniqueKeys<'p>>,
}

struct UniqueKeys<'p> {
    owned: &'p OwnedKeys,
    owners: KeyOwners,
    requested: Vec<RequestedKey>,
}

/// A document within the group; the default does not exist.
#[derive(Default)]
struct StagedDocument<'s> {
    document: Option<Document<'s>>,
    version: i64,
    row: Option<&'s LockedRow>,
    known: Option<&'s ChangedDocument>,
}

impl WritePlan {
    /// Applies the writes to the rows that were found, except those that
    /// `skipped` lists. `owned` are the keys of unique indexes that have been looked up.
    #[must_use]
    pub fn apply(
        &self,
        locked: &LockedRows,
        skipped: &[usize],
        owned: Option<&OwnedKeys>,
    ) -> GroupChanges {
        let mut stage = WriteStaging::new(self, locked, owned);
        let results = self
            .writes
            .iter()
            .enumerate()
            .map(|(number, write)| (!skipped.contains(&number)).then(|| stage.write(number, write)))
            .collect();
        stage.finish(results)
    }
}

impl<'p> WriteStaging<'p> {
    fn new(plan: &'p WritePlan, locked: &'p LockedRows, owned: Option<&'p OwnedKeys>) -> Self {
        let unique = owned.map(|owned| UniqueKeys {
            owned,
            owners: owners(plan, locked, owned),
            requested: Vec::new(),
        });
        Self {
            plan,
            locked,
            documents: plan.collections.iter().map(|_| HashMap::new()).collect(),
            replaced: Vec::new(),
            unique,
        }
    }

    /// Applies a write; an atomic one completely or not at all.
    fn write(&mut self, of_write: usize, write: &'p WriteRequest) -> WriteResult {
        let operations = write.operations.as_slice();
        let mut outcomes = Vec::with_capacity(operations.len());
        self.replaced.clear();
        let unique = self.unique.as_ref().filter(|_| write.atomic);
        let owners_before = unique.map(|unique| unique.owners.clone());
        for (number, operation) in operations.iter().enumerate() {
            let outcome = match operation {
                Ok(operation) => self.operation(of_write, write, operation),
                Err(refusal) => Err(refusal.clone()),
            };
            match outcome {
                Err(refusal) if write.atomic => {
                    self.put_back();
                    if let (Some(unique), Some(before)) = (&mut self.unique, owners_before) {
                        unique.owners = before;
                    }
                    return Err(if operations.len() > 1 {
                        refusal.inside(&ParseLocation::root().key("operations").index(number))
                    } else {
                        refusal
                    });
                }
                outcome => outcomes.push(outcome),
            }
        }
        Ok(outcomes.into())
    }

    fn finish(self, results: Vec<Option<WriteResult>>) -> GroupChanges {
        let documents = self.documents.into_iter().map(|documents| {
            let mut documents: Vec<ChangedDocument> = documents.into_values().collect();
            documents.sort_unstable_by(|a, b| a.key.cmp(&b.key));
            documents
        });
        GroupChanges {
            collections: self.plan.collections.iter().map(|each| each.id).collect(),
            documents: documents.collect(),
            results,
            requested: self.unique.map_or_else(Vec::new, |unique| unique.requested),
            now_ms: self.locked.now_ms,
        }
    }

    fn put_back(&mut self) {
        for (collection, key, before) in mem::take(&mut self.replaced).into_iter().rev() {
            if let Some(documents) = self.documents.get_mut(collection) {
                match before {
                    Some(before) => documents.insert(key, before),
                    None => documents.remove(key),
                };
            }
        }
    }

    fn operation(
        &mut self,
        of_write: usize,
        write: &WriteRequest,
        operation: &'p DocumentOperation,
    ) -> Outcome {
        let target = write.target(operation)?;
        let collection = self.collection(target)?;
        let access = target.access.as_ref();
        let current = self.current(target.collection, &operation.key);
        let is_hidden = self.is_hidden(access, current.document);
        // A document that the caller may not read is treated as missing until the rules are
        // checked.
        let current = if is_hidden {
            StagedDocument::default()
        } else {
            current
        };
        let before = current.document;
        write.expected.check(current.version, before.is_some())?;
        if let Some(version) = operation.if_version {
            let expected = Precondition {
                versions: Some(vec![version]),
                ..Precondition::default()
            };
            expected.check(current.version, before.is_some())?;
        }
        let rules = rules(access, operation, before.is_some())?;
        let after = operation.after(before, self.locked.now_ms)?;
        let view = after.as_ref().map(DocumentBuf::as_ref);
        check_rules(before, view, self.locked.now_ms, rules)?;
        let changed = Self::changed(collection, operation, &current, after)?;
        if is_hidden {
            // Its `_id` is taken, which is reported like a document that a rule rejects.
            return Err(forbidden_by_rule());
        }
        let created = before.is_none();
        self.request_keys(target.collection, &changed);
        self.check_unique(of_write, target, &changed)?;
        let change = DocumentChange {
            id: operation.id.clone(),
            version: changed.version,
            body: changed.body.clone(),
            created_ms: changed.created_us.map_or(self.locked.now_ms, unix_ms),
            updated_ms: self.locked.now_ms,
            created,
        };
        self.put(target.collection, &operation.key, changed, write.atomic);
        Ok(change)
    }

    fn request_keys(&mut self, collection: usize, changed: &ChangedDocument) {
        if let Some(unique) = &mut self.unique {
            let keys = enforced(&changed.entries).map(|entry| RequestedKey {
                index: entry.index,
                key: entry.key.clone(),
                collection,
                document: changed.key.clone(),
            });
            unique.requested.extend(keys);
        }
    }

    /// Rejects a document with a key of a unique index that another one has. A caller who may not
    /// read that one learns only that a rule rejects the document.
    fn check_unique(
        &self,
        of_write: usize,
        target: &NamedTarget,
        changed: &ChangedDocument,
    ) -> Result<(), DocumentRefusal> {
        let Some(unique) = &self.unique else {
            return Ok(());
        };
        let mut conflicts = unique.owners.conflicts(changed).peekable();
        if conflicts.peek().is_none() {
            return Ok(());
        }
        let mut names = Vec::new();
        for (index, owner) in conflicts {
            let document = self.current(target.collection, &owner.document).document;
            if owner.hidden_from.contains(&of_write)
                || self.is_hidden(target.access.as_ref(), document)
            {
                return Err(forbidden_by_rule());
            }
            names.extend(unique.owned.names.get(&index).map(String::as_str));
        }
        Err(duplicate_key(names.into_iter()))
    }

    /// Whether a document exists that the caller may not read. If the rule cannot be evaluated, it
    /// may not be read.
    fn is_hidden(&self, access: Option<&AccessFilters>, document: Option<Document<'_>>) -> bool {
        let (Some(access), Some(document)) = (access, document) else {
            return false;
        };
        let read = access.read.as_deref();
        !read.is_some_and(|read| allows(read, document, self.locked.now_ms))
    }

    fn collection(&self, target: &NamedTarget) -> Result<&'p WriteCollection, DocumentRefusal> {
        let plan = self.plan;
        plan.collections
            .get(target.collection)
            .ok_or_else(|| DocumentRefusal::new("not_found", "The collection does not exist."))
    }

    fn current(&self, collection: usize, key: &[u8]) -> StagedDocument<'_> {
        let known = self.documents.get(collection).and_then(|all| all.get(key));
        let row = self
            .locked
            .rows
            .get(collection)
            .and_then(|all| all.get(key));
        let (document, version) = match (known, row) {
            (Some(known), _) => (known.document(), known.version),
            (None, Some(row)) => (row.document(), row.version),
            (None, None) => (None, self.floor(collection)),
        };
        StagedDocument {
            document,
            version,
            row,
            known,
        }
    }

    fn floor(&self, collection: usize) -> i64 {
        self.locked.floors.get(collection).copied().unwrap_or(0)
    }

    /// The document as an operation leaves it.
    fn changed(
        collection: &WriteCollection,
        operation: &DocumentOperation,
        current: &StagedDocument<'_>,
        after: Option<DocumentBuf>,
    ) -> Result<ChangedDocument, DocumentRefusal> {
        let definition = &collection.definition;
        let view = after.as_ref().map(DocumentBuf::as_ref);
        if let Some(view) = view {
            definition.check(view)?;
        }
        let entries_of =
            |document: Option<Document<'_>>| -> Result<Vec<IndexEntry>, DocumentRefusal> {
                document.map_or(Ok(Vec::new()), |document| definition.entries(document))
            };
        let old = match current.known {
            Some(known) => known.old.clone(),
            None => entries_of(current.document)?,
        };
        let entries = entries_of(view)?;
        let deleted_id = after
            .is_none()
            .then(|| id_document(operation.id.as_ref()).into_bytes());
        Ok(ChangedDocument {
            key: operation.key.clone(),
            key_hash: key_hash(&operation.key),
            version: current.version.saturating_add(1),
            body: after.map(Arc::new),
            deleted_id,
            created_us: Self::created_us(current),
            has_row: current.row.is_some(),
            old,
            entries,
        })
    }

    /// When the document was created; `None` for now, even if it existed before.
    fn created_us(current: &StagedDocument<'_>) -> Option<i64> {
        match (current.known, current.row) {
            (Some(known), _) if known.body.is_some() => known.created_us,
            (None, Some(row)) if row.body.is_some() => Some(row.created_us),
            _ => None,
        }
    }

    fn put(&mut self, collection: usize, key: &'p [u8], changed: ChangedDocument, atomic: bool) {
        if let Some(documents) = self.documents.get_mut(collection) {
            if let Some(unique) = &mut self.unique {
                let staged = documents.get(key).map(|staged| staged.entries.as_slice());
                unique
                    .owners
                    .change(staged.unwrap_or(&changed.old), &changed);
            }
            let before = documents.insert(key, changed);
            if atomic {
                self.replaced.push((collection, key, before));
            }
        }
    }
}

/// Who has which keys of unique indexes before the group: the locked documents, and those that were
/// looked up, unless they are among the locked ones and have changed since.
fn owners(plan: &WritePlan, locked: &LockedRows, owned: &OwnedKeys) -> KeyOwners {
    let mut owners = KeyOwners::default();
    for (collection, rows) in plan.collections.iter().zip(&locked.rows) {
        for (key, row) in rows {
            let entries = row
                .document()
                .map(|body| collection.definition.entries(body));
            if let Some(Ok(entries)) = entries {
                owners.add(key, &[], enforced(&entries));
            }
        }
    }
    for key in &owned.keys {
        let rows = locked.rows.get(key.collection);
        if !rows.is_some_and(|rows| rows.contains_key(&key.document)) {
            let entry = IndexEntry {
                index: key.index,
                key: key.key.clone(),
                ordering: true,
                enforced: true,
            };
            owners.add(&key.document, &key.hidden_from, [&entry]);
        }
    }
    owners
}

/// The rules to check for an operation, by whether the document exists for the caller.
fn rules<'a>(
    access: Option<&'a AccessFilters>,
    operation: &DocumentOperation,
    exists: bool,
) -> Result<WriteRules<'a>, DocumentRefusal> {
    let Some(access) = access else {
        return Ok(WriteRules::default());
    };
    let inserts = matches!(operation.action, DocumentAction::Insert(_));
    let mut rules = WriteRules::default();
    if inserts || (!exists && operation.upsert) {
        rules.create = Some(required(access.create.as_deref(), "create")?);
    } else if !exists {
        return Err(DocumentRefusal::new(
            "not_found",
            "The document does not exist.",
        ));
    } else if matches!(operation.action, DocumentAction::Delete(_)) {
        rules.delete = Some(required(access.delete.as_deref(), "delete")?);
    } else {
        rules.update = Some(required(access.update.as_deref(), "update")?);
    }
    Ok(rules)
}

fn required<'a>(filter: Option<&'a Filter>, action: &str) -> Result<&'a Filter, DocumentRefusal> {
    filter.ok_or_else(|| {
        let detail = format!("The collection's access rules do not let you {action} here.");
        DocumentRefusal::new("forbidden_by_rule", detail)
    })
}
