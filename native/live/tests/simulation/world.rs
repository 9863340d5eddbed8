//! The participants of one history, and its steps.

use rillbase_live::hub::ClientOptions;

use super::client::{Checked, Client};
use super::database::Database;
use super::demands::{Answer, Demand};
use super::nodes::{Driver, Kind};
use super::operations::Operation;
use super::outbox::Outbox;
use super::process::Process;
use super::queries::WANTED;
use super::random::Random;
use super::relay::Relay;
use super::valkey::{Sender, Valkey};

const PARTITIONS: u16 = 2;
const BEGIN_US: u64 = 1_000_000_000;
/// The maximum time for recovery after the faults have stopped.
const HEAL_US: u64 = 150_000_000;
const PROCESSES: usize = 2;

struct World {
    database: Database,
    outbox: Outbox,
    valkey: Valkey,
    saved: Valkey,
    relays: [Relay; 2],
    drivers: Vec<Driver>,
    processes: Vec<Process>,
    next_process: u64,
    clients: Vec<Client>,
    /// Requests of nodes, and the answers that are on their way.
    wanted: Vec<Demand>,
    answers: Vec<Answer>,
}

/// Runs a history to its end, and waits for recovery.
pub(crate) fn run(operations: &[Operation]) -> Checked {
    let mut world = World::new();
    for operation in operations {
        // Every step takes some time.
        world.valkey.now_us += 200;
        world.act(*operation)?;
    }
    world.heal()
}

/// Restarts the first filter node while the server is slow; returns how many other nodes lost their
/// leases until every client was live again.
pub(crate) fn restart_filter_node(
    reported_at_once: usize,
    report_us: u64,
) -> Result<usize, String> {
    let mut world = World::new();
    world.heal()?;
    let others: Vec<String> = world
        .drivers
        .iter()
        .map(|driver| driver.kind.name())
        .collect();
    let (restarted, others) = others[..others.len() / 2].split_at(1);
    let tokens = |world: &World| -> Vec<_> {
        let token = |node: &String| world.valkey.token(node);
        others.iter().map(token).collect()
    };
    let (before, token) = (tokens(&world), world.valkey.token(&restarted[0]));
    world.valkey.report_us = report_us;
    for driver in &mut world.drivers {
        driver.reported_at_once = reported_at_once;
        if driver.kind.name() == restarted[0] {
            driver.kill();
        }
    }
    while world.valkey.token(&restarted[0]) == token {
        world.valkey.now_us += 50_000;
        world.go_on_without_faults(&mut Random(1))?;
    }
    world.heal()?;
    let after = tokens(&world);
    let changed = before
        .iter()
        .zip(&after)
        .filter(|(before, after)| before != after);
    Ok(changed.count())
}

fn among(number: u64, count: usize) -> usize {
    usize::try_from(number % count.max(1) as u64).unwrap_or(0)
}

/// The clients: one for each query with default options, and some that are throttled, slow, or
/// receive whole results.
fn clients() -> Vec<Client> {
    let options = |at: usize| ClientOptions {
        whole_results: at % 5 == 3 || at % 6 == 1,
        throttle_us: if at % 4 == 2 { 200_000 } else { 0 },
        ..ClientOptions::default()
    };
    let plain = WANTED
        .iter()
        .map(|wanted| Client::new(*wanted, ClientOptions::default(), false));
    let others = WANTED.iter().enumerate();
    let others = others.map(|(at, wanted)| Client::new(*wanted, options(at), at % 2 == 0));
    plain.chain(others).collect()
}

impl World {
    fn new() -> Self {
        let mut drivers = Vec::new();
        for holder in 0..2 {
            for partition in 0..PARTITIONS {
                drivers.push(Driver::new(Kind::Filter(partition), PARTITIONS, holder));
            }
            drivers.push(Driver::new(Kind::Sort, PARTITIONS, holder));
        }
        let valkey = Valkey::new(PARTITIONS, BEGIN_US);
        let mut world = Self {
            database: Database::new(),
            outbox: Outbox::default(),
            saved: valkey.clone(),
            valkey,
            relays: [Relay::new(1), Relay::new(2)],
            drivers,
            processes: Vec::new(),
            next_process: 0,
            clients: clients(),
            wanted: Vec::new(),
            answers: Vec::new(),
        };
        for _ in 0..PROCESSES {
            let process = world.another_process();
            world.processes.push(process);
        }
        for client in 0..world.clients.len() {
            world.connect(client, client % PROCESSES, false);
        }
        world
    }

