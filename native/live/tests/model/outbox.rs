//! The writers, which leave publishing to the relay, the outbox and the relay.

use super::scope::Scope;
use super::state::{Entry, Set, State, Tick};

/// Which writes are marked as published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Outbox {
    pub(crate) marked: Set,
}

/// A round of the relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Round {
    life: u8,
    seen: Set,
    outstanding: Set,
    /// Whether a mark settles a write: not while everything is published again.
    marks_count: bool,
}

/// The relay, with its current round, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Relay(Option<Round>);

impl State {
    /// Whether a write can be committed: those of one document follow one another.
    pub(crate) fn can_commit(&self, scope: &Scope, number: u8) -> bool {
        let document = scope.write(number).document;
        let mut before = (0..number).filter(|one| scope.write(*one).document == document);
        !self.committed.has(number) && before.all(|one| self.committed.has(one))
    }

    /// Whether a round would change anything. Rounds could be repeated endlessly, so others are
    /// excluded.
    pub(crate) fn can_begin_round(&self) -> bool {
        let now = Entry::Tick(Tick {
            seen: self.committed,
            life: self.valkey.life,
        });
        let has_ticked = self.valkey.writes.last() == Some(&now);
        self.relay.0.is_none() && !(has_ticked && self.nobody_waits_for_a_tick())
    }

    pub(crate) fn begin_round(&mut self) {
        let life = self.valkey.life;
        let marks_count = self.valkey.complete == Some(life);
        let seen = self.committed;
        self.relay.0 = Some(Round {
            life,
            seen,
            outstanding: if marks_count {
                seen.without(self.outbox.marked)
            } else {
                seen
            },
            marks_count,
        });
    }

    /// What the relay may publish next.
    pub(crate) fn outstanding(&self, number: u8) -> bool {
        self.left_of_round()
            .is_some_and(|outstanding| outstanding.has(number))
    }

    /// Whether a round has come to its tick.
    pub(crate) fn can_tick(&self) -> bool {
        self.left_of_round().is_some_and(Set::is_empty)
    }

    fn left_of_round(&self) -> Option<Set> {
        let round = self.relay.0?;
        Some(if round.marks_count {
            round.outstanding.without(self.outbox.marked)
        } else {
            round.outstanding
        })
    }

    pub(crate) fn relay_publishes(&mut self, number: u8) {
        self.valkey.writes.push(Entry::Image(number));
        self.outbox.marked.add(number);
        if let Some(round) = &mut self.relay.0 {
            let mut done = Set::default();
            done.add(number);
            round.outstanding = round.outstanding.without(done);
        }
    }

    pub(crate) fn tick(&mut self) {
        let Some(round) = self.relay.0.take() else {
            return;
        };
        let life = self.valkey.life;
        if round.life == life {
            self.valkey.complete = Some(life);
            let seen = round.seen;
            self.valkey.writes.push(Entry::Tick(Tick { seen, life }));
        }
    }
}
