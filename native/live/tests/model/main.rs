//! An exhaustive small model of the protocol: every interleaving of a few writes, one query,
//! one relay, one node, one app server after the other and one client, with a fault or two.
//!
//! It is a second description of the rules, as short as can be, beside the machines themselves and
//! their simulation: what is left out are sorts, partitions and time. Streams are lists, a snapshot
//! is a set of writes, and whatever may happen next is an action. The promises are properties of all
//! states that can be reached; rules can be left out, and then some promise is broken.
#![allow(
    clippy::indexing_slicing,
    reason = "what the model does not expect fails the test"
)]

mod actions;
mod client;
mod hub;
mod node;
mod outbox;
mod promises;
mod scope;
mod state;

use stateright::{Checker, HasDiscoveries, Model};

use scope::{Rules, Scope, Write};

const fn write(document: usize, version: u8, matches: bool) -> Write {
    Write {
        document,
        version,
        matches,
    }
}

/// A document enters the result and leaves it again.
const COMES_AND_LEAVES: &[Write] = &[write(0, 1, true), write(0, 2, false)];
const ONE: &[Write] = &[write(0, 1, true)];

fn holds(scope: Scope) {
    let checker = scope.checker().threads(2).spawn_dfs().join();
    checker.assert_properties();
}

/// Without a rule some promise is broken.
fn is_broken(scope: Scope) {
    let first = HasDiscoveries::Any;
    let checker = scope.checker().threads(2).finish_when(first).spawn_bfs();
    let broken = checker.join().discoveries();
    assert!(!broken.is_empty(), "no promise is broken");
}

#[test]
fn the_promises_hold_in_every_order_though_the_node_is_killed_at_any_moment() {
    holds(Scope {
        kills: 1,
        ..Scope::of(COMES_AND_LEAVES)
    });
}

#[test]
fn what_came_before_the_registration_is_replayed() {
    is_broken(Scope {
        rules: Rules {
            replay: false,
            ..Rules::ALL
        },
        ..Scope::of(ONE)
    });
}

#[test]
fn the_ends_of_the_streams_are_noted_before_the_rows_are_read() {
    is_broken(Scope {
        rules: Rules {
            note_before_reading: false,
            ..Rules::ALL
        },
        ..Scope::of(ONE)
    });
}

#[test]
fn a_new_node_tells_its_members() {
    is_broken(Scope {
        kills: 1,
        rules: Rules {
            rebase: false,
            ..Rules::ALL
        },
        ..Scope::of(ONE)
    });
}

#[test]
fn nobody_goes_on_over_the_beginning_of_a_node() {
    is_broken(Scope {
        kills: 1,
        crashes: 1,
        rules: Rules {
            reset_over_a_beginning: false,
            ..Rules::ALL
        },
        ..Scope::of(ONE)
    });
}

#[test]
fn a_registration_that_nobody_answers_is_sent_again() {
    is_broken(Scope {
        empties: 1,
        rules: Rules {
            patience: false,
            ..Rules::ALL
        },
        ..Scope::of(&[])
    });
}
