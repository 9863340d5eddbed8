//! Runs systems side by side: each runs a part of the operations, then the next one runs the same
//! part.
//!
//! So other load on the machine affects all of them alike. The first half of a run is excluded from
//! means and ratios, because the number of live records still grows.

use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::job::{BenchmarkJob, LIFE, Outcome, REACH, System, SystemStatistics, open};
use crate::workload::{START, WorkloadSetup, WorkloadStep};

/// The number of parts of a run.
pub(crate) const PARTS: usize = 56;
/// The number of parts in one measurement of a ratio.
const PAIR: usize = 4;
/// Progress is reported each time this many parts are complete.
const PARTS_PER_REPORT: usize = 8;

/// The measurements of a part.
#[derive(Debug, Clone, Copy, Default)]
struct RunPart {
    publishing: Duration,
    published: u64,
    subscribing: Duration,
    subscribed: u64,
    /// The CPU time of the operating thread.
    processor: Duration,
}

impl RunPart {
    fn add(&mut self, other: &Self) {
        self.publishing += other.publishing;
        self.published += other.published;
        self.subscribing += other.subscribing;
        self.subscribed += other.subscribed;
        self.processor += other.processor;
    }

    fn operations(&self) -> u64 {
        self.published + self.subscribed
    }

    fn mean_us(&self) -> f64 {
        micros(self.publishing + self.subscribing, self.operations())
    }
}

/// The measurements of a run.
#[derive(Debug, Default, Clone)]
pub(crate) struct RunMeasurement {
    parts: Vec<RunPart>,
    /// The planned number of operations.
    planned: usize,
    pub(crate) pairs: u64,
    pub(crate) statistics: SystemStatistics,
    /// The approximate size of all live records.
    pub(crate) live_bytes: u64,
}

fn micros(elapsed: Duration, count: u64) -> f64 {
    elapsed.as_secs_f64() * 1e6 / count.max(1) as f64
}

fn sum(parts: &[RunPart]) -> RunPart {
    let mut all = RunPart::default();
    for part in parts {
        all.add(part);
    }
    all
}

impl RunMeasurement {
    fn steady(&self) -> &[RunPart] {
        self.parts.get(self.planned / 2..).unwrap_or_default()
    }

    /// Whether there is enough to compare.
    fn is_steady(&self) -> bool {
        self.steady().len() >= PAIR
    }

    pub(crate) fn planned(&self) -> usize {
        self.planned
    }

    /// The completed fraction of the run.
    pub(crate) fn done(&self) -> f64 {
        self.parts.len() as f64 / self.planned.max(1) as f64
    }

    /// The mean time of an operation; polls count as subscriptions.
    pub(crate) fn mean_us(&self) -> f64 {
        sum(self.steady()).mean_us()
    }

    pub(crate) fn publish_us(&self) -> f64 {
        let all = sum(self.steady());
        micros(all.publishing, all.published)
    }

    pub(crate) fn subscribe_us(&self) -> f64 {
        let all = sum(self.steady());
        micros(all.subscribing, all.subscribed)
    }

    pub(crate) fn processor_us(&self) -> f64 {
        let all = sum(self.steady());
        micros(all.processor, all.operations())
    }

    /// The mean time of an operation in each part of the run.
    pub(crate) fn course_us(&self) -> Vec<f64> {
        self.parts.iter().map(RunPart::mean_us).collect()
    }

    /// The ratios of the times of this run to another one, pair by pair: wall-clock time and CPU
    /// time.
    pub(crate) fn by(&self, other: &Self) -> Vec<(f64, f64)> {
        let pairs = self.steady().chunks(PAIR).zip(other.steady().chunks(PAIR));
        let ratio = |(own, other): (&[RunPart], &[RunPart])| {
            let (own, other) = (sum(own), sum(other));
            let processor = |part: &RunPart| part.processor.as_secs_f64();
            (
                own.mean_us() / other.mean_us(),
                processor(&own) / processor(&other),
            )
        };
        pairs.map(ratio).collect()
    }
}

