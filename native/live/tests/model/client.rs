//! A subscriber. Frames reach it in order or not at all, so it receives them at once.

use super::state::{DOCUMENTS, Rows, Set};

/// A position in the log up to which everything was sent, and what was sent regardless of its
/// position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Token {
    pub(crate) place: usize,
    pub(crate) life: Option<u8>,
    pub(crate) seen: Set,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Phase {
    #[default]
    Waiting,
    /// It reconnected with its token.
    Resuming,
    Running,
}

/// One step of its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Add,
    Stay,
    Remove,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Client {
    pub(crate) phase: Phase,
    pub(crate) ready: bool,
    pub(crate) rows: Rows,
    pub(crate) token: Option<Token>,
    /// The newest version of each document that is known to be in its result.
    named: [u8; DOCUMENTS],
    /// It received an inconsistent event.
    pub(crate) confused: bool,
}

impl Client {
    /// Receives the whole result, which has seen these versions.
    pub(crate) fn give(&mut self, rows: Rows, named: [u8; DOCUMENTS], token: Option<Token>) {
        self.phase = Phase::Running;
        (self.rows, self.named, self.token) = (rows, named, token);
    }

    pub(crate) fn apply_change(&mut self, document: usize, version: u8, change: Change) {
        let held = &mut self.rows[document];
        let named = self.named[document];
        self.confused |= match change {
            Change::Add => held.is_some() || version <= named,
            Change::Stay => held.is_none() || version <= named,
            Change::Remove => held.is_none() || version < named,
        };
        *held = (change != Change::Remove).then_some(version);
        self.named[document] = named.max(version);
    }

    /// Its app server has ended; it connects to another one.
    pub(crate) fn reconnect(&mut self) {
        self.ready = false;
        if self.phase == Phase::Running && self.token.is_some() {
            self.phase = Phase::Resuming;
        } else if self.phase == Phase::Running {
            *self = Self {
                confused: self.confused,
                ..Self::default()
            };
        }
    }
}
