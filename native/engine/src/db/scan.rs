//! Bounded scans, in both directions.

use std::ops::Bound;
use std::sync::Arc;

use super::keyspace::SuperVersion;
use super::point_lookup::{Visibility, merge_of};
use super::{DbCore, DbSnapshot, Keyspace};
use crate::error::{Error, Result};
use crate::iterate::merging::MergingCursor;
use crate::iterate::run::{RunCursor, may_have_head};
use crate::iterate::source::EntrySource;
use crate::key::{EntryKind, Sequence, Tag, split_expiry};
use crate::memtable::MemtableCursor;
use crate::range_delete::RangeDeletes;
use crate::table::zone_filter::ZoneFilter;

/// After this many older versions of a key, seeking to the next key is cheaper than stepping.
const STEPS: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScanPosition {
    Nowhere,
    /// The cursor is at the current entry, whose value starts after this many bytes.
    At(usize),
    /// The value is in `folded`; the cursor is after the key's entries.
    Behind,
    /// The value is in `folded`; the cursor is before the key's entries.
    Before,
}

/// What a scan may skip.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Passing<'a> {
    /// Blocks and tables by their zones, while the scan moves forward.
    pub(crate) zones: Option<&'a Arc<ZoneFilter>>,
    /// Runs whose filters exclude this head, which all keys within the bounds have.
    pub(crate) head: Option<&'a [u8]>,
}

/// The keys and values of a keyspace, as a snapshot sees them.
///
/// A scan has no initial position: call [`Scan::first`], [`Scan::last`] or a seek.
#[derive(Debug)]
pub struct Scan {
    core: Arc<DbCore>,
    keyspace: Keyspace,
    cursor: MergingCursor,
    ranges: Vec<Arc<RangeDeletes>>,
    visibility: Visibility,
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
    position: ScanPosition,
    key: Vec<u8>,
    sequence: Sequence,
    folded: Vec<u8>,
}

impl Scan {
    pub(crate) fn new(
        core: &Arc<DbCore>,
        keyspace: &Keyspace,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        snapshot: Option<&DbSnapshot>,
    ) -> Result<Self> {
        Self::passing(core, keyspace, (lower, upper), snapshot, Passing::default())
    }

    /// A scan that skips some of what cannot match.
    pub(crate) fn passing(
        core: &Arc<DbCore>,
        keyspace: &Keyspace,
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
        snapshot: Option<&DbSnapshot>,
        passing: Passing<'_>,
    ) -> Result<Self> {
        let view = keyspace.view();
        let visibility = Visibility::new(core, snapshot);
        Ok(Self {
            ranges: ranges_of(core, &view)?,
            cursor: MergingCursor::new(sources_of(core, keyspace, &view, passing)?),
            core: Arc::clone(core),
            keyspace: keyspace.clone(),
            visibility,
            lower: lower.map(<[u8]>::to_vec),
            upper: upper.map(<[u8]>::to_vec),
            position: ScanPosition::Nowhere,
            key: Vec::new(),
            sequence: 0,
            folded: Vec::new(),
        })
    }

    /// Also returns expired entries, as long as they exist: for callers that determine expiry by
    /// values, and would rather stop at them than have them skipped one by one.
    #[must_use]
    pub fn show_expired(mut self) -> Self {
        self.visibility = self.visibility.timeless();
        self
    }

    /// Whether the scan is at an entry.
    #[inline]
    pub fn is_valid(&self) -> bool {
        self.position != ScanPosition::Nowhere
    }

    /// The key of the entry.
    #[inline]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The sequence of the entry's write; of the newest one if operands are folded.
    #[inline]
    pub fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// The value of the entry.
    #[inline]
    pub fn value(&self) -> &[u8] {
        match self.position {
            ScanPosition::Nowhere => &[],
            ScanPosition::At(skipped) => self.cursor.value().get(skipped..).unwrap_or_default(),
            ScanPosition::Behind | ScanPosition::Before => &self.folded,
        }
    }