/// The CPU time of this thread.
fn processor() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split_whitespace().next();
    let nanos = first.and_then(|first| first.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

/// A system and its measurements so far.
struct Tested {
    job: Box<dyn BenchmarkJob>,
    measured: RunMeasurement,
}

impl Tested {
    fn part(&mut self, first: u64, steps: &[WorkloadStep], rate: u64) -> Outcome<()> {
        let mut part = RunPart::default();
        let began = processor();
        for (number, step) in (first..).zip(steps) {
            let now = START + number * 1000 / rate;
            self.job.prepare(number, &step.spot, now)?;
            let started = Instant::now();
            if step.publishes {
                self.measured.pairs += self.job.publish()?;
                part.publishing += started.elapsed();
                part.published += 1;
            } else {
                self.measured.pairs += self.job.subscribe()?;
                part.subscribing += started.elapsed();
                part.subscribed += 1;
            }
            let started = Instant::now();
            self.measured.pairs += self.job.due()?;
            part.subscribing += started.elapsed();
        }
        part.processor = processor().saturating_sub(began);
        self.measured.parts.push(part);
        Ok(())
    }

    /// The results so far.
    fn measured(&self, setup: &WorkloadSetup) -> RunMeasurement {
        let mut measured = self.measured.clone();
        let all = sum(&measured.parts);
        let subscribed = if self.job.stores_subscriptions() {
            all.subscribed * REACH
        } else {
            0
        };
        let total_life = all.published * LIFE + subscribed;
        let alive = total_life * setup.rate / 1000 / all.operations().max(1);
        measured.statistics = self.job.statistics();
        measured.live_bytes = alive * measured.statistics.record_bytes;
        measured
    }
}

/// Prints the progress of a run and the recent time per operation.
fn print_progress(done: usize, systems: &[System], tested: &[Tested]) -> Outcome<()> {
    let lately = systems.iter().zip(tested).map(|(system, one)| {
        let last = one.measured.parts.last().map_or(0.0, RunPart::mean_us);
        format!("{} {last:.1} µs", system.name())
    });
    let lately: Vec<String> = lately.collect();
    let line = format!("part {done} of {PARTS}: {}", lately.join(", "));
    writeln!(io::stderr(), "{line}")?;
    Ok(())
}

fn so_far(tested: &[Tested], setup: &WorkloadSetup) -> Vec<RunMeasurement> {
    tested.iter().map(|one| one.measured(setup)).collect()
}

/// Receives interim results.
pub(crate) type Interim<'a> = dyn FnMut(&[System], &[RunMeasurement]) -> io::Result<()> + 'a;

/// Runs all operations on all systems. Those whose library is missing are omitted. Once there is
/// enough to compare, `interim` is called periodically.
pub(crate) fn run(
    systems: &mut Vec<System>,
    setup: &WorkloadSetup,
    (operations, dir): (&[WorkloadStep], &Path),
    interim: &mut Interim<'_>,
) -> Outcome<Vec<RunMeasurement>> {
    let length = operations.len().div_ceil(PARTS).max(1);
    let planned = operations.len().div_ceil(length);
    let mut tested = Vec::new();
    let mut missing = Vec::new();
    for system in &*systems {
        match open(*system, setup, &dir.join(system.name()))? {
            Some(job) => tested.push(Tested {
                job,
                measured: RunMeasurement {
                    planned,
                    ..RunMeasurement::default()
                },
            }),
            None => missing.push(*system),
        }
    }
    systems.retain(|system| !missing.contains(system));
    for (number, steps) in operations.chunks(length).enumerate() {
        let first = (number * length) as u64;
        // The order changes, because background work of a part may overlap the next one.
        let mut order: Vec<&mut Tested> = tested.iter_mut().collect();
        if number % 2 == 1 {
            order.reverse();
        }
        for one in order {
            one.part(first, steps, setup.rate)?;
        }
        if (number + 1) % PARTS_PER_REPORT == 0 {
            print_progress(number + 1, systems, &tested)?;
            let measured = so_far(&tested, setup);
            if measured.iter().all(RunMeasurement::is_steady) {
                interim(systems, &measured)?;
            }
        }
    }
    let measured = so_far(&tested, setup);
    drop(tested);
    let _ = std::fs::remove_dir_all(dir);
    Ok(measured)
}
