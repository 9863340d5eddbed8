//! The possible next actions.

use stateright::{Model, Property};

use super::hub::Registration;
use super::node::Phase;
use super::promises;
use super::scope::Scope;
use super::state::{Request, State};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Commit(u8),
    RelayBegins,
    RelayPublishes(u8),
    RelayTicks,
    NodeBegins,
    NodeRebuilds { registered: bool },
    NodeReads,
    NodeHears,
    HubNotes,
    HubReadsRows { writes: usize, log: usize },
    HubRegisters { request: Request, log: usize },
    HubListens,
    HubLosesPatience,
    Empty,
    KillNode,
    CrashHub,
}

impl Action {
    /// Whether the action eventually happens; faults need not.
    pub(crate) const fn is_due(self) -> bool {
        !matches!(self, Self::Empty | Self::KillNode | Self::CrashHub)
    }
}

/// With more registrations than this, no client would ever receive a result.
const REGISTRATIONS: usize = 8;

impl Model for Scope {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::begin(self)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.of_writers(state, actions);
        of_node(state, actions);
        self.of_hub(state, actions);
        let faults = state.faults;
        if faults.empties > 0 {
            actions.push(Action::Empty);
        }
        if faults.kills > 0 && state.node.phase != Phase::NeedsRebuild {
            actions.push(Action::KillNode);
        }
        if faults.crashes > 0 {
            actions.push(Action::CrashHub);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Commit(number) => state.committed.add(number),
            Action::RelayBegins => state.begin_round(),
            Action::RelayPublishes(number) => state.relay_publishes(number),
            Action::RelayTicks => state.tick(),
            Action::NodeBegins => state.begin_node(),
            Action::NodeRebuilds { registered } => state.rebuild_node(self, registered),
            Action::NodeReads => state.node_reads(self),
            Action::NodeHears => state.node_hears_request(self),
            Action::HubNotes => state.hub_notes(self),
            Action::HubReadsRows { writes, log } => state.hub_reads_rows(writes, log),
            Action::HubRegisters { request, log } => state.hub_registers(self, request, log),
            Action::HubListens => state.hub_listens(self),
            Action::HubLosesPatience => state.register_again(),
            Action::Empty => {
                state.faults.empties -= 1;
                state.valkey.empty();
                // Its lease has been lost: all of its appends are rejected.
                state.kill_node();
            }
            Action::KillNode => {
                state.faults.kills -= 1;
                state.kill_node();
            }
            Action::CrashHub => {
                state.faults.crashes -= 1;
                state.crash_hub();
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("live is no lie", promises::live_is_no_lie),
            Property::always("nothing comes twice or falls", promises::nothing_falls),
            Property::always("everything heals", promises::everything_heals),
        ]
    }

    fn within_boundary(&self, state: &State) -> bool {
        state.valkey.requests.end() <= REGISTRATIONS
    }
}

impl Scope {
    fn of_writers(&self, state: &State, actions: &mut Vec<Action>) {
        for number in self.numbers() {
            if state.can_commit(self, number) {
                actions.push(Action::Commit(number));
            }
            if state.outstanding(number) {
                actions.push(Action::RelayPublishes(number));
            }
        }
        if state.can_begin_round() {
            actions.push(Action::RelayBegins);
        }
        if state.can_tick() {
            actions.push(Action::RelayTicks);
        }
    }

    fn of_hub(&self, state: &State, actions: &mut Vec<Action>) {
        match state.hub.registration {
            Registration::Wanted => actions.push(Action::HubNotes),
            Registration::Noted { writes, log } => {
                actions.push(Action::HubReadsRows { writes, log });
            }
            Registration::Read { request, log } => {
                actions.push(Action::HubRegisters { request, log });
            }
            Registration::Done => {}
        }
        if state.hub.can_listen(&state.valkey) {
            actions.push(Action::HubListens);
        }
        if self.rules.patience && state.is_unanswered() {
            actions.push(Action::HubLosesPatience);
        }
    }
}

fn of_node(state: &State, actions: &mut Vec<Action>) {
    match state.node.phase {
        Phase::NeedsRebuild => actions.push(Action::NodeBegins),
        Phase::Noted { registered } => actions.push(Action::NodeRebuilds { registered }),
        Phase::Running => {
            if state.node.can_read(&state.valkey) {
                actions.push(Action::NodeReads);
            }
            if state.node.has_input(&state.valkey) {
                actions.push(Action::NodeHears);
            }
        }
    }
}