    /// Moves to the first entry within the bounds.
    pub fn first(&mut self) -> Result<()> {
        match &self.lower {
            Bound::Unbounded => self.cursor.first()?,
            Bound::Included(key) => self.cursor.seek(key, Tag::NEWEST)?,
            Bound::Excluded(key) => self.cursor.seek(key, Tag::OLDEST)?,
        }
        self.settle_forward()
    }

    /// Moves to the last entry within the bounds.
    pub fn last(&mut self) -> Result<()> {
        match &self.upper {
            Bound::Unbounded => self.cursor.last()?,
            Bound::Included(key) => self.cursor.seek_before(key, Tag::OLDEST)?,
            Bound::Excluded(key) => self.cursor.seek_before(key, Tag::NEWEST)?,
        }
        self.settle_backward()
    }

    /// Moves to the first entry at or after `key`.
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        if self.is_below(key) {
            return self.first();
        }
        self.cursor.seek(key, Tag::NEWEST)?;
        self.settle_forward()
    }

    /// Moves to the first entry at or after `key`, among keys whose head is one of `heads`, which
    /// [`crate::KeyspaceOptions::head`] determines. Tables whose filters exclude all of them are
    /// not read until the next seek, so other keys may or may not be returned, also while the scan
    /// advances.
    pub fn seek_heads(&mut self, key: &[u8], heads: &[&[u8]]) -> Result<()> {
        let head = &self.keyspace.options().head;
        if head.is_whole() || self.is_below(key) {
            return self.seek(key);
        }
        let may = |source: &EntrySource| source.may_have(heads, head);
        self.cursor.seek_where(key, Tag::NEWEST, may)?;
        self.settle_forward()
    }

    /// Moves to the last entry at or before `key`.
    pub fn seek_back(&mut self, key: &[u8]) -> Result<()> {
        if self.is_above(key) {
            return self.last();
        }
        self.cursor.seek_before(key, Tag::OLDEST)?;
        self.settle_backward()
    }

    /// Moves to the next entry.
    pub fn advance(&mut self) -> Result<()> {
        match self.position {
            ScanPosition::Nowhere => return Ok(()),
            ScanPosition::At(_) => {
                self.cursor.next()?;
                self.skip_key()?;
            }
            ScanPosition::Behind => {}
            ScanPosition::Before => self.cursor.seek(&self.key, Tag::OLDEST)?,
        }
        self.settle_forward()
    }

    /// Moves to the previous entry.
    pub fn retreat(&mut self) -> Result<()> {
        match self.position {
            ScanPosition::Nowhere => return Ok(()),
            ScanPosition::Before => {}
            ScanPosition::At(_) | ScanPosition::Behind => {
                self.cursor.seek_before(&self.key, Tag::NEWEST)?;
            }
        }
        self.settle_backward()
    }

    fn is_below(&self, key: &[u8]) -> bool {
        match &self.lower {
            Bound::Unbounded => false,
            Bound::Included(bound) => key < bound.as_slice(),
            Bound::Excluded(bound) => key <= bound.as_slice(),
        }
    }

    #[inline]
    fn is_above(&self, key: &[u8]) -> bool {
        match &self.upper {
            Bound::Unbounded => false,
            Bound::Included(bound) => key > bound.as_slice(),
            Bound::Excluded(bound) => key >= bound.as_slice(),
        }
    }

    /// The newest range delete seen that covers the current key.
    #[inline]
    fn covering(&self) -> Sequence {
        let ranges = self.ranges.iter();
        let covering = ranges.map(|ranges| ranges.covering(&self.key, self.visibility.sequence));
        covering.max().unwrap_or(0)
    }

    /// Skips the entries of `self.key`.
    #[inline]
    fn skip_key(&mut self) -> Result<()> {
        let mut steps = 0;
        while self.cursor.is_valid() && self.cursor.key() == self.key.as_slice() {
            steps += 1;
            if steps > STEPS {
                return self.cursor.seek(&self.key, Tag::OLDEST);
            }
            self.cursor.next()?;
        }
        Ok(())
    }

    /// Moves forward to the first key that has a value.
    fn settle_forward(&mut self) -> Result<()> {
        self.position = ScanPosition::Nowhere;
        while self.cursor.is_valid() {
            if self.is_above(self.cursor.key()) {
                return Ok(());
            }
            if self.cursor.tag().sequence() > self.visibility.sequence {
                self.skip_unseen()?;
                continue;
            }
            self.key.clear();
            self.key.extend_from_slice(self.cursor.key());
            if self.show()? {
                return Ok(());
            }
            self.skip_key()?;
        }
        Ok(())
    }

    /// Skips versions that are too new; many of one key are skipped with a seek.
    fn skip_unseen(&mut self) -> Result<()> {
        self.cursor.next()?;
        if self.cursor.is_valid() && self.cursor.tag().sequence() > self.visibility.sequence {
            let key = self.cursor.key().to_vec();
            self.cursor
                .seek(&key, Tag::seek(self.visibility.sequence))?;
        }
        Ok(())
    }

    /// Makes the key current whose newest visible entry the cursor is at, if it has a value.
    fn show(&mut self) -> Result<bool> {
        let tag = self.cursor.tag();
        if self.covering() >= tag.sequence() {
            return Ok(false);
        }
        self.sequence = tag.sequence();
        match tag.kind() {
            Some(EntryKind::Put) => self.position = ScanPosition::At(0),
            Some(kind @ EntryKind::PutExpiring) => {
                let (expiry, _) = split_expiry(kind, self.cursor.value()).ok_or_else(malformed)?;
                if expiry.is_some_and(|expiry| self.visibility.is_expired(&self.core, expiry)) {
                    return Ok(false);
                }
                self.position = ScanPosition::At(crate::key::EXPIRY_BYTES);
            }
            Some(EntryKind::Delete | EntryKind::DeleteWith) => return Ok(false),
            Some(EntryKind::Merge) => self.fold_forward()?,
            Some(EntryKind::RangeDelete) | None => return Err(malformed()),
        }
        Ok(true)
    }

    /// Folds operands from the cursor on, and leaves the cursor after the key.
    fn fold_forward(&mut self) -> Result<()> {
        let covering = self.covering();
        // There is usually one, which already is the value.
        self.folded.clear();
        self.folded.extend_from_slice(self.cursor.value());
        // Older ones, concatenated, and where each starts.
        let (mut others, mut starts) = (Vec::new(), Vec::new());
        let mut below = None;
        self.cursor.next()?;
        while self.cursor.is_valid() && self.cursor.key() == self.key.as_slice() {
            let tag = self.cursor.tag();
            if tag.sequence() <= covering {
                break;
            }
            if tag.kind() != Some(EntryKind::Merge) {
                below = self.value_below()?;
                break;
            }
            starts.push(others.len());
            others.extend_from_slice(self.cursor.value());
            self.cursor.next()?;
        }
        self.skip_key()?;
        self.position = ScanPosition::Behind;
        let merge = merge_of(self.keyspace.options())?;
        if starts.is_empty() && below.is_none() && merge.is_value_alone() {
            return Ok(());
        }
        let newest = std::mem::take(&mut self.folded);
        let mut operands = oldest_first(&others, &starts);
        operands.push(&newest);
        self.fold(below.as_deref(), &operands)
    }

    /// The value of the entry at the cursor, which is not an operand.
    fn value_below(&self) -> Result<Option<Vec<u8>>> {
        let value = self.cursor.value();
        match self.cursor.tag().kind() {
            Some(EntryKind::Put) => Ok(Some(value.to_vec())),
            Some(EntryKind::Delete | EntryKind::DeleteWith) => Ok(None),
            Some(kind @ EntryKind::PutExpiring) => {
                let (expiry, value) = split_expiry(kind, value).ok_or_else(malformed)?;
                let is_expired =
                    expiry.is_some_and(|at| self.visibility.is_expired(&self.core, at));
                Ok((!is_expired).then(|| value.to_vec()))
            }
            _ => Err(malformed()),
        }
    }

    fn fold(&mut self, below: Option<&[u8]>, operands: &[&[u8]]) -> Result<()> {
        let merge = merge_of(self.keyspace.options())?;
        self.folded = merge.full(&self.key, below, operands);
        Ok(())
    }

    /// Moves backward to the first key that has a value.
    fn settle_backward(&mut self) -> Result<()> {
        self.position = ScanPosition::Nowhere;
        while self.cursor.is_valid() {
            if self.is_below(self.cursor.key()) {
                return Ok(());
            }
            self.key.clear();
            self.key.extend_from_slice(self.cursor.key());
            if self.collect_backward()? {
                self.position = ScanPosition::Before;
                return Ok(());
            }
        }
        Ok(())
    }

    /// Collects the versions of the key, oldest first; leaves the cursor before the key. Returns
    /// whether it has a value, which is then in `folded`.
    fn collect_backward(&mut self) -> Result<bool> {
        let covering = self.covering();
        let mut below: Option<Vec<u8>> = None;
        let mut operands: Vec<Vec<u8>> = Vec::new();
        while self.cursor.is_valid() && self.cursor.key() == self.key.as_slice() {
            let tag = self.cursor.tag();
            if tag.sequence() <= self.visibility.sequence && tag.sequence() > covering {
                self.sequence = tag.sequence();
                if tag.kind() == Some(EntryKind::Merge) {
                    operands.push(self.cursor.value().to_vec());
                } else {
                    operands.clear();
                    below = self.value_below()?;
                }
            }
            self.cursor.previous()?;
        }
        if operands.is_empty() {
            let exists = below.is_some();
            self.folded = below.unwrap_or_default();
            return Ok(exists);
        }
        let operands: Vec<&[u8]> = operands.iter().map(Vec::as_slice).collect();
        self.fold(below.as_deref(), &operands)?;
        Ok(true)
    }
}

