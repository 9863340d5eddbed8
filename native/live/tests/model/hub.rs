//! The hub of the app server that the client is connected to.

use super::client::{Change, Phase, Token};
use super::scope::Scope;
use super::state::{DOCUMENTS, Kind, News, Request, Rows, Set, State, Tick, Valkey};

/// The progress of its query's registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Registration {
    Wanted,
    /// The ends of the write stream and the log are noted.
    Noted {
        writes: usize,
        log: usize,
    },
    /// The rows are read, too.
    Read {
        request: Request,
        log: usize,
    },
    Done,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Hub {
    /// Its position in the log, and what it knows of the event layer's incarnation.
    place: usize,
    life: Option<u8>,
    pub(crate) registration: Registration,
    /// Something was lost during the registration.
    again: bool,
    /// Log entries during the registration.
    held_back: Vec<(usize, News)>,
    /// The position of its request.
    request: usize,
    active: bool,
    /// `None` before the first result.
    rows: Option<Rows>,
    gone: [u8; DOCUMENTS],
    /// What the rows of the registration have seen, until the log has reached it.
    seen: Set,
    /// The node's last tick after its last start.
    ticked: Option<Set>,
    /// The position before a node's start, until its first tick.
    repeats_since: Option<usize>,
}

impl Hub {
    /// A hub that has read nothing.
    pub(crate) const fn new(place: usize) -> Self {
        Self {
            place,
            life: None,
            registration: Registration::Wanted,
            again: false,
            held_back: Vec::new(),
            request: 0,
            active: false,
            rows: None,
            gone: [0; DOCUMENTS],
            seen: Set::EMPTY,
            ticked: None,
            repeats_since: None,
        }
    }

    /// Everything that this snapshot sees is in the result; `None` if the hub does not claim to be
    /// live.
    pub(crate) fn live(&self) -> Option<Set> {
        let done = self.registration == Registration::Done && self.active && self.rows.is_some();
        self.ticked.filter(|_| done)
    }

    pub(crate) fn can_listen(&self, valkey: &Valkey) -> bool {
        valkey.log.end() > self.place
    }

    fn lose(&mut self) {
        if self.registration == Registration::Done {
            self.registration = Registration::Wanted;
        } else {
            self.again = true;
        }
    }

    /// The position from which a client that has received everything can resume.
    fn token(&self) -> Option<Token> {
        let whole = self.registration == Registration::Done;
        let token = Token {
            place: self.repeats_since.unwrap_or(self.place).min(self.place),
            life: self.life,
            seen: self.seen,
        };
        Some(token).filter(|_| whole)
    }

    fn named(&self, scope: &Scope) -> [u8; DOCUMENTS] {
        let seen = scope.versions(self.seen);
        let rows = self.rows.unwrap_or_default();
        std::array::from_fn(|document| {
            let held = rows[document].unwrap_or(0);
            seen[document].max(self.gone[document]).max(held)
        })
    }
}

impl State {
    pub(crate) fn crash_hub(&mut self) {
        self.hub = Hub::new(self.valkey.log.end());
        self.client.reconnect();
    }

    pub(crate) fn hub_notes(&mut self, scope: &Scope) {
        let (writes, log) = (self.valkey.writes.end(), self.valkey.log.end());
        self.hub.registration = if scope.rules.note_before_reading {
            Registration::Noted { writes, log }
        } else {
            // In the wrong order: the rows are read first, and their position is noted later.
            let (noted, seen) = (writes, self.committed);
            let request = Request { noted, seen };
            Registration::Read { request, log }
        };
    }

    pub(crate) fn hub_reads_rows(&mut self, writes: usize, log: usize) {
        let (noted, seen) = (writes, self.committed);
        let request = Request { noted, seen };
        self.hub.registration = Registration::Read { request, log };
    }

    pub(crate) fn hub_registers(&mut self, scope: &Scope, mut request: Request, log: usize) {
        if !scope.rules.note_before_reading {
            request.noted = self.valkey.writes.end();
        }
        self.valkey.registered = true;
        self.valkey.requests.push(request);
        let hub = &mut self.hub;
        hub.request = self.valkey.requests.end();
        hub.active = false;
        hub.seen = request.seen;
        let rows = scope.answer(request.seen);
        for (document, row) in rows.iter().enumerate() {
            if row.is_some() {
                hub.gone[document] = 0;
            }
        }
        let before = hub.rows.replace(rows);
        hub.registration = if std::mem::take(&mut hub.again) {
            Registration::Wanted
        } else {
            Registration::Done
        };
        for (place, event) in std::mem::take(&mut hub.held_back) {
            if place > log {
                self.hub_judges(scope, event, false);
            }
        }
        self.emit_difference(scope, before);
    }

    pub(crate) fn hub_listens(&mut self, scope: &Scope) {
        let Some((place, event)) = self.valkey.log.next(self.hub.place) else {
            return;
        };
        let (event, before) = (*event, self.hub.place);
        self.hub.place = place;
        if event == News::Start {
            self.hub.active = false;
            self.hub.ticked = None;
            self.hub.repeats_since.get_or_insert(before);
        }
        if let News::Tick(Tick { seen, life }) = event {
            if *self.hub.life.get_or_insert(life) != life {
                self.hub.life = Some(life);
                self.hub.lose();
            }
            self.hub.ticked = Some(seen);
            self.hub.repeats_since = None;
            if self.hub.live().is_some() && seen.covers(self.hub.seen) {
                self.hub.seen = Set::EMPTY;
            }
        }
        if self.hub.registration != Registration::Done {
            self.hub.held_back.push((place, event));
        }
        if self.hub.rows.is_some() {
            self.hub_judges(scope, event, true);
        }
        self.make_ready(scope);
    }

