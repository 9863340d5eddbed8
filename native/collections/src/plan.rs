//! Chooses how the candidates of a query are read: by the documents' keys, by an index in the order
//! of the sort or of the documents' times, or by an index whose documents are sorted afterwards.
//!
//! An index only narrows; the filter decides. Ranges with fewer entries are preferred; entries are
//! counted, up to a limit, not estimated.

use rillbase_binary_format::{ByteReader, ByteWriter as _, ReadResult};
use rillbase_documents::bounds::{EncodedRange, IndexBounds, bounds, id_bounds};
use rillbase_engine::DbSnapshot;
use rillbase_query::filter::Filter;
use rillbase_query::sort::Sort;

use crate::definition::NativeIndex;
use crate::embedded_entries::EmbeddedRead;
use crate::error::{Error, Result};
use crate::format::{DOCUMENTS, EntryForm};
use crate::store::{Collections, InstalledCollection};
use crate::usage::IndexQuery;

/// Counting stops here: above this number, plans do not differ much.
const COUNT_AT_MOST: usize = 2_000;

/// How many documents are read in their order while one is read by an entry.
const SCANNED_PER_ENTRY: u64 = 20;

/// Servers do not read larger collections as a whole.
const MOST_SCANNED: u64 = 200_000;

/// More entries than these may have lists that are too large to be read together.
const MAX_SINGLE_ENTRIES: usize = 64;

/// The documents of more ranges of an embedded index are not merged by time.
const MAX_EMBEDDED_RANGES: usize = 16;

/// What a plan is chosen for.
#[derive(Debug, Clone)]
pub struct CandidateRequest {
    /// The filter, with the caller's access rule.
    pub filter: Filter,
    /// The sort.
    pub sort: Sort,
    /// How many documents are needed.
    pub documents: usize,
    /// Whether an index may give the order: false once its order turned out to differ from the
    /// sort's.
    pub in_order: bool,
    /// Whether it counts as a use of the collection: false if nothing is read by the plan.
    pub is_use: bool,
}

/// The order of a plan's candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanOrder {
    /// Any.
    Unordered,
    /// That of the documents' keys.
    ById,
    /// That of the index, which is the sort's.
    ByIndex,
    /// The documents that were changed last first. The ranges are single entries.
    ByTime,
}

/// How candidates are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanPlan {
    /// The number of the index; 0 for the documents.
    pub index: u32,
    /// What is read of it, in ascending order.
    pub ranges: Vec<EncodedRange>,
    /// Whether each range is a single entry.
    pub has_entries: bool,
    /// The order.
    pub order: PlanOrder,
    /// Whether it is read from its end.
    pub is_backward: bool,
    /// The number of entries in the ranges, up to a limit, if they were counted.
    pub entries: Option<usize>,
}

impl ScanPlan {
    /// A plan that reads all documents.
    pub fn everything() -> Self {
        Self::by_id(EncodedRange::everything(), PlanOrder::ById)
    }

    fn by_id(ranges: Vec<EncodedRange>, order: PlanOrder) -> Self {
        Self {
            index: DOCUMENTS,
            ranges,
            has_entries: false,
            order,
            is_backward: false,
            entries: None,
        }
    }

    /// The plan as bytes: `index order backward has-entries optional(entries) count (low:slice
    /// optional(high:slice))*`.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_varint(u64::from(self.index));
        out.push(match self.order {
            PlanOrder::Unordered => 0,
            PlanOrder::ById => 1,
            PlanOrder::ByIndex => 2,
            PlanOrder::ByTime => 3,
        });
        out.push(u8::from(self.is_backward));
        out.push(u8::from(self.has_entries));
        out.push(u8::from(self.entries.is_some()));
        if let Some(entries) = self.entries {
            out.put_varint(entries as u64);
        }
        out.put_varint(self.ranges.len() as u64);
        for range in &self.ranges {
            out.put_slice(&range.low);
            out.put_optional_slice(range.high.as_deref());
        }
        out
    }

    /// Reads what [`Self::encode`] wrote.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        read(bytes).map_err(|_| Error::Malformed("a plan"))
    }
}

