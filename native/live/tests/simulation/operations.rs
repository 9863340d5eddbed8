//! The operations of a history, and their frequencies.

use super::random::Random;

/// How many documents there are.
const KEYS: u64 = 9;

/// An operation. Numbers choose among what exists at the time, so that any subset of operations is
/// a valid history.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Operation {
    Pass {
        us: u64,
    },
    Begin {
        batch: bool,
    },
    Write {
        transaction: u64,
        key: u64,
        n: i64,
    },
    Delete {
        transaction: u64,
        key: u64,
    },
    Commit {
        transaction: u64,
        publish: bool,
    },
    Abort {
        transaction: u64,
    },
    /// A publisher publishes late, or repeats itself.
    Publish {
        which: u64,
        again: bool,
    },
    Relay {
        which: u64,
    },
    Step {
        driver: u64,
        seed: u64,
    },
    /// An app server reads this many entries of the log, and its clients read what it sends.
    Hub {
        process: u64,
        most: u64,
    },
    /// An app server serves a request of its hub.
    Serve {
        process: u64,
        which: u64,
    },
    /// A node's request is answered: documents are read, and sent some time later.
    Renew,
    Register {
        which: u64,
    },
    /// A slow client reads its pending frames.
    Take {
        client: u64,
    },
    /// A client is disconnected, and reconnects to some app server, with or without its token.
    CutOff {
        client: u64,
    },
    Connect {
        client: u64,
        process: u64,
        anew: bool,
    },
    /// An app server believes that something was lost.
    Doubt {
        process: u64,
    },
    /// Other access rules; app servers check them from time to time.
    Tighten,
    Look {
        process: u64,
    },
    Kill {
        driver: u64,
    },
    Pause {
        driver: u64,
        us: u64,
    },
    Skew {
        driver: u64,
        us: u64,
    },
    KillProcess {
        process: u64,
    },
    PauseProcess {
        process: u64,
        us: u64,
    },
    PauseRelay {
        which: u64,
        us: u64,
    },
    Expire,
    /// The event layer loses everything, its last seconds, the oldest entries, or one entry.
    Empty,
    Save,
    FallBack,
    Trim {
        which: u64,
        keep: u64,
    },
    Lose {
        stream: u64,
        which: u64,
    },
    /// PostgreSQL crashes, and is unavailable for this long.
    Crash {
        us: u64,
    },
}

/// The operations that follow from a seed.
pub(crate) fn history(seed: u64, length: usize) -> Vec<Operation> {
    let mut random = Random(seed);
    // Some histories are calm, so that every client becomes live at some time.
    let calm = random.below(4);
    (0..length).map(|_| operation(&mut random, calm)).collect()
}

/// The same, but app servers often believe that they have lost entries, so that nodes answer
/// repeated registrations of the queries that they watch; and most writes are in batches.
pub(crate) fn restless_history(seed: u64, length: usize) -> Vec<Operation> {
    let mut random = Random(seed ^ 0xA5A5_5A5A);
    let mut operations = Vec::new();
    for operation in history(seed, length) {
        operations.push(match operation {
            Operation::Begin { .. } => Operation::Begin {
                batch: !random.once_in(4),
            },
            other => other,
        });
        if random.once_in(12) {
            let process = random.next();
            operations.push(Operation::Doubt { process });
        }
    }
    operations
}

fn operation(random: &mut Random, calm: u64) -> Operation {
    match random.below(100) {
        0..8 => Operation::Pass {
            us: 1_000 << random.below(10),
        },
        8..32 => write(random),
        32..42 => Operation::Relay {
            which: random.next(),
        },
        42..62 => Operation::Step {
            driver: random.next(),
            seed: random.next(),
        },
        62..76 => Operation::Hub {
            process: random.next(),
            most: 1 + random.below(40),
        },
        76..86 => Operation::Serve {
            process: random.next(),
            which: random.next(),
        },
        86..89 => renewal(random),
        89..94 => client(random),
        94 => Operation::Look {
            process: random.next(),
        },
        _ if random.below(4) < calm => Operation::Hub {
            process: random.next(),
            most: 100,
        },
        _ => fault(random),
    }
}

fn write(random: &mut Random) -> Operation {
    let transaction = random.next();
    let key = random.below(KEYS);
    match random.below(24) {
        0..4 => Operation::Begin {
            batch: random.once_in(3),
        },
        4..13 => Operation::Write {
            transaction,
            key,
            n: i64::try_from(random.below(13)).unwrap_or(0) - 3,
        },
        13..15 => Operation::Delete { transaction, key },
        15..21 => Operation::Commit {
            transaction,
            publish: random.below(4) > 0,
        },
        21 => Operation::Abort { transaction },
        _ => Operation::Publish {
            which: random.next(),
            again: random.once_in(3),
        },
    }
}

fn renewal(random: &mut Random) -> Operation {
    if random.once_in(2) {
        Operation::Renew
    } else {
        Operation::Register {
            which: random.next(),
        }
    }
}

fn client(random: &mut Random) -> Operation {
    let client = random.next();
    match random.below(5) {
        0 => Operation::CutOff { client },
        1 => Operation::Take { client },
        _ => Operation::Connect {
            client,
            process: random.next(),
            anew: random.once_in(4),
        },
    }
}

fn fault(random: &mut Random) -> Operation {
    let driver = random.next();
    let process = random.next();
    let us = 100_000 << random.below(9);
    match random.below(24) {
        0..3 => Operation::Kill { driver },
        3..6 => Operation::Pause { driver, us },
        6 => Operation::Skew {
            driver,
            us: 1_000_000 << random.below(6),
        },
        7 => Operation::KillProcess { process },
        8..10 => Operation::PauseProcess { process, us },
        10..12 => Operation::PauseRelay {
            which: random.next(),
            us,
        },
        12 => Operation::Expire,
        13 => Operation::Empty,
        14 => Operation::Save,
        15 => Operation::FallBack,
        16 => Operation::Trim {
            which: random.next(),
            keep: random.below(8),
        },
        17 => Operation::Lose {
            stream: random.next(),
            which: random.next(),
        },
        18 => Operation::Crash {
            us: 100_000 << random.below(6),
        },
        19..21 => Operation::Tighten,
        _ => Operation::Pass {
            us: 3_000_000 << random.below(6),
        },
    }
}
