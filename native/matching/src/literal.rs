//! Literals that a regular expression requires in any text that it matches.
//!
//! [`needed`] returns a few literals; every matching text contains one of them, and anchored ones
//! at its beginning. Letters are folded: the result holds whether or not the expression is
//! case-sensitive, as long as the text is folded by the same [`fold`].
//!
//! The expression is decomposed as Cox describes for code search: a part either matches exactly one
//! of a few strings, or requires one of a few. In a concatenation, exact strings are combined;
//! where they would become too many, they become required strings, and the most selective set is
//! kept.

use std::collections::BTreeSet;

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind, Look};
use rillbase_query::pattern::Pattern;

/// The maximum number of strings that a part matches exactly, or of which it requires one.
const STRINGS: usize = 16;
/// The maximum length of a string in bytes; longer ones are truncated.
const STRING_BYTES: usize = 64;
/// The maximum number of characters of a class that are distinguished.
const CHARACTERS: u32 = 32;
/// Marks the beginning of the text. It occurs in no literal.
const START: char = '\u{FFFF}';

/// A required literal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Literal {
    /// Whether it is at the beginning of the text.
    pub(crate) anchored: bool,
    /// Folded, never empty.
    pub(crate) text: String,
}

/// What is known of a part of an expression.
#[derive(Debug, Clone)]
struct RegexPart {
    /// All strings that it matches, if they are few.
    exact: Option<BTreeSet<String>>,
    /// Strings of which every matching text contains one, if there are any.
    needed: Option<BTreeSet<String>>,
}

/// The literals of which every matching text contains at least one; `None` if none is required.
pub(crate) fn needed(pattern: &Pattern) -> Option<Vec<Literal>> {
    let options = pattern.options();
    let hir = ParserBuilder::new()
        .utf8(false)
        .case_insensitive(options.contains('i'))
        .multi_line(options.contains('m'))
        .dot_matches_new_line(options.contains('s'))
        .ignore_whitespace(options.contains('x'))
        .nest_limit(100)
        .build()
        .parse(pattern.translated())
        .ok()?;
    let strings = part(&hir).into_needed()?;
    let shorter = |text: &String| {
        let mut others = strings.iter().filter(|other| *other != text);
        !others.any(|other| text.contains(other.as_str()))
    };
    let literals = strings.iter().filter(|text| shorter(text));
    literals.map(|text| literal(text)).collect()
}

fn literal(text: &str) -> Option<Literal> {
    let (anchored, rest) = match text.strip_prefix(START) {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    // Nothing precedes the beginning: such a string never matches.
    let text = rest.rsplit(START).next().unwrap_or_default();
    (!text.is_empty()).then(|| Literal {
        anchored: anchored && text.len() == rest.len(),
        text: text.to_owned(),
    })
}

fn part(hir: &Hir) -> RegexPart {
    match hir.kind() {
        HirKind::Look(Look::Start) => RegexPart::exactly([START.into()]),
        HirKind::Empty | HirKind::Look(_) => RegexPart::exactly([String::new()]),
        HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
            Ok(text) if !text.contains(START) => {
                RegexPart::exactly([text.chars().map(fold).collect()])
            }
            _ => RegexPart::UNKNOWN,
        },
        HirKind::Class(class) => of_class(class),
        HirKind::Capture(capture) => part(&capture.sub),
        HirKind::Concat(parts) => concatenation(parts.iter().map(part)),
        HirKind::Alternation(parts) => alternation(parts.iter().map(part)),
        HirKind::Repetition(repetition) => {
            let once = part(&repetition.sub);
            match (repetition.min, repetition.max) {
                (0, Some(1)) => {
                    alternation([RegexPart::exactly([String::new()]), once].into_iter())
                }
                (0, _) => RegexPart::UNKNOWN,
                (least, most) => {
                    let times = least.min(u32::try_from(STRINGS).unwrap_or(1)) as usize;
                    let all = concatenation(std::iter::repeat_n(once, times));
                    if most == Some(least) && times == least as usize {
                        all
                    } else {
                        RegexPart {
                            exact: None,
                            needed: all.into_needed(),
                        }
                    }
                }
            }
        }
    }
}

