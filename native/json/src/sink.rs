//! The parts of a document, as passed by the reader.

use std::convert::Infallible;

/// A number written without fraction or exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integer<'a> {
    /// It fits.
    Small(i64),
    /// It does not: its digits, with a minus sign when negative.
    Large(&'a str),
}

/// Receives the parts of one document in order.
///
/// Calls nest as the grammar does: between `begin_object` and its `end_object` each member is one
/// `key` followed by the calls of one value. After an error, from either side, nothing more is
/// passed; the parts passed before belong to a rejected document.
pub trait JsonSink {
    /// The error of the sink.
    type Error;

    /// `null`
    ///
    /// # Errors
    /// If the sink rejects it; likewise below.
    fn null(&mut self) -> Result<(), Self::Error>;

    /// `true` or `false`
    ///
    /// # Errors
    /// If the sink rejects it.
    fn boolean(&mut self, value: bool) -> Result<(), Self::Error>;

    /// A number without fraction and exponent, other than `-0`.
    ///
    /// # Errors
    /// If the sink rejects it.
    fn integer(&mut self, value: Integer<'_>) -> Result<(), Self::Error>;

    /// Any other number, always finite. `-0` is passed as a double since integers have no negative
    /// zero.
    ///
    /// # Errors
    /// If the sink rejects it.
    fn double(&mut self, value: f64) -> Result<(), Self::Error>;

    /// A string, unescaped.
    ///
    /// # Errors
    /// If the sink rejects it.
    fn string(&mut self, value: &str) -> Result<(), Self::Error>;

    /// `{`
    ///
    /// # Errors
    /// If the sink rejects it.
    fn begin_object(&mut self) -> Result<(), Self::Error>;

    /// The key of the member whose value follows, unescaped; no other key of its object is equal.
    ///
    /// # Errors
    /// If the sink rejects it.
    fn key(&mut self, key: &str) -> Result<(), Self::Error>;

    /// `}`
    ///
    /// # Errors
    /// If the sink rejects it.
    fn end_object(&mut self) -> Result<(), Self::Error>;

    /// `[`
    ///
    /// # Errors
    /// If the sink rejects it.
    fn begin_array(&mut self) -> Result<(), Self::Error>;

    /// `]`
    ///
    /// # Errors
    /// If the sink rejects it.
    fn end_array(&mut self) -> Result<(), Self::Error>;
}

/// Discards everything: for checking only whether a document is valid.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ignore;

impl JsonSink for Ignore {
    type Error = Infallible;

    fn null(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
    fn boolean(&mut self, _: bool) -> Result<(), Infallible> {
        Ok(())
    }
    fn integer(&mut self, _: Integer<'_>) -> Result<(), Infallible> {
        Ok(())
    }
    fn double(&mut self, _: f64) -> Result<(), Infallible> {
        Ok(())
    }
    fn string(&mut self, _: &str) -> Result<(), Infallible> {
        Ok(())
    }
    fn begin_object(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
    fn key(&mut self, _: &str) -> Result<(), Infallible> {
        Ok(())
    }
    fn end_object(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
    fn begin_array(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
    fn end_array(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}
