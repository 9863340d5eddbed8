//! Evaluates an expression.

use std::cmp::Ordering;

use super::function::{Family, Function as F};
use super::item::{NULL, boolean, own};
use super::{
    Args, ExpressionItem, ExpressionTree, Out, arrays, convert, dates, maths, objects, sets,
    strings,
};
use crate::bson::{ArrayWriter, Document, DocumentBuf, DocumentWriter, Value, ValueRef};
use crate::environment::EvaluationContext;
use crate::error::EvaluationFailure;
use crate::order::compare;
use crate::path::PathSegment;
use crate::truth::is_true;

/// One evaluation: a document and the variables' values by number.
pub(super) struct Evaluation<'a, 'e> {
    root: Document<'a>,
    environment: &'e EvaluationContext,
    variables: Vec<Out<'a>>,
}

impl<'a, 'e> Evaluation<'a, 'e> {
    pub(super) const fn new(root: Document<'a>, environment: &'e EvaluationContext) -> Self {
        Self {
            root,
            environment,
            variables: Vec::new(),
        }
    }

    pub(super) fn tree(&mut self, tree: &ExpressionTree) -> Result<Out<'a>, EvaluationFailure> {
        self.environment.fuel.step()?;
        match tree {
            ExpressionTree::Literal(value) => {
                self.environment.fuel.bytes(value.size())?;
                Ok(own(value.clone()))
            }
            ExpressionTree::Field(path) => self.follow(ValueRef::Document(self.root), path),
            ExpressionTree::Variable(number, path) => self.variable(*number, path),
            ExpressionTree::Now => Ok(own(Value::Date(self.environment.now_ms))),
            ExpressionTree::Missing => Ok(None),
            ExpressionTree::Document(fields) => self.document(fields),
            ExpressionTree::Array(items) => self.array(items),
            ExpressionTree::Call(function, args) => self.call(*function, args),
            ExpressionTree::Pattern(function, pattern, input) => {
                let args = Args {
                    name: function.name(),
                    values: vec![Some(self.tree(input)?)],
                };
                strings::with_pattern(*function, pattern, &args, &self.environment.fuel)
            }
            ExpressionTree::And(items) => self.connective(items, false),
            ExpressionTree::Or(items) => self.connective(items, true),
            ExpressionTree::Condition(parts) => {
                let [condition, then, otherwise] = parts.as_ref();
                let chosen = if self.truth(condition)? {
                    then
                } else {
                    otherwise
                };
                self.tree(chosen)
            }
            ExpressionTree::IfNull(items) => {
                let mut last = None;
                for item in items {
                    last = self.tree(item)?;
                    if last.as_ref().is_some_and(|item| !item.is_null()) {
                        break;
                    }
                }
                Ok(last)
            }
            ExpressionTree::Switch(branches, default) => {
                for (case, then) in branches {
                    if self.truth(case)? {
                        return self.tree(then);
                    }
                }
                match default {
                    Some(default) => self.tree(default),
                    None => Err(EvaluationFailure::refused(
                        "no branch of $switch applies, and it has no default",
                    )),
                }
            }
            ExpressionTree::Let(bindings, result) => {
                for (number, value) in bindings {
                    let value = self.tree(value)?;
                    self.bind(*number, value);
                }
                self.tree(result)
            }
            ExpressionTree::Map {
                input,
                each,
                result,
            } => self.map(input, *each, result),
            ExpressionTree::Filter {
                input,
                each,
                keep,
                limit,
            } => self.filter(input, *each, keep, limit.as_deref()),
            ExpressionTree::Reduce {
                input,
                initial,
                each,
                sum,
                result,
            } => {
                let Some(input) = self.elements(input, "$reduce")? else {
                    return Ok(NULL);
                };
                let mut total = self.tree(initial)?;
                for item in input.items() {
                    self.bind(*each, Some(item));
                    self.bind(*sum, total);
                    total = self.tree(result)?;
                }
                Ok(total)
            }
        }
    }

    fn truth(&mut self, tree: &ExpressionTree) -> Result<bool, EvaluationFailure> {
        Ok(self.tree(tree)?.is_some_and(|item| is_true(item.as_ref())))
    }

    fn connective(
        &mut self,
        items: &[ExpressionTree],
        any: bool,
    ) -> Result<Out<'a>, EvaluationFailure> {
        for item in items {
            if self.truth(item)? == any {
                return Ok(boolean(any));
            }
        }
        Ok(boolean(!any))
    }

    fn bind(&mut self, number: usize, value: Out<'a>) {
        if self.variables.len() <= number {
            self.variables.resize(number + 1, None);
        }
        if let Some(slot) = self.variables.get_mut(number) {
            *slot = value;
        }
    }

    fn variable(
        &mut self,
        number: usize,
        path: &[PathSegment],
    ) -> Result<Out<'a>, EvaluationFailure> {
        let Some(Some(item)) = self.variables.get(number) else {
            return Ok(None);
        };
        match item {
            ExpressionItem::Ref(value) => self.follow(*value, path),
            ExpressionItem::Own(value) => {
                self.environment.fuel.bytes(value.size())?;
                if path.is_empty() {
                    return Ok(Some(item.clone()));
                }
                Ok(self
                    .follow(value.as_ref(), path)?
                    .map(|value| ExpressionItem::Own(value.as_ref().into())))
            }
        }
    }

    /// Follows a path; at an array it collects the values of its documents.
    fn follow<'v>(
        &self,
        value: ValueRef<'v>,
        path: &[PathSegment],
    ) -> Result<Out<'v>, EvaluationFailure> {
        let Some((first, rest)) = path.split_first() else {
            return Ok(Some(ExpressionItem::Ref(value)));
        };
        match value {
            ValueRef::Document(document) => match document.get(&first.name) {
                Some(inner) => self.follow(inner, rest),
                None => Ok(None),
            },
            ValueRef::Array(items) => {
                let mut writer = ArrayWriter::new();
                for item in items.iter() {
                    self.environment.fuel.step()?;
                    if let ValueRef::Document(_) = item
                        && let Some(value) = self.follow(item, path)?
                    {
                        writer.push(value.as_ref());
                    }
                }
                self.environment.fuel.bytes(writer.len())?;
                Ok(own(Value::Array(writer.into())))
            }
            _ => Ok(None),
        }
    }

    fn document(
        &mut self,
        fields: &[(String, ExpressionTree)],
    ) -> Result<Out<'a>, EvaluationFailure> {
        let mut writer = DocumentWriter::new();
        for (name, tree) in fields {
            if let Some(item) = self.tree(tree)? {
                writer.append(name, item.as_ref());
            }
        }
        self.environment.fuel.bytes(writer.len())?;
        Ok(own(Value::Document(DocumentBuf::from(writer))))
    }

    fn array(&mut self, items: &[ExpressionTree]) -> Result<Out<'a>, EvaluationFailure> {
        let mut writer = ArrayWriter::new();
        for tree in items {
            match self.tree(tree)? {
                Some(item) => writer.push(item.as_ref()),
                None => writer.push(ValueRef::Null),
            }
        }
        self.environment.fuel.bytes(writer.len())?;
        Ok(own(Value::Array(writer.into())))
    }

    /// The array that an operator iterates over; `None` if its input is null.
    fn elements(
        &mut self,
        input: &ExpressionTree,
        name: &str,
    ) -> Result<Option<ArrayElements<'a>>, EvaluationFailure> {
        match self.tree(input)? {
            None => Ok(None),
            Some(item) if item.is_null() => Ok(None),
            Some(ExpressionItem::Ref(ValueRef::Array(array))) => {
                Ok(Some(ArrayElements::Ref(array)))
            }
            Some(ExpressionItem::Own(Value::Array(array))) => Ok(Some(ArrayElements::Own(array))),
            Some(other) => {
                let kind = other.as_ref().kind().alias();
                Err(EvaluationFailure::refused(format!(
                    "{name} takes an array as its input, not {kind}"
                )))
            }
        }
    }

    fn map(
        &mut self,
        input: &ExpressionTree,
        each: usize,
        result: &ExpressionTree,
    ) -> Result<Out<'a>, EvaluationFailure> {
        let Some(input) = self.elements(input, "$map")? else {
            return Ok(NULL);
        };
        let mut writer = ArrayWriter::new();
        for item in input.items() {
            self.bind(each, Some(item));
            match self.tree(result)? {
                Some(item) => writer.push(item.as_ref()),
                None => writer.push(ValueRef::Null),
            }
            within(writer.len())?;
        }
        self.environment.fuel.bytes(writer.len())?;
        Ok(own(Value::Array(writer.into())))
    }

    fn filter(
        &mut self,
        input: &ExpressionTree,
        each: usize,
        keep: &ExpressionTree,
        limit: Option<&ExpressionTree>,
    ) -> Result<Out<'a>, EvaluationFailure> {
        let Some(input) = self.elements(input, "$filter")? else {
            return Ok(NULL);
        };
        let limit = match limit.map(|limit| self.tree(limit)).transpose()?.flatten() {
            None => usize::MAX,
            Some(item) if item.is_null() => usize::MAX,
            Some(item) => match item.as_ref().as_exact_i64() {
                Some(limit) if limit > 0 => usize::try_from(limit).unwrap_or(usize::MAX),
                _ => {
                    return Err(EvaluationFailure::refused(
                        "the limit of $filter must be a positive integer",
                    ));
                }
            },
        };
        let mut writer = ArrayWriter::new();
        for item in input.items() {
            if writer.count() == limit {
                break;
            }
            self.bind(each, Some(item.clone()));
            if self.truth(keep)? {
                writer.push(item.as_ref());
            }
        }
        self.environment.fuel.bytes(writer.len())?;
        Ok(own(Value::Array(writer.into())))
    }

    fn call(
        &mut self,
        function: F,
        args: &[Option<ExpressionTree>],
    ) -> Result<Out<'a>, EvaluationFailure> {
        let mut values = Vec::with_capacity(args.len());
        for arg in args {
            values.push(match arg {
                Some(tree) => Some(self.tree(tree)?),
                None => None,
            });
        }
        let args = Args {
            name: function.name(),
            values,
        };
        let out = dispatch(function, args, self.root, self.environment)?;
        if let Some(ExpressionItem::Own(value)) = &out {
            self.environment.fuel.bytes(value.size())?;
        }
        Ok(out)
    }
}

