//! Plans the entries of a filter.
//!
//! A conjunction can be found by any of its children, so the rarest is chosen. A disjunction needs
//! the entries of all of its children. A negation is not selective, except `$exists: false`.
//!
//! Invariant, which the tests check: a document that matches meets at least one of the entries.

use rillbase_query::bson::{BsonType, Regex, ValueRef};
use rillbase_query::environment::EvaluationContext;
use rillbase_query::filter::{Comparison, FilterClause, List, Predicate, Test, Whole};
use rillbase_query::fuel::Fuel;
use rillbase_query::geo::Region;
use rillbase_query::limits::EVALUATION_BYTES;
use rillbase_query::path::FieldPath;
use rillbase_query::pattern::Pattern;
use rillbase_query::text::TextQuery;

use crate::bounds::{element_range, interval, is_one_interval, is_range, ranged, ranges};
use crate::cells;
use crate::class::Class;
use crate::entry::{EntrySpec, Probe, is_compound};
use crate::grams;
use crate::hashes::Hashes;
use crate::literal::needed;
use crate::match_plan::{MatchPlan, any_of, is_too_long, joined, of_kinds, one, several};
use crate::probe_counts::analyzer_number;
use crate::sample::DocumentSample;

/// The maximum number of evaluation steps for choosing a plan.
const SAMPLE_STEPS: u64 = 20_000;
/// The types of values that a regular expression can match.
const TEXT_KINDS: [BsonType; 3] = [BsonType::String, BsonType::Symbol, BsonType::Regex];

/// Chooses plans.
#[derive(Debug)]
pub(crate) struct Planner<'p> {
    hashes: &'p Hashes,
    /// A sample of documents, if there is one.
    sample: Option<&'p DocumentSample>,
    /// For evaluating the sample.
    environment: EvaluationContext,
    /// The current plan, with the share of documents that met it.
    tried: Option<(&'p [EntrySpec], f64)>,
}

impl<'p> Planner<'p> {
    pub(crate) fn new(hashes: &'p Hashes, sample: Option<&'p DocumentSample>) -> Self {
        Self {
            hashes,
            sample,
            environment: EvaluationContext {
                fuel: Fuel::new(SAMPLE_STEPS, EVALUATION_BYTES),
                now_ms: 0,
            },
            tried: None,
        }
    }

    /// Sets the observed selectivity of the plan with these entries.
    pub(crate) const fn with_observed(mut self, entries: &'p [EntrySpec], met: f64) -> Self {
        self.tried = Some((entries, met));
        self
    }

    /// The plan of a filter; `None` if it implies nothing useful.
    pub(crate) fn plan(&self, root: &FilterClause) -> Option<MatchPlan> {
        let mut plan = self.node(root, &FieldPath::itself())?;
        plan.entries.sort_unstable();
        plan.entries.dedup();
        if let [only] = plan.entries.as_mut_slice()
            && let Probe::Interval { sure, .. } = &mut only.probe
        {
            *sure = is_one_interval(root);
        }
        Some(plan)
    }

    /// The plan of a part of a filter whose paths start at `prefix`.
    fn node(&self, node: &FilterClause, prefix: &FieldPath) -> Option<MatchPlan> {
        match node {
            FilterClause::Field(predicate) => {
                self.test(&predicate.test, joined(prefix, &predicate.path))
            }
            FilterClause::And(children) => self.conjunction(children, prefix),
            FilterClause::Or(children) => children
                .iter()
                .map(|child| self.node(child, prefix))
                .collect::<Option<Vec<_>>>()
                .map(any_of),
            FilterClause::Not(inner) => match inner.as_ref() {
                // Inside `$elemMatch` another element may have the field.
                FilterClause::Field(Predicate {
                    path,
                    test: Test::Exists,
                }) if prefix.segments().is_empty() && !is_too_long(path) => {
                    Some(one(path.clone(), Probe::Absent, Class::Existence, 0.1))
                }
                _ => None,
            },
            FilterClause::Whole(whole) => match whole.as_ref() {
                Whole::Text(text) => Some(self.terms(text)),
                Whole::Expression(..) | Whole::Schema(..) => None,
            },
        }
    }

