//! Which transactions a reader has seen: PostgreSQL's `pg_snapshot`.

/// Transactions below `xmin` have ended, those from `xmax` on are not visible, and those between
/// are visible unless they are among `running`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PgSnapshot {
    /// The lowest transaction that was still running.
    pub xmin: u64,
    /// The first transaction that had not started.
    pub xmax: u64,
    /// Those between that were still running, in ascending order.
    pub running: Vec<u64>,
}

impl PgSnapshot {
    /// Whether a committed transaction is visible.
    pub fn sees(&self, xid: u64) -> bool {
        xid < self.xmin || (xid < self.xmax && self.running.binary_search(&xid).is_err())
    }

    /// Whether everything that `other` sees is seen here too.
    pub fn covers(&self, other: &Self) -> bool {
        // What is visible in `other` is below its `xmax`; what is hidden here is in `running` or
        // from `xmax` on.
        self.running.iter().all(|&xid| !other.sees(xid))
            && (other.xmax <= self.xmax || (self.xmax..other.xmax).all(|xid| !other.sees(xid)))
    }
}
