//! What an aggregate is: its dimensions, buckets, measures and rollups.

use rillbase_query::bson::{Document, ValueRef};

use crate::error::segment;
use crate::sketch::Accuracy;
use crate::state::RowState;

/// A field of events, with the segments of its dotted path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DottedField {
    /// As it was written.
    pub name: String,
    path: Vec<String>,
}

impl DottedField {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            path: name.split('.').map(str::to_owned).collect(),
        }
    }

    /// Its value in a document. Arrays are not searched.
    pub fn find<'a>(&self, document: Document<'a>) -> Option<ValueRef<'a>> {
        let (last, path) = self.path.split_last()?;
        let mut inner = document;
        for segment in path {
            inner = inner.get(segment)?.as_document()?;
        }
        inner.get(last)
    }

    /// Its name, if it is not a path.
    pub(crate) fn single(&self) -> Option<&str> {
        match self.path.as_slice() {
            [name] => Some(name),
            _ => None,
        }
    }

    /// Its pointer in an event.
    pub fn pointer(&self) -> String {
        let segments = self.path.iter().map(|name| format!("/{}", segment(name)));
        segments.collect()
    }
}

/// How the time of events is divided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeBucketing {
    /// The time of an event.
    pub field: DottedField,
    /// The length of a bucket, in milliseconds.
    pub bucket: i64,
}

/// What numbers are summed as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SumType {
    /// Integers of 64 bits.
    Int,
    /// Doubles.
    Double,
    /// Decimals with this many decimal places.
    Decimal(u32),
}

/// A measure's operation.
#[derive(Debug, Clone, PartialEq)]
pub enum MeasureOperator {
    /// The number of events.
    Count,
    /// The sum of a field.
    Sum(DottedField, SumType),
    /// Its mean.
    Avg(DottedField, SumType),
    /// Its least value.
    Min(DottedField),
    /// Its greatest value.
    Max(DottedField),
    /// How many distinct values it has.
    Distinct(DottedField),
    /// Its quantiles.
    Quantiles(DottedField, Vec<f64>, Accuracy),
    /// Its most frequent values.
    Top(DottedField, usize),
}

impl MeasureOperator {
    /// Its field.
    pub fn field(&self) -> Option<&DottedField> {
        match self {
            Self::Count => None,
            Self::Sum(field, _)
            | Self::Avg(field, _)
            | Self::Min(field)
            | Self::Max(field)
            | Self::Distinct(field)
            | Self::Quantiles(field, ..)
            | Self::Top(field, _) => Some(field),
        }
    }
}

/// A measure.
#[derive(Debug, Clone, PartialEq)]
pub struct AggregateMeasure {
    /// Its name in rows.
    pub name: String,
    /// Its operation.
    pub op: MeasureOperator,
    /// The first of its slots in a row.
    pub slot: usize,
    /// Whether it is stored as counted items, each in its own row.
    pub has_items: bool,
}

/// The source of contributions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContributionSource {
    /// Events, which are only ever added.
    Events,
    /// Documents, whose contributions are retracted when they change.
    View,
}

/// An aggregate's definition.
#[derive(Debug, Clone, PartialEq)]
pub struct AggregateDefinition {
    /// The dimensions of rows.
    pub dimensions: Vec<DottedField>,
    /// The time buckets, if any.
    pub time: Option<TimeBucketing>,
    /// The measures.
    pub measures: Vec<AggregateMeasure>,
    /// Levels of detail, as positions of dimensions; the first has all of them.
    pub rollups: Vec<Vec<usize>>,
    /// The source of contributions.
    pub source: ContributionSource,
    /// How long buckets are kept after their end, in milliseconds.
    pub retention: Option<i64>,
    /// An empty row.
    pub empty: RowState,
}

impl AggregateDefinition {
    /// The measure with a name.
    pub fn measure(&self, name: &str) -> Option<&AggregateMeasure> {
        self.measures.iter().find(|measure| measure.name == name)
    }

    /// The index of a dimension.
    pub fn dimension(&self, name: &str) -> Option<usize> {
        self.dimensions.iter().position(|field| field.name == name)
    }

    /// The bucket that contains a time.
    pub fn bucket(&self, at: i64) -> Option<i64> {
        let time = self.time.as_ref()?;
        Some(at.saturating_sub(at.rem_euclid(time.bucket)))
    }

    /// When the bucket that starts at `bucket` expires.
    pub fn expires(&self, bucket: i64) -> Option<i64> {
        let length = self.time.as_ref()?.bucket;
        Some(
            bucket
                .saturating_add(length)
                .saturating_add(self.retention?),
        )
    }
}
