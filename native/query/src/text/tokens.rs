//! Extracts terms from text: words, lower-cased, stemmed, without diacritics.

use std::borrow::Cow;

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use super::stop_words::is_english;

/// The language, which determines stemming.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// Stop words are dropped, words stemmed by Porter's second algorithm.
    English,
    /// Words as they are.
    None,
}

impl Language {
    /// The language of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "english" | "en" => Some(Self::English),
            "none" => Some(Self::None),
            _ => None,
        }
    }

    /// The name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::English => "english",
            Self::None => "none",
        }
    }
}

/// How terms are extracted from text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Analyzer {
    /// The language.
    pub language: Language,
    /// Whether upper and lower case differ.
    pub case_sensitive: bool,
    /// Whether letters with and without diacritics differ.
    pub diacritic_sensitive: bool,
}

impl Analyzer {
    /// The terms of a text in order; stop words have none.
    pub fn terms(self, text: &str) -> impl Iterator<Item = String> {
        let stemmer = match self.language {
            Language::English => Some(Stemmer::create(Algorithm::English)),
            Language::None => None,
        };
        self.words(text)
            .filter_map(move |word| self.term(word, stemmer.as_ref()))
    }

    fn words(self, text: &str) -> impl Iterator<Item = &str> {
        let english = self.language == Language::English;
        text.split(move |character: char| !is_letter(character, english))
            .filter(|word| !word.is_empty())
    }

    fn term(self, word: &str, stemmer: Option<&Stemmer>) -> Option<String> {
        let lower = word.to_lowercase();
        if stemmer.is_some() && is_english(&lower) {
            return None;
        }
        let cased = if self.case_sensitive {
            Cow::Borrowed(word)
        } else {
            Cow::Owned(lower)
        };
        let stemmed = match stemmer {
            Some(stemmer) => stemmer.stem(&cased),
            None => Cow::Borrowed(&*cased),
        };
        Some(if self.diacritic_sensitive {
            stemmed.nfc().collect()
        } else {
            without_marks(&stemmed)
        })
    }

    /// Text for comparing phrases: as sensitive as the terms, and unstemmed.
    #[must_use]
    pub fn folded(self, text: &str) -> String {
        let cased = if self.case_sensitive {
            Cow::Borrowed(text)
        } else {
            Cow::Owned(text.to_lowercase())
        };
        if self.diacritic_sensitive {
            cased.nfc().collect()
        } else {
            without_marks(&cased)
        }
    }
}

fn is_letter(character: char, english: bool) -> bool {
    character.is_alphanumeric()
        || character == '_'
        || is_combining_mark(character)
        || (english && character == '\'')
}

fn without_marks(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    text.nfd()
        .filter(|character| !is_combining_mark(*character))
        .nfc()
        .collect()
}