fn read(bytes: &[u8]) -> ReadResult<ScanPlan> {
    let mut reader = ByteReader::new(bytes);
    let index = u32::try_from(reader.varint()?).ok();
    let index = reader.check(index, "a number of 32 bits")?;
    let order = match reader.byte()? {
        0 => PlanOrder::Unordered,
        1 => PlanOrder::ById,
        2 => PlanOrder::ByIndex,
        3 => PlanOrder::ByTime,
        _ => return Err(reader.error("an order")),
    };
    let is_backward = reader.flag()?;
    let has_entries = reader.flag()?;
    let entries = reader.optional(ByteReader::varint)?;
    let ranges = reader.list(|reader| {
        Ok(EncodedRange {
            low: reader.slice()?.to_vec(),
            high: reader.optional(|reader| Ok(reader.slice()?.to_vec()))?,
        })
    })?;
    reader.finish()?;
    Ok(ScanPlan {
        index,
        ranges,
        has_entries,
        order,
        is_backward,
        entries: entries.map(|entries| usize::try_from(entries).unwrap_or(usize::MAX)),
    })
}

/// An index that narrows a query, or gives its order.
struct UsableIndex<'a> {
    index: &'a NativeIndex,
    bounds: Option<IndexBounds>,
    /// Whether it is read forward to give the order.
    direction: Option<bool>,
    /// The entries in its ranges, up to the limit.
    entries: usize,
    /// Whether they were counted.
    is_counted: bool,
}

impl UsableIndex<'_> {
    fn plan(&self, order: PlanOrder, is_backward: bool) -> ScanPlan {
        let bounds = self.bounds.as_ref();
        let ranges = bounds.map(|bounds| bounds.ranges.clone());
        ScanPlan {
            index: self.index.number,
            ranges: ranges.unwrap_or_else(EncodedRange::everything),
            has_entries: bounds.is_some_and(|bounds| bounds.are_entries),
            order,
            is_backward,
            entries: self.is_counted.then_some(self.entries),
        }
    }
}

impl Collections {
    /// Chooses a plan at a snapshot. Fails if the request was made with another version of the
    /// definition than the installed one.
    pub fn plan(
        &self,
        (collection, write_version): (u64, u64),
        request: &CandidateRequest,
        snapshot: &DbSnapshot,
    ) -> Result<ScanPlan> {
        let installed = self.current(collection, write_version)?;
        // Requests that continue a query bring its plan.
        installed.usage.count_reads(u64::from(request.is_use));
        let is_by_id = request.sort == Sort::default();
        let order = if is_by_id {
            PlanOrder::ById
        } else {
            PlanOrder::Unordered
        };
        if let Some(ranges) = id_bounds(&request.filter) {
            return Ok(ScanPlan::by_id(ranges, order));
        }
        let candidates = self.candidates_of(&installed, request, snapshot)?;
        let bounded = candidates.iter().filter(|one| one.bounds.is_some());
        let narrowest = bounded.min_by_key(|one| one.entries);
        let most = count_at_most(&installed, request);
        let few = narrowest.filter(|one| one.entries < most);
        let is_many = |few: &UsableIndex| few.entries >= many(request);
        if request.in_order && few.is_none_or(is_many) {
            let ordered = candidates
                .iter()
                .filter_map(|one| Some((one, one.direction?)));
            let ordered = ordered.min_by_key(|(one, _)| one.entries);
            if let Some((candidate, is_forward)) = ordered {
                return Ok(candidate.plan(PlanOrder::ByIndex, !is_forward));
            }
            let newest = self.newest_first(collection, request, &candidates, snapshot)?;
            if let Some(plan) = newest {
                return Ok(plan);
            }
        }
        let mut chosen = few.or_else(|| narrowest.filter(|_| !is_by_id));
        if chosen.is_none()
            && !request.in_order
            && let Some(many) = narrowest
            && self.is_selective(&installed, many, snapshot)?
        {
            chosen = Some(many);
        }
        Ok(chosen.map_or_else(
            || ScanPlan::by_id(EncodedRange::everything(), order),
            |chosen| chosen.plan(PlanOrder::Unordered, false),
        ))
    }

