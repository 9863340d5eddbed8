//! The scope of a check: its writes, the number of faults, and the enabled rules.

/// A version of a document, and whether it is in the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Write {
    pub(crate) document: usize,
    pub(crate) version: u8,
    pub(crate) matches: bool,
}

/// The rules of the protocol that can be disabled.
#[derive(Debug, Clone, Copy)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each rule is left out by itself"
)]
pub(crate) struct Rules {
    /// A node replays to a query the writes after the noted end that are not in its rows.
    pub(crate) replay: bool,
    /// The end of the write stream is noted first, then the rows are read.
    pub(crate) note_before_reading: bool,
    /// A node that starts reports which documents are in the result.
    pub(crate) rebase: bool,
    /// A client whose missed part of the log contains the start of a node receives the whole
    /// result.
    pub(crate) reset_over_a_beginning: bool,
    /// A hub registers again if existing nodes do not answer.
    pub(crate) patience: bool,
}

impl Rules {
    pub(crate) const ALL: Self = Self {
        replay: true,
        note_before_reading: true,
        rebase: true,
        reset_over_a_beginning: true,
        patience: true,
    };
}

/// See the module.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope {
    /// Versions of one document in the order in which they are committed.
    pub(crate) writes: &'static [Write],
    pub(crate) rules: Rules,
    /// How often the event layer is emptied, the node killed, the app server replaced.
    pub(crate) empties: u8,
    pub(crate) kills: u8,
    pub(crate) crashes: u8,
}

impl Scope {
    /// All rules, and no faults.
    pub(crate) const fn of(writes: &'static [Write]) -> Self {
        Self {
            writes,
            rules: Rules::ALL,
            empties: 0,
            kills: 0,
            crashes: 0,
        }
    }

    pub(crate) fn write(&self, number: u8) -> Write {
        self.writes[usize::from(number)]
    }

    pub(crate) fn numbers(&self) -> impl Iterator<Item = u8> + use<> {
        (0..self.writes.len()).filter_map(|number| u8::try_from(number).ok())
    }
}