    /// The plan of the rarest child, where bounds of one path are combined.
    fn conjunction(&self, children: &[FilterClause], prefix: &FieldPath) -> Option<MatchPlan> {
        let mut choices = Vec::new();
        for range in ranges(children, prefix) {
            choices.push((range.nodes, range.plan));
        }
        for child in children {
            if !is_range(child)
                && let Some(plan) = self.node(child, prefix)
            {
                choices.push((vec![child], plan));
            }
        }
        if choices.len() > 1 {
            for (nodes, plan) in &mut choices {
                plan.selectivity = self.selectivity(nodes, plan, prefix);
            }
        }
        let plans = choices.into_iter().map(|(_, plan)| plan);
        plans.min_by(|a, b| a.selectivity.total_cmp(&b.selectivity))
    }

    /// The observed selectivity of a plan, otherwise that of a sample, otherwise a default.
    fn selectivity(&self, nodes: &[&FilterClause], plan: &MatchPlan, prefix: &FieldPath) -> f64 {
        if let Some((entries, observed)) = self.tried
            && is_same(&plan.entries, entries)
        {
            return observed;
        }
        match self.sample {
            Some(sample) if prefix.segments().is_empty() => {
                sample.selectivity(nodes, plan.selectivity, &self.environment)
            }
            _ => plan.selectivity,
        }
    }

    /// The plan of a test of the values at a path.
    fn test(&self, test: &Test, path: FieldPath) -> Option<MatchPlan> {
        if is_too_long(&path) {
            return None;
        }
        match test {
            Test::Compare(Comparison::Equal, operand) => Some(self.equal(path, operand.as_ref())),
            Test::Compare(comparison, operand) => compared(path, *comparison, operand.as_ref()),
            Test::In(list) => Some(self.list(&path, list)),
            Test::Regex(pattern) => Some(self.pattern(&path, pattern)),
            Test::Exists => Some(one(path, Probe::Present, Class::Existence, 0.8)),
            Test::Type(kinds) => Some(of_kinds(&path, kinds.iter(), 0.4)),
            Test::Mod { .. } => Some(of_kinds(&path, numbers(), 0.6)),
            Test::Bits(_) => Some(of_kinds(&path, numbers().chain([BsonType::Binary]), 0.6)),
            Test::Geo(test) => Some(self.region(&path, test.region())),
            Test::Near(near) => Some(self.region(&path, near.region())),
            Test::Size(_) => Some(of_kinds(&path, [BsonType::Array].into_iter(), 0.3)),
            Test::ElementDocument(inner) => {
                let inside = self.node(inner, &path);
                Some(inside.unwrap_or_else(|| of_kinds(&path, [BsonType::Array].into_iter(), 0.3)))
            }
            Test::ElementValue(inner) => Some(self.element(&path, inner)),
        }
    }

    /// `$elemMatch` of values. The walk does not look at the elements of an array that a position
    /// leads to.
    fn element(&self, path: &FieldPath, inner: &FilterClause) -> MatchPlan {
        let sure = path
            .segments()
            .iter()
            .all(|segment| segment.index.is_none());
        let inside = if sure {
            self.element_node(path, inner)
        } else {
            None
        };
        inside.unwrap_or_else(|| of_kinds(path, [BsonType::Array].into_iter(), 0.3))
    }

    fn element_node(&self, path: &FieldPath, node: &FilterClause) -> Option<MatchPlan> {
        match node {
            FilterClause::Field(predicate) => match &predicate.test {
                // These look at an array that is an element as a whole.
                Test::ElementDocument(_) | Test::ElementValue(_) | Test::Size(_) => None,
                test => self.test(test, path.clone()),
            },
            FilterClause::And(children) => {
                let range = element_range(path, children);
                let others = children.iter().filter(|child| !is_range(child));
                let others = others.filter_map(|child| self.element_node(path, child));
                range
                    .into_iter()
                    .chain(others)
                    .min_by(|a, b| a.selectivity.total_cmp(&b.selectivity))
            }
            FilterClause::Or(children) => {
                let plans = children.iter().map(|child| self.element_node(path, child));
                plans.collect::<Option<Vec<_>>>().map(any_of)
            }
            FilterClause::Not(_) | FilterClause::Whole(_) => None,
        }
    }

