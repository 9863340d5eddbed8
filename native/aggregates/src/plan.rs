//! The plan of a query: which rollup is read, where in it, and how rows are grouped.

use std::collections::BTreeSet;

use rillbase_query::bson::{Array, Document, ValueRef};

use rillbase_binary_format::ByteReader;

use crate::definition::{AggregateDefinition, AggregateMeasure};
use crate::error::Result;
use crate::query::{AggregateQuery, Compare, fields, refuse};
use crate::value::DimensionValue;

/// A column by which rows are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupColumn {
    /// The value at this index of the rollup.
    Value(usize),
    /// The bucket.
    Bucket,
}

impl GroupColumn {
    /// Skips the value of this column in the key of a group.
    pub(crate) fn skip(self, reader: &mut ByteReader<'_>) -> Result<()> {
        match self {
            Self::Value(_) => DimensionValue::skip(reader)?,
            Self::Bucket => drop(reader.take(8)?),
        }
        Ok(())
    }
}

/// A sort column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AggregateSort {
    /// The index of a group column.
    By(usize),
    /// The index of a measure that is shown.
    Measure(usize),
}

/// The plan of a query.
#[derive(Debug)]
pub(crate) struct AggregatePlan<'a> {
    pub(crate) definition: &'a AggregateDefinition,
    pub(crate) query: &'a AggregateQuery,
    /// The rollup's number, and its dimensions.
    pub(crate) rollup: usize,
    pub(crate) dimensions: &'a [usize],
    /// For each value of the rollup: the values that can match, if the filter restricts it.
    pub(crate) allowed: Vec<Option<BTreeSet<Vec<u8>>>>,
    /// Whether that is the whole filter.
    pub(crate) is_decided: bool,
    pub(crate) by: Vec<GroupColumn>,
    /// The length of the buckets in the result.
    pub(crate) bucket: i64,
    pub(crate) measures: Vec<(usize, &'a AggregateMeasure)>,
    pub(crate) sort: Vec<(AggregateSort, bool)>,
    /// Rounded to buckets.
    pub(crate) from: Option<i64>,
    pub(crate) to: Option<i64>,
    /// How much earlier the compared rows are.
    pub(crate) earlier: Option<i64>,
}

impl<'a> AggregatePlan<'a> {
    pub(crate) fn new(
        definition: &'a AggregateDefinition,
        query: &'a AggregateQuery,
    ) -> Result<Self> {
        let rollup = choose(definition, query)?;
        let dimensions = definition
            .rollups
            .get(rollup)
            .map_or(&[][..], Vec::as_slice);
        let by = group(definition, query, dimensions)?;
        let measures = shown(definition, query)?;
        let sort = sort(definition, query, (dimensions, &by), &measures)?;
        let bucket = bucket(definition, query)?;
        let round = |at: i64| at - at.rem_euclid(bucket.max(1));
        let (from, to) = (query.from.map(round), query.to.map(round));
        if definition.time.is_none() && (from.is_some() || to.is_some()) {
            let pointer = if from.is_some() { "/from" } else { "/to" };
            return Err(refuse(pointer, "this aggregate has no time"));
        }
        // An end within a bucket includes it.
        let to = match (to, query.to) {
            (Some(rounded), Some(requested)) if rounded < requested => {
                Some(rounded.saturating_add(bucket))
            }
            (to, _) => to,
        };
        let mut plan = Self {
            definition,
            query,
            rollup,
            dimensions,
            allowed: Vec::new(),
            is_decided: false,
            by,
            bucket,
            measures,
            sort,
            from,
            to,
            earlier: None,
        };
        plan.earlier = plan.find_earlier()?;
        (plan.allowed, plan.is_decided) = plan.find_allowed();
        Ok(plan)
    }

    /// Whether rows are stored in the order of the result, with the rows of a group adjacent.
    pub(crate) fn is_in_order(&self) -> bool {
        let is_single = |index: usize| {
            let allowed = self.allowed.get(index).and_then(Option::as_ref);
            allowed.is_some_and(|allowed| allowed.len() == 1)
        };
        // A value that all rows share does not affect the order.
        let changes =
            |by: &&GroupColumn| !matches!(by, GroupColumn::Value(index) if is_single(*index));
        let values = (0..self.dimensions.len()).map(GroupColumn::Value);
        let keys: Vec<GroupColumn> = values.chain([GroupColumn::Bucket]).collect();
        let mut of_keys = keys.iter().filter(changes);
        let in_order = self
            .by
            .iter()
            .filter(changes)
            .all(|by| of_keys.next() == Some(by));
        in_order && self.sort.is_empty() && self.earlier.is_none()
    }

