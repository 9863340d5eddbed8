//! Why the event layer could not be used.

use std::fmt;
use std::io;

/// Why something was not done.
#[derive(Debug)]
pub enum ValkeyError {
    /// The connection broke, or there was no answer in time.
    Away(io::Error),
    /// The server refused a command, in its words. The connection is as good as before.
    Refused(String),
    /// An answer has another form than the command's.
    Form(&'static str),
    /// What was asked for cannot work.
    Unusable(&'static str),
}

impl fmt::Display for ValkeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Away(error) => write!(f, "the event layer is unavailable: {error}"),
            Self::Refused(text) => write!(f, "the event layer rejected a call: {text}"),
            Self::Form(text) => write!(f, "the event layer returned an unexpected reply: {text}"),
            Self::Unusable(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for ValkeyError {}

impl From<io::Error> for ValkeyError {
    fn from(error: io::Error) -> Self {
        Self::Away(error)
    }
}
