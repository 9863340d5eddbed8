//! Dotted paths, and how they find values through arrays.
//!
//! At an array a path continues into each of its elements that is a document; a numeric segment may
//! also denote a position, and then both readings apply. At its end, a path yields the elements of
//! an array and then the array as a whole. Beyond a scalar the value is missing, but an array
//! without documents yields nothing at all: `{"a.b": null}` matches `{a: 1}` and not `{a: []}`.

use std::sync::Arc;

use crate::bson::{Array, Document, ValueRef};
use crate::error::EvaluationFailure;
use crate::fuel::Fuel;
use crate::limits::FIELD_NAME_BYTES;

/// One part of a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathSegment {
    /// The key.
    pub name: Box<str>,
    /// The position that it can also denote, if it is numeric.
    pub index: Option<u32>,
}

impl PathSegment {
    /// The segment of this text.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            index: position(name),
        }
    }
}

/// Whether a result may have a field of this name.
pub(crate) fn is_field_name(name: &str) -> bool {
    let plain = !name.is_empty() && !name.contains(['.', '\0']) && !name.starts_with('$');
    plain && name.len() <= FIELD_NAME_BYTES
}

/// The position that a key names: decimal digits without leading zeros.
#[must_use]
pub fn position(name: &str) -> Option<u32> {
    let digits = name.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || (name.len() > 1 && name.starts_with('0')) {
        return None;
    }
    name.parse().ok()
}

/// A dotted path. The path without segments means the value itself. A copy
/// shares the segments: many filters have the same few paths.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldPath {
    segments: Arc<[PathSegment]>,
}

/// The value of a path that ends at an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaf {
    /// Each element, then the array.
    Elements,
    /// Only the array.
    Whole,
}

/// A value at a path (`None` if missing), and the position in the outermost array on the way.
pub type PathVisitor<'f, 'a> =
    &'f mut dyn FnMut(Option<ValueRef<'a>>, Option<u32>) -> Result<bool, EvaluationFailure>;

impl FieldPath {
    /// The path of this text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self {
            segments: text.split('.').map(PathSegment::new).collect(),
        }
    }

    /// The path of a field as in a group or a lookup: `a` or `a.b`. `None` if it is invalid.
    #[must_use]
    pub(crate) fn of_field(text: &str) -> Option<Self> {
        let named = text.len() <= FIELD_NAME_BYTES && text.split('.').all(is_field_name);
        named.then(|| Self::new(text))
    }

    /// The path that means the value itself.
    #[must_use]
    pub fn itself() -> Self {
        Self {
            segments: Arc::default(),
        }
    }

    /// The parts.
    #[must_use]
    pub fn segments(&self) -> &[PathSegment] {
        &self.segments
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> String {
        self.segments
            .iter()
            .map(|segment| &*segment.name)
            .collect::<Vec<_>>()
            .join(".")
    }

    /// Passes the values in order to `visit` until it returns true.
    pub fn any<'a>(
        &self,
        document: Document<'a>,
        leaf: Leaf,
        fuel: &Fuel,
        visit: PathVisitor<'_, 'a>,
    ) -> Result<bool, EvaluationFailure> {
        PathWalk { leaf, fuel }.document(&self.segments, document, None, visit)
    }

    /// Like [`FieldPath::any`], with one step of fuel for each value that is tested.
    ///
    /// Every representation of a predicate uses this or accounts for the same steps, because
    /// whether a document can be evaluated must not depend on the representation.
    pub fn test_any<'a>(
        &self,
        document: Document<'a>,
        leaf: Leaf,
        fuel: &Fuel,
        test: PathVisitor<'_, 'a>,
    ) -> Result<bool, EvaluationFailure> {
        if let [only] = self.segments() {
            let value = document.get(&only.name);
            if !matches!(value, Some(ValueRef::Array(_))) {
                fuel.steps(scan_steps(document.as_bytes()))?;
                return test(value, None);
            }
        }
        self.any(document, leaf, fuel, &mut |value, offset| {
            fuel.step()?;
            test(value, offset)
        })
    }

    /// The single value to test if the path passes no array, and the steps that
    /// [`FieldPath::test_any`] uses for it.
    pub(crate) fn only_value<'a>(
        &self,
        document: Document<'a>,
    ) -> Option<(Option<ValueRef<'a>>, u64)> {
        let mut document = document;
        let mut rest = self.segments();
        // A path of one segment is not charged for the value.
        let mut steps = u64::from(rest.len() > 1);
        while let Some((first, tail)) = rest.split_first() {
            steps += scan_steps(document.as_bytes());
            match document.get(&first.name) {
                Some(ValueRef::Array(_)) => return None,
                Some(value) if tail.is_empty() => return Some((Some(value), steps)),
                Some(ValueRef::Document(inner)) => document = inner,
                _ => return Some((None, steps)),
            }
            rest = tail;
        }
        None
    }
}

/// The steps for scanning a document or an array.
const fn scan_steps(bytes: &[u8]) -> u64 {
    1 + (bytes.len() >> SCAN_BYTES_LOG2) as u64
}

/// Bytes that are scanned for one step of fuel.
const SCAN_BYTES_LOG2: u32 = 12;

/// A path being followed.
///
/// Numeric segments have two readings at each array, so the number of routes to a value can double
/// at each level. Each document and array that is entered uses fuel.
struct PathWalk<'f> {
    leaf: Leaf,
    fuel: &'f Fuel,
}