    /// Whether the buckets in the result are those of rows.
    pub(crate) fn has_own_buckets(&self) -> bool {
        let time = self.definition.time.as_ref();
        time.is_none_or(|time| time.bucket == self.bucket)
    }

    fn find_earlier(&self) -> Result<Option<i64>> {
        let by_time = self.by.contains(&GroupColumn::Bucket);
        match (self.query.compare, self.definition.time.is_some()) {
            (None, _) => Ok(None),
            (Some(_), false) => Err(refuse("/compare", "this aggregate has no time")),
            (Some(Compare::Earlier(length)), _) if length % self.bucket == 0 => Ok(Some(length)),
            (Some(Compare::Earlier(_)), _) => {
                Err(refuse("/compare", "it must be a multiple of the bucket"))
            }
            (Some(Compare::Previous), _) if by_time => Ok(Some(self.bucket)),
            (Some(Compare::Previous), _) => match (self.from, self.to) {
                (Some(from), Some(to)) if from < to => Ok(Some(to - from)),
                _ => Err(refuse(
                    "/compare",
                    "the period needs a beginning and an end",
                )),
            },
        }
    }

    /// The values that a filter admits, if it restricts them by equality, and whether that is the
    /// whole filter.
    fn find_allowed(&self) -> (Vec<Option<BTreeSet<Vec<u8>>>>, bool) {
        let mut allowed = vec![None; self.dimensions.len()];
        let is_decided = match &self.query.filter {
            Some((document, _)) => self.allow(document.as_ref(), &mut allowed),
            None => true,
        };
        (allowed, is_decided)
    }

    fn allow(&self, filter: Document<'_>, allowed: &mut [Option<BTreeSet<Vec<u8>>>]) -> bool {
        let mut is_decided = true;
        for (name, test) in filter.iter() {
            if name == "$and" {
                let parts = test.as_array();
                let parts = parts.iter().flat_map(Array::iter);
                for part in parts.filter_map(|part| part.as_document()) {
                    is_decided &= self.allow(part, allowed);
                }
                continue;
            }
            let positions = self.dimensions.iter().enumerate();
            let mut matches = positions.filter(|&(_, &dimension)| {
                let field = self.definition.dimensions.get(dimension);
                field.is_some_and(|field| field.name == name)
            });
            let slot = matches.next().and_then(|(index, _)| allowed.get_mut(index));
            let (Some(slot), Some(values)) = (slot, equal_to(test)) else {
                is_decided = false;
                continue;
            };
            is_decided &= is_alone(test);
            match slot {
                Some(known) => known.retain(|value| values.contains(value)),
                None => *slot = Some(values),
            }
        }
        is_decided
    }
}

/// The values that a test admits, in the sortable encoding, if they can be listed.
fn equal_to(test: ValueRef<'_>) -> Option<BTreeSet<Vec<u8>>> {
    let one = |value: ValueRef<'_>| {
        let is_plain = !matches!(value, ValueRef::Regex(_) | ValueRef::Document(_));
        let value = DimensionValue::of(Some(value));
        (is_plain && !matches!(value, DimensionValue::Other(_))).then(|| value.encoded())
    };
    let Some(operators) = test.as_document() else {
        return Some(BTreeSet::from([one(test)?]));
    };
    if let Some(value) = operators.get("$eq") {
        return Some(BTreeSet::from([one(value)?]));
    }
    let listed = operators.get("$in")?.as_array()?;
    listed.iter().map(one).collect()
}

/// Whether a test that lists values requires nothing else.
fn is_alone(test: ValueRef<'_>) -> bool {
    test.as_document()
        .is_none_or(|operators| operators.iter().count() == 1)
}

fn choose(definition: &AggregateDefinition, query: &AggregateQuery) -> Result<usize> {
    let dimension_of = |name: &String| definition.dimension(name);
    if let Some(names) = &query.rollup {
        let requested: Option<BTreeSet<usize>> = names.iter().map(dimension_of).collect();
        let rollup = definition.rollups.iter().position(|rollup| {
            let has: BTreeSet<usize> = rollup.iter().copied().collect();
            requested.as_ref() == Some(&has)
        });
        return rollup.ok_or_else(|| refuse("/rollup", "no rollup has these dimensions"));
    }
    let Some(group_by) = &query.group_by else {
        return Ok(0);
    };
    let mut needed: BTreeSet<usize> = group_by.iter().filter_map(dimension_of).collect();
    if let Some((document, _)) = &query.filter {
        let mut names = Vec::new();
        if !fields(document.as_ref(), &mut names) {
            return Ok(0);
        }
        needed.extend(
            names
                .into_iter()
                .filter_map(|name| definition.dimension(name)),
        );
    }
    let fits = |(_, rollup): &(usize, &Vec<usize>)| {
        needed.iter().all(|dimension| rollup.contains(dimension))
    };
    let rollups = definition.rollups.iter().enumerate().filter(fits);
    // The first of equally short ones.
    let shortest = rollups.min_by_key(|(number, rollup)| (rollup.len(), *number));
    Ok(shortest.map_or(0, |(number, _)| number))
}

