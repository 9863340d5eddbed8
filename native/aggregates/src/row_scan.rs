//! Reading only the rows that a plan needs: where a value or a bucket is not needed, the scan seeks
//! to the next possible key.

use std::collections::BTreeSet;
use std::ops::Bound;

use rillbase_binary_format::ByteReader;
use rillbase_engine::{Db, DbSnapshot, Keyspace, Scan, prefix_end};
use rillbase_query::bson::{DocumentBuf, DocumentWriter};
use rillbase_query::filter::Filter;

use crate::definition::AggregateDefinition;
use crate::deltas::Deltas;
use crate::error::{AggregateErrorCode, Error, Result, malformed};
use crate::keys::{self, DecodedValues, ROLLUP_BYTES, RowKeyParts};
use crate::plan::AggregatePlan;
use crate::state::{RowState, SlotValue};
use crate::value::{DimensionValue, TERMINATOR, put_millis};

/// The maximum number of rows that a query may read.
const MAX_READ: usize = 1_000_000;
/// The maximum number of items that are examined in a group.
pub(crate) const MAX_ITEMS: usize = 100_000;

/// What is read: the database at one snapshot, and changes that are not written yet.
#[derive(Debug, Clone, Copy)]
pub struct ReadSnapshot<'a> {
    /// The database.
    pub db: &'a Db,
    /// Rows.
    pub rows: &'a Keyspace,
    /// Items.
    pub items: &'a Keyspace,
    /// The snapshot.
    pub snapshot: &'a DbSnapshot,
    /// A transaction's own changes.
    pub own: Option<&'a Deltas>,
}

/// A row that was found.
pub(crate) struct ScannedRow<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) parts: RowKeyParts<'a>,
    /// Its encoding.
    pub(crate) row: &'a [u8],
}

/// Takes rows; returns whether more are needed.
pub(crate) type Take<'t> = &'t mut dyn FnMut(ScannedRow<'_>) -> Result<bool>;

/// A scan over the rows of a plan.
pub(crate) struct RowScan<'a> {
    read_snapshot: ReadSnapshot<'a>,
    generation: u64,
    plan: &'a AggregatePlan<'a>,
    from: Option<i64>,
    to: Option<i64>,
    /// The filter, if equality alone does not decide.
    filter: Option<&'a Filter>,
}

/// What to do with a key.
enum SeekDecision {
    Yes,
    /// The next possible key is here.
    Seek(Vec<u8>),
}

impl<'a> RowScan<'a> {
    pub(crate) fn new(
        read_snapshot: ReadSnapshot<'a>,
        generation: u64,
        plan: &'a AggregatePlan<'a>,
        (from, to): (Option<i64>, Option<i64>),
    ) -> Self {
        let filter = plan.query.filter.as_ref().filter(|_| !plan.is_decided);
        Self {
            read_snapshot,
            generation,
            plan,
            from: from.max(kept_from(plan.definition, read_snapshot.snapshot)),
            to,
            filter: filter.map(|(_, filter)| filter),
        }
    }

    fn prefix(&self) -> Vec<u8> {
        let mut prefix = Vec::with_capacity(ROLLUP_BYTES);
        keys::rollup(&mut prefix, self.generation, self.plan.rollup);
        prefix
    }

    /// Passes the rows that match, as long as more are needed.
    pub(crate) fn run(&self, take: Take<'_>) -> Result<()> {
        if !self.run_stored(take)? {
            return Ok(());
        }
        let Some(own) = self.read_snapshot.own else {
            return Ok(());
        };
        let prefix = self.prefix();
        for (key, row) in own.rows().filter(|(key, _)| key.starts_with(&prefix)) {
            let parts = self.parts(key)?;
            if matches!(self.seek_decision(key, &parts), SeekDecision::Yes)
                && self.matches(&parts)?
            {
                let row = &row.to_bytes();
                if !take(ScannedRow { key, parts, row })? {
                    break;
                }
            }
        }
        Ok(())
    }

