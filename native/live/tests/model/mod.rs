//! A small model of the protocol that is checked exhaustively: every interleaving of a few writes,
//! one query, one relay, one node, successive app servers and one client, with one or two faults.
//!
//! It is a second, minimal description of the rules, besides the state machines and their
//! simulation, and omits sorts, partitions and time. Streams are lists, a snapshot is a set of
//! writes, and everything that may happen next is an action. The guarantees are properties of all
//! reachable states. Each rule can be disabled, which then violates a guarantee.

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

/// Checks that a guarantee is violated without a rule.
fn is_broken(scope: Scope) {
    let first = HasDiscoveries::Any;
    let checker = scope.checker().threads(2).finish_when(first).spawn_bfs();
    let broken = checker.join().discoveries();
    assert!(!broken.is_empty(), "no promise is broken");
}

#[test]
fn the_guarantees_hold_in_every_order_even_if_the_node_is_killed_at_any_time() {
    holds(Scope {
        kills: 1,
        ..Scope::of(COMES_AND_LEAVES)
    });
}

#[test]
fn writes_before_the_registration_are_replayed() {
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
fn no_client_resumes_across_the_start_of_a_node() {
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
fn an_unanswered_registration_is_repeated() {
    is_broken(Scope {
        empties: 1,
        rules: Rules {
            patience: false,
            ..Rules::ALL
        },
        ..Scope::of(&[])
    });
}
