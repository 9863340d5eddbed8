//! Parsing and evaluating `$text`.

use std::collections::{BTreeMap, BTreeSet};

use super::tokens::{Analyzer, Language};
use crate::bson::{Document, Value, ValueRef};
use crate::error::{Error, ErrorCode, EvaluationFailure, ParseLocation};
use crate::fuel::Fuel;

/// Bytes of text that are split into terms for one step of fuel.
const TEXT_BYTES_LOG2: u32 = 5;

/// A parsed `$text`.
#[derive(Debug)]
pub struct TextQuery {
    analyzer: Analyzer,
    /// One of them must occur.
    terms: BTreeSet<String>,
    /// None of them may.
    negated_terms: BTreeSet<String>,
    /// Each of them must occur.
    phrases: Vec<String>,
    /// None of them may.
    negated_phrases: Vec<String>,
    source: Value,
}

/// What was found of a query in the strings of a document.
#[derive(Default)]
struct TextMatches {
    scores: BTreeMap<String, f64>,
    negated: bool,
    phrases: Vec<bool>,
}

fn refuse(location: &ParseLocation<'_>, detail: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidFilter, location, detail)
}

impl TextQuery {
    /// Parses the argument of `$text`.
    pub fn parse(argument: ValueRef<'_>, location: &ParseLocation<'_>) -> Result<Self, Error> {
        let document = argument
            .as_document()
            .ok_or_else(|| refuse(location, "$text takes a document"))?;
        let mut analyzer = Analyzer {
            language: Language::English,
            case_sensitive: false,
            diacritic_sensitive: false,
        };
        let mut search = None;
        for (key, value) in document.iter() {
            let here = location.key(key);
            match (key, value) {
                ("$search", ValueRef::String(text)) => search = Some(text),
                ("$language", ValueRef::String(name)) => {
                    let known = Language::from_name(name);
                    analyzer.language =
                        known.ok_or_else(|| refuse(&here, "the languages are english and none"))?;
                }
                ("$caseSensitive", ValueRef::Bool(bool)) => analyzer.case_sensitive = bool,
                ("$diacriticSensitive", ValueRef::Bool(bool)) => {
                    analyzer.diacritic_sensitive = bool
                }
                ("$search" | "$language", _) => {
                    return Err(refuse(&here, format!("{key} takes a string")));
                }
                ("$caseSensitive" | "$diacriticSensitive", _) => {
                    return Err(refuse(&here, format!("{key} takes a boolean")));
                }
                _ => return Err(refuse(&here, "$text does not have this option")),
            }
        }
        let search = search.ok_or_else(|| refuse(location, "$text needs $search"))?;
        Ok(Self::new(search, analyzer, argument.into()))
    }

    fn new(search: &str, analyzer: Analyzer, source: Value) -> Self {
        let mut query = Self {
            analyzer,
            terms: BTreeSet::new(),
            negated_terms: BTreeSet::new(),
            phrases: Vec::new(),
            negated_phrases: Vec::new(),
            source,
        };
        let mut rest = search;
        let mut after_space = true;
        while let Some(first) = rest.chars().next() {
            let tail = rest.get(first.len_utf8()..).unwrap_or_default();
            match first {
                '"' => rest = query.phrase(tail, false),
                // A minus sign negates only in front of a word or a phrase.
                '-' if after_space => match tail.strip_prefix('"') {
                    Some(phrase) => rest = query.phrase(phrase, true),
                    None => rest = query.word(tail, true),
                },
                _ if first.is_whitespace() => rest = tail,
                _ => rest = query.word(rest, false),
            }
            after_space = first.is_whitespace();
        }
        query
    }