    fn another_process(&mut self) -> Process {
        self.next_process += 1;
        Process::new(self.next_process, PARTITIONS, &mut self.valkey)
    }

    fn act(&mut self, operation: Operation) -> Checked {
        let now_us = self.valkey.now_us;
        match operation {
            Operation::Pass { us } => self.valkey.now_us += us,
            Operation::Begin { .. }
            | Operation::Write { .. }
            | Operation::Delete { .. }
            | Operation::Commit { .. }
            | Operation::Abort { .. }
            | Operation::Publish { .. } => self.write(operation),
            Operation::Relay { which } => {
                let relay = &mut self.relays[among(which, 2)];
                relay.step(&self.database, &mut self.outbox, &mut self.valkey);
            }
            Operation::Step { driver, seed } => {
                let driver = self.driver(driver);
                self.drivers[driver].step(&mut self.valkey, &self.database, &mut Random(seed));
            }
            Operation::Hub { process, most } => {
                return self.step(among(process, PROCESSES), among(most, 1_000));
            }
            Operation::Serve { process, which } => {
                self.serve(among(process, PROCESSES), among(which, 1_000));
            }
            Operation::Renew => self.read_demand(),
            Operation::Register { which } => self.send_answer(which),
            Operation::Take { client } => self.take(among(client, self.clients.len())),
            Operation::CutOff { client } => self.cut_off(among(client, self.clients.len())),
            Operation::Connect {
                client,
                process,
                anew,
            } => {
                let client = among(client, self.clients.len());
                self.connect(client, among(process, PROCESSES), anew);
            }
            Operation::Doubt { process } => {
                let process = &mut self.processes[among(process, PROCESSES)];
                if !process.is_stopped(now_us) {
                    process.hub.lost(0);
                }
            }
            Operation::Tighten if !self.database.is_away(now_us) => {
                self.database.change_rules(now_us);
            }
            Operation::Look { process } => {
                let process = &mut self.processes[among(process, PROCESSES)];
                if !process.is_stopped(now_us) {
                    process.judge(None, &self.database, now_us);
                }
            }
            _ => self.fault(operation),
        }
        Ok(())
    }

    fn driver(&self, number: u64) -> usize {
        among(number, self.drivers.len())
    }

    fn write(&mut self, operation: Operation) {
        let now_us = self.valkey.now_us;
        let open = self.database.open();
        let chosen = |number| open.get(among(number, open.len())).copied();
        let key = |number: u64| u8::try_from(number).unwrap_or(0);
        match operation {
            Operation::Begin { batch } if !self.database.is_away(now_us) => {
                self.database.begin(batch);
            }
            Operation::Write {
                transaction,
                key: number,
                n,
            } => {
                if let Some(xid) = chosen(transaction) {
                    self.database.write(xid, key(number), Some(n));
                }
            }
            Operation::Delete {
                transaction,
                key: number,
            } => {
                if let Some(xid) = chosen(transaction) {
                    self.database.write(xid, key(number), None);
                }
            }
            Operation::Commit {
                transaction,
                publish,
            } => {
                if let Some(xid) = chosen(transaction) {
                    let images = self.database.commit(xid, PARTITIONS, now_us);
                    self.outbox.add(images, now_us);
                    if publish {
                        self.publish(xid);
                    }
                }
            }
            Operation::Abort { transaction } => {
                if let Some(xid) = chosen(transaction) {
                    self.database.abort(xid);
                }
            }
            Operation::Publish { which, again } => {
                let rows = if again {
                    self.outbox.all()
                } else {
                    self.outbox.unmarked()
                };
                if let Some(xid) = rows.get(among(which, rows.len())) {
                    self.publish(*xid);
                }
            }
            _ => {}
        }
    }

