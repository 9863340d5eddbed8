//! Views: aggregates that follow documents. The contribution of each document is stored under its
//! key, with its version, so that it can be retracted when the document changes.
//!
//! One write contains the retraction, the new contribution, the stored state of the document, and
//! the position of the partition. So a change is counted once, however often it is sent.
//!
//! ```text
//! document := generation{8} 'd' key → version{signed} [contribution]
//! position := generation{8} 'p' partition → text
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use rillbase_binary_format::{ByteReader, ByteWriter as _, ReadResult};
use rillbase_engine::WriteBatch;
use rillbase_query::bson::{Document, ValueRef};
use rillbase_query::ejson::{self, Form};

use crate::catalog::AggregateEntry;
use crate::contribution::Contribution;
use crate::definition::ContributionSource;
use crate::deltas::Deltas;
use crate::error::{AggregateErrorCode, Error, Result, malformed};
use crate::fields::Fields;
use crate::store::Aggregates;

const MAX_TEXT_BYTES: usize = 256;

/// A change of a document.
#[derive(Debug, Clone)]
pub struct ViewChange {
    /// The document's key, as canonical JSON.
    key: Vec<u8>,
    version: i64,
    /// Its contribution; `None` if there is none any more.
    contribution: Option<Contribution>,
}

/// Changes of one partition, applied together.
#[derive(Debug, Clone)]
pub struct Apply {
    pub(crate) aggregate: Arc<AggregateEntry>,
    generation: u64,
    partition: String,
    /// The position of the partition after these changes.
    position: Option<(String, PartitionPosition)>,
    changes: Vec<ViewChange>,
}

/// A position in a stream: milliseconds and number, or a number.
type PartitionPosition = (u64, u64);

fn refuse(index: usize, pointer: &str, detail: &str) -> Error {
    Error::at(AggregateErrorCode::BadChange, pointer, detail).of_event(index)
}

fn parse_position(text: &str) -> Option<PartitionPosition> {
    let (high, low) = text.split_once('-').unwrap_or((text, "0"));
    Some((high.parse().ok()?, low.parse().ok()?))
}

impl Apply {
    /// Parses changes from JSON; the position `-` stays unchanged.
    pub fn read<'a>(
        aggregate: &Arc<AggregateEntry>,
        generation: u64,
        (partition, position): (&str, &str),
        changes: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Self> {
        let built = aggregate.generation(generation)?;
        if built.definition.source != ContributionSource::View {
            let detail = "this aggregate takes events, and does not follow a collection";
            return Err(Error::new(AggregateErrorCode::BadChange, detail));
        }
        if partition.len() > MAX_TEXT_BYTES {
            let detail = "a partition may have at most 256 bytes";
            return Err(Error::new(AggregateErrorCode::BadChange, detail));
        }
        let position = match position {
            "-" => None,
            text => {
                let detail = "a position is such as 1526919030474-55, or a number, or -";
                let position = parse_position(text)
                    .ok_or_else(|| Error::new(AggregateErrorCode::BadChange, detail))?;
                Some((text.to_owned(), position))
            }
        };
        let read = |(index, json): (usize, &[u8])| {
            let parsed = ejson::parse_document(json);
            let parsed = parsed.map_err(|error| refuse(index, &error.pointer, &error.detail))?;
            ViewChange::read(parsed.as_ref(), index, |row| {
                Contribution::of(&built.definition, Fields::Document(row), 0)
            })
        };
        let changes: Result<Vec<ViewChange>> = changes.enumerate().map(read).collect();
        Ok(Self {
            aggregate: Arc::clone(aggregate),
            generation,
            partition: partition.to_owned(),
            position,
            changes: changes?,
        })
    }
}

impl ViewChange {
    fn read(
        change: Document<'_>,
        index: usize,
        contribution: impl FnOnce(Document<'_>) -> Result<Contribution>,
    ) -> Result<Self> {
        let key = change.get("key");
        let key =
            key.ok_or_else(|| refuse(index, "/key", "a change must name its document's key"))?;
        let version = change.get("version").and_then(|value| value.as_exact_i64());
        let version = version
            .ok_or_else(|| refuse(index, "/version", "a change must have an integer version"))?;
        let contribution = match change.get("row") {
            None | Some(ValueRef::Null) => None,
            Some(ValueRef::Document(row)) => {
                Some(contribution(row).map_err(|error| error.of_event(index))?)
            }
            Some(_) => return Err(refuse(index, "/row", "a row is an object or null")),
        };
        Ok(Self {
            key: ejson::value_to_string(key, Form::Canonical).into_bytes(),
            version,
            contribution,
        })
    }
}

/// The stored contribution of a document.
#[derive(Debug, Clone)]
struct DocumentContribution {
    version: i64,
    contribution: Option<Contribution>,
}

impl DocumentContribution {
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_signed(self.version.into());
        if let Some(contribution) = &self.contribution {
            out.extend_from_slice(&contribution.to_bytes());
        }
        out
    }