    fn run_stored(&self, take: Take<'_>) -> Result<bool> {
        let prefix = self.prefix();
        let end = prefix_end(&prefix);
        let upper = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let (db, rows) = (self.read_snapshot.db, self.read_snapshot.rows);
        let mut scan = db.scan(
            rows,
            Bound::Included(&prefix),
            upper,
            Some(self.read_snapshot.snapshot),
        )?;
        scan.seek(&self.start(&prefix))?;
        let (mut read, mut seen) = (0, DecodedValues::default());
        let has_time = self.plan.definition.time.is_some();
        while scan.is_valid() {
            read += 1;
            if read > MAX_READ {
                let detail =
                    "the query reads more than a million rows: choose a smaller rollup or period";
                return Err(Error::new(AggregateErrorCode::TooExpensive, detail));
            }
            let (parts, decision) = if let Some(parts) = seen.parts(scan.key(), has_time) {
                (parts, self.bucket_decision(scan.key(), &parts))
            } else {
                let parts = self.parts(scan.key())?;
                seen.note(&parts);
                (parts, self.seek_decision(scan.key(), &parts))
            };
            match decision {
                SeekDecision::Seek(target) => {
                    scan.seek(&target)?;
                    continue;
                }
                SeekDecision::Yes if self.matches(&parts)? => {
                    let (key, row) = (scan.key(), scan.value());
                    if !take(ScannedRow { key, parts, row })? {
                        return Ok(false);
                    }
                }
                SeekDecision::Yes => {}
            }
            scan.advance()?;
        }
        Ok(true)
    }

    /// Where the first row may be.
    fn start(&self, prefix: &[u8]) -> Vec<u8> {
        let mut start = prefix.to_vec();
        let mut is_whole = true;
        for allowed in &self.plan.allowed {
            let Some(Some(first)) = allowed.as_ref().map(BTreeSet::first) else {
                is_whole = false;
                break;
            };
            start.extend_from_slice(first);
        }
        if let (true, Some(from)) = (is_whole, self.from) {
            put_millis(&mut start, from);
        }
        start
    }