/// An array being walked.
enum ArrayElements<'a> {
    Ref(crate::bson::Array<'a>),
    Own(crate::bson::ArrayBuf),
}

impl<'a> ArrayElements<'a> {
    fn items(&self) -> impl Iterator<Item = ExpressionItem<'a>> {
        let (borrowed, owned) = match self {
            Self::Ref(array) => (Some(array.iter().map(ExpressionItem::Ref)), None),
            Self::Own(array) => (
                None,
                Some(
                    array
                        .as_ref()
                        .iter()
                        .map(|value| ExpressionItem::Own(value.into())),
                ),
            ),
        };
        borrowed
            .into_iter()
            .flatten()
            .chain(owned.into_iter().flatten())
    }
}

/// Rejects results beyond the maximum size.
const fn within(bytes: usize) -> Result<(), EvaluationFailure> {
    if bytes > crate::limits::EVALUATION_BYTES {
        Err(EvaluationFailure::OutOfMemory)
    } else {
        Ok(())
    }
}

/// Dispatches a call to its family.
fn dispatch<'a>(
    function: F,
    args: Args<'a>,
    root: Document<'a>,
    environment: &EvaluationContext,
) -> Result<Out<'a>, EvaluationFailure> {
    match function.family() {
        Family::Comparison => Ok(comparison(function, &args)),
        Family::Maths => maths::call(function, &args),
        Family::Strings => strings::call(function, &args, &environment.fuel),
        Family::Arrays => arrays::call(function, &args, &environment.fuel),
        Family::Dates => dates::call(function, args),
        Family::Types => convert::call(function, args),
        Family::Sets => sets::call(function, &args),
        Family::Objects => objects::call(function, &args, root),
    }
}

/// Comparisons over all types; missing is less than null.
fn comparison<'a>(function: F, args: &Args<'_>) -> Out<'a> {
    if function == F::Not {
        return boolean(!args.get(0).is_some_and(is_true));
    }
    let side = |index| args.get(index).unwrap_or(ValueRef::Undefined);
    let order = compare(side(0), side(1));
    match function {
        F::Eq => boolean(order == Ordering::Equal),
        F::Ne => boolean(order != Ordering::Equal),
        F::Gt => boolean(order == Ordering::Greater),
        F::Gte => boolean(order != Ordering::Less),
        F::Lt => boolean(order == Ordering::Less),
        F::Lte => boolean(order != Ordering::Greater),
        _ => own(Value::Int32(order as i32)),
    }
}
