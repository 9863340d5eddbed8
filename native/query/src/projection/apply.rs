//! Applying a projection to a document.

use super::{Matched, ProjectionBranch, ProjectionPart};
use crate::bson::{Array, ArrayBuf, ArrayWriter, Document, DocumentBuf, DocumentWriter, ValueRef};
use crate::environment::EvaluationContext;
use crate::error::EvaluationFailure;
use crate::filter::{DocumentMatcher, Test};

pub(super) struct Applying<'e> {
    pub(super) matched: Matched,
    pub(super) environment: &'e EvaluationContext,
    pub(super) includes: bool,
}

impl Applying<'_> {
    pub(super) fn document(
        &self,
        document: Document<'_>,
        branch: &ProjectionBranch,
    ) -> Result<DocumentBuf, EvaluationFailure> {
        let mut writer = DocumentWriter::with_capacity(document.as_bytes().len().min(4096));
        for element in document.elements() {
            self.environment
                .fuel
                .steps(1 + branch.children.len() as u64 / 16)?;
            let name = element.key_bytes();
            let part = branch
                .children
                .iter()
                .find(|(child, _)| child.as_bytes() == name)
                .map(|(_, part)| part);
            match (part, element.key(), element.value()) {
                (None, ..) if self.includes => {}
                (None | Some(ProjectionPart::Include), ..) => writer.append_element(&element),
                (Some(part), Some(key), Some(value)) => self.part(&mut writer, key, value, part)?,
                _ => {}
            }
        }
        // A score is shown in addition to the fields of the document.
        for (name, part) in &branch.children {
            if matches!(part, ProjectionPart::TextScore) {
                let score = self.matched.text_score.unwrap_or(0.0);
                writer.append(name, ValueRef::Double(score));
            }
        }
        Ok(writer.into())
    }

    fn part(
        &self,
        writer: &mut DocumentWriter,
        key: &str,
        value: ValueRef<'_>,
        part: &ProjectionPart,
    ) -> Result<(), EvaluationFailure> {
        match part {
            ProjectionPart::Exclude | ProjectionPart::TextScore => {}
            ProjectionPart::Include => writer.append(key, value),
            ProjectionPart::Branch(branch) => match value {
                ValueRef::Document(inner) => writer.append(
                    key,
                    ValueRef::Document(self.document(inner, branch)?.as_ref()),
                ),
                ValueRef::Array(inner) => {
                    writer.append(key, ValueRef::Array(self.array(inner, branch)?.as_ref()))
                }
                _ if self.includes => {}
                _ => writer.append(key, value),
            },
            ProjectionPart::Slice { skip, limit } => match value {
                ValueRef::Array(inner) => {
                    writer.append(key, ValueRef::Array(slice(inner, *skip, *limit).as_ref()))
                }
                _ => writer.append(key, value),
            },
            ProjectionPart::Element(test) => {
                if let ValueRef::Array(inner) = value
                    && let Some(element) = self.first(inner, test)?
                {
                    writer.append(
                        key,
                        ValueRef::Array(ArrayBuf::from_iter([element]).as_ref()),
                    );
                }
            }
            ProjectionPart::Positional => match value {
                ValueRef::Array(inner) => {
                    let element = self
                        .matched
                        .position
                        .and_then(|position| inner.get(position as usize));
                    let element = element.ok_or_else(|| {
                        EvaluationFailure::refused(
                            "the positional projection found no matching element of the array",
                        )
                    })?;
                    writer.append(
                        key,
                        ValueRef::Array(ArrayBuf::from_iter([element]).as_ref()),
                    );
                }
                _ => writer.append(key, value),
            },
        }
        Ok(())
    }

    /// The projection of each element that is a document or an array. Others
    /// are shown by an exclusion and not by an inclusion.
    fn array(
        &self,
        array: Array<'_>,
        branch: &ProjectionBranch,
    ) -> Result<ArrayBuf, EvaluationFailure> {
        let mut writer = ArrayWriter::new();
        for value in array.iter() {
            self.environment.fuel.step()?;
            match value {
                ValueRef::Document(inner) => {
                    writer.push(ValueRef::Document(self.document(inner, branch)?.as_ref()))
                }
                ValueRef::Array(inner) => {
                    writer.push(ValueRef::Array(self.array(inner, branch)?.as_ref()))
                }
                other if !self.includes => writer.push(other),
                _ => {}
            }
        }
        Ok(writer.into())
    }

    /// The first element that passes the test.
    fn first<'a>(
        &self,
        array: Array<'a>,
        test: &Test,
    ) -> Result<Option<ValueRef<'a>>, EvaluationFailure> {
        let matcher = DocumentMatcher::new(Document::empty(), self.environment);
        let matches = matcher.test(test, Some(ValueRef::Array(array)))?;
        Ok(matcher
            .position()
            .filter(|_| matches)
            .and_then(|position| array.get(position as usize)))
    }
}

/// A negative skip counts from the end.
fn slice(array: Array<'_>, skip: i64, limit: Option<u64>) -> ArrayBuf {
    let length = array.len();
    let distance = usize::try_from(skip.unsigned_abs()).unwrap_or(usize::MAX);
    let start = if skip < 0 {
        length.saturating_sub(distance)
    } else {
        distance
    };
    let count = limit.map_or(usize::MAX, |limit| {
        usize::try_from(limit).unwrap_or(usize::MAX)
    });
    array.iter().skip(start).take(count).collect()
}
