//! Which transactions somebody has seen: PostgreSQL's `pg_snapshot`.

/// Transactions below `xmin` are over, those from `xmax` on are not visible, and those between are
/// visible unless they are among `running`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PgSnapshot {
    /// The lowest transaction that was still running.
    pub xmin: u64,
    /// The first that had not begun.
    pub xmax: u64,
    /// Those between that were still running, rising.
    pub running: Vec<u64>,
}

impl PgSnapshot {
    /// Whether a transaction that has committed is visible.
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
