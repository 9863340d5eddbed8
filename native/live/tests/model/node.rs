//! The filter node.

use super::scope::Scope;
use super::state::{DOCUMENTS, Entry, Kind, News, Request, Set, State, Tick, Valkey};

/// The phase of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Phase {
    /// It has ended, or knows that it has missed something.
    NeedsRebuild,
    /// It has reported its start, has noted the ends of the streams and whether the query is
    /// registered, and reads the documents.
    Noted { registered: bool },
    #[default]
    Running,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Node {
    pub(crate) phase: Phase,
    life: Option<u8>,
    /// Its positions in the write stream and the requests, and the start of its retained writes.
    writes: usize,
    requests: usize,
    floor: usize,
    kept: Vec<(usize, u8)>,
    /// Whether it watches the query, and what the query's rows have seen.
    watches: bool,
    guard: Set,
    handled: [u8; DOCUMENTS],
    members: [bool; DOCUMENTS],
}

impl Node {
    pub(crate) fn can_read(&self, valkey: &Valkey) -> bool {
        valkey.writes.end() > self.writes
    }

    pub(crate) fn has_input(&self, valkey: &Valkey) -> bool {
        valkey.requests.end() > self.requests
    }

    /// Whether it has read everything and waits for more.
    pub(crate) fn has_read_all(&self, state: &State) -> bool {
        let valkey = &state.valkey;
        self.phase == Phase::Running && !self.can_read(valkey) && !self.has_input(valkey)
    }
}

impl State {
    pub(crate) fn kill_node(&mut self) {
        self.node = Node {
            phase: Phase::NeedsRebuild,
            ..Node::default()
        };
    }

    pub(crate) fn begin_node(&mut self) {
        self.valkey.log.push(News::Start);
        let valkey = &self.valkey;
        self.node = Node {
            phase: Phase::Noted {
                registered: valkey.registered,
            },
            writes: valkey.writes.end(),
            floor: valkey.writes.end(),
            requests: valkey.requests.end(),
            ..Node::default()
        };
    }

    pub(crate) fn rebuild_node(&mut self, scope: &Scope, registered: bool) {
        let seen = self.committed;
        self.node.phase = Phase::Running;
        if registered {
            self.node.watches = true;
            self.node.guard = seen;
            self.node.members = scope.answer(seen).map(|row| row.is_some());
            if scope.rules.rebase {
                self.valkey.log.push(News::Rebase(seen));
            }
            self.valkey.log.push(News::Active(self.node.requests));
        }
    }

    pub(crate) fn node_reads(&mut self, scope: &Scope) {
        let Some((place, entry)) = self.valkey.writes.next(self.node.writes) else {
            return;
        };
        let (entry, missed) = (*entry, place > self.node.writes + 1);
        self.node.writes = place;
        match entry {
            Entry::Image(number) => {
                self.node.kept.push((place, number));
                self.node_handles(scope, number);
            }
            Entry::Tick(tick) => {
                if missed || *self.node.life.get_or_insert(tick.life) != tick.life {
                    self.kill_node();
                } else {
                    self.valkey.log.push(News::Tick(tick));
                }
            }
        }
    }

    fn node_handles(&mut self, scope: &Scope, number: u8) {
        let write = scope.write(number);
        let handled = &mut self.node.handled[write.document];
        if write.version <= *handled {
            return;
        }
        *handled = write.version;
        if !self.node.watches {
            return;
        }
        if self.node.guard.has(number) {
            return;
        }
        self.emit_match(write.document, number, write.matches);
    }

    /// Reports what a write changes.
    fn emit_match(&mut self, document: usize, number: u8, matches: bool) {
        let had = std::mem::replace(&mut self.node.members[document], matches);
        let kind = match (had, matches) {
            (false, true) => Kind::Added,
            (true, true) => Kind::Changed,
            (true, false) => Kind::Removed,
            (false, false) => return,
        };
        self.valkey.log.push(News::Match(number, kind));
    }

    pub(crate) fn node_hears_request(&mut self, scope: &Scope) {
        let Some((place, request)) = self.valkey.requests.next(self.node.requests) else {
            return;
        };
        let request = *request;
        self.node.requests = place;
        let accepted = if self.node.watches {
            request.seen.covers(self.node.guard)
        } else {
            request.noted >= self.node.floor
        };
        if !accepted {
            self.valkey.log.push(News::TooOld(place));
            return;
        }
        if !self.node.watches {
            self.begin_to_watch(scope, request);
        }
        self.valkey.log.push(News::Active(place));
    }

    fn begin_to_watch(&mut self, scope: &Scope, request: Request) {
        self.node.watches = true;
        self.node.guard = request.seen;
        self.node.members = scope.answer(request.seen).map(|row| row.is_some());
        if !scope.rules.replay {
            return;
        }
        for (place, number) in self.node.kept.clone() {
            let write = scope.write(number);
            let seen = request.seen.has(number);
            let newest = self.node.handled[write.document] == write.version;
            if place > request.noted && !seen && newest {
                self.emit_match(write.document, number, write.matches);
            }
        }
    }

    /// Whether the log ends with something that only a tick proves to be complete.
    pub(crate) fn nobody_waits_for_a_tick(&self) -> bool {
        let ends_with_end = matches!(
            self.valkey.log.last(),
            Some(News::Tick(Tick { life, .. })) if *life == self.valkey.life
        );
        ends_with_end || !self.node.has_read_all(self)
    }
}
