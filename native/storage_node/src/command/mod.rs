//! The commands: their names, who may give them, and what each does.
//!
//! A command either answers at once, or asks for a write that is done together with others
//! ([`Pending`]), or waits. What each file does:
//!
//! - `connection.rs` — who speaks, in which version; `about.rs` — INFO, COMMAND, CLIENT.
//! - `namespaces.rs`, `topics.rs` — what there is.
//! - `publish.rs` — RB.PUB, RB.SUB and their answers; `follow.rs` — what comes afterwards.
//! - `aggregates.rs`, `transactions.rs` — RB.AGG, RB.SNAPSHOT, RB.TX.
//! - `look.rs` — what is there now; `values.rs` — RB.KV; `upkeep.rs` — checkpoints and checks.
#![allow(
    clippy::unnecessary_wraps,
    reason = "commands are called by one signature, whether they can fail or not"
)]

mod about;
mod aggregates;
mod connection;
mod follow;
mod look;
mod namespaces;
mod publish;
mod table;
mod topics;
mod transactions;
mod upkeep;
mod values;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

pub(crate) use aggregates::parse as parse_query;
pub(crate) use table::{Access, Command, Run, find};

use crate::group::{Outcome, Pending};
use crate::node::Node;
use crate::refusal::{Refusal, Result};
use crate::resp::Reply;
use crate::session::{Caller, Session, no_auth};
use crate::words::Words;

/// What a command comes to, once it has begun.
pub(crate) enum Step {
    /// It has answered.
    Done,
    /// It has answered, and the connection ends.
    Close,
    /// It is to be given again when the session's outbox is called, or at that time.
    Wait(Option<Instant>),
    /// It takes long: it runs elsewhere and answers by the outbox.
    Chore(Chore),
    /// It answers when this is durable.
    Write(Pending),
}

/// Long work; returns the reply.
pub(crate) type Chore = Box<dyn FnOnce(&Arc<Node>) -> Vec<u8> + Send>;

impl Node {
    /// Begins a command. What it answers at once is in `out`.
    pub(crate) fn begin(&self, session: &mut Session, words: &[&[u8]], out: &mut Vec<u8>) -> Step {
        self.metrics.commands.add(1);
        session.client.commands.fetch_add(1, Ordering::Relaxed);
        let before = out.len();
        let version = session.version;
        match self.try_begin(session, words, out) {
            Ok(step) => step,
            Err(refusal) => {
                out.truncate(before);
                self.refuse(&refusal, &mut Reply::new(out, version));
                Step::Done
            }
        }
    }

    fn try_begin(&self, session: &mut Session, words: &[&[u8]], out: &mut Vec<u8>) -> Result<Step> {
        let (command, words) = permitted(session, words)?;
        match command.run {
            Run::Now(run) | Run::Ask(run) => {
                // HELLO changes the version of its own answer.
                let mut reply = Reply::new(out, session.version);
                run(self, session, words, &mut reply)
            }
            Run::Write(prepare) => prepare(self, session, words).map(Step::Write),
        }
    }

    pub(crate) fn refuse(&self, refusal: &Refusal, reply: &mut Reply<'_>) {
        self.metrics.refused_commands.add(1);
        reply.error(&refusal.code, &refusal.text);
    }

    /// Answers a command whose write is durable.
    pub(crate) fn finish(
        &self,
        session: &mut Session,
        (write, outcome): (&Pending, Result<Outcome>),
        out: &mut Vec<u8>,
    ) {
        let before = out.len();
        let mut reply = Reply::new(out, session.version);
        let answered = match (write, outcome) {
            (_, Err(refusal)) => Err(refusal),
            (
                Pending::Operation {
                    topic,
                    operation,
                    follow,
                },
                Ok(Outcome::Answer(answer)),
            ) => {
                let asked = (topic, &**operation, *follow);
                publish::answer(self, session, asked, &answer, &mut reply)
            }
            (_, Ok(Outcome::Added(fresh))) => {
                reply.array(fresh.len());
                fresh.iter().for_each(|new| reply.integer(u64::from(*new)));
                Ok(())
            }
            (_, Ok(Outcome::Acked(is_new) | Outcome::Applied(is_new))) => {
                reply.integer(u64::from(is_new));
                Ok(())
            }
            (_, Ok(_)) => {
                reply.ok();
                Ok(())
            }
        };
        if let Err(refusal) = answered {
            out.truncate(before);
            self.refuse(&refusal, &mut Reply::new(out, session.version));
        }
    }
}

/// What a request comes to, if there is such a command.
pub(crate) fn run_of(words: &[&[u8]]) -> Option<Run> {
    let command = words.first().and_then(|name| find(name));
    command.map(|command| command.run)
}

/// The command of a request, if the caller may give it, and the words behind its name.
fn permitted<'a>(
    session: &Session,
    words: &'a [&'a [u8]],
) -> Result<(&'static Command, Words<'a>)> {
    let mut rest = Words::new(words);
    let name = rest.next()?;
    let command = find(name).ok_or_else(|| {
        let shown = name.get(..name.len().min(64)).unwrap_or_default();
        Refusal::syntax(format!("unknown command '{}'", shown.escape_ascii()))
    })?;
    if session.is_revoked() {
        return Err(no_auth());
    }
    match (command.access, &session.caller) {
        (Access::Anyone, _)
        | (Access::Known | Access::Admin, Caller::Admin)
        | (Access::Known | Access::Tenant, Caller::Tenant(..)) => {}
        (_, Caller::Stranger) => return Err(no_auth()),
        (Access::Admin, _) => return Err(Refusal::new("NOPERM", "only the admin may do this")),
        (Access::Tenant, Caller::Admin) => {
            session.namespace()?;
        }
    }
    let (least, most) = command.words;
    if !(least..=most).contains(&rest.count()) {
        return Err(Refusal::syntax(format!(
            "wrong number of arguments for '{}' command: {}",
            command.name, command.usage
        )));
    }
    Ok((command, rest))
}
