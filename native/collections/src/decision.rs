//! Decides the writes of a group: reads their rows, applies them in memory, and makes one batch of
//! the changes.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use rillbase_documents::changes::{ChangedDocument, GroupChanges};
use rillbase_documents::columns::row_us;
use rillbase_documents::entry::IndexEntry;
use rillbase_documents::outcome::WriteResult;
use rillbase_documents::plan::{WriteCollection, WritePlan, WriteRequest};
use rillbase_documents::stage::{LockedRow, LockedRows};
use rillbase_documents::unique::{OwnedKey, OwnedKeys, RequestedKey};
use rillbase_engine::{Millis, WriteBatch};
use rillbase_query::bson::Document;

use crate::claim::{ClaimRecord, ClaimedResult, CollectionClaim};
use crate::counters::encode_pair;
use crate::definition::{MoveStage, number_in_collection, number_in_database};
use crate::entry_changes::{ListChanges, StoredEntry};
use crate::error::{Error, Result};
use crate::format::{
    DocumentHead, EntryForm, decode_document, document_key, encode_document, entry_key,
};
use crate::store::{Collections, InstalledCollection, VersionFloor};
use crate::write::{CollectionWrite, WriteOutcome, WrittenResult};

/// The most bytes of the documents that a group may affect.
const MAX_ROWS_BYTES: usize = 64 << 20;
/// How many rows are read together, more once as many have less than this number of bytes.
const ROWS_AT_ONCE: usize = 16;
const FEW_BYTES: usize = 256 << 10;
/// How long the version of a deleted document is stored with its key.
pub(crate) const TOMBSTONE_MS: Millis = 24 * 3_600_000;

/// What a group does about a write.
enum WriteFate {
    /// It is decided with the plan, and recorded with its claim.
    Planned(Option<CollectionClaim>),
    /// Its result is recorded.
    Replayed(ClaimRecord),
    /// It cannot be decided.
    Failed(Error),
}

/// The collections of a group, and the writes that can be decided.
struct PlannedGroup {
    installed: Vec<Arc<InstalledCollection>>,
    plan: WritePlan,
    /// By write.
    fates: Vec<WriteFate>,
}

/// When documents were changed last, by key.
type UpdateTimes = HashMap<Vec<u8>, i64>;

/// What a group is decided with.
struct GroupRows {
    locked: LockedRows,
    /// By collection.
    updated_ms: Vec<UpdateTimes>,
    floors: Vec<VersionFloor>,
    now: Millis,
}

impl PlannedGroup {
    /// Removes the second half of its writes: their clients send them again.
    fn postpone_half(&mut self) {
        let mut remaining = self.plan.writes.len() / 2;
        self.plan.writes.truncate(remaining);
        for fate in &mut self.fates {
            if let WriteFate::Planned(_) = fate {
                if remaining == 0 {
                    *fate = WriteFate::Failed(Error::Postponed);
                } else {
                    remaining -= 1;
                }
            }
        }
    }
}

impl Collections {
    /// The batch of a group, unless it changes nothing, and the outcomes of its writes.
    pub(crate) fn decide(
        &self,
        writes: Vec<CollectionWrite>,
    ) -> Result<(Option<WriteBatch>, Vec<WriteOutcome>)> {
        let mut group = self.planned(writes)?;
        let rows = loop {
            match self.rows(&group) {
                Err(Error::TooLarge) if group.plan.writes.len() > 1 => group.postpone_half(),
                rows => break rows?,
            }
        };
        let changes = self.changes(&group, &rows.locked)?;
        let mut batch = self.batch(&group, &rows, &changes)?;
        let outcomes = self.outcomes((&mut batch, rows.now), group.fates, changes.results);
        Ok(((!batch.is_empty()).then_some(batch), outcomes))
    }