    fn equal(&self, path: FieldPath, operand: ValueRef<'_>) -> MatchPlan {
        let usual = match operand {
            ValueRef::Bool(_) => 0.4,
            ValueRef::Null | ValueRef::Undefined => 0.1,
            _ => 0.001,
        };
        one(path, self.value(operand), Class::Equality, usual)
    }

    fn value(&self, operand: ValueRef<'_>) -> Probe {
        if matches!(operand, ValueRef::Null) {
            return Probe::Nothing;
        }
        let hash = self.hashes.value(operand, &mut Vec::new());
        if is_compound(operand) {
            Probe::Compound(hash)
        } else {
            Probe::Scalar(hash)
        }
    }

    fn list(&self, path: &FieldPath, list: &List) -> MatchPlan {
        let equal = list.values().iter();
        let equal = equal.map(|value| self.equal(path.clone(), value.as_ref()));
        let patterns = list.patterns().iter();
        let patterns = patterns.map(|pattern| self.pattern(path, pattern));
        any_of(equal.chain(patterns).collect())
    }
}

impl Planner<'_> {
    /// Text with one of the literals that the expression needs, or the
    /// expression as a value.
    fn pattern(&self, path: &FieldPath, pattern: &Pattern) -> MatchPlan {
        let Some(literals) = needed(pattern) else {
            return of_kinds(path, TEXT_KINDS.into_iter(), 0.5);
        };
        let itself = self.value(ValueRef::Regex(Regex {
            pattern: pattern.source(),
            options: pattern.options(),
        }));
        let mut selectivity = 0.0;
        let mut probes = vec![itself];
        for literal in &literals {
            // Longer text is rarer, and anchored text is the rarest.
            let geometry_types = if literal.anchored { 0.1 } else { 0.4 };
            selectivity +=
                geometry_types / f64::from(u8::try_from(literal.text.len()).unwrap_or(u8::MAX));
            probes.push(grams::probe(literal, self.hashes));
        }
        several(path, probes, Class::Literal, selectivity.min(0.5))
    }

    /// A geometry in a region, or any geometry if there is none.
    fn region(&self, path: &FieldPath, region: Option<Region>) -> MatchPlan {
        let probes = region.and_then(|region| cells::probes(&region, self.hashes));
        match probes {
            Some(probes) => several(path, probes, Class::Geo, 0.01),
            None => of_kinds(path, geometry_types(), 0.5),
        }
    }

    /// One of the terms, anywhere in the document.
    fn terms(&self, text: &TextQuery) -> MatchPlan {
        let analyzer = analyzer_number(text.analyzer());
        let probes = text.terms().iter().map(|term| Probe::Term {
            analyzer,
            hash: self.hashes.term(term),
        });
        let probes: Vec<Probe> = probes.collect();
        let count = u16::try_from(probes.len()).unwrap_or(u16::MAX);
        let selectivity = (0.01 * f64::from(count)).min(1.0);
        several(&FieldPath::itself(), probes, Class::Text, selectivity)
    }
}

/// Whether a plan that was just made consists of these entries, in order.
fn is_same(plan: &[EntrySpec], entries: &[EntrySpec]) -> bool {
    // Duplicates are removed only at the end.
    if plan.len() < entries.len() {
        return false;
    }
    let mut sorted: Vec<&EntrySpec> = plan.iter().collect();
    sorted.sort_unstable();
    sorted.dedup();
    sorted.into_iter().eq(entries)
}

/// A single order comparison. MinKey and MaxKey compare with everything, even with missing values.
fn compared(path: FieldPath, comparison: Comparison, operand: ValueRef<'_>) -> Option<MatchPlan> {
    if let Some(interval) = interval(comparison, operand) {
        return Some(ranged(path, interval, false));
    }
    match operand {
        ValueRef::MinKey | ValueRef::MaxKey => None,
        ValueRef::Null => Some(one(path, Probe::Nothing, Class::Equality, 0.1)),
        other => Some(of_kinds(&path, [other.kind()].into_iter(), 0.2)),
    }
}

fn numbers() -> impl Iterator<Item = BsonType> {
    [
        BsonType::Int32,
        BsonType::Int64,
        BsonType::Double,
        BsonType::Decimal,
    ]
    .into_iter()
}

/// The types that geometries have.
fn geometry_types() -> impl Iterator<Item = BsonType> {
    [BsonType::Document, BsonType::Array].into_iter()
}