    fn parts<'k>(&self, key: &'k [u8]) -> Result<RowKeyParts<'k>> {
        let has_time = self.plan.definition.time.is_some();
        RowKeyParts::of(key, self.plan.dimensions.len(), has_time).ok_or_else(malformed)
    }

    /// Whether the query reads a key, by its values and bucket, or where the scan continues.
    fn seek_decision(&self, key: &[u8], parts: &RowKeyParts<'_>) -> SeekDecision {
        for (index, allowed) in self.plan.allowed.iter().enumerate() {
            let Some(allowed) = allowed else { continue };
            let value = parts.value(index);
            if allowed.contains(value) {
                continue;
            }
            let before = parts.range(index).start;
            let next = allowed.range::<[u8], _>((Bound::Excluded(value), Bound::Unbounded));
            let mut target = key
                .get(..ROLLUP_BYTES + before)
                .unwrap_or_default()
                .to_vec();
            match next.into_iter().next() {
                Some(next) => target.extend_from_slice(next),
                None => target.push(TERMINATOR),
            }
            return SeekDecision::Seek(target);
        }
        self.bucket_decision(key, parts)
    }

    /// The same for the bucket alone, when the values match.
    fn bucket_decision(&self, key: &[u8], parts: &RowKeyParts<'_>) -> SeekDecision {
        let Some(bucket) = parts.bucket else {
            return SeekDecision::Yes;
        };
        let head = || {
            key.get(..ROLLUP_BYTES + parts.values.len())
                .unwrap_or_default()
                .to_vec()
        };
        match self.from {
            Some(from) if bucket < from => {
                let mut target = head();
                put_millis(&mut target, from);
                return SeekDecision::Seek(target);
            }
            _ => {}
        }
        if self.to.is_some_and(|to| bucket >= to) {
            let mut target = head();
            target.push(TERMINATOR);
            return SeekDecision::Seek(target);
        }
        SeekDecision::Yes
    }

    fn matches(&self, parts: &RowKeyParts<'_>) -> Result<bool> {
        let Some(filter) = self.filter else {
            return Ok(true);
        };
        let document = self.document(parts)?;
        filter.matches(document.as_ref()).map_err(|failure| {
            Error::at(
                AggregateErrorCode::BadQuery,
                "/filter",
                failure.into_error().detail,
            )
        })
    }

    /// The document that the filter is applied to.
    fn document(&self, parts: &RowKeyParts<'_>) -> Result<DocumentBuf> {
        let mut reader = ByteReader::new(parts.values);
        let mut fields: Vec<(&str, DimensionValue)> = Vec::new();
        for &dimension in self.plan.dimensions {
            let value = DimensionValue::decode(&mut reader)?;
            if let Some(field) = self.plan.definition.dimensions.get(dimension) {
                fields.push((&field.name, value));
            }
        }
        if let (Some(time), Some(bucket)) = (&self.plan.definition.time, parts.bucket) {
            fields.push((&time.field.name, DimensionValue::Date(bucket)));
        }
        let bytes = nest(&fields);
        DocumentBuf::parse(bytes).map_err(|_| malformed())
    }

    /// Passes the items of a measure below a row, in the order of their values, with their counts,
    /// until `take` returns false.
    pub(crate) fn items(
        &self,
        key: &[u8],
        measure: usize,
        backwards: bool,
        take: &mut dyn FnMut(&[u8], i64) -> bool,
    ) -> Result<()> {
        let mut prefix = key.to_vec();
        prefix.push(u8::try_from(measure).unwrap_or(u8::MAX));
        let (db, items) = (self.read_snapshot.db, self.read_snapshot.items);
        let mut scan = db.scan_prefix(items, &prefix, Some(self.read_snapshot.snapshot))?;
        let step = if backwards {
            Scan::retreat
        } else {
            Scan::advance
        };
        if backwards {
            scan.last()?;
        } else {
            scan.first()?;
        }
        let (mut read, mut counted) = (0, 0);
        while scan.is_valid() {
            let row = RowState::from_bytes(scan.value())?;
            read += 1;
            if let [SlotValue::Count(count)] = row.0.as_slice()
                && *count != 0
            {
                counted += 1;
                let item = scan.key().get(prefix.len()..).unwrap_or_default();
                if !take(item, *count) {
                    return Ok(());
                }
            }
            // Removed items remain until they are compacted.
            if counted > MAX_ITEMS || read > MAX_READ {
                let detail = "a group has more than 100,000 items";
                return Err(Error::new(AggregateErrorCode::TooExpensive, detail));
            }
            step(&mut scan)?;
        }
        Ok(())
    }

    /// A transaction's own changes of the items of a measure below a row.
    pub(crate) fn own_items(&self, key: &[u8], measure: usize, take: &mut dyn FnMut(&[u8], i64)) {
        let mut prefix = key.to_vec();
        prefix.push(u8::try_from(measure).unwrap_or(u8::MAX));
        for (key, count) in self.read_snapshot.own.iter().flat_map(|own| own.items()) {
            if let Some(item) = key.strip_prefix(prefix.as_slice()) {
                take(item, count);
            }
        }
    }
}

/// The first bucket that has not expired.
fn kept_from(definition: &AggregateDefinition, snapshot: &DbSnapshot) -> Option<i64> {
    let (time, retention) = (definition.time.as_ref()?, definition.retention?);
    let now = i64::try_from(snapshot.time()).unwrap_or(i64::MAX);
    // The first whose end plus the retention is later than now.
    let oldest = now.saturating_sub(retention).saturating_sub(time.bucket);
    Some(
        oldest
            .saturating_sub(oldest.rem_euclid(time.bucket))
            .saturating_add(time.bucket),
    )
}

/// A document of fields with dotted names.
fn nest(fields: &[(&str, DimensionValue)]) -> Vec<u8> {
    let mut writer = DocumentWriter::new();
    let mut done: Vec<&str> = Vec::new();
    for (name, value) in fields {
        let head = name.split('.').next().unwrap_or(name);
        if head == *name {
            value.append(&mut writer, name);
        } else if !done.contains(&head) {
            done.push(head);
            let below = |(name, value): &(&'_ str, DimensionValue)| {
                let rest = name.strip_prefix(head)?.strip_prefix('.')?;
                Some((rest.to_owned(), value.clone()))
            };
            let below: Vec<(String, DimensionValue)> = fields.iter().filter_map(below).collect();
            let below: Vec<(&str, DimensionValue)> = below
                .iter()
                .map(|(name, value)| (name.as_str(), value.clone()))
                .collect();
            writer.append_raw(
                head,
                rillbase_query::bson::BsonType::Document,
                &nest(&below),
            );
        }
    }
    writer.finish()
}
