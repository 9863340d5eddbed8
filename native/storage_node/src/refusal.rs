//! Why a command failed, as reported to clients: a code for programs, a sentence for people.

use std::borrow::Cow;

use rillbase_aggregates as aggregates;
use rillbase_collections as collections;
use rillbase_engine as engine;
use rillbase_pubsub as pubsub;

/// The result of all parts of a command.
pub(crate) type Result<T> = std::result::Result<T, CommandRefusal>;

/// The error reply of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandRefusal {
    pub(crate) code: Cow<'static, str>,
    pub(crate) text: Cow<'static, str>,
}

impl CommandRefusal {
    pub(crate) fn new(code: &'static str, text: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code: Cow::Borrowed(code),
            text: text.into(),
        }
    }

    /// A syntax error.
    pub(crate) fn syntax(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new("ERR", text)
    }

    fn from_code(code: &str, text: String) -> Self {
        Self {
            code: Cow::Owned(code.to_ascii_uppercase()),
            text: Cow::Owned(text),
        }
    }
}

impl From<pubsub::Error> for CommandRefusal {
    fn from(error: pubsub::Error) -> Self {
        match error {
            pubsub::Error::Filter(error) => error.into(),
            pubsub::Error::Engine(error) => error.into(),
            error => Self::from_code(error.code(), error.to_string()),
        }
    }
}

impl From<aggregates::Error> for CommandRefusal {
    fn from(error: aggregates::Error) -> Self {
        match error {
            aggregates::Error::Engine(error) => error.into(),
            aggregates::Error::Refused(ref refused) => {
                Self::new(refused.code.as_str(), error.to_string())
            }
        }
    }
}

impl From<collections::Error> for CommandRefusal {
    fn from(error: collections::Error) -> Self {
        match error {
            collections::Error::Engine(error) => error.into(),
            error => Self::from_code(error.code(), error.to_string()),
        }
    }
}

impl From<engine::Error> for CommandRefusal {
    fn from(error: engine::Error) -> Self {
        if error.is_full() {
            return Self::new(
                "STORAGE_FULL",
                "the disk of the storage node is full: nothing was written; retry after space has been freed",
            );
        }
        Self::from_code(error.code(), error.to_string())
    }
}

impl From<rillbase_query::error::Error> for CommandRefusal {
    fn from(error: rillbase_query::error::Error) -> Self {
        let place = match error.pointer.as_str() {
            "" => String::new(),
            pointer => format!(" at {pointer}"),
        };
        Self::from_code(error.code.as_str(), format!("{}{place}", error.detail))
    }
}
