//! Evaluates many filters on one document; shared parts are computed once.
//!
//! A [`FilterSet`] interns the paths and the predicates of its filters. For each document a path is
//! followed at most once, and a predicate that several filters have is tested at most once. Answers
//! are kept in a [`PredicateAnswers`] that is reused from document to document; each document has a
//! higher number, which distinguishes its answers from old ones, so nothing is cleared.
//!
//! Each filter has the fuel of one evaluation. An answer that was computed for another filter is
//! charged as if it were computed again: whether a filter can be evaluated must not depend on the
//! other filters of the set.

use std::collections::HashMap;
use std::sync::Arc;

use crate::bson::{Document, ValueRef};
use crate::environment::EvaluationContext;
use crate::error::EvaluationFailure;
use crate::filter::{DocumentMatcher, Filter, FilterClause, Hash, Predicate};
use crate::path::FieldPath;

/// A filter's number in its set. Numbers of removed filters are reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FilterId(pub u32);

/// A filter with its leaves as numbers.
#[derive(Debug)]
enum InternedFilter {
    And(Box<[InternedFilter]>),
    Or(Box<[InternedFilter]>),
    Not(Box<InternedFilter>),
    /// A predicate by its number.
    Leaf(u32),
    /// A test of the whole document.
    Whole(Box<FilterClause>),
}

#[derive(Debug)]
struct FilterMember {
    step: InternedFilter,
    hash: Hash,
}

#[derive(Debug)]
struct SharedPredicate {
    /// Its key in `numbers`.
    bytes: Arc<[u8]>,
    predicate: Predicate,
    path: u32,
    /// How many leaves it is.
    uses: u32,
}

/// A path with its number.
#[derive(Debug)]
struct SharedPath {
    number: u32,
    /// How many predicates it has.
    uses: u32,
}

/// Filters that are matched together.
#[derive(Debug, Default)]
pub struct FilterSet {
    members: Vec<Option<FilterMember>>,
    free: Vec<u32>,
    predicates: Vec<Option<SharedPredicate>>,
    free_predicates: Vec<u32>,
    numbers: HashMap<Arc<[u8]>, u32>,
    paths: HashMap<FieldPath, SharedPath>,
    free_paths: Vec<u32>,
    /// One more than the greatest number of a path.
    path_numbers: u32,
}

/// Answers of one document after the other.
#[derive(Debug, Default)]
pub struct PredicateAnswers {
    document: u32,
    answers: Vec<PredicateAnswer>,
}

/// The result of a predicate.
#[derive(Debug, Default, Clone, Copy)]
struct PredicateAnswer {
    document: u32,
    /// The steps that it took.
    steps: u32,
    matched: bool,
}

impl FilterSet {
    /// Adds a filter.
    pub fn insert(&mut self, filter: &Filter) -> FilterId {
        let step = self.step(filter.root());
        let member = Some(FilterMember {
            step,
            hash: filter.hash(),
        });
        if let Some(id) = self.free.pop()
            && let Some(slot) = self.members.get_mut(id as usize)
        {
            *slot = member;
            return FilterId(id);
        }
        self.members.push(member);
        FilterId(fresh_number(self.members.len() - 1))
    }

    /// Removes a filter; its number may be given again.
    pub fn remove(&mut self, id: FilterId) {
        if let Some(member) = self.members.get_mut(id.0 as usize).and_then(Option::take) {
            self.release(&member.step);
            self.free.push(id.0);
        }
    }

    /// The hash of a filter of the set.
    #[must_use]
    pub fn hash(&self, id: FilterId) -> Option<Hash> {
        self.members
            .get(id.0 as usize)?
            .as_ref()
            .map(|member| member.hash)
    }

