//! The commands: their names, required access and implementations.
//!
//! A command replies at once, requests a write that is committed together with others
//! ([`CommandWrite`]), or waits. The files:
//!
//! - `connection.rs` — authentication and protocol version; `about.rs` — INFO, COMMAND, CLIENT.
//! - `namespaces.rs`, `topics.rs` — namespaces and topics.
//! - `publish.rs` — RB.PUB, RB.SUB and their replies; `follow.rs` — commands on existing
//!   subscriptions.
//! - `aggregates.rs`, `transactions.rs` — RB.AGG, RB.SNAPSHOT, RB.TX.
//! - `collections.rs`, `copies.rs`, `usage.rs` — RB.COL.
//! - `feed.rs` — RB.FEED.
//! - `listings.rs` — listing topics; `values.rs` — RB.KV; `upkeep.rs` — checkpoints and checks.
#![allow(
    clippy::unnecessary_wraps,
    reason = "commands are called by one signature, whether they can fail or not"
)]

mod about;
mod aggregates;
mod check;
mod collections;
mod connection;
mod copies;
mod feed;
mod follow;
mod listings;
mod namespaces;
mod publish;
mod table;
mod topics;
mod transactions;
mod upkeep;
mod usage;
mod values;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

pub(crate) use aggregates::parse as parse_query;
pub(crate) use table::{Command, CommandAccess, CommandHandler, find};

use crate::group::{CommandWrite, GroupOutcome};
use crate::node::NodeCore;
use crate::refusal::{CommandRefusal, Result};
use crate::resp::ReplyWriter;
use crate::session::{CommandSession, SessionCaller, no_auth};
use crate::words::Words;

/// The state of a command after it was started.
pub(crate) enum CommandStep {
    /// It has replied.
    Done,
    /// It has replied, and the connection closes.
    Close,
    /// It must be repeated when the session's outbox is signalled, or at that time.
    Wait(Option<Instant>),
    /// It takes long: it runs elsewhere and replies through the outbox.
    Chore(Chore),
    /// It replies when this write is durable.
    Write(CommandWrite),
}

/// Long work; returns the reply.
pub(crate) type Chore = Box<dyn FnOnce(&Arc<NodeCore>) -> Vec<u8> + Send>;

impl NodeCore {
    /// A write as a chore if it takes long. Otherwise the write.
    pub(crate) fn as_chore(
        &self,
        session: &CommandSession,
        write: CommandWrite,
    ) -> std::result::Result<Chore, CommandWrite> {
        match &write {
            CommandWrite::Collections(one) if self.collections.is_long(one) => {
                Ok(collections::long_write(session.version, write))
            }
            _ => Err(write),
        }
    }

    /// Starts a command. An immediate reply is in `out`.
    pub(crate) fn begin(
        &self,
        session: &mut CommandSession,
        words: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> CommandStep {
        self.metrics.commands.add(1);
        session.client.commands.fetch_add(1, Ordering::Relaxed);
        let before = out.len();
        let version = session.version;
        match self.try_begin(session, words, out) {
            Ok(step) => step,
            Err(refusal) => {
                out.truncate(before);
                self.refuse(&refusal, &mut ReplyWriter::new(out, version));
                CommandStep::Done
            }
        }
    }

    fn try_begin(
        &self,
        session: &mut CommandSession,
        words: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> Result<CommandStep> {
        let (command, words) = permitted(session, words)?;
        match command.run {
            CommandHandler::Now(run) | CommandHandler::Ask(run) => {
                // HELLO changes the version of its own reply.
                let mut reply = ReplyWriter::new(out, session.version);
                run(self, session, words, &mut reply)
            }
            CommandHandler::Write(prepare) => prepare(self, session, words).map(CommandStep::Write),
        }
    }

    pub(crate) fn refuse(&self, refusal: &CommandRefusal, reply: &mut ReplyWriter<'_>) {
        self.metrics.refused_commands.add(1);
        reply.error(&refusal.code, &refusal.text);
    }

    /// Replies to a command whose write is durable.
    pub(crate) fn finish(
        &self,
        session: &mut CommandSession,
        (write, outcome): (&CommandWrite, Result<GroupOutcome>),
        out: &mut Vec<u8>,
    ) {
        let before = out.len();
        let mut reply = ReplyWriter::new(out, session.version);
        let answered = match (write, outcome) {
            (_, Err(refusal)) => Err(refusal),
            (
                CommandWrite::Operation {
                    topic,
                    operation,
                    follow,
                },
                Ok(GroupOutcome::Answer(answer)),
            ) => {
                let asked = (topic, &**operation, *follow);
                publish::answer(self, session, asked, &answer, &mut reply)
            }
            (_, Ok(GroupOutcome::Added(fresh))) => {
                reply.array(fresh.len());
                fresh.iter().for_each(|new| reply.integer(u64::from(*new)));
                Ok(())
            }
            (_, Ok(GroupOutcome::Written(result))) => {
                collections::write_result(&result, &mut reply);
                Ok(())
            }
            (_, Ok(GroupOutcome::Acked(is_new) | GroupOutcome::Applied(is_new))) => {
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
            self.refuse(&refusal, &mut ReplyWriter::new(out, session.version));
        }
    }
}

/// The handler of a request's command, if it exists.
pub(crate) fn run_of(words: &[&[u8]]) -> Option<CommandHandler> {
    let command = words.first().and_then(|name| find(name));
    command.map(|command| command.run)
}

/// The command of a request, if the caller may use it, and its arguments.
fn permitted<'a>(
    session: &CommandSession,
    words: &'a [&'a [u8]],
) -> Result<(&'static Command, Words<'a>)> {
    let mut rest = Words::new(words);
    let name = rest.next()?;
    let command = find(name).ok_or_else(|| {
        let shown = name.get(..name.len().min(64)).unwrap_or_default();
        CommandRefusal::syntax(format!("unknown command '{}'", shown.escape_ascii()))
    })?;
    if session.is_revoked() {
        return Err(no_auth());
    }
    match (command.access, &session.caller) {
        (CommandAccess::Anyone, _)
        | (CommandAccess::Known | CommandAccess::Admin, SessionCaller::Admin)
        | (CommandAccess::Known | CommandAccess::Tenant, SessionCaller::Tenant(..)) => {}
        (_, SessionCaller::Stranger) => return Err(no_auth()),
        (CommandAccess::Admin, _) => {
            return Err(CommandRefusal::new("NOPERM", "only the admin may do this"));
        }
        (CommandAccess::Tenant, SessionCaller::Admin) => {
            session.namespace()?;
        }
    }
    let (least, most) = command.words;
    if !(least..=most).contains(&rest.count()) {
        return Err(CommandRefusal::syntax(format!(
            "wrong number of arguments for '{}' command: {}",
            command.name, command.usage
        )));
    }
    Ok((command, rest))
}
