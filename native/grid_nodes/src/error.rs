//! Errors of the event layer.

use std::fmt;
use std::io;

/// Why a call failed.
#[derive(Debug)]
pub enum ValkeyError {
    /// The connection broke, or the reply timed out.
    Unavailable(io::Error),
    /// The server rejected a command with this message. The connection remains usable.
    Refused(String),
    /// A reply does not have the form that the command requires.
    UnexpectedReply(&'static str),
    /// The configuration cannot work.
    Misconfigured(&'static str),
}

impl fmt::Display for ValkeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(error) => write!(f, "the event layer is unavailable: {error}"),
            Self::Refused(text) => write!(f, "the event layer rejected a call: {text}"),
            Self::UnexpectedReply(text) => {
                write!(f, "the event layer returned an unexpected reply: {text}")
            }
            Self::Misconfigured(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for ValkeyError {}

impl From<io::Error> for ValkeyError {
    fn from(error: io::Error) -> Self {
        Self::Unavailable(error)
    }
}