    /// How many filters there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len() - self.free.len()
    }

    /// Whether there are no filters.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn step(&mut self, node: &FilterClause) -> InternedFilter {
        match node {
            FilterClause::And(children) => {
                InternedFilter::And(children.iter().map(|child| self.step(child)).collect())
            }
            FilterClause::Or(children) => {
                InternedFilter::Or(children.iter().map(|child| self.step(child)).collect())
            }
            FilterClause::Not(inner) => InternedFilter::Not(Box::new(self.step(inner))),
            FilterClause::Whole(_) => InternedFilter::Whole(Box::new(node.clone())),
            FilterClause::Field(predicate) => InternedFilter::Leaf(self.intern(predicate)),
        }
    }

    fn intern(&mut self, predicate: &Predicate) -> u32 {
        let bytes = Arc::<[u8]>::from(predicate.canonical());
        if let Some(number) = self.numbers.get(&bytes)
            && let Some(Some(shared)) = self.predicates.get_mut(*number as usize)
        {
            shared.uses += 1;
            return *number;
        }
        let (path, number) = self.path(&predicate.path);
        let test = predicate.test.clone();
        let shared = Some(SharedPredicate {
            bytes: bytes.clone(),
            predicate: Predicate { path, test },
            path: number,
            uses: 1,
        });
        let number = self.free_predicates.pop().unwrap_or_else(|| {
            self.predicates.push(None);
            fresh_number(self.predicates.len() - 1)
        });
        if let Some(slot) = self.predicates.get_mut(number as usize) {
            *slot = shared;
        }
        self.numbers.insert(bytes, number);
        number
    }

    /// The set's own copy of a path, which has one more predicate from now on,
    /// and its number.
    fn path(&mut self, path: &FieldPath) -> (FieldPath, u32) {
        if let Some((own, shared)) = self.paths.get_key_value(path) {
            let known = (own.clone(), shared.number);
            if let Some(shared) = self.paths.get_mut(path) {
                shared.uses += 1;
            }
            return known;
        }
        let number = self.free_paths.pop().unwrap_or_else(|| {
            self.path_numbers += 1;
            self.path_numbers - 1
        });
        self.paths
            .insert(path.clone(), SharedPath { number, uses: 1 });
        (path.clone(), number)
    }

    fn release_path(&mut self, path: &FieldPath) {
        if let Some(shared) = self.paths.get_mut(path) {
            shared.uses -= 1;
            if shared.uses == 0 {
                self.free_paths.push(shared.number);
                self.paths.remove(path);
            }
        }
    }

    fn release(&mut self, step: &InternedFilter) {
        match step {
            InternedFilter::And(children) | InternedFilter::Or(children) => {
                children.iter().for_each(|child| self.release(child))
            }
            InternedFilter::Not(inner) => self.release(inner),
            InternedFilter::Whole(_) => {}
            InternedFilter::Leaf(number) => {
                let slot = self.predicates.get_mut(*number as usize);
                let Some(slot) = slot else {
                    return;
                };
                let last = match slot {
                    Some(shared) => {
                        shared.uses -= 1;
                        shared.uses == 0
                    }
                    None => false,
                };
                if last && let Some(shared) = slot.take() {
                    self.numbers.remove(&shared.bytes);
                    self.free_predicates.push(*number);
                    self.release_path(&shared.predicate.path);
                }
            }
        }
    }

    /// Prepares a document for being matched by filters of this set.
    pub fn prepare<'a, 's>(
        &'s self,
        document: Document<'a>,
        now_ms: i64,
        scratch: &'s mut PredicateAnswers,
    ) -> PreparedDocument<'a, 's> {
        scratch.document = scratch.document.wrapping_add(1);
        if scratch.document == 0 {
            // The numbers have wrapped around, so that old answers could be mistaken for new ones.
            scratch.answers.clear();
            scratch.document = 1;
        }
        scratch
            .answers
            .resize(self.predicates.len(), PredicateAnswer::default());
        PreparedDocument {
            set: self,
            document,
            now_ms,
            scratch,
            values: vec![None; self.path_numbers as usize],
        }
    }
}

fn fresh_number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// The result of a path.
#[derive(Debug, Clone, Copy)]
enum Resolved<'a> {
    /// One value or none, so that a test of it decides, and the steps that the
    /// path takes.
    One(Option<ValueRef<'a>>, u64),
    /// An array is on the way: the matcher walks.
    Many,
}

/// A document being matched.
#[derive(Debug)]
pub struct PreparedDocument<'a, 's> {
    set: &'s FilterSet,
    document: Document<'a>,
    now_ms: i64,
    scratch: &'s mut PredicateAnswers,
    values: Vec<Option<Resolved<'a>>>,
}

impl PreparedDocument<'_, '_> {
    /// Whether the document matches a filter of the set.
    pub fn matches(&mut self, id: FilterId) -> Result<bool, EvaluationFailure> {
        let set = self.set;
        match set.members.get(id.0 as usize) {
            Some(Some(member)) => self.step(&member.step, &EvaluationContext::at(self.now_ms)),
            _ => Ok(false),
        }
    }

    fn step(
        &mut self,
        step: &InternedFilter,
        environment: &EvaluationContext,
    ) -> Result<bool, EvaluationFailure> {
        match step {
            InternedFilter::Leaf(number) => self.leaf(*number, environment),
            InternedFilter::Not(inner) => self.step(inner, environment).map(|matched| !matched),
            InternedFilter::And(children) => {
                for child in children {
                    if !self.step(child, environment)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            InternedFilter::Or(children) => {
                for child in children {
                    if self.step(child, environment)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            InternedFilter::Whole(node) => {
                DocumentMatcher::new(self.document, environment).node(node, self.document)
            }
        }
    }

    fn leaf(
        &mut self,
        number: u32,
        environment: &EvaluationContext,
    ) -> Result<bool, EvaluationFailure> {
        let set = self.set;
        let Some(Some(shared)) = set.predicates.get(number as usize) else {
            return Ok(false);
        };
        if shared.uses == 1 {
            return self.test(shared, environment);
        }
        let current = self.scratch.document;
        if let Some(known) = self.scratch.answers.get(number as usize)
            && known.document == current
        {
            environment.fuel.steps(known.steps.into())?;
            return Ok(known.matched);
        }
        let before = environment.fuel.steps_left();
        let matched = self.test(shared, environment)?;
        let steps = before.saturating_sub(environment.fuel.steps_left());
        if let Some(slot) = self.scratch.answers.get_mut(number as usize) {
            *slot = PredicateAnswer {
                document: current,
                steps: u32::try_from(steps).unwrap_or(u32::MAX),
                matched,
            };
        }
        Ok(matched)
    }

    fn test(
        &mut self,
        shared: &SharedPredicate,
        environment: &EvaluationContext,
    ) -> Result<bool, EvaluationFailure> {
        let slot = self.values.get(shared.path as usize).copied().flatten();
        let resolved = slot.unwrap_or_else(|| {
            let only = shared.predicate.path.only_value(self.document);
            let resolved =
                only.map_or(Resolved::Many, |(value, steps)| Resolved::One(value, steps));
            if let Some(slot) = self.values.get_mut(shared.path as usize) {
                *slot = Some(resolved);
            }
            resolved
        });
        let matcher = DocumentMatcher::new(self.document, environment);
        match resolved {
            Resolved::One(value, steps) => {
                environment.fuel.steps(steps)?;
                matcher.test(&shared.predicate.test, value)
            }
            Resolved::Many => matcher.predicate(&shared.predicate, self.document),
        }
    }
}