    /// A writer publishes its own writes, and marks them.
    fn publish(&mut self, xid: u64) {
        let now_us = self.valkey.now_us;
        if let Some((stamp_us, images)) = self.outbox.as_written(xid) {
            let sender = Sender {
                stamp_us,
                token: None,
            };
            if self.valkey.publish(sender, &images) && !self.database.is_away(now_us) {
                self.outbox.mark(xid, now_us);
            }
        }
    }

    fn fault(&mut self, operation: Operation) {
        let now_us = self.valkey.now_us;
        match operation {
            Operation::Kill { driver } => {
                let driver = self.driver(driver);
                self.drivers[driver].kill();
            }
            Operation::Pause { driver, us } => {
                let driver = self.driver(driver);
                self.drivers[driver].stopped_until_us = now_us + us;
            }
            Operation::Skew { driver, us } => {
                let driver = self.driver(driver);
                self.drivers[driver].skew_us = us;
            }
            Operation::KillProcess { process } => self.kill_process(among(process, PROCESSES)),
            Operation::PauseProcess { process, us } => {
                self.processes[among(process, PROCESSES)].stopped_until_us = now_us + us;
            }
            Operation::PauseRelay { which, us } => {
                self.relays[among(which, 2)].stopped_until_us = now_us + us;
            }
            Operation::Expire => self.valkey.expire(),
            Operation::Empty => {
                self.valkey.empty();
                self.saved = self.valkey.clone();
            }
            Operation::Save => self.saved = self.valkey.clone(),
            Operation::FallBack => {
                self.valkey.fall_back(&self.saved);
                self.saved = self.valkey.clone();
                // Parties that lose the connection restart.
                self.drivers.iter_mut().for_each(Driver::kill);
            }
            Operation::Trim { which, keep } => self.valkey.trim(which, among(keep, 1_000)),
            Operation::Lose { stream, which } => self.valkey.lose(stream, which),
            Operation::Crash { us } => self.database.crash(now_us + us),
            _ => {}
        }
    }

    fn kill_process(&mut self, at: usize) {
        for client in 0..self.clients.len() {
            if self.clients[client].process == Some(at) {
                self.clients[client].cut_off();
            }
        }
        self.processes[at] = self.another_process();
    }

    fn cut_off(&mut self, at: usize) {
        let client = &mut self.clients[at];
        if let Some(process) = client.process {
            self.processes[process].detach(at as u64);
            client.cut_off();
        }
    }

    fn connect(&mut self, at: usize, process: usize, anew: bool) {
        let now_us = self.valkey.now_us;
        let client = &mut self.clients[at];
        let process_there = &mut self.processes[process];
        let away = process_there.is_stopped(now_us) || self.database.is_away(now_us);
        if client.process.is_some() || away {
            return;
        }
        if anew {
            client.begin_anew();
        }
        client.process = Some(process);
        process_there.subscribe(
            at as u64,
            client.wanted,
            client.options.clone(),
            self.database.rules,
            client.token.clone(),
        );
    }

    /// An app server makes a step, and its clients read.
    fn step(&mut self, at: usize, most: usize) -> Checked {
        let now_us = self.valkey.now_us;
        let process = &mut self.processes[at];
        if process.is_stopped(now_us) {
            return Ok(());
        }
        self.wanted.extend(process.step(&mut self.valkey, most));
        self.read_frames(at)?;
        for (id, subscription) in &self.processes[at].attached {
            let client = &self.clients[among(*id, self.clients.len())];
            let figures = self.processes[at].hub.figures(*id);
            if !client.slow && figures.is_some_and(|figures| figures.waiting == 0) {
                client.check(subscription.query, now_us, &self.database)?;
            }
        }
        Ok(())
    }

