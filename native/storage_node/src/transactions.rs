//! Open transactions: each consists of several commands, on any connections of its namespace, and
//! is rolled back when it takes too long.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use rillbase_aggregates::Staged;
use rillbase_engine::{Db, DbSnapshot, DbTransaction, Millis};

use crate::refusal::{CommandRefusal, Result};

/// The maximum duration of a writing transaction, in milliseconds: not longer than the engine
/// allows.
const MAX_WRITING_MS: Millis = 10_000;
/// The maximum duration of a read-only one.
const MAX_READING_MS: Millis = 60_000;
/// The maximum number of open transactions, of one namespace and of all.
const MAX_OPEN: (usize, usize) = (1000, 10_000);

/// The state of a transaction.
#[derive(Debug)]
pub(crate) enum TransactionState {
    /// It may write.
    Writing(Box<DbTransaction>, Box<Staged>),
    /// It is read-only.
    Reading(DbSnapshot),
    /// It has ended.
    Ended,
}

impl TransactionState {
    /// The snapshot that it reads.
    pub(crate) fn snapshot(&self) -> Result<&DbSnapshot> {
        match self {
            Self::Writing(transaction, _) => Ok(transaction.snapshot()),
            Self::Reading(snapshot) => Ok(snapshot),
            Self::Ended => Err(unknown()),
        }
    }

    /// Its writes.
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

/// An open transaction.
#[derive(Debug)]
pub(crate) struct OpenTransaction {
    namespace: u64,
    until: Millis,
    under: Mutex<TransactionState>,
}

impl OpenTransaction {
    pub(crate) fn lock(&self) -> MutexGuard<'_, TransactionState> {
        self.under.lock()
    }

    /// Takes its state, so that no further command can use it.
    pub(crate) fn end(&self) -> TransactionState {
        std::mem::replace(&mut *self.lock(), TransactionState::Ended)
    }
}

/// All open transactions.
#[derive(Debug)]
pub(crate) struct Transactions {
    open: Mutex<HashMap<u64, Arc<OpenTransaction>>>,
    next: AtomicU64,
}

impl Transactions {
    /// Numbers start with the time, so that none of an earlier process is reused.
    pub(crate) fn new(now: Millis) -> Self {
        Self {
            open: Mutex::default(),
            next: AtomicU64::new(now << 20),
        }
    }

    /// Starts a transaction; returns its number.
    pub(crate) fn begin(&self, db: &Db, namespace: u64, only_reads: bool) -> Result<u64> {
        self.check_room(namespace)?;
        let (under, lifetime_ms) = if only_reads {
            (TransactionState::Reading(db.snapshot()), MAX_READING_MS)
        } else {
            let transaction = Box::new(db.begin()?);
            (
                TransactionState::Writing(transaction, Box::default()),
                MAX_WRITING_MS,
            )
        };
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let open = OpenTransaction {
            namespace,
            until: db.now().saturating_add(lifetime_ms),
            under: Mutex::new(under),
        };
        self.open.lock().insert(number, Arc::new(open));
        Ok(number)
    }

    fn check_room(&self, namespace: u64) -> Result<()> {
        let (of_one, of_all) = MAX_OPEN;
        let open = self.open.lock();
        if open.len() >= of_all {
            let text = "there are 10,000 open transactions";
            return Err(CommandRefusal::new("TOO_MANY", text));
        }
        // There are usually few, so counting them is cheap.
        let own = open.values().filter(|one| one.namespace == namespace);
        if open.len() >= of_one && own.count() >= of_one {
            let text = "this namespace has 1,000 open transactions";
            return Err(CommandRefusal::new("TOO_MANY", text));
        }
        Ok(())
    }

    /// The transaction with a number.
    pub(crate) fn find(&self, number: u64, namespace: u64) -> Result<Arc<OpenTransaction>> {
        let open = self.open.lock();
        let transaction = open.get(&number).filter(|open| open.namespace == namespace);
        transaction.cloned().ok_or_else(unknown)
    }

    /// Removes a transaction in order to end it.
    pub(crate) fn take(&self, number: u64, namespace: u64) -> Result<Arc<OpenTransaction>> {
        let transaction = self.find(number, namespace)?;
        self.open.lock().remove(&number);
        Ok(transaction)
    }

    /// Ends transactions that took too long.
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
