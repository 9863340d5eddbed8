//! Hierarchical ids (Dewey): `1.4.2` is below `1.4`, and the empty id above all.
//!
//! Components are numbers of any size, or words. In the encoding each component determines its own
//! end, and bytes compare like ids in preorder:
//!
//! ```text
//! id        := component*
//! component := 1+length{u8} big_endian_digits     a number without leading zeros; zero has none
//!            | 255 word 0                         a word, behind all numbers
//! ```
//!
//! So one id is at or below another if and only if its bytes start with the other's, and a scan
//! over this prefix is the scan from the id to its next sibling. No component starts with a zero
//! byte, which marks the end of an id in keys: an id's own entries come before those of its
//! descendants.

use std::fmt;

use crate::error::{Error, Result};

/// The tag before words.
const WORD: u8 = u8::MAX;
/// The maximum length of a number or word.
const MAX_COMPONENT_BYTES: usize = 253;
/// The maximum length of an id, which is part of each key.
const MAX_BYTES: usize = 4096;
/// The maximum number of components: each costs a lookup.
const MAX_COMPONENTS: usize = 64;

/// A node in a hierarchy of topics or cells.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeweyId(Vec<u8>);

impl DeweyId {
    /// The id above all others.
    pub fn root() -> Self {
        Self::default()
    }

    /// Parses dot-separated components; the empty text is the root.
    pub fn parse(text: &str) -> Result<Self> {
        let mut id = Self::root();
        if text.is_empty() {
            return Ok(id);
        }
        if text.split('.').count() > MAX_COMPONENTS {
            return Err(refused("an id may have at most 64 components"));
        }
        for component in text.split('.') {
            id.push_text(component)?;
        }
        if id.0.len() > MAX_BYTES {
            return Err(refused("an id is longer than 4,096 bytes"));
        }
        Ok(id)
    }

    /// The child of this id with a number.
    #[must_use]
    pub fn child(&self, number: u64) -> Self {
        let mut child = self.clone();
        put_component(&mut child.0, number);
        child
    }

    /// The bytes, which compare like ids.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Decodes an id.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let id = Self(bytes.to_vec());
        let mut at = 0;
        while at < bytes.len() {
            at += id.component(at)?.len();
        }
        Some(id)
    }

    /// Whether this id equals the other or is above it.
    pub fn contains(&self, other: &Self) -> bool {
        other.0.starts_with(&self.0)
    }

    /// Whether one equals the other, or is its ancestor or descendant.
    pub fn matches(&self, other: &Self) -> bool {
        self.contains(other) || other.contains(self)
    }

    /// The number of components.
    pub fn depth(&self) -> usize {
        self.ends().map_or(0, |ends| ends.len())
    }

    /// The bytes of its ancestors, the root first.
    pub(crate) fn ancestors(&self) -> impl Iterator<Item = &[u8]> {
        let ends = self.ends().unwrap_or_default();
        let proper = ends.len().saturating_sub(1);
        let root = (!ends.is_empty()).then_some(0);
        let ends = root.into_iter().chain(ends.into_iter().take(proper));
        ends.filter_map(|end| self.0.get(..end))
    }

    /// Its components; `None` if one is a word, or too large a number.
    pub(crate) fn numbers(&self) -> Option<Vec<u64>> {
        let mut numbers = Vec::new();
        let mut at = 0;
        while at < self.0.len() {
            let component = self.component(at)?;
            at += component.len();
            match component {
                [WORD, ..] => return None,
                [_, digits @ ..] if digits.len() <= 8 => {
                    let value = digits
                        .iter()
                        .fold(0, |value, &byte| value << 8 | u64::from(byte));
                    numbers.push(value);
                }
                _ => return None,
            }
        }
        Some(numbers)
    }

    /// The ends of components; `None` if the bytes are malformed.
    fn ends(&self) -> Option<Vec<usize>> {
        let mut ends = Vec::new();
        let mut at = 0;
        while at < self.0.len() {
            at += self.component(at)?.len();
            ends.push(at);
        }
        Some(ends)
    }

    /// The bytes of the component at an offset.
    fn component(&self, at: usize) -> Option<&[u8]> {
        let rest = self.0.get(at..)?;
        match *rest.first()? {
            0 => None,
            WORD => {
                let end = rest.iter().position(|&byte| byte == 0)?;
                rest.get(..=end)
            }
            tag => rest.get(..usize::from(tag)),
        }
    }

    fn push_text(&mut self, component: &str) -> Result<()> {
        if component.is_empty() {
            return Err(refused("an id must not have empty components"));
        }
        let is_number = component.bytes().all(|byte| byte.is_ascii_digit());
        if is_number && (component == "0" || !component.starts_with('0')) {
            let digits = digits_of(component)?;
            put_digits(&mut self.0, &digits);
            return Ok(());
        }
        if component.contains('\0') {
            return Err(refused("an id must not contain zero bytes"));
        }
        if component.len() > MAX_COMPONENT_BYTES {
            return Err(refused("a component of an id is too long"));
        }
        self.0.push(WORD);
        self.0.extend_from_slice(component.as_bytes());
        self.0.push(0);
        Ok(())
    }
}

