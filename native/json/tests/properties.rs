//! Checks the reader against a model: any tree, written in any valid form, is read back unchanged.

use std::collections::HashSet;
use std::fmt::Write;

use crate::tree::{Tree, tree};
use proptest::prelude::*;
use rillbase_json::{JsonErrorCode, JsonLimits};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z\"\\\\/\n\t~]{0,12}",
        "[^\\x00]{0,6}",
        "[\u{1}-\u{1f}\u{7f}-\u{ff}]{0,4}"
    ]
}

fn trees() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        Just(Tree::Null),
        any::<bool>().prop_map(Tree::Boolean),
        any::<i64>().prop_map(Tree::Integer),
        "-?[1-9][0-9]{19,60}".prop_map(Tree::Large),
        (proptest::num::f64::NORMAL | proptest::num::f64::ZERO | proptest::num::f64::SUBNORMAL)
            .prop_map(Tree::Double),
        text().prop_map(Tree::String),
    ];
    leaf.prop_recursive(6, 80, 24, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..24).prop_map(Tree::Array),
            prop::collection::vec((text(), inner), 0..24).prop_map(|mut members| {
                let mut seen = HashSet::new();
                members.retain(|(key, _)| seen.insert(key.clone()));
                Tree::Object(members)
            }),
        ]
    })
}

/// Writes a tree; where the grammar leaves a choice, the next of `choices` makes it.
struct Writer<'c> {
    out: String,
    choices: std::iter::Cycle<std::slice::Iter<'c, u8>>,
}

impl Writer<'_> {
    fn choose(&mut self, of: u8) -> u8 {
        self.choices.next().map_or(0, |choice| choice % of)
    }

    fn space(&mut self) {
        let space = ["", "", " ", "\n", "\t\r", "  "][usize::from(self.choose(6))];
        self.out.push_str(space);
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for character in text.chars() {
            let must_escape = character < ' ' || character == '"' || character == '\\';
            if must_escape || self.choose(5) == 0 {
                let mut units = [0; 2];
                for unit in character.encode_utf16(&mut units) {
                    let upper = self.choose(2) == 0;
                    if upper {
                        write!(self.out, "\\u{unit:04X}")
                    } else {
                        write!(self.out, "\\u{unit:04x}")
                    }
                    .unwrap();
                }
            } else {
                self.out.push(character);
            }
        }
        self.out.push('"');
    }

    fn value(&mut self, value: &Tree) {
        self.space();
        match value {
            Tree::Null => self.out.push_str("null"),
            Tree::Boolean(value) => write!(self.out, "{value}").unwrap(),
            Tree::Integer(value) => write!(self.out, "{value}").unwrap(),
            Tree::Large(digits) => self.out.push_str(digits),
            Tree::Double(value) => write!(self.out, "{value:e}").unwrap(),
            Tree::String(text) => self.string(text),
            Tree::Array(items) => {
                self.out.push('[');
                for (position, item) in items.iter().enumerate() {
                    if position > 0 {
                        self.out.push(',');
                    }
                    self.value(item);
                }
                self.space();
                self.out.push(']');
            }
            Tree::Object(members) => self.members(members),
        }
        self.space();
    }

    fn members(&mut self, members: &[(String, Tree)]) {
        self.out.push('{');
        for (position, (key, value)) in members.iter().enumerate() {
            if position > 0 {
                self.out.push(',');
            }
            self.space();
            self.string(key);
            self.space();
            self.out.push(':');
            self.value(value);
        }
        self.space();
        self.out.push('}');
    }
}

fn written(value: &Tree, choices: &[u8]) -> String {
    let mut writer = Writer {
        out: String::new(),
        choices: choices.iter().cycle(),
    };
    writer.value(value);
    writer.out
}

proptest! {
    #[test]
    fn values_survive_a_round_trip(value in trees(), choices in prop::collection::vec(any::<u8>(), 1..40)) {
        let document = written(&value, &choices);
        prop_assert_eq!(tree(document.as_bytes(), &JsonLimits::default()), Ok(value), "{}", document);
    }

    #[test]
    fn every_prefix_of_an_array_or_object_is_refused(value in trees(), cut in any::<prop::sample::Index>()) {
        let document = written(&Tree::Array(vec![value]), &[0]);
        let prefix = &document.as_bytes()[..cut.index(document.len())];
        prop_assert!(tree(prefix, &JsonLimits::default()).is_err());
    }

    #[test]
    fn any_bytes_are_answered_and_errors_lie_inside(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Err((_, location)) = tree(&bytes, &JsonLimits::default()) {
            prop_assert!(location.offset <= bytes.len());
            prop_assert!(location.line >= 1 && location.column >= 1);
        }
    }

    #[test]
    fn one_changed_byte_is_answered_and_never_accepted_as_bad_utf8(
        value in trees(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut document = written(&value, &[1, 3]).into_bytes();
        let at = at.index(document.len());
        document[at] = byte;
        let answer = tree(&document, &JsonLimits::default());
        match std::str::from_utf8(&document) {
            Ok(_) => prop_assert!(!matches!(answer, Err((JsonErrorCode::BadUtf8, _)))),
            Err(_) => prop_assert!(answer.is_err()),
        }
    }
}