fn of_class(class: &Class) -> RegexPart {
    let Class::Unicode(class) = class else {
        return RegexPart::UNKNOWN;
    };
    let mut characters = BTreeSet::new();
    let mut count = 0;
    for range in class.ranges() {
        let (first, last) = (u32::from(range.start()), u32::from(range.end()));
        count += last - first + 1;
        if count > CHARACTERS || last >= u32::from(START) {
            return RegexPart::UNKNOWN;
        }
        let within = (first..=last).filter_map(char::from_u32);
        characters.extend(within.map(|character| fold(character).to_string()));
    }
    if characters.is_empty() || characters.len() > STRINGS {
        return RegexPart::UNKNOWN;
    }
    RegexPart::exactly(characters)
}

fn concatenation(parts: impl Iterator<Item = RegexPart>) -> RegexPart {
    let mut whole = true;
    let mut needed: Option<BTreeSet<String>> = None;
    let mut run: BTreeSet<String> = [String::new()].into();
    for part in parts {
        let longer = part.exact.as_ref().and_then(|exact| product(&run, exact));
        if let Some(longer) = longer {
            run = longer;
            continue;
        }
        whole = false;
        needed = better(needed, Some(std::mem::take(&mut run)));
        needed = better(needed, part.needed);
        run = part.exact.unwrap_or_else(|| [String::new()].into());
    }
    if whole {
        return RegexPart {
            exact: Some(run),
            needed: None,
        };
    }
    RegexPart {
        exact: None,
        needed: better(needed, Some(run)),
    }
}

/// Every string of one set followed by every string of the other, if the results are few and short.
fn product(first: &BTreeSet<String>, second: &BTreeSet<String>) -> Option<BTreeSet<String>> {
    let longest = |set: &BTreeSet<String>| set.iter().map(String::len).max().unwrap_or(0);
    let few = first.len() * second.len() <= STRINGS;
    let short = longest(first) + longest(second) <= STRING_BYTES;
    (few && short).then(|| {
        let pairs = first
            .iter()
            .flat_map(|a| second.iter().map(move |b| format!("{a}{b}")));
        pairs.collect()
    })
}

fn alternation(parts: impl Iterator<Item = RegexPart>) -> RegexPart {
    let mut exact = Some(BTreeSet::new());
    let mut needed = Some(BTreeSet::new());
    for part in parts {
        exact = match (exact, &part.exact) {
            (Some(all), Some(more)) => united(all, more),
            _ => None,
        };
        needed = match (needed, part.into_needed()) {
            (Some(all), Some(more)) => united(all, &more),
            _ => None,
        };
    }
    RegexPart { exact, needed }
}

fn united(mut all: BTreeSet<String>, more: &BTreeSet<String>) -> Option<BTreeSet<String>> {
    all.extend(more.iter().cloned());
    (all.len() <= STRINGS).then_some(all)
}

/// The set whose shortest string is longer, which is rarer. An anchored string counts as longer
/// than it is.
fn better(a: Option<BTreeSet<String>>, b: Option<BTreeSet<String>>) -> Option<BTreeSet<String>> {
    let shortest = |set: &Option<BTreeSet<String>>| {
        let lengths = set.iter().flatten().map(String::len);
        lengths.min().unwrap_or(0)
    };
    if shortest(&b) > shortest(&a) { b } else { a }
}

impl RegexPart {
    const UNKNOWN: Self = Self {
        exact: None,
        needed: None,
    };

    fn exactly(strings: impl IntoIterator<Item = String>) -> Self {
        let cut = |text: String| {
            let mut end = STRING_BYTES.min(text.len());
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            (
                end == text.len(),
                text.get(..end).unwrap_or_default().to_owned(),
            )
        };
        let strings: Vec<(bool, String)> = strings.into_iter().map(cut).collect();
        let whole = strings.iter().all(|(whole, _)| *whole);
        let set = strings.into_iter().map(|(_, text)| text).collect();
        if whole {
            Self {
                exact: Some(set),
                needed: None,
            }
        } else {
            Self {
                exact: None,
                needed: Some(set),
            }
        }
    }

    /// The required literals; `None` if one is empty, which is no restriction.
    fn into_needed(self) -> Option<BTreeSet<String>> {
        let strings = better(self.needed, self.exact)?;
        let bare = |text: &String| text.trim_start_matches(START).is_empty();
        (!strings.is_empty() && !strings.iter().any(bare)).then_some(strings)
    }
}

