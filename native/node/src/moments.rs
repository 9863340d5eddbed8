//! Moments that can be asked about again: one a second is shared by queries that do not ask for the
//! very newest, others are opened by name. Each is held for a minute, then what it sees may be
//! compacted away.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rillbase_engine::{Db, Millis, Snapshot};

use crate::refusal::{Refusal, Result};

/// How old a moment may be that is shared, in milliseconds.
const SHARED: Millis = 1000;
/// How long a moment is held.
const HELD: Millis = 60_000;
/// No more are held at once, beside those that are shared.
const MOST: usize = 1000;

/// A moment that is held.
#[derive(Debug, Clone)]
pub(crate) struct Moment {
    /// What it is asked for by.
    pub(crate) name: String,
    pub(crate) snapshot: Arc<Snapshot>,
    /// The namespace that opened it; none for those that are shared.
    opener: Option<u64>,
    until: Millis,
}

#[derive(Debug, Default)]
struct State {
    held: BTreeMap<u64, Moment>,
    shared: Option<Moment>,
    next: u64,
}

/// All moments that are held.
#[derive(Debug)]
pub(crate) struct Moments {
    /// Names are of this process: another does not hold what one has held.
    process: String,
    state: Mutex<State>,
}

impl Moments {
    pub(crate) fn new(now: Millis) -> Self {
        Self {
            process: format!("{now:x}{:x}", std::process::id()),
            state: Mutex::default(),
        }
    }

    fn hold(&self, state: &mut State, db: &Db, opener: Option<u64>) -> Moment {
        let snapshot = Arc::new(db.snapshot());
        state.next += 1;
        let moment = Moment {
            name: format!("{}-{}-{}", self.process, state.next, snapshot.sequence()),
            until: snapshot.time().saturating_add(HELD),
            snapshot,
            opener,
        };
        state.held.insert(state.next, moment.clone());
        moment
    }

    /// One that is a second old at most.
    pub(crate) fn shared(&self, db: &Db) -> Moment {
        let now = db.now();
        let mut state = self.state.lock();
        if let Some(shared) = &state.shared
            && shared.snapshot.time().saturating_add(SHARED) > now
        {
            return shared.clone();
        }
        let moment = self.hold(&mut state, db, None);
        state.shared = Some(moment.clone());
        moment
    }

    /// Now; it is held if anything was written since the shared one.
    pub(crate) fn fresh(&self, db: &Db) -> Moment {
        let mut state = self.state.lock();
        let newest = db.snapshot();
        if let Some(shared) = &state.shared
            && shared.snapshot.sequence() == newest.sequence()
            && shared.until > newest.time()
        {
            return shared.clone();
        }
        let moment = self.hold(&mut state, db, None);
        state.shared = Some(moment.clone());
        moment
    }

    /// Opens one of a namespace's own.
    pub(crate) fn open(&self, db: &Db, namespace: u64) -> Result<Moment> {
        let mut state = self.state.lock();
        let own = state.held.values().filter(|moment| moment.opener.is_some());
        if own.count() >= MOST {
            return Err(Refusal::new("TOO_MANY", "there are 1,000 snapshots open"));
        }
        Ok(self.hold(&mut state, db, Some(namespace)))
    }

    fn number(&self, name: &str) -> Option<u64> {
        let rest = name.strip_prefix(&self.process)?.strip_prefix('-')?;
        rest.split('-').next()?.parse().ok()
    }

    /// The moment of a name.
    pub(crate) fn find(&self, name: &str, namespace: u64, now: Millis) -> Result<Moment> {
        let state = self.state.lock();
        let found = self.number(name).and_then(|number| state.held.get(&number));
        let is_own = |moment: &&Moment| {
            let may_see = moment.opener.is_none_or(|opener| opener == namespace);
            may_see && moment.name == name && moment.until > now
        };
        found.filter(is_own).cloned().ok_or_else(expired)
    }

    /// Lets one go that a namespace has opened; says whether it was there.
    pub(crate) fn close(&self, name: &str, namespace: u64) -> bool {
        let mut state = self.state.lock();
        let Some(number) = self.number(name) else {
            return false;
        };
        let is_own = |moment: &Moment| moment.opener == Some(namespace) && moment.name == name;
        let found = state.held.get(&number).is_some_and(is_own);
        if found {
            state.held.remove(&number);
        }
        found
    }

    /// Lets go what was held long enough.
    pub(crate) fn expire(&self, now: Millis) {
        let mut state = self.state.lock();
        state.held.retain(|_, moment| moment.until > now);
        if state
            .shared
            .as_ref()
            .is_some_and(|shared| shared.until <= now)
        {
            state.shared = None;
        }
    }
}

fn expired() -> Refusal {
    Refusal::new(
        "SNAPSHOTEXPIRED",
        "there is no such snapshot (any more): they live for 60 seconds",
    )
}