    /// The outcomes of a group's writes. Adds the claims of those that were decided to the batch.
    fn outcomes(
        &self,
        (batch, now): (&mut WriteBatch, Millis),
        fates: Vec<WriteFate>,
        results: Vec<Option<WriteResult>>,
    ) -> Vec<WriteOutcome> {
        let mut results = results.into_iter();
        let outcomes = fates.into_iter().map(|fate| match fate {
            WriteFate::Failed(failure) => Err(failure),
            WriteFate::Replayed(record) => Ok(WrittenResult::Claimed(ClaimedResult {
                is_replayed: true,
                record,
            })),
            WriteFate::Planned(claim) => {
                let result = results.next().flatten();
                let result = result.ok_or(Error::Malformed("the outcome of a write"))?;
                Ok(match claim {
                    None => WrittenResult::Decided(result),
                    Some(claim) => {
                        WrittenResult::Claimed(self.put_claim((&mut *batch, now), &claim, &result))
                    }
                })
            }
        });
        outcomes.collect()
    }

    fn planned(&self, writes: Vec<CollectionWrite>) -> Result<PlannedGroup> {
        let named = writes.iter().flat_map(|write| &write.collections);
        let numbers: BTreeSet<u64> = named.map(|collection| collection.number).collect();
        let installed: Vec<Arc<InstalledCollection>> = numbers
            .into_iter()
            .filter_map(|number| self.installed(number).ok())
            .collect();
        let (mut requests, mut fates) = (Vec::new(), Vec::<WriteFate>::new());
        for mut write in writes {
            let claim = write.claim.take();
            if let Some(claim) = &claim
                && let Some(fate) = self.fate_of_claim(claim, &fates)?
            {
                fates.push(fate);
                continue;
            }
            // A recorded result is replayed whatever has become of the collections.
            fates.push(match for_group(write, &installed) {
                Ok(request) => {
                    requests.push(request);
                    WriteFate::Planned(claim)
                }
                Err(failure) => WriteFate::Failed(failure),
            });
        }
        let collections = installed.iter().map(|collection| WriteCollection {
            id: id_of(collection.number),
            definition: collection.compiled.clone(),
        });
        Ok(PlannedGroup {
            plan: WritePlan {
                collections: collections.collect(),
                writes: requests,
            },
            installed,
            fates,
        })
    }

    /// The fate of a write by its claim, after those before it; `None` if it may be executed.
    fn fate_of_claim(
        &self,
        claim: &CollectionClaim,
        earlier: &[WriteFate],
    ) -> Result<Option<WriteFate>> {
        let has_key = |fate: &WriteFate| {
            let planned = match fate {
                WriteFate::Planned(planned) => planned.as_ref(),
                _ => None,
            };
            planned.is_some_and(|planned| planned.has_key_of(claim))
        };
        if earlier.iter().any(has_key) {
            return Ok(Some(WriteFate::Failed(Error::InProgress)));
        }
        let recorded = self.claim(claim.namespace, &claim.key)?;
        Ok(match claim.replay(recorded) {
            Ok(replayed) => replayed.map(WriteFate::Replayed),
            Err(failure) => Some(WriteFate::Failed(failure)),
        })
    }

    /// The rows that a group may affect.
    fn rows(&self, group: &PlannedGroup) -> Result<GroupRows> {
        let now = self.db.now();
        let (mut all, mut updated_ms, mut floors) = (Vec::new(), Vec::new(), Vec::new());
        let mut room = MAX_ROWS_BYTES;
        for (position, collection) in group.installed.iter().enumerate() {
            let documents = group.plan.keys(position, true);
            let count = documents.len();
            let (rows, times) = self.rows_of(collection.number, &documents, &mut room)?;
            // Only documents without a row continue after it.
            floors.push(if rows.len() < count {
                self.floor(collection.number, now)?
            } else {
                VersionFloor::default()
            });
            all.push(rows);
            updated_ms.push(times);
        }
        let locked = LockedRows {
            rows: all,
            floors: floors.iter().map(|floor| floor.version).collect(),
            now_ms: i64::try_from(now).unwrap_or(i64::MAX),
        };
        Ok(GroupRows {
            locked,
            updated_ms,
            floors,
            now,
        })
    }