/// The representative of all characters that differ only in case. Characters that a
/// case-insensitive expression considers equal have the same representative, or are distinguished
/// as members of a class.
pub(crate) fn fold(character: char) -> char {
    if character.is_ascii() {
        return character.to_ascii_lowercase();
    }
    if character == 'ſ' {
        return 's';
    }
    let mut lower = character.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(only), None) => only,
        _ => character,
    }
}

/// A text with all letters folded; `buffer` is overwritten.
pub(crate) fn folded(text: &str, buffer: &mut Vec<u8>) {
    buffer.clear();
    if text.is_ascii() {
        buffer.extend_from_slice(text.as_bytes());
        buffer.make_ascii_lowercase();
        return;
    }
    let mut bytes = [0; 4];
    for character in text.chars() {
        buffer.extend_from_slice(fold(character).encode_utf8(&mut bytes).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(source: &str, options: &str) -> Option<Vec<String>> {
        let pattern = Pattern::new(source, options).expect(source);
        let show = |literal: Literal| {
            let mark = if literal.anchored { "^" } else { "" };
            format!("{mark}{}", literal.text)
        };
        needed(&pattern).map(|all| all.into_iter().map(show).collect())
    }

    #[test]
    fn the_longest_text_that_cannot_be_missing_is_needed() {
        for (source, options, expected) in [
            ("abc", "", Some(vec!["abc"])),
            ("ABC", "i", Some(vec!["abc"])),
            ("^abc", "", Some(vec!["^abc"])),
            ("^abc$", "", Some(vec!["^abc"])),
            ("^abc", "m", Some(vec!["abc"])),
            ("a.*bcd", "", Some(vec!["bcd"])),
            ("ab?c", "", Some(vec!["abc", "ac"])),
            ("(ab|cd)e", "", Some(vec!["abe", "cde"])),
            ("^(ab|cd)", "", Some(vec!["^ab", "^cd"])),
            ("[ab]c", "", Some(vec!["ac", "bc"])),
            ("a{3}", "", Some(vec!["aaa"])),
            ("(foo)+x", "", Some(vec!["foo"])),
            ("kelvins", "i", Some(vec!["kelvins"])),
            ("a*", "", None),
            ("a|.*", "", None),
            ("", "", None),
            ("^", "", None),
            (".", "", None),
            ("[^a]", "", None),
        ] {
            let expected = expected.map(|all| all.into_iter().map(String::from).collect());
            assert_eq!(texts(source, options), expected, "{source} {options}");
        }
    }

    fn contains(text: &str, literal: &Literal) -> bool {
        let mut buffer = Vec::new();
        folded(text, &mut buffer);
        let folded = String::from_utf8(buffer).expect("text");
        if literal.anchored {
            folded.starts_with(&literal.text)
        } else {
            folded.contains(&literal.text)
        }
    }

    fn source() -> impl Strategy<Value = String> {
        let leaf = prop::sample::select(vec![
            "a", "b", "K", "s", "é", "É", "σ", "ς", "Σ", "İ", "i", ".", "[a-c]", "[^b]", "^", "$",
            r"\b", r"\d", "ab", "\u{212A}", "ß", "ẞ",
        ])
        .prop_map(String::from);
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
                prop::collection::vec(inner.clone(), 1..4)
                    .prop_map(|parts| format!("({})", parts.join("|"))),
                (
                    inner,
                    prop::sample::select(vec!["*", "+", "?", "{2}", "{1,2}", "{0}", "{3,}"])
                )
                    .prop_map(|(inner, times)| format!("({inner}){times}")),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn no_text_matches_without_a_literal_that_is_needed(
            source in source(),
            options in prop::sample::select(vec!["", "i", "m", "s", "im"]),
            texts in prop::collection::vec("[abkKsſSéÉσςΣİiI\u{212A}ßẞ\n1]{0,8}", 20),
        ) {
            let Ok(pattern) = Pattern::new(&source, options) else {
                return Ok(());
            };
            let Some(literals) = needed(&pattern) else {
                return Ok(());
            };
            for text in texts {
                let found = literals.iter().any(|literal| contains(&text, literal));
                prop_assert!(found || !pattern.is_match(&text), "{source} {options} on {text}");
            }
        }
    }
}
