//! Regular expressions that are plain text, possibly anchored at the beginning or case-insensitive.
//! They are evaluated without being compiled, because a compiled expression takes thousands of
//! bytes.

use rillbase_query::bson::{Document, ValueRef};
use rillbase_query::error::EvaluationFailure;
use rillbase_query::filter::{Predicate, Test};
use rillbase_query::fuel::Fuel;
use rillbase_query::path::{FieldPath, Leaf};
use rillbase_query::pattern::Pattern;

use crate::literal::folded;

/// The binary logarithm of the bytes of text that are searched for one step of fuel, as in the
/// filter.
const TEXT_BYTES_LOG2: u32 = 8;

/// A predicate whose regular expression is plain text.
#[derive(Debug)]
pub(crate) struct PlainPattern {
    pub(crate) path: FieldPath,
    /// The original source.
    source: Box<str>,
    options: Box<str>,
}

impl PlainPattern {
    /// Converts a predicate, if its regular expression is plain text.
    pub(crate) fn of(predicate: &Predicate) -> Option<Self> {
        let Test::Regex(pattern) = &predicate.test else {
            return None;
        };
        let (source, options) = (pattern.source(), pattern.options());
        let (anchored, text) = parts(source);
        let in_any_case = options.contains('i');
        // Only for ASCII letters is it known which characters differ only in case.
        let plain = text
            .chars()
            .all(|c| is_plain(c) && (c.is_ascii() || !in_any_case));
        let sure = !(options.contains('x') || anchored && options.contains('m'));
        (plain && sure).then(|| Self {
            path: predicate.path.clone(),
            source: source.into(),
            options: options.into(),
        })
    }

    /// The original predicate.
    pub(crate) fn predicate(&self) -> Option<Predicate> {
        Some(Predicate {
            path: self.path.clone(),
            test: Test::Regex(Pattern::new(&self.source, &self.options).ok()?),
        })
    }

    /// Whether the document matches, as [`Predicate`] decides.
    pub(crate) fn matches(
        &self,
        document: Document<'_>,
        fuel: &Fuel,
    ) -> Result<bool, EvaluationFailure> {
        self.path.test_any(
            document,
            Leaf::Elements,
            fuel,
            &mut |value, _| match value {
                Some(ValueRef::String(text) | ValueRef::Symbol(text)) => {
                    fuel.steps((text.len() >> TEXT_BYTES_LOG2) as u64)?;
                    Ok(self.is_in(text))
                }
                Some(ValueRef::Regex(regex)) => {
                    Ok(regex.pattern == &*self.source && regex.options == &*self.options)
                }
                _ => Ok(false),
            },
        )
    }

    fn is_in(&self, text: &str) -> bool {
        let (anchored, literal) = parts(&self.source);
        if !self.options.contains('i') {
            return if anchored {
                text.starts_with(literal)
            } else {
                text.contains(literal)
            };
        }
        let mut bytes = Vec::with_capacity(text.len());
        folded(text, &mut bytes);
        let (text, literal) = (String::from_utf8(bytes), literal.to_ascii_lowercase());
        let Ok(text) = text else {
            return false;
        };
        if anchored {
            text.starts_with(&literal)
        } else {
            text.contains(&literal)
        }
    }

    /// Its approximate size in bytes.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Self>() + self.source.len().max(24) + 8 + self.options.len()
    }
}

/// Whether it is anchored at the beginning, and its text.
fn parts(source: &str) -> (bool, &str) {
    match source.strip_prefix('^') {
        Some(rest) => (true, rest),
        None => (false, source),
    }
}

/// Whether a character is literal in every expression without the option x.
fn is_plain(character: char) -> bool {
    character.is_alphanumeric() || " _-:/@,;=%&!~\"'<>".contains(character)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rillbase_query::ejson::parse_document;
    use rillbase_query::environment::EvaluationContext;
    use rillbase_query::filter::FilterClause;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn plain_text_is_found_where_the_expression_matches(
            source in "\\^?[akKsSé/ -]{0,3}",
            options in prop::sample::select(vec!["", "i", "m", "s", "im", "x"]),
            texts in prop::collection::vec("[akKsSſéÉ\u{212A}/\n -]{0,6}", 20),
        ) {
            let pattern = Pattern::new(&source, options).expect("a pattern");
            let predicate = Predicate { path: FieldPath::new("a"), test: Test::Regex(pattern) };
            let Some(plain) = PlainPattern::of(&predicate) else {
                return Ok(());
            };
            let node = FilterClause::Field(predicate);
            for text in texts {
                let text = text.replace('\n', "\\n");
                let body = parse_document(format!(r#"{{"a":["{text}"]}}"#).as_bytes()).expect("json");
                let expected = node.matches_in(body.as_ref(), &EvaluationContext::default());
                prop_assert_eq!(plain.matches(body.as_ref(), &Fuel::default()), expected, "{}", text);
            }
        }
    }
}