/// Concatenated operands, newest first, in the order in which they are folded.
fn oldest_first<'a>(mut newest_first: &'a [u8], starts: &[usize]) -> Vec<&'a [u8]> {
    let mut operands = Vec::with_capacity(starts.len() + 1);
    for &start in starts.iter().rev() {
        let (newer, operand) = newest_first.split_at_checked(start).unwrap_or_default();
        operands.push(operand);
        newest_first = newer;
    }
    operands
}

fn malformed() -> Error {
    Error::InvalidArgument {
        what: "an entry is malformed although its checksum matches".into(),
    }
}

fn sources_of(
    core: &DbCore,
    keyspace: &Keyspace,
    view: &SuperVersion,
    passing: Passing<'_>,
) -> Result<Vec<EntrySource>> {
    let memory = view.memtables().filter(|memtable| memtable.entries() > 0);
    let memory =
        memory.map(|memtable| EntrySource::Memory(MemtableCursor::new(Arc::clone(memtable))));
    let mut sources: Vec<EntrySource> = memory.collect();
    for run in view.version.runs() {
        if let Some(head) = passing.head
            && !may_have_head(run, &core.tables, head, &keyspace.options().head)?
        {
            continue;
        }
        let run = RunCursor::new(Arc::clone(run), Arc::clone(&core.tables), false);
        sources.push(EntrySource::Run(Box::new(match passing.zones {
            Some(zones) => run.filtered(Arc::clone(zones)),
            None => run,
        })));
    }
    Ok(sources)
}

fn ranges_of(core: &DbCore, view: &SuperVersion) -> Result<Vec<Arc<RangeDeletes>>> {
    let mut ranges: Vec<Arc<RangeDeletes>> = view
        .memtables()
        .filter_map(|memtable| memtable.range_deletes())
        .collect();
    for file in view
        .version
        .files()
        .filter(|file| file.meta.range_deletes > 0)
    {
        ranges.extend(core.tables.table(file)?.range_deletes().cloned());
    }
    Ok(ranges)
}
