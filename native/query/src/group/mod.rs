//! Groups: rows that summarize many documents.
//!
//! `{"by": ["shop", "at.day"], "measures": {"sold": {"op": "sum", "field": "price"}}}` makes one row
//! of all documents with the same values at the paths of `by`. The row is a document:
//!
//! ```text
//! {"_id": {"shop": …, "at": {"day": …}}, "shop": …, "at": {"day": …}, "sold": …}
//! ```
//!
//! so that it can be used for sorting like any other. A document's contribution to its group is its
//! [`GroupShare`]; [`GroupTable`] adds and removes shares, in any order, and always shows the
//! result of the current ones. One-time and live queries use the same code.
//!
//! Paths pass only through documents: anything inside an array is missing, and an array is a value
//! as a whole. A missing value is null. Values that are equal in the order of values (1, 1.0 and
//! decimal 1.00) are one group, which shows their simplest form.

mod decimals;
mod measure;
mod parse;
mod share;
mod simplest;
mod table;
mod value_counts;

pub use share::{GroupShare, RetainedShare};
pub use table::{GroupRow, GroupTable};

use crate::bson::{ArrayWriter, Document, DocumentBuf, DocumentWriter, Value, ValueRef};
use crate::error::{Error, ErrorCode, ParseLocation};
use crate::path::FieldPath;
use crate::sort::{Sort, SortCriterion};

/// The operation of a measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GroupOperator {
    /// The number of documents.
    Count,
    /// The sum of the numbers.
    Sum,
    /// The mean of the numbers.
    Avg,
    /// The least value that is not null.
    Min,
    /// The greatest value that is not null.
    Max,
}

impl GroupOperator {
    const ALL: [Self; 5] = [Self::Count, Self::Sum, Self::Avg, Self::Min, Self::Max];

    const fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Sum => "sum",
            Self::Avg => "avg",
            Self::Min => "min",
            Self::Max => "max",
        }
    }
}

/// One measure of each group.
#[derive(Debug, Clone, PartialEq, Eq)]
struct MeasureDefinition {
    name: String,
    operation: GroupOperator,
    /// `None`: of the whole document.
    field: Option<FieldPath>,
}

/// How documents are grouped. See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupDefinition {
    by: Vec<FieldPath>,
    /// The same as a tree, in the order in which names are met.
    shape: Vec<IdBranch>,
    measures: Vec<MeasureDefinition>,
}

/// A field of a row's `_id`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct IdBranch {
    name: String,
    inner: BranchContent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum BranchContent {
    /// The value of a path, by its number.
    Leaf(usize),
    Branches(Vec<IdBranch>),
}

impl GroupDefinition {
    /// Parses a group.
    pub fn parse(value: ValueRef<'_>, location: &ParseLocation<'_>) -> Result<Self, Error> {
        parse::group(value, location)
    }

    /// The group as [`GroupDefinition::parse`] reads it: equal groups have equal bytes.
    #[must_use]
    pub fn canonical(&self) -> DocumentBuf {
        let mut by = ArrayWriter::new();
        for path in &self.by {
            by.push(ValueRef::String(&path.text()));
        }
        let mut measures = DocumentWriter::new();
        for measure in &self.measures {
            let mut written = DocumentWriter::new();
            written.append("op", ValueRef::String(measure.operation.name()));
            if let Some(field) = &measure.field {
                written.append("field", ValueRef::String(&field.text()));
            }
            let written = DocumentBuf::from(written);
            measures.append(&measure.name, ValueRef::Document(written.as_ref()));
        }
        let mut group = DocumentWriter::new();
        group.append("by", Value::Array(by.into()).as_ref());
        let measures = DocumentBuf::from(measures);
        group.append("measures", ValueRef::Document(measures.as_ref()));
        group.into()
    }

    /// Rejects a sort by fields that no row has.
    pub fn check_sort(&self, sort: &Sort, location: &ParseLocation<'_>) -> Result<(), Error> {
        for (index, key) in sort.keys().iter().enumerate() {
            let known = match &key.by {
                SortCriterion::Path(path) => path.segments().first().is_some_and(|first| {
                    let is = |name: &str| name == &*first.name;
                    is("_id")
                        || self.shape.iter().any(|branch| is(&branch.name))
                        || self.measures.iter().any(|measure| is(&measure.name))
                }),
                SortCriterion::TextScore
                | SortCriterion::Distance
                | SortCriterion::Created
                | SortCriterion::Updated => false,
            };
            if !known {
                return Err(Error::new(
                    ErrorCode::InvalidSort,
                    &location.index(index),
                    "groups can be sorted only by their fields and measures",
                ));
            }
        }
        Ok(())
    }

    /// The fields of a document that groups depend on, and its `_id`.
    #[must_use]
    pub fn reduce(&self, document: Document<'_>) -> DocumentBuf {
        let fields = self.measures.iter().filter_map(|one| one.field.as_ref());
        let needed: Vec<&str> = std::iter::once("_id")
            .chain(self.by.iter().chain(fields).filter_map(|path| {
                let first = path.segments().first()?;
                Some(&*first.name)
            }))
            .collect();
        let mut reduced = DocumentWriter::new();
        for element in document.elements() {
            if element.key().is_some_and(|key| needed.contains(&key)) {
                reduced.append_element(&element);
            }
        }
        reduced.into()
    }
}

/// The value at a path that passes only through documents.
fn at<'a>(document: Document<'a>, path: &FieldPath) -> Option<ValueRef<'a>> {
    let (last, rest) = path.segments().split_last()?;
    let inner = rest.iter().try_fold(document, |document, segment| {
        document.get(&segment.name)?.as_document()
    })?;
    inner.get(&last.name)
}