/// Appends the component of a number.
pub(crate) fn put_component(out: &mut Vec<u8>, number: u64) {
    let bytes = number.to_be_bytes();
    let skipped = (number.leading_zeros() / 8) as usize;
    put_digits(out, bytes.get(skipped..).unwrap_or_default());
}

/// Appends big-endian digits without leading zeros; the caller limits their number.
fn put_digits(out: &mut Vec<u8>, digits: &[u8]) {
    let tag = u8::try_from(digits.len() + 1).unwrap_or(WORD - 1);
    out.push(tag);
    out.extend_from_slice(digits);
}

/// A decimal number of any size as big-endian bytes.
fn digits_of(decimal: &str) -> Result<Vec<u8>> {
    let mut digits: Vec<u8> = Vec::new();
    for digit in decimal.bytes() {
        let mut carry = u16::from(digit - b'0');
        for byte in digits.iter_mut().rev() {
            let value = u16::from(*byte) * 10 + carry;
            *byte = (value & 0xff) as u8;
            carry = value >> 8;
        }
        if carry > 0 {
            digits.insert(0, (carry & 0xff) as u8);
        }
        if digits.len() >= MAX_COMPONENT_BYTES {
            return Err(refused("a number of an id is too large"));
        }
    }
    Ok(digits)
}

/// Big-endian bytes as a decimal number.
fn decimal_of(digits: &[u8]) -> String {
    let mut rest = digits.to_vec();
    let mut decimal = Vec::new();
    while rest.iter().any(|&byte| byte > 0) {
        let mut carry = 0;
        for byte in &mut rest {
            let value = carry << 8 | u16::from(*byte);
            *byte = ((value / 10) & 0xff) as u8;
            carry = value % 10;
        }
        decimal.push(char::from(b'0' + (carry & 0xf) as u8));
    }
    if decimal.is_empty() {
        decimal.push('0');
    }
    decimal.iter().rev().collect()
}

fn refused(what: &'static str) -> Error {
    Error::InvalidId { what }
}

impl fmt::Display for DeweyId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut at = 0;
        while let Some(component) = self.component(at) {
            if at > 0 {
                out.write_str(".")?;
            }
            at += component.len();
            match component {
                [WORD, word @ .., 0] => out.write_str(&String::from_utf8_lossy(word))?,
                [_, digits @ ..] => out.write_str(&decimal_of(digits))?,
                [] => return Ok(()),
            }
        }
        Ok(())
    }
}

impl fmt::Debug for DeweyId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Id({self})")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn id(text: &str) -> DeweyId {
        DeweyId::parse(text).unwrap()
    }

    #[test]
    fn ids_are_ordered_in_preorder_with_numbers_by_size_and_words_behind() {
        let ordered = [
            "",
            "0",
            "1",
            "1.4",
            "1.4.2",
            "1.256",
            "1.politics",
            "1.politics.us",
            "1.sports",
            "2",
            "10",
            "255",
            "256",
            "65536",
            "18446744073709551616",
            "01",
            "news",
        ];
        for pair in ordered.windows(2) {
            let [less, more] = pair else { continue };
            assert!(id(less) < id(more), "{less} < {more}");
        }
    }

    #[test]
    fn ids_come_back_as_text() {
        for text in [
            "",
            "0",
            "1.4.2",
            "256.0.x",
            "340282366920938463463374607431768211456.007",
        ] {
            assert_eq!(id(text).to_string(), text);
            assert_eq!(DeweyId::from_bytes(id(text).as_bytes()), Some(id(text)));
        }
        assert_eq!(DeweyId::root().child(300).child(0), id("300.0"));
    }

    #[test]
    fn ids_meet_along_a_line_of_descent_only() {
        assert!(id("1.4").matches(&id("1.4.2")) && id("1.4.2").matches(&id("1.4")));
        assert!(id("").matches(&id("news")));
        assert!(!id("1.4").matches(&id("1.42")) && !id("1.4.1").matches(&id("1.4.2")));
        assert!(!id("pol").matches(&id("politics")));
    }

    #[test]
    fn ancestors_of_an_id_begin_with_the_root() {
        let low = id("1.politics.300");
        let above: Vec<&[u8]> = low.ancestors().collect();
        assert_eq!(
            above,
            [
                id("").as_bytes(),
                id("1").as_bytes(),
                id("1.politics").as_bytes()
            ]
        );
        assert_eq!(low.depth(), 3);
        assert_eq!(DeweyId::root().ancestors().count(), 0);
    }

    #[test]
    fn invalid_ids_are_rejected() {
        for text in [".", "1..2", "a.", "x\0y"] {
            assert!(DeweyId::parse(text).is_err(), "{text}");
        }
        assert!(DeweyId::parse(&"9".repeat(700)).is_err());
        assert!(DeweyId::parse(&vec!["1"; 65].join(".")).is_err());
        assert_eq!(DeweyId::from_bytes(&[3, 1]), None);
    }
}
