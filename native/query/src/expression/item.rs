//! Intermediate values of an expression.

use crate::bson::{Array, ArrayBuf, Document, DocumentBuf, Value, ValueRef};
use crate::error::EvaluationFailure;
use crate::number::NumericValue;

/// A value, borrowed from the document or computed.
#[derive(Debug, Clone)]
pub enum ExpressionItem<'a> {
    /// Borrowed.
    Ref(ValueRef<'a>),
    /// Computed.
    Own(Value),
}

/// A value, or `None` if it is missing.
pub type Out<'a> = Option<ExpressionItem<'a>>;

impl ExpressionItem<'_> {
    /// The view.
    #[must_use]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Ref(value) => *value,
            Self::Own(value) => value.as_ref(),
        }
    }

    /// Whether it is null or undefined.
    #[must_use]
    pub const fn is_null(&self) -> bool {
        matches!(
            self,
            Self::Ref(ValueRef::Null | ValueRef::Undefined)
                | Self::Own(Value::Null | Value::Undefined)
        )
    }
}

impl<'a> From<ValueRef<'a>> for ExpressionItem<'a> {
    fn from(value: ValueRef<'a>) -> Self {
        Self::Ref(value)
    }
}

impl From<Value> for ExpressionItem<'_> {
    fn from(value: Value) -> Self {
        Self::Own(value)
    }
}

/// A null result.
pub(super) const NULL: Out<'static> = Some(ExpressionItem::Own(Value::Null));

#[allow(
    clippy::unnecessary_wraps,
    reason = "answers may be missing; this one is not"
)]
pub(super) fn own<'a>(value: Value) -> Out<'a> {
    Some(ExpressionItem::Own(value))
}

pub(super) fn boolean<'a>(bool: bool) -> Out<'a> {
    own(Value::Bool(bool))
}

pub(super) fn text<'a>(text: impl Into<String>) -> Out<'a> {
    own(Value::String(text.into()))
}

pub(super) fn array<'a, 'v>(values: impl IntoIterator<Item = ValueRef<'v>>) -> Out<'a> {
    own(Value::Array(ArrayBuf::from_iter(values)))
}

pub(super) fn document<'a>(document: DocumentBuf) -> Out<'a> {
    own(Value::Document(document))
}

/// A count as an int, or a long when it is larger.
pub(super) fn count<'a>(count: usize) -> Out<'a> {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    own(crate::arithmetic::sized(count, true))
}

/// The evaluated arguments of a function; an optional one may be absent.
pub(super) struct Args<'a> {
    pub(super) name: &'static str,
    pub(super) values: Vec<Option<Out<'a>>>,
}

impl<'a> Args<'a> {
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether an optional argument was given.
    pub(super) fn given(&self, index: usize) -> bool {
        self.values.get(index).is_some_and(Option::is_some)
    }

    /// The value; `None` if absent or missing.
    pub(super) fn get(&self, index: usize) -> Option<ValueRef<'_>> {
        self.values
            .get(index)?
            .as_ref()?
            .as_ref()
            .map(ExpressionItem::as_ref)
    }

    /// All arguments in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Option<ValueRef<'_>>> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// The item itself, for results that are an argument.
    pub(super) fn take(&mut self, index: usize) -> Out<'a> {
        self.values.get_mut(index)?.take()?
    }

    /// Whether the argument is missing, null or undefined.
    pub(super) fn is_null(&self, index: usize) -> bool {
        is_null(self.get(index))
    }

    pub(super) fn any_null(&self) -> bool {
        self.iter().any(is_null)
    }

    pub(super) fn refuse(&self, detail: &str) -> EvaluationFailure {
        EvaluationFailure::refused(format!("{} {detail}", self.name))
    }

    /// A number, or an error.
    pub(super) fn number(&self, index: usize) -> Result<NumericValue, EvaluationFailure> {
        self.get(index)
            .and_then(NumericValue::from_value)
            .ok_or_else(|| self.wrong(index, "a number"))
    }

    /// A string, or an error.
    pub(super) fn text(&self, index: usize) -> Result<&str, EvaluationFailure> {
        match self.get(index) {
            Some(ValueRef::String(text) | ValueRef::Symbol(text)) => Ok(text),
            _ => Err(self.wrong(index, "a string")),
        }
    }

    /// An array, or an error.
    pub(super) fn array(&self, index: usize) -> Result<Array<'_>, EvaluationFailure> {
        self.get(index)
            .and_then(|value| value.as_array())
            .ok_or_else(|| self.wrong(index, "an array"))
    }

    /// A document, or an error.
    pub(super) fn document(&self, index: usize) -> Result<Document<'_>, EvaluationFailure> {
        self.get(index)
            .and_then(|value| value.as_document())
            .ok_or_else(|| self.wrong(index, "a document"))
    }

    /// A whole number, or an error.
    pub(super) fn whole(&self, index: usize) -> Result<i64, EvaluationFailure> {
        self.get(index)
            .and_then(|value| value.as_exact_i64())
            .ok_or_else(|| self.wrong(index, "a whole number"))
    }

    pub(super) fn wrong(&self, index: usize, expected: &str) -> EvaluationFailure {
        let actual = self
            .get(index)
            .map_or("missing", |value| value.kind().alias());
        EvaluationFailure::refused(format!(
            "{} takes {expected} as argument {}, not {actual}",
            self.name,
            index + 1
        ))
    }
}

pub(super) const fn is_null(value: Option<ValueRef<'_>>) -> bool {
    matches!(value, None | Some(ValueRef::Null | ValueRef::Undefined))
}

/// An empty array as a result.
pub(super) fn empty_array<'a>() -> Out<'a> {
    array(std::iter::empty())
}
