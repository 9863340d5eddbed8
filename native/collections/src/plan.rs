//! Chooses how the candidates of a query are read: by the documents' keys, by an index in the order
//! of the sort, or by an index whose documents are sorted afterwards.
//!
//! An index only narrows; the filter decides. Ranges with fewer entries are preferred; entries are
//! counted, up to a limit, not estimated.

use rillbase_documents::bounds::{EncodedRange, IndexBounds, bounds, id_bounds};
use rillbase_documents::selection_request::{CandidateOrder, IndexOrder, SelectionRequest};
use rillbase_engine::DbSnapshot;
use rillbase_query::filter::Filter;
use rillbase_query::sort::Sort;

use crate::definition::NativeIndex;
use crate::error::Result;
use crate::format::DOCUMENTS;
use crate::store::{Collections, InstalledCollection};

/// Counting stops here: above this number, plans do not differ much.
const COUNT_AT_MOST: usize = 2_000;

/// How candidates are read.
#[derive(Debug, Clone)]
pub(crate) struct CandidatePlan {
    /// 0 for the documents.
    pub(crate) index: u32,
    pub(crate) ranges: Vec<EncodedRange>,
    pub(crate) order: CandidateOrder,
}

impl CandidatePlan {
    pub(crate) fn is_backward(&self) -> bool {
        matches!(&self.order, CandidateOrder::ByIndex(order) if order.backward)
    }
}

/// An index that narrows a query, or gives its order.
struct IndexCandidate<'a> {
    index: &'a NativeIndex,
    bounds: Option<IndexBounds>,
    /// Whether it is read forward to give the order.
    direction: Option<bool>,
    /// The entries in its ranges, up to the limit.
    entries: usize,
}

impl IndexCandidate<'_> {
    fn ranges(&self) -> Vec<EncodedRange> {
        self.bounds
            .as_ref()
            .map_or_else(everything, |bounds| bounds.ranges.clone())
    }

    fn unordered(&self) -> CandidatePlan {
        CandidatePlan {
            index: self.index.number,
            ranges: self.ranges(),
            order: CandidateOrder::Unordered,
        }
    }

    fn ordered(&self, is_forward: bool) -> CandidatePlan {
        let equalities = self.bounds.as_ref().map_or(0, |bounds| bounds.equalities);
        let prefix = self.bounds.as_ref().map(|bounds| bounds.prefix.clone());
        CandidatePlan {
            index: self.index.number,
            ranges: self.ranges(),
            order: CandidateOrder::ByIndex(IndexOrder {
                prefix: prefix.unwrap_or_default(),
                fields: self.index.fields().into_iter().skip(equalities).collect(),
                backward: !is_forward,
                ranges: self.ranges(),
            }),
        }
    }
}

impl Collections {
    /// Chooses a plan. `in_order` is false once an index's order turned out to differ from the
    /// sort's.
    pub(crate) fn choose(
        &self,
        installed: &InstalledCollection,
        request: &SelectionRequest,
        in_order: bool,
        snapshot: &DbSnapshot,
    ) -> Result<CandidatePlan> {
        let order = if request.sort == Sort::default() {
            CandidateOrder::Ordered
        } else {
            CandidateOrder::Unordered
        };
        let by_documents = |ranges| CandidatePlan {
            index: DOCUMENTS,
            ranges,
            order: order.clone(),
        };
        if let Some(ranges) = id_bounds(&request.filter) {
            return Ok(by_documents(ranges));
        }
        let candidates = self.candidates_of(installed, request, snapshot)?;
        let bounded = candidates.iter().filter(|one| one.bounds.is_some());
        let narrowest = bounded.min_by_key(|one| one.entries);
        let few = narrowest.filter(|one| one.entries < COUNT_AT_MOST);
        let page = request.offset.saturating_add(request.limit);
        if in_order && few.is_none_or(|few| few.entries > page.saturating_mul(4)) {
            let ordered = candidates
                .iter()
                .filter_map(|one| Some((one, one.direction?)));
            let ordered = ordered.min_by_key(|(one, _)| one.entries);
            if let Some((candidate, is_forward)) = ordered {
                return Ok(candidate.ordered(is_forward));
            }
        }
        let is_by_id = matches!(order, CandidateOrder::Ordered);
        let chosen = few.or_else(|| narrowest.filter(|_| !is_by_id));
        Ok(chosen.map_or_else(|| by_documents(everything()), IndexCandidate::unordered))
    }

    /// The indexes that narrow a query or give its order.
    fn candidates_of<'a>(
        &self,
        installed: &'a InstalledCollection,
        request: &SelectionRequest,
        snapshot: &DbSnapshot,
    ) -> Result<Vec<IndexCandidate<'a>>> {
        let mut candidates = Vec::new();
        let indexes = installed.definition.indexes.iter();
        for index in indexes.filter(|index| index.is_ready) {
            let fields = index.fields();
            let limits = bounds(&request.filter, &fields);
            let equalities = limits.as_ref().map_or(0, |limits| limits.equalities);
            let rest = fields.get(equalities..).unwrap_or_default();
            let mut direction = request.sort.direction(rest);
            let mut entries = COUNT_AT_MOST + 1;
            if let Some(limits) = &limits {
                let place = (installed.number, index.number);
                let mut scan = self.scan_index(place, limits.ranges.clone(), false, snapshot);
                entries = scan.count_entries(COUNT_AT_MOST)?;
                if direction.is_some()
                    && self.has_marks(place, snapshot)?
                    && restricts_sort(&request.filter, index, limits)
                {
                    direction = None;
                }
            }
            if limits.is_some() || direction.is_some() {
                candidates.push(IndexCandidate {
                    index,
                    bounds: limits,
                    direction,
                    entries,
                });
            }
        }
        Ok(candidates)
    }

    /// Whether some document has several entries in an index.
    fn has_marks(&self, place: (u64, u32), snapshot: &DbSnapshot) -> Result<bool> {
        let marks = EncodedRange {
            low: Vec::new(),
            high: Some(vec![0]),
        };
        let mut scan = self.scan_index(place, vec![marks], false, snapshot);
        Ok(scan.count_entries(1)? > 0)
    }
}

fn everything() -> Vec<EncodedRange> {
    vec![EncodedRange {
        low: Vec::new(),
        high: None,
    }]
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
    limits.equalities == 0 || fixed.is_none_or(|fixed| fixed.ranges != limits.ranges)
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