    /// Reads rows as long as there is room for their bodies. Also returns when existing documents
    /// were changed last.
    fn rows_of(
        &self,
        collection: u64,
        documents: &[&[u8]],
        room: &mut usize,
    ) -> Result<(HashMap<Vec<u8>, LockedRow>, UpdateTimes)> {
        let keys = documents
            .iter()
            .map(|document| document_key(collection, document));
        let keys: Vec<Vec<u8>> = keys.collect();
        let (mut rows, mut updated_ms) = (HashMap::new(), HashMap::new());
        let (mut start, mut count) = (0, ROWS_AT_ONCE);
        while start < keys.len() {
            let end = keys.len().min(start + count);
            let keys = keys.get(start..end).unwrap_or_default();
            let stored = self
                .db
                .multi_get(&self.entries, keys.iter().map(Vec::as_slice), None)?;
            let read = documents.get(start..end).unwrap_or_default();
            let before = *room;
            for (document, value) in read.iter().zip(stored) {
                let Some(value) = value else {
                    continue;
                };
                let (head, body) = decode_document(&value)?;
                *room = room.checked_sub(body.len()).ok_or(Error::TooLarge)?;
                let row = LockedRow {
                    version: head.version,
                    body: (!head.is_tombstone).then(|| body.to_vec()),
                    created_us: row_us(head.created_ms),
                };
                rows.insert(document.to_vec(), row);
                updated_ms.insert(document.to_vec(), head.updated_ms);
            }
            start = end;
            // As long as they are small, more are read together.
            let are_small = before - *room < FEW_BYTES;
            count = if are_small { count * 4 } else { ROWS_AT_ONCE };
        }
        Ok((rows, updated_ms))
    }

    /// Decides a group. If documents would get keys of unique indexes that others have, it is
    /// decided again with these, until no further ones are found.
    fn changes(&self, group: &PlannedGroup, locked: &LockedRows) -> Result<GroupChanges> {
        // As for other operations of a transaction, its end decides: they may exchange keys.
        let changes = group.plan.apply(locked, &[], None);
        if !self.has_conflict(group, &changes)? {
            return Ok(changes);
        }
        let mut names = HashMap::new();
        for collection in &group.installed {
            let indexes = collection.definition.indexes.iter();
            for index in indexes.filter(|index| index.is_unique) {
                let number = number_in_database((collection.number, index.number));
                names.insert(number, index.name.clone());
            }
        }
        let mut owned = OwnedKeys {
            names,
            keys: Vec::new(),
        };
        let mut looked_up = HashSet::new();
        loop {
            let changes = group.plan.apply(locked, &[], Some(&owned));
            let mut is_disputed = false;
            for requested in &changes.requested {
                if looked_up.insert((requested.index, requested.key.clone())) {
                    let key = self.owned_key(group, locked.now_ms, requested)?;
                    let is_other = |key: &OwnedKey| key.document != requested.document;
                    is_disputed |= key.as_ref().is_some_and(is_other);
                    owned.keys.extend(key);
                }
            }
            if !is_disputed {
                return Ok(changes);
            }
        }
    }

