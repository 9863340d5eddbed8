//! Transactions under way: each is a conversation of several commands, on any connections of its
//! namespace, and ends by itself when it takes too long.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use rillbase_aggregates::Staged;
use rillbase_engine::{Db, DbSnapshot, DbTransaction, Millis};

use crate::refusal::{CommandRefusal, Result};

/// How long one may take that writes, in milliseconds: no longer than the engine lets it.
const WRITING: Millis = 10_000;
/// How long one may take that only reads.
const READING: Millis = 60_000;
/// No more are under way at once, of one namespace and of all.
const MOST: (usize, usize) = (1000, 10_000);

/// What a transaction has come to.
#[derive(Debug)]
pub(crate) enum Under {
    /// It may write.
    Writing(Box<DbTransaction>, Box<Staged>),
    /// It only reads.
    Reading(DbSnapshot),
    /// It has ended.
    Ended,
}

impl Under {
    /// The moment that it sees.
    pub(crate) fn snapshot(&self) -> Result<&DbSnapshot> {
        match self {
            Self::Writing(transaction, _) => Ok(transaction.snapshot()),
            Self::Reading(snapshot) => Ok(snapshot),
            Self::Ended => Err(unknown()),
        }
    }

    /// What it writes.
    pub(crate) fn writing(&mut self) -> Result<(&mut DbTransaction, &mut Staged)> {
        match self {
            Self::Writing(transaction, staged) => Ok((transaction, staged)),
            Self::Reading(_) => Err(CommandRefusal::new(
                "READONLY",
                "the transaction is read-only",
            )),
            Self::Ended => Err(unknown()),
        }
    }
}

/// A transaction under way.
#[derive(Debug)]
pub(crate) struct OpenTransaction {
    namespace: u64,
    until: Millis,
    under: Mutex<Under>,
}

impl OpenTransaction {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Under> {
        self.under.lock()
    }

    /// Takes it, so that nothing follows.
    pub(crate) fn end(&self) -> Under {
        std::mem::replace(&mut *self.lock(), Under::Ended)
    }
}

/// All transactions under way.
#[derive(Debug)]
pub(crate) struct Transactions {
    open: Mutex<HashMap<u64, Arc<OpenTransaction>>>,
    next: AtomicU64,
}

impl Transactions {
    /// Numbers begin with the time, so that none of an earlier process is given again.
    pub(crate) fn new(now: Millis) -> Self {
        Self {
            open: Mutex::default(),
            next: AtomicU64::new(now << 20),
        }
    }

    /// Begins one; returns its number.
    pub(crate) fn begin(&self, db: &Db, namespace: u64, only_reads: bool) -> Result<u64> {
        self.check_room(namespace)?;
        let (under, lives) = if only_reads {
            (Under::Reading(db.snapshot()), READING)
        } else {
            let transaction = Box::new(db.begin()?);
            (Under::Writing(transaction, Box::default()), WRITING)
        };
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let open = OpenTransaction {
            namespace,
            until: db.now().saturating_add(lives),
            under: Mutex::new(under),
        };
        self.open.lock().insert(number, Arc::new(open));
        Ok(number)
    }

    fn check_room(&self, namespace: u64) -> Result<()> {
        let (of_one, of_all) = MOST;
        let open = self.open.lock();
        if open.len() >= of_all {
            let text = "there are 10,000 open transactions";
            return Err(CommandRefusal::new("TOO_MANY", text));
        }
        // Mostly there are few in all, and none to be counted.
        let own = open.values().filter(|one| one.namespace == namespace);
        if open.len() >= of_one && own.count() >= of_one {
            let text = "this namespace has 1,000 open transactions";
            return Err(CommandRefusal::new("TOO_MANY", text));
        }
        Ok(())
    }

    /// The transaction of a number.
    pub(crate) fn find(&self, number: u64, namespace: u64) -> Result<Arc<OpenTransaction>> {
        let open = self.open.lock();
        let transaction = open.get(&number).filter(|open| open.namespace == namespace);
        transaction.cloned().ok_or_else(unknown)
    }

    /// Takes one out, to be ended.
    pub(crate) fn take(&self, number: u64, namespace: u64) -> Result<Arc<OpenTransaction>> {
        let transaction = self.find(number, namespace)?;
        self.open.lock().remove(&number);
        Ok(transaction)
    }

    /// Ends what took too long.
    pub(crate) fn expire(&self, now: Millis) {
        let late: Vec<Arc<OpenTransaction>> = {
            let mut open = self.open.lock();
            let late = open.extract_if(|_, one| one.until <= now);
            late.map(|(_, one)| one).collect()
        };
        for one in late {
            one.end();
        }
    }
}

fn unknown() -> CommandRefusal {
    CommandRefusal::new("NOTX", "the transaction does not exist (any more)")
}