    fn read_frames(&mut self, at: usize) -> Checked {
        let process = &mut self.processes[at];
        loop {
            let frames = process.hub.poll(1_000);
            if frames.is_empty() {
                return Ok(());
            }
            for frame in frames {
                let Some(subscription) = process.attached.get(&frame.client) else {
                    continue;
                };
                let client = &mut self.clients[among(frame.client, usize::MAX)];
                let read = client.read(&frame.text, subscription.query, &self.database);
                read.map_err(|error| format!("client {}: {error}", frame.client))?;
                if client.slow {
                    client.taken.0 += 1;
                    client.taken.1 += frame.text.len();
                } else {
                    process.hub.drained(frame.client, 1, frame.text.len());
                }
            }
        }
    }

    fn take(&mut self, at: usize) {
        let client = &mut self.clients[at];
        let (frames, bytes) = std::mem::take(&mut client.taken);
        if let Some(process) = client.process
            && frames > 0
        {
            self.processes[process]
                .hub
                .drained(at as u64, frames, bytes);
        }
    }

    fn serve(&mut self, at: usize, which: usize) {
        let process = &mut self.processes[at];
        if !process.is_stopped(self.valkey.now_us) {
            process.serve(which, &mut self.valkey, &self.database);
        }
    }

    fn read_demand(&mut self) {
        if self.wanted.is_empty() || self.database.is_away(self.valkey.now_us) {
            return;
        }
        let demand = self.wanted.remove(0);
        self.answers
            .extend(demand.read(&self.valkey, &self.database));
    }

    fn send_answer(&mut self, which: u64) {
        if !self.answers.is_empty() {
            let index = among(which, self.answers.len());
            self.answers.remove(index).send(&mut self.valkey);
        }
    }

    /// The faults stop: every client must become live with the correct result.
    fn heal(&mut self) -> Checked {
        for xid in self.database.open() {
            self.database.abort(xid);
        }
        self.database.away_until_us = 0;
        for driver in &mut self.drivers {
            driver.stopped_until_us = 0;
        }
        for process in &mut self.processes {
            process.stopped_until_us = 0;
        }
        for relay in &mut self.relays {
            relay.stopped_until_us = 0;
        }
        for client in 0..self.clients.len() {
            self.clients[client].slow = false;
            self.take(client);
            self.connect(client, client % PROCESSES, false);
        }
        let mut random = Random(1);
        let until_us = self.valkey.now_us + HEAL_US;
        while self.valkey.now_us < until_us {
            self.valkey.now_us += 50_000;
            self.go_on_without_faults(&mut random)?;
            if self.is_healed() {
                return Ok(());
            }
        }
        self.explain()
    }

    fn go_on_without_faults(&mut self, random: &mut Random) -> Checked {
        for _ in 0..6 {
            for relay in &mut self.relays {
                relay.step(&self.database, &mut self.outbox, &mut self.valkey);
            }
        }
        for _ in 0..3 {
            for driver in &mut self.drivers {
                driver.step(&mut self.valkey, &self.database, random);
            }
        }
        for process in 0..PROCESSES {
            self.step(process, 1_000)?;
            for _ in 0..8 {
                self.serve(process, 0);
            }
            self.processes[process].judge(None, &self.database, self.valkey.now_us);
        }
        self.read_demand();
        self.send_answer(0);
        Ok(())
    }

    fn is_healed(&self) -> bool {
        (0..self.clients.len()).all(|at| self.is_right(at))
    }

    fn is_right(&self, at: usize) -> bool {
        let client = &self.clients[at];
        let query = client.wanted.under(self.database.rules);
        client.ready && client.live && client.rows == query.answer(&self.database)
    }

    fn explain(&self) -> Checked {
        for (at, client) in self.clients.iter().enumerate() {
            if !self.is_right(at) {
                let query = client.wanted.under(self.database.rules);
                let (ready, live) = (client.ready, client.live);
                let differs = client.differs(query, &self.database);
                let differs = differs.err().unwrap_or_default();
                return Err(format!(
                    "client {at}, ready {ready}, live {live}: {differs}"
                ));
            }
        }
        Ok(())
    }
}