fn by(definition: &AggregateDefinition, dimensions: &[usize], name: &str) -> Option<GroupColumn> {
    let time = definition.time.as_ref();
    if time.is_some_and(|time| time.field.name == name) {
        return Some(GroupColumn::Bucket);
    }
    let dimension = definition.dimension(name)?;
    let index = dimensions.iter().position(|&other| other == dimension)?;
    Some(GroupColumn::Value(index))
}

fn group(
    definition: &AggregateDefinition,
    query: &AggregateQuery,
    dimensions: &[usize],
) -> Result<Vec<GroupColumn>> {
    if let Some((document, _)) = &query.filter {
        let mut names = Vec::new();
        fields(document.as_ref(), &mut names);
        let unknown = names
            .into_iter()
            .find(|name| by(definition, dimensions, name).is_none());
        if let Some(name) = unknown {
            let detail = format!("'{name}' is not a dimension of the rollup that is read");
            let pointer = format!("/filter/{}", crate::error::segment(name));
            return Err(refuse(pointer, detail));
        }
    }
    let Some(names) = &query.group_by else {
        let values = (0..dimensions.len()).map(GroupColumn::Value);
        let bucket = definition.time.iter().map(|_| GroupColumn::Bucket);
        return Ok(values.chain(bucket).collect());
    };
    let mut group = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let pointer = format!("/group_by/{index}");
        match by(definition, dimensions, name) {
            Some(by) if !group.contains(&by) => group.push(by),
            Some(_) => return Err(refuse(pointer, format!("'{name}' appears twice"))),
            None => {
                let detail = format!("'{name}' is not a dimension of the rollup that is read");
                return Err(refuse(pointer, detail));
            }
        }
    }
    Ok(group)
}

fn shown<'a>(
    definition: &'a AggregateDefinition,
    query: &AggregateQuery,
) -> Result<Vec<(usize, &'a AggregateMeasure)>> {
    let all = || definition.measures.iter().enumerate();
    let Some(names) = &query.measures else {
        return Ok(all().collect());
    };
    let find = |(index, name): (usize, &String)| {
        let measure = all().find(|(_, measure)| measure.name == *name);
        measure.ok_or_else(|| {
            let detail = format!("'{name}' is not a measure");
            refuse(format!("/measures/{index}"), detail)
        })
    };
    names.iter().enumerate().map(find).collect()
}

fn sort(
    definition: &AggregateDefinition,
    query: &AggregateQuery,
    (dimensions, group): (&[usize], &[GroupColumn]),
    measures: &[(usize, &AggregateMeasure)],
) -> Result<Vec<(AggregateSort, bool)>> {
    let keys = query
        .order
        .iter()
        .enumerate()
        .map(|(index, (name, descends))| {
            let requested = by(definition, dimensions, name);
            let by = group.iter().position(|by| Some(*by) == requested);
            let measure = measures
                .iter()
                .position(|(_, measure)| measure.name == *name);
            match (by, measure) {
                (Some(by), _) => Ok((AggregateSort::By(by), *descends)),
                (_, Some(measure)) => Ok((AggregateSort::Measure(measure), *descends)),
                _ => {
                    let detail = format!("'{name}' is not shown");
                    Err(refuse(format!("/order/{index}"), detail))
                }
            }
        });
    keys.collect()
}

fn bucket(definition: &AggregateDefinition, query: &AggregateQuery) -> Result<i64> {
    let own = definition.time.as_ref().map_or(1, |time| time.bucket);
    match query.bucket {
        None => Ok(own),
        Some(_) if definition.time.is_none() => {
            Err(refuse("/bucket", "this aggregate has no time"))
        }
        Some(length) if length % own == 0 => Ok(length),
        Some(_) => Err(refuse(
            "/bucket",
            "it must be a multiple of the definition's bucket",
        )),
    }
}