    fn from_bytes(bytes: &[u8]) -> ReadResult<Self> {
        let mut reader = ByteReader::new(bytes);
        let version = reader.signed_64()?;
        let contribution = if reader.is_empty() {
            None
        } else {
            Some(Contribution::from_bytes(reader.rest())?)
        };
        Ok(Self {
            version,
            contribution,
        })
    }
}

/// The result of a group of changes, visible to those that follow in it.
#[derive(Debug, Default)]
struct ChangeGroup {
    deltas: Deltas,
    kept: HashMap<Vec<u8>, DocumentContribution>,
    positions: HashMap<Vec<u8>, (String, PartitionPosition)>,
}

impl Aggregates {
    /// Adds the result of changes to a batch, while no others are applied. Returns for each call
    /// whether its position is new.
    pub(crate) fn apply_each(
        &self,
        batch: &mut WriteBatch,
        applies: &[&Apply],
    ) -> Vec<Result<bool>> {
        let mut group = ChangeGroup::default();
        let outcomes = applies
            .iter()
            .map(|apply| self.apply_one(&mut group, apply));
        let outcomes: Vec<Result<bool>> = outcomes.collect();
        let spaces = &self.spaces;
        group.deltas.write(batch, &spaces.rows, &spaces.items);
        for (key, kept) in &group.kept {
            batch.put(&spaces.kept, key, &kept.to_bytes());
        }
        for (key, (text, _)) in &group.positions {
            batch.put(&spaces.kept, key, text.as_bytes());
        }
        outcomes
    }

    fn apply_one(&self, group: &mut ChangeGroup, apply: &Apply) -> Result<bool> {
        if apply.aggregate.is_dropped() {
            return Err(Error::new(
                AggregateErrorCode::Unknown,
                "the aggregate does not exist",
            ));
        }
        let generation = apply.aggregate.generation(apply.generation)?;
        let key = |kind: &[u8], name: &[u8]| [&apply.generation.to_be_bytes(), kind, name].concat();
        if let Some((text, position)) = &apply.position {
            let key = key(b"p", apply.partition.as_bytes());
            if self
                .position(group, &key)?
                .is_some_and(|known| known >= *position)
            {
                return Ok(false);
            }
            group.positions.insert(key, (text.clone(), *position));
        }
        for change in &apply.changes {
            let key = key(b"d", &change.key);
            let kept = self.contribution_of(group, &key)?;
            if kept
                .as_ref()
                .is_some_and(|kept| kept.version >= change.version)
            {
                continue;
            }
            if let Some(before) = kept.and_then(|kept| kept.contribution) {
                group.deltas.add(&generation, &before, -1);
            }
            if let Some(contribution) = &change.contribution {
                group.deltas.add(&generation, contribution, 1);
            }
            let fresh = DocumentContribution {
                version: change.version,
                contribution: change.contribution.clone(),
            };
            group.kept.insert(key, fresh);
        }
        Ok(true)
    }

    fn contribution_of(
        &self,
        group: &ChangeGroup,
        key: &[u8],
    ) -> Result<Option<DocumentContribution>> {
        if let Some(kept) = group.kept.get(key) {
            return Ok(Some(kept.clone()));
        }
        match self.db.get(&self.spaces.kept, key)? {
            None => Ok(None),
            Some(bytes) => Ok(Some(DocumentContribution::from_bytes(&bytes)?)),
        }
    }

    fn position(&self, group: &ChangeGroup, key: &[u8]) -> Result<Option<PartitionPosition>> {
        if let Some((_, position)) = group.positions.get(key) {
            return Ok(Some(*position));
        }
        match self.db.get(&self.spaces.kept, key)? {
            None => Ok(None),
            Some(bytes) => {
                let text = std::str::from_utf8(&bytes).map_err(|_| malformed())?;
                parse_position(text).map(Some).ok_or_else(malformed)
            }
        }
    }
}