    /// Whether two documents would have a key of a unique index.
    fn has_conflict(&self, group: &PlannedGroup, changes: &GroupChanges) -> Result<bool> {
        let mut owners = HashMap::new();
        for (collection, documents) in group.installed.iter().zip(&changes.documents) {
            for changed in documents {
                for entry in changed.entries.iter().filter(|entry| entry.enforced) {
                    let place = (collection.number, number_in_collection(entry.index));
                    let key = entry_key(place, EntryForm::Unique, &entry.key, &[]);
                    let stored = self.db.get(&self.entries, &key)?;
                    // Changed documents are in the order of their keys.
                    let is_unchanged = stored.is_some_and(|owner| {
                        let place = documents.binary_search_by(|other| (*other.key).cmp(&*owner));
                        place.is_err()
                    });
                    let earlier = owners.insert((entry.index, &entry.key), &changed.key);
                    if is_unchanged || earlier.is_some_and(|other| *other != changed.key) {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    /// A key of a unique index with the document that has it.
    fn owned_key(
        &self,
        group: &PlannedGroup,
        now_ms: i64,
        requested: &RequestedKey,
    ) -> Result<Option<OwnedKey>> {
        let Some(collection) = group.installed.get(requested.collection) else {
            return Ok(None);
        };
        let place = (collection.number, number_in_collection(requested.index));
        let key = entry_key(place, EntryForm::Unique, &requested.key, &[]);
        let Some(document) = self.db.get(&self.entries, &key)? else {
            return Ok(None);
        };
        let key = document_key(collection.number, &document);
        let hidden_from = match self.db.get(&self.entries, &key)? {
            None => Vec::new(),
            Some(value) => {
                let body = Document::trusted(decode_document(&value)?.1);
                let position = requested.collection;
                group.plan.hidden_from(position, body, now_ms)
            }
        };
        Ok(Some(OwnedKey {
            index: requested.index,
            key: requested.key.clone(),
            collection: requested.collection,
            document: document.to_vec(),
            hidden_from,
        }))
    }

    /// The batch of a group's changes.
    fn batch(
        &self,
        group: &PlannedGroup,
        rows: &GroupRows,
        changes: &GroupChanges,
    ) -> Result<WriteBatch> {
        let mut batch = WriteBatch::new();
        self.put_entries(&mut batch, group, rows, changes)?;
        let by_collection = || group.installed.iter().zip(&changes.documents);
        let is_atomic = has_atomic(&group.plan, changes);
        for (position, (collection, documents)) in by_collection().enumerate() {
            if documents.is_empty() {
                continue;
            }
            let number = collection.number;
            collection.usage.count_writes(documents.len() as u64);
            let size = rows.locked.rows.get(position);
            let size = size.map_or((0, 0), |rows| size_change(rows, documents));
            if size != (0, 0) {
                batch.merge(&self.counts, &number.to_be_bytes(), &encode_pair(size));
            }
            if let Some(floor) = rows.floors.get(position) {
                self.merge_floors(&mut batch, number, (*floor, rows.now));
            }
            for changed in documents {
                let head = DocumentHead {
                    is_atomic,
                    rules_version: collection.definition.rules_version,
                    created_ms: changes.created_ms(changed),
                    updated_ms: changes.now_ms,
                    ..DocumentHead::default()
                };
                self.put_document(&mut batch, number, changed, (head, rows.now));
                if collection.definition.move_stage.is_some() {
                    self.put_change(&mut batch, number, changed);
                }
            }
        }
        Ok(batch)
    }

    /// Changes the entries of indexes. Entries are removed before others are added: a document may
    /// take a key that another one of the group gives up.
    fn put_entries(
        &self,
        batch: &mut WriteBatch,
        group: &PlannedGroup,
        rows: &GroupRows,
        changes: &GroupChanges,
    ) -> Result<()> {
        let by_collection = || group.installed.iter().zip(&changes.documents);
        let mut lists = ListChanges::default();
        for ((collection, documents), times) in by_collection().zip(&rows.updated_ms) {
            for changed in documents {
                let updated_ms = times.get(&changed.key).copied().unwrap_or(0);
                for entry in collection.removed_entries(changed) {
                    match collection.stored_entry(entry, &changed.key, updated_ms) {
                        Some(StoredEntry::Single { key, value })
                            if !self.is_of_other(collection, entry, (&key, &value))? =>
                        {
                            batch.delete(&self.entries, &key);
                        }
                        Some(StoredEntry::Listed(listed)) => lists.remove(listed),
                        Some(StoredEntry::Single { .. }) | None => {}
                    }
                }
            }
        }
        for (collection, documents) in by_collection() {
            for changed in documents {
                for entry in collection.added_entries(changed) {
                    match collection.stored_entry(entry, &changed.key, changes.now_ms) {
                        Some(StoredEntry::Single { key, value }) => {
                            batch.put(&self.entries, &key, &value);
                        }
                        Some(StoredEntry::Listed(listed)) => lists.add(listed),
                        None => {}
                    }
                }
            }
        }
        self.put_lists(batch, lists)
    }

    /// Whether an entry that a document gives up is another one's: while a unique index is being
    /// built, this one had none yet.
    pub(crate) fn is_of_other(
        &self,
        collection: &InstalledCollection,
        entry: &IndexEntry,
        (key, value): (&[u8], &[u8]),
    ) -> Result<bool> {
        let index = collection
            .definition
            .index(number_in_collection(entry.index));
        let is_shared = index.is_some_and(|index| {
            !index.is_ready && index.form(entry.enforced) == EntryForm::Unique
        });
        if !is_shared {
            return Ok(false);
        }
        let owner = self.db.get(&self.entries, key)?;
        Ok(owner.is_none_or(|owner| *owner != *value))
    }

    fn put_document(
        &self,
        batch: &mut WriteBatch,
        collection: u64,
        changed: &ChangedDocument,
        (head, now): (DocumentHead, Millis),
    ) {
        let head = DocumentHead {
            is_tombstone: changed.body.is_none(),
            version: changed.version,
            ordinal: u32::try_from(batch.len()).unwrap_or(u32::MAX),
            ..head
        };
        let key = document_key(collection, &changed.key);
        if let Some(body) = &changed.body {
            let value = encode_document(&head, body.as_bytes());
            batch.put(&self.entries, &key, &value);
        } else {
            let id = changed.deleted_id.as_deref().unwrap_or_default();
            let value = encode_document(&head, id);
            let expiry = now.saturating_add(TOMBSTONE_MS);
            batch.put_expiring(&self.entries, &key, &value, expiry);
            self.raise_floor(batch, collection, (changed.version, expiry));
        }
    }
}

/// A write's request with targets that refer to the collections of its group. Fails if one of its
/// collections does not exist, or has another definition than that with which it was made.
fn for_group(
    write: CollectionWrite,
    installed: &[Arc<InstalledCollection>],
) -> Result<WriteRequest> {
    let mut positions = Vec::with_capacity(write.collections.len());
    for collection in &write.collections {
        let position = installed
            .binary_search_by_key(&collection.number, |installed| installed.number)
            .map_err(|_| Error::NoCollection)?;
        let definition = installed
            .get(position)
            .map(|installed| &installed.definition);
        let version = definition.map_or(0, |definition| definition.write_version);
        if version != collection.write_version {
            return Err(Error::Stale { installed: version });
        }
        if definition.is_some_and(|definition| definition.move_stage == Some(MoveStage::Sealed)) {
            return Err(Error::Postponed);
        }
        positions.push(position);
    }
    let mut request = write.request;
    for target in &mut request.targets {
        let position = positions.get(target.collection);
        target.collection = *position.ok_or(Error::NoCollection)?;
    }
    Ok(request)
}

/// Whether a write changed several documents as one. Then the others of its group, which become
/// visible at the same time, are counted to them.
fn has_atomic(plan: &WritePlan, changes: &GroupChanges) -> bool {
    let mut writes = plan.writes.iter().zip(&changes.results);
    writes.any(|(write, result)| {
        let is_done = matches!(result, Some(Ok(_)));
        is_done && write.atomic && write.operations.as_slice().len() > 1
    })
}

/// By how many documents and bytes a collection grows.
fn size_change(rows: &HashMap<Vec<u8>, LockedRow>, documents: &[ChangedDocument]) -> (i64, i64) {
    let length =
        |body: Option<usize>| body.map_or(0, |length| i64::try_from(length).unwrap_or(i64::MAX));
    documents.iter().fold((0, 0), |size, changed| {
        let row = rows.get(&changed.key);
        let before = row.and_then(|row| row.body.as_ref()).map(Vec::len);
        let after = changed.body.as_ref().map(|body| body.as_bytes().len());
        (
            size.0 + i64::from(after.is_some()) - i64::from(before.is_some()),
            size.1 + length(after) - length(before),
        )
    })
}

/// The collection's number as an id.
fn id_of(number: u64) -> [u8; 16] {
    let mut id = [0; 16];
    let (_, tail) = id.split_at_mut(8);
    tail.copy_from_slice(&number.to_be_bytes());
    id
}
