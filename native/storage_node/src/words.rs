//! The words of a request, read in order.

use crate::refusal::{CommandRefusal, Result};

/// The remaining words.
#[derive(Debug, Clone)]
pub(crate) struct Words<'a> {
    left: &'a [&'a [u8]],
}

impl<'a> Words<'a> {
    pub(crate) fn new(words: &'a [&'a [u8]]) -> Self {
        Self { left: words }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    pub(crate) fn count(&self) -> usize {
        self.left.len()
    }

    pub(crate) fn next(&mut self) -> Result<&'a [u8]> {
        let (first, rest) = self
            .left
            .split_first()
            .ok_or_else(|| CommandRefusal::syntax("an argument is missing at the end"))?;
        self.left = rest;
        Ok(first)
    }

    /// The next word as text.
    pub(crate) fn text(&mut self) -> Result<&'a str> {
        let word = self.next()?;
        std::str::from_utf8(word).map_err(|_| CommandRefusal::syntax("an argument is not UTF-8"))
    }

    /// The next word as a keyword, case-insensitive.
    pub(crate) fn keyword(&mut self) -> Result<String> {
        Ok(self.text()?.to_ascii_uppercase())
    }

    /// Consumes the next word if it is this keyword.
    pub(crate) fn take(&mut self, keyword: &str) -> bool {
        match self.left.split_first() {
            Some((first, rest)) if first.eq_ignore_ascii_case(keyword.as_bytes()) => {
                self.left = rest;
                true
            }
            _ => false,
        }
    }

    pub(crate) fn number<T: std::str::FromStr>(&mut self) -> Result<T> {
        let text = self.text()?;
        text.parse()
            .map_err(|_| CommandRefusal::syntax(format!("{text:?} is not a number that fits here")))
    }

    /// All remaining words.
    pub(crate) fn rest(&mut self) -> &'a [&'a [u8]] {
        std::mem::take(&mut self.left)
    }

    /// Checks that no words remain.
    pub(crate) fn end(&self) -> Result<()> {
        match self.left.first() {
            None => Ok(()),
            Some(word) => Err(unknown(word)),
        }
    }
}

/// An unknown word.
pub(crate) fn unknown(word: &[u8]) -> CommandRefusal {
    let shown = word.get(..word.len().min(64)).unwrap_or_default();
    CommandRefusal::syntax(format!("unexpected argument '{}'", shown.escape_ascii()))
}
