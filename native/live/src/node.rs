//! What filter nodes and sort nodes have in common: what they give out.

use crate::message::{News, Notification, Source, Token};

/// What a node wants done.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all of what a node gives out is notifications"
)]
pub enum Output {
    /// To be appended to the notification log, in this order.
    Notify(Notification),
    /// The node no longer knows that its state is complete. It ignores all input until it is
    /// rebuilt: `Start`, `Begin`, `Rows` …, `End`.
    Rebuild(Why),
}

/// Why a node must be rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Why {
    /// Entries were lost: the counts disagree.
    Lost,
    /// The event layer or the database began another life.
    Incarnation,
    /// An entry could not be handled, and nobody knows which queries it concerned.
    Unreadable,
    /// For a sort node: a filter node was rebuilt, and what it said before its end may be lost.
    FilterNode,
}

/// Numbers what a node says.
#[derive(Debug)]
pub(crate) struct Voice {
    source: Source,
    token: Token,
    count: u64,
}

impl Voice {
    pub(crate) const fn new(source: Source, token: Token) -> Self {
        Self {
            source,
            token,
            count: 0,
        }
    }

    pub(crate) fn say(&mut self, news: News, out: &mut Vec<Output>) {
        self.count += 1;
        out.push(Output::Notify(Notification {
            source: self.source,
            token: self.token,
            count: self.count,
            news,
        }));
    }
}