    /// Applies an entry to the result.
    fn hub_judges(&mut self, scope: &Scope, event: News, tell: bool) {
        match event {
            News::Match(number, _) => self.hub_applies(scope, number, tell),
            News::Active(upto) => self.hub.active |= upto >= self.hub.request,
            News::TooOld(request) if request == self.hub.request => self.hub.lose(),
            News::Rebase(seen) if !self.hub.seen.covers(seen) || self.hub.seen.is_empty() => {
                let before = self.hub.rows;
                self.hub_rebases(scope, seen);
                if tell {
                    self.emit_difference(scope, before);
                }
            }
            News::TooOld(_) | News::Rebase(_) | News::Start | News::Tick(_) => {}
        }
    }

    fn hub_applies(&mut self, scope: &Scope, number: u8, tell: bool) {
        let write = scope.write(number);
        let (document, version) = (write.document, write.version);
        let hub = &mut self.hub;
        let Some(rows) = &mut hub.rows else {
            return;
        };
        let held = rows[document];
        let old = held.is_some_and(|held| held >= version) || hub.gone[document] >= version;
        if old || hub.seen.has(number) {
            return;
        }
        if write.matches {
            rows[document] = Some(version);
        } else {
            rows[document] = None;
            hub.gone[document] = version;
        }
        let change = match (held, write.matches) {
            (None, true) => Change::Add,
            (Some(_), true) => Change::Stay,
            (Some(_), false) => Change::Remove,
            (None, false) => return,
        };
        if tell && self.client.phase == Phase::Running {
            self.client.apply_change(document, version, change);
            self.client.token = self.hub.token();
        }
    }

    fn hub_rebases(&mut self, scope: &Scope, seen: Set) {
        let current = scope.answer(seen);
        let (gone, before) = (self.hub.gone, self.hub.rows.unwrap_or_default());
        let rows = std::array::from_fn(|document| {
            let current = current[document].filter(|version| gone[document] < *version)?;
            Some(before[document].map_or(current, |held| held.max(current)))
        });
        self.hub.rows = Some(rows);
    }

    /// Sends the client the difference to the current result, or its first result.
    fn emit_difference(&mut self, scope: &Scope, before: Option<Rows>) {
        let now = self.hub.rows.unwrap_or_default();
        match self.client.phase {
            Phase::Waiting => {
                let named = self.hub.named(scope);
                self.client.give(now, named, self.hub.token());
            }
            Phase::Resuming => {}
            Phase::Running => {
                for (document, held) in before.unwrap_or_default().into_iter().enumerate() {
                    let gone = self.hub.gone[document];
                    match (held, now[document]) {
                        (Some(old), None) => {
                            self.client
                                .apply_change(document, old.max(gone), Change::Remove);
                        }
                        (None, Some(new)) => self.client.apply_change(document, new, Change::Add),
                        (Some(old), Some(new)) if old != new => {
                            self.client.apply_change(document, new, Change::Stay);
                        }
                        _ => {}
                    }
                }
                self.client.token = self.hub.token();
            }
        }
    }

    /// Notifies clients once everything is watched; sends a resuming client what it missed.
    fn make_ready(&mut self, scope: &Scope) {
        if self.hub.live().is_none() || self.client.ready {
            return;
        }
        if self.client.phase == Phase::Resuming {
            if !self.hub.seen.is_empty() {
                return;
            }
            self.resume(scope);
        }
        self.client.ready = true;
        self.client.token = self.hub.token();
    }

    fn resume(&mut self, scope: &Scope) {
        let missed = self
            .client
            .token
            .and_then(|token| self.missed(scope, token));
        let Some(missed) = missed else {
            let named = self.hub.named(scope);
            let rows = self.hub.rows.unwrap_or_default();
            self.client.give(rows, named, None);
            return;
        };
        self.client.phase = Phase::Running;
        for (number, kind) in missed {
            let write = scope.write(number);
            let change = match kind {
                Kind::Added => Change::Add,
                Kind::Changed => Change::Stay,
                Kind::Removed => Change::Remove,
            };
            self.client
                .apply_change(write.document, write.version, change);
        }
    }

    /// The log entries after a token; `None` if they do not suffice.
    fn missed(&self, scope: &Scope, token: Token) -> Option<Vec<(u8, Kind)>> {
        let log = &self.valkey.log;
        if token.life != self.hub.life || token.place > self.hub.place || token.place < log.lost {
            return None;
        }
        let (mut missed, mut place) = (Vec::new(), token.place);
        while place < self.hub.place {
            let (next, event) = log.next(place)?;
            place = next;
            match event {
                News::Start | News::Rebase(_) if scope.rules.reset_over_a_beginning => return None,
                News::TooOld(_) => return None,
                News::Match(number, kind) if !token.seen.has(*number) => {
                    missed.push((*number, *kind));
                }
                _ => {}
            }
        }
        Some(missed)
    }

    /// Whether existing nodes do not answer.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.hub.registration == Registration::Done
            && !self.hub.active
            && self.hub.ticked.is_some()
            && self.hub.place == self.valkey.log.end()
            && self.node.has_read_all(self)
            && self.nobody_waits_for_a_tick()
    }

    pub(crate) fn register_again(&mut self) {
        self.hub.lose();
    }
}