    /// A phrase up to its closing quote; its words are searched for too.
    fn phrase<'t>(&mut self, text: &'t str, negated: bool) -> &'t str {
        let (phrase, rest) = text.split_once('"').unwrap_or((text, ""));
        let folded = self.analyzer.folded(phrase);
        if negated {
            self.negated_phrases.push(folded);
        } else {
            self.terms.extend(self.analyzer.terms(phrase));
            self.phrases.push(folded);
        }
        rest
    }

    /// A word up to the next space or quote.
    fn word<'t>(&mut self, text: &'t str, negated: bool) -> &'t str {
        let end = text
            .find(|character: char| character.is_whitespace() || character == '"')
            .unwrap_or(text.len());
        let (word, rest) = text.split_at_checked(end).unwrap_or((text, ""));
        let terms = self.analyzer.terms(word);
        if negated {
            self.negated_terms.extend(terms)
        } else {
            self.terms.extend(terms)
        }
        rest
    }

    /// The argument of `$text`.
    #[must_use]
    pub const fn source(&self) -> &Value {
        &self.source
    }

    /// The terms of which one must occur, for indexing by token.
    #[must_use]
    pub const fn terms(&self) -> &BTreeSet<String> {
        &self.terms
    }

    /// The analyzer, so that an index extracts the same terms.
    #[must_use]
    pub const fn analyzer(&self) -> Analyzer {
        self.analyzer
    }

    /// The score of a document that matches, above zero.
    pub fn score(
        &self,
        document: Document<'_>,
        fuel: &Fuel,
    ) -> Result<Option<f64>, EvaluationFailure> {
        let mut matches = TextMatches {
            phrases: vec![false; self.phrases.len()],
            ..TextMatches::default()
        };
        self.search(ValueRef::Document(document), &mut matches, fuel)?;
        let matched = !matches.negated
            && !matches.scores.is_empty()
            && matches.phrases.iter().all(|phrase| *phrase);
        Ok(matched.then(|| matches.scores.values().sum()))
    }

    fn search(
        &self,
        value: ValueRef<'_>,
        matches: &mut TextMatches,
        fuel: &Fuel,
    ) -> Result<(), EvaluationFailure> {
        fuel.step()?;
        match value {
            ValueRef::String(text) => self.text(text, matches, fuel),
            ValueRef::Document(inner) => inner
                .iter()
                .try_for_each(|(_, value)| self.search(value, matches, fuel)),
            ValueRef::Array(inner) => inner
                .iter()
                .try_for_each(|value| self.search(value, matches, fuel)),
            _ => Ok(()),
        }
    }

    fn text(
        &self,
        text: &str,
        matches: &mut TextMatches,
        fuel: &Fuel,
    ) -> Result<(), EvaluationFailure> {
        fuel.steps((text.len() >> TEXT_BYTES_LOG2) as u64)?;
        let mut counts: BTreeMap<String, (u32, f64)> = BTreeMap::new();
        let mut total = 0_u32;
        for term in self.analyzer.terms(text) {
            total += 1;
            matches.negated |= self.negated_terms.contains(&term);
            if self.terms.contains(&term) {
                let (count, frequency) = counts.entry(term).or_insert((0, 0.0));
                *frequency += 0.5_f64.powi(i32::try_from(*count).unwrap_or(i32::MAX));
                *count += 1;
            }
        }
        for (term, (count, frequency)) in counts {
            let coverage = 0.5 * f64::from(count) / f64::from(total) + 0.5;
            let whole = if text.eq_ignore_ascii_case(&term) {
                1.1
            } else {
                1.0
            };
            *matches.scores.entry(term).or_insert(0.0) += frequency * coverage * whole;
        }
        if self.phrases.is_empty() && self.negated_phrases.is_empty() {
            return Ok(());
        }
        let folded = self.analyzer.folded(text);
        matches.negated |= self
            .negated_phrases
            .iter()
            .any(|phrase| folded.contains(phrase));
        for (phrase, seen) in self.phrases.iter().zip(&mut matches.phrases) {
            *seen |= folded.contains(phrase);
        }
        Ok(())
    }
}