    /// Whether an index with many entries leaves few enough of the documents to be read.
    fn is_selective(
        &self,
        installed: &InstalledCollection,
        candidate: &UsableIndex<'_>,
        snapshot: &DbSnapshot,
    ) -> Result<bool> {
        let (index, Some(bounds)) = (candidate.index, &candidate.bounds) else {
            return Ok(false);
        };
        if !index.technique.is_stored() {
            return Ok(false);
        }
        let documents = self.counts(installed.number, Some(snapshot))?.documents;
        if documents > MOST_SCANNED {
            return Ok(true);
        }
        let most = usize::try_from(documents / SCANNED_PER_ENTRY).unwrap_or(usize::MAX);
        let place = ((installed.number, index.number), index.forms());
        Ok(self.count_entries(place, &bounds.ranges, most, snapshot)? < most)
    }

    /// A plan in the order of times, by the narrowest index that has it.
    fn newest_first(
        &self,
        collection: u64,
        request: &CandidateRequest,
        candidates: &[UsableIndex<'_>],
        snapshot: &DbSnapshot,
    ) -> Result<Option<ScanPlan>> {
        if !request.sort.is_newest_first() {
            return Ok(None);
        }
        let by_time = candidates
            .iter()
            .filter(|one| one.index.technique.is_by_time());
        // Of two, one with entries is better.
        let cost = |one: &&UsableIndex| (one.entries, !one.index.technique.is_stored());
        let Some(narrowest) = by_time.min_by_key(cost) else {
            return Ok(None);
        };
        let Some(bounds) = &narrowest.bounds else {
            return Ok(None);
        };
        let is_embedded = !narrowest.index.technique.is_stored();
        if is_embedded || bounds.are_entries && bounds.ranges.len() <= MAX_SINGLE_ENTRIES {
            let is_few = !is_embedded || bounds.ranges.len() <= MAX_EMBEDDED_RANGES;
            return Ok(is_few.then(|| narrowest.plan(PlanOrder::ByTime, false)));
        }
        let place = (collection, narrowest.index.number);
        let heads = self.heads((place, narrowest.index.forms()), &bounds.ranges, snapshot)?;
        Ok(heads.map(|ranges| ScanPlan {
            ranges,
            ..narrowest.plan(PlanOrder::ByTime, false)
        }))
    }

    /// The indexes that narrow a query or give its order.
    fn candidates_of<'a>(
        &self,
        installed: &'a InstalledCollection,
        request: &CandidateRequest,
        snapshot: &DbSnapshot,
    ) -> Result<Vec<UsableIndex<'a>>> {
        let mut candidates = Vec::new();
        if snapshot.sequence() < installed.since {
            // An index may have been completed after the snapshot.
            return Ok(candidates);
        }
        let indexes = installed.definition.indexes.iter();
        for index in indexes.filter(|index| index.is_ready) {
            let fields = index.fields();
            let limits = bounds(&request.filter, &fields);
            let equalities = limits.as_ref().map_or(0, |limits| limits.equalities);
            let rest = fields.get(equalities..).unwrap_or_default();
            let mut direction = request.sort.direction(rest);
            let is_ordered = direction.is_some();
            if index.technique.is_by_time() {
                direction = None;
            }
            let (mut entries, mut is_counted) = (COUNT_AT_MOST + 1, false);
            if let Some(limits) = &limits {
                let most = count_at_most(installed, request);
                let counted = self.entry_count((installed, index), limits, most, snapshot)?;
                (entries, is_counted) = (counted.unwrap_or(most), counted.is_some());
                let place = ((installed.number, index.number), index.forms());
                if direction.is_some()
                    && self.has_marks(place, snapshot)?
                    && restricts_sort(&request.filter, index, limits)
                {
                    direction = None;
                }
            }
            let query = IndexQuery {
                request,
                limits: limits.as_ref(),
                is_ordered,
                entries: is_counted.then_some(entries),
            };
            if request.is_use {
                installed.usage.count_query(index.number, &query);
            }
            if limits.is_some() || direction.is_some() {
                candidates.push(UsableIndex {
                    index,
                    bounds: limits,
                    direction,
                    entries,
                    is_counted,
                });
            }
        }
        Ok(candidates)
    }

    /// The number of entries within bounds of an index, up to a limit; `None` if counting them costs
    /// as much as reading as many as are needed, the newest first.
    fn entry_count(
        &self,
        (installed, index): (&InstalledCollection, &NativeIndex),
        limits: &IndexBounds,
        most: usize,
        snapshot: &DbSnapshot,
    ) -> Result<Option<usize>> {
        let is_newest_first = most < COUNT_AT_MOST && index.technique.is_by_time();
        if is_newest_first && (limits.are_entries || !index.technique.is_stored()) {
            return Ok(None);
        }
        let ranges = &limits.ranges;
        if !index.technique.is_stored() {
            let read = EmbeddedRead::of(installed.number, index, limits.are_entries);
            return self.count_embedded(read, ranges, most, snapshot).map(Some);
        }
        let place = ((installed.number, index.number), index.forms());
        self.count_entries(place, ranges, most, snapshot).map(Some)
    }

    /// Whether some document has several entries in an index.
    fn has_marks(
        &self,
        index: ((u64, u32), &'static [EntryForm]),
        snapshot: &DbSnapshot,
    ) -> Result<bool> {
        let marks = EncodedRange {
            low: Vec::new(),
            high: Some(vec![0]),
        };
        Ok(self.count_entries(index, &[marks], 1, snapshot)? > 0)
    }
}

