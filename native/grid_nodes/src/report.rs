//! Figures about a node for operators.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// The state of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NodeState {
    /// Another holder has its partition, or the event layer is unavailable.
    #[default]
    Waiting,
    /// It reads the documents.
    Rebuilding,
    /// It watches queries.
    Running,
}

/// Counted since the process started, or the current value.
#[derive(Debug, Clone, Default)]
pub struct NodeFigures {
    /// The state.
    pub state: NodeState,
    /// Entries of its stream that were handled.
    pub entries: u64,
    /// Requests that were handled.
    pub requests: u64,
    /// Notifications that were appended.
    pub notifications: u64,
    /// How long the last entry had been in the stream when its notifications were appended, in µs.
    pub lag_us: u64,
    /// Rebuilds that were started, including the first one.
    pub rebuilds: u64,
    /// How long the last one took, in µs.
    pub rebuild_us: u64,
    /// Entries and rows that could not be handled.
    pub quarantined: u64,
    /// The number of panics.
    pub panics: u64,
    /// Registered queries.
    pub queries: usize,
    /// Remembered documents.
    pub documents: usize,
    /// Bytes of retained after-images.
    pub retained_bytes: usize,
    /// Documents that were matched in this lease term.
    pub matched_documents: u64,
    /// Queries that the index proposed for them.
    pub candidates: u64,
    /// Those of them that matched.
    pub verified: u64,
    /// Evaluations of residual queries.
    pub residual_evaluations: u64,
    /// The approximate size of the index in bytes.
    pub index_bytes: usize,
    /// CPU time of the node's thread, in µs.
    pub cpu_us: u64,
    /// The share of a core during the last measured minute, in millionths; absent if none was
    /// measured yet.
    pub busy_ppm: Option<u64>,
    /// The last problem; empty if there was none.
    pub trouble: String,
}

impl NodeFigures {
    /// The figures as one JSON object of numbers and texts.
    pub fn json(&self) -> String {
        let state = match self.state {
            NodeState::Waiting => "waiting",
            NodeState::Rebuilding => "rebuilding",
            NodeState::Running => "running",
        };
        let mut json = format!("{{\"state\":\"{state}\"");
        for (name, value) in self.numbers() {
            // Writing to a string does not fail.
            let _ = write!(json, ",\"{name}\":{value}");
        }
        if let Some(share) = self.busy_ppm {
            let _ = write!(json, ",\"busy_ppm\":{share}");
        }
        json.push_str(",\"trouble\":\"");
        for character in self.trouble.chars().take(300) {
            match character {
                '"' | '\\' => json.extend(['\\', character]),
                other if other.is_control() => json.push(' '),
                other => json.push(other),
            }
        }
        json.push_str("\"}");
        json
    }

    fn numbers(&self) -> [(&'static str, u64); 18] {
        let size = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        [
            ("entries", self.entries),
            ("requests", self.requests),
            ("notifications", self.notifications),
            ("lag_us", self.lag_us),
            ("rebuilds", self.rebuilds),
            ("rebuild_us", self.rebuild_us),
            ("quarantined", self.quarantined),
            ("panics", self.panics),
            ("queries", size(self.queries)),
            ("documents", size(self.documents)),
            ("retained_bytes", size(self.retained_bytes)),
            ("matched_documents", self.matched_documents),
            ("candidates", self.candidates),
            ("verified", self.verified),
            ("residual_evaluations", self.residual_evaluations),
            ("index_bytes", size(self.index_bytes)),
            ("cpu_us", self.cpu_us),
            ("pid", u64::from(std::process::id())),
        ]
    }
}

/// Measures the CPU share of a thread, minute by minute.
#[derive(Debug)]
pub struct CpuShare {
    began: Instant,
    cpu_us: u64,
}

impl CpuShare {
    /// The duration of one measurement.
    const MINUTE: Duration = Duration::from_secs(60);

    /// Starts a minute.
    pub fn begin(now: Instant, cpu_us: u64) -> Self {
        Self { began: now, cpu_us }
    }

    /// The share in millionths once a minute has passed; also starts the next one.
    pub fn sample(&mut self, now: Instant, cpu_us: u64) -> Option<u64> {
        let passed = now.duration_since(self.began);
        if passed < Self::MINUTE {
            return None;
        }
        let used = u128::from(cpu_us.saturating_sub(self.cpu_us)) * 1_000_000;
        *self = Self::begin(now, cpu_us);
        u64::try_from(used / passed.as_micros()).ok()
    }
}

/// CPU time of the calling thread in µs; 0 if the system does not report it.
pub fn thread_cpu_us() -> u64 {
    // "<ns running> <ns waiting> <slices>"
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse::<u64>().ok())
        .map_or(0, |nanoseconds| nanoseconds / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_that_of_a_minute_each_time() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut busy = CpuShare::begin(start, 500);
        assert_eq!(busy.sample(after(59), 30_000_500), None);
        assert_eq!(busy.sample(after(60), 30_000_500), Some(500_000));
        assert_eq!(busy.sample(after(100), 30_000_500), None);
        assert_eq!(busy.sample(after(180), 30_000_500), Some(0));
    }

    #[test]
    fn trouble_of_any_kind_leaves_the_report_readable() {
        let figures = NodeFigures {
            trouble: "a \"quoted\\\" line\nand another".into(),
            ..NodeFigures::default()
        };
        let json = figures.json();
        assert!(
            json.ends_with(r#","trouble":"a \"quoted\\\" line and another"}"#),
            "{json}"
        );
        assert!(
            json.starts_with(r#"{"state":"waiting","entries":0,"#),
            "{json}"
        );
    }
}