impl PathWalk<'_> {
    fn enter(&self, bytes: &[u8]) -> Result<(), EvaluationFailure> {
        self.fuel.steps(scan_steps(bytes))
    }

    fn document<'a>(
        &self,
        segments: &[PathSegment],
        document: Document<'a>,
        offset: Option<u32>,
        visit: PathVisitor<'_, 'a>,
    ) -> Result<bool, EvaluationFailure> {
        let mut document = document;
        let mut rest = segments;
        while let Some((first, tail)) = rest.split_first() {
            self.enter(document.as_bytes())?;
            match document.get(&first.name) {
                Some(ValueRef::Array(array)) => return self.array(tail, array, offset, visit),
                Some(value) if tail.is_empty() => return visit(Some(value), offset),
                Some(ValueRef::Document(inner)) => document = inner,
                _ => return visit(None, offset),
            }
            rest = tail;
        }
        Ok(false)
    }

    fn array<'a>(
        &self,
        tail: &[PathSegment],
        array: Array<'a>,
        offset: Option<u32>,
        visit: PathVisitor<'_, 'a>,
    ) -> Result<bool, EvaluationFailure> {
        self.enter(array.as_bytes())?;
        let Some((first, after)) = tail.split_first() else {
            return self.end(array, offset, visit);
        };
        for (index, value) in (0..).zip(array.iter()) {
            let here = offset.or(Some(index));
            if let ValueRef::Document(inner) = value
                && self.document(tail, inner, here, visit)?
            {
                return Ok(true);
            }
            if first.index != Some(index) {
                continue;
            }
            let matched = match value {
                _ if after.is_empty() => visit(Some(value), here)?,
                ValueRef::Document(inner) => self.document(after, inner, offset, visit)?,
                ValueRef::Array(inner) => self.array(after, inner, offset, visit)?,
                _ => false,
            };
            if matched {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The path ends at an array.
    fn end<'a>(
        &self,
        array: Array<'a>,
        offset: Option<u32>,
        visit: PathVisitor<'_, 'a>,
    ) -> Result<bool, EvaluationFailure> {
        if self.leaf == Leaf::Elements {
            for (index, value) in (0..).zip(array.iter()) {
                if visit(Some(value), offset.or(Some(index)))? {
                    return Ok(true);
                }
            }
        }
        visit(Some(ValueRef::Array(array)), offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ejson::{Form, parse_document, value_to_string};

    fn values(path: &str, text: &str, leaf: Leaf) -> Vec<String> {
        let document = parse_document(text.as_bytes()).expect(text);
        let mut seen = Vec::new();
        let answer = FieldPath::new(path).any(
            document.as_ref(),
            leaf,
            &Fuel::default(),
            &mut |value, _| {
                seen.push(value.map_or("missing".into(), |value| {
                    value_to_string(value, Form::Relaxed)
                }));
                Ok(false)
            },
        );
        assert_eq!(answer, Ok(false));
        seen
    }

    #[test]
    fn ways_that_double_at_each_level_cost_fuel() {
        let nested = (0..48).fold("[1]".to_owned(), |inner, _| format!(r#"[{{"0":{inner}}}]"#));
        let document = parse_document(format!(r#"{{"a":{nested}}}"#).as_bytes()).expect("nested");
        let path = FieldPath::new(&format!("a{}", ".0".repeat(90)));
        let answer = path.any(
            document.as_ref(),
            Leaf::Elements,
            &Fuel::default(),
            &mut |_, _| Ok(false),
        );
        assert_eq!(answer, Err(EvaluationFailure::OutOfSteps));
    }

    #[test]
    fn paths_find_elements_then_the_array() {
        for (path, text, expected) in [
            ("a.b", r#"{"a":{"b":5}}"#, vec!["5"]),
            ("a.b", r#"{"a":4}"#, vec!["missing"]),
            ("a.b", r#"{"a":[4]}"#, vec![]),
            ("a.b", r#"{"a":[]}"#, vec![]),
            ("a.b", r#"{"a":[{},{"b":1}]}"#, vec!["missing", "1"]),
            ("a", r#"{"a":[1,[2]]}"#, vec!["1", "[2]", "[1,[2]]"]),
            ("a.b", r#"{"a":[{"b":[1,2]}]}"#, vec!["1", "2", "[1,2]"]),
            ("a.1", r#"{"a":[5,7,3]}"#, vec!["7"]),
            ("a.1", r#"{"a":[5,[2,4],3]}"#, vec!["[2,4]"]),
            ("a.1", r#"{"a":[5,{"1":4},3]}"#, vec!["4", r#"{"1":4}"#]),
            ("a.1.b", r#"{"a":[5,{"b":4},3]}"#, vec!["missing", "4"]),
            ("a.1.b", r#"{"a":[5,[{"b":4}],3]}"#, vec!["4"]),
            ("a.01", r#"{"a":[5,7]}"#, vec![]),
            ("a.0.0", r#"{"a":[[7]]}"#, vec!["7"]),
        ] {
            assert_eq!(
                values(path, text, Leaf::Elements),
                expected,
                "{path} in {text}"
            );
        }
        assert_eq!(
            values("a.b", r#"{"a":[{"b":[1]},{"b":2}]}"#, Leaf::Whole),
            ["[1]", "2"]
        );
    }
}