/// How far entries are counted. If an index may yield the newest documents first, they are read in
/// that order unless there are few.
fn count_at_most(installed: &InstalledCollection, request: &CandidateRequest) -> usize {
    let mut indexes = installed.definition.indexes.iter();
    let has_times = indexes.any(|index| index.is_ready && index.technique.is_by_time());
    if has_times && request.in_order && request.sort.is_newest_first() {
        return COUNT_AT_MOST.min(many(request));
    }
    COUNT_AT_MOST
}

/// From this number of entries on, reading in the order of the sort is better.
fn many(request: &CandidateRequest) -> usize {
    request.documents.saturating_mul(4).saturating_add(1)
}

/// Whether the ranges exclude values of the fields that an index sorts by. A document with several
/// values may then be found by one value but sorted by another that is not read: it would come too
/// late, or on no page at all. If one field is part of another (`a` and `a.b`), the value of the
/// first restricts those of the second.
fn restricts_sort(filter: &Filter, index: &NativeIndex, limits: &IndexBounds) -> bool {
    // If a document is found by the entry of a whole array, that entry does not sort by the values
    // of its other arrays.
    if has_array_operand(filter.canonical().as_bytes()) {
        return true;
    }
    let paths = || index.fields.iter().map(|(path, _)| path.as_str());
    let is_part = |inner: &str, outer: &str| {
        inner
            .strip_prefix(outer)
            .is_some_and(|rest| rest.starts_with('.'))
    };
    if paths().any(|outer| paths().any(|inner| is_part(inner, outer))) {
        return true;
    }
    let fixed = index.fields().into_iter().take(limits.equalities);
    let fixed = bounds(filter, &fixed.collect::<Vec<_>>());
    fixed.is_none_or(|fixed| fixed.ranges != limits.ranges)
}

/// Whether a filter as BSON compares with an array: as the operand of `$eq`, or within that of `$in`
/// or `$all`.
fn has_array_operand(filter: &[u8]) -> bool {
    const ARRAY: u8 = 4;
    let names = filter
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == ARRAY);
    let mut names = names.filter_map(|(at, _)| {
        let rest = filter.get(at + 1..)?;
        rest.get(..rest.iter().position(|byte| *byte == 0)?)
    });
    names.any(|name| name == b"$eq" || !name.is_empty() && name.iter().all(u8::is_ascii_digit))
}
