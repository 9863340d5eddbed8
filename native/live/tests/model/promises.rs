//! The guarantees, as properties of all states.

use stateright::Model;

use super::client::Phase;
use super::scope::Scope;
use super::state::{DOCUMENTS, State};

/// A live client has, of each document, the result of its newest version that a tick proves, or of
/// a later one.
pub(crate) fn live_is_no_lie(scope: &Scope, state: &State) -> bool {
    let client = &state.client;
    let Some(proven) = state.hub.live().filter(|_| client.ready) else {
        return true;
    };
    let least = scope.versions(proven);
    let shows = |document: usize| match client.rows[document] {
        Some(held) => held >= least[document],
        None if least[document] == 0 => true,
        None => scope.numbers().any(|number| {
            let write = scope.write(number);
            let later = write.document == document && write.version >= least[document];
            later && !write.matches && state.committed.has(number)
        }),
    };
    (0..DOCUMENTS).all(shows)
}

/// Nothing is sent that contradicts the client's result, or repeats a version that it has seen.
pub(crate) fn nothing_falls(_: &Scope, state: &State) -> bool {
    !state.client.confused
}

/// When no action is left, the client is live and has the current result.
pub(crate) fn everything_heals(scope: &Scope, state: &State) -> bool {
    let mut left = Vec::new();
    scope.actions(state, &mut left);
    left.retain(|action| action.is_due());
    let live = state.hub.live() == Some(state.committed) && state.client.ready;
    !left.is_empty()
        || (live
            && state.client.phase == Phase::Running
            && state.client.rows == scope.answer(state.committed))
}
