//! Rank 0's side: takes the members in, refuses strangers, and ends it for all alike.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::listen::Listener;
use super::place::Target;
use super::{Met, Party};
use crate::conn::{Conn, wait};
use crate::error::{Refusal, RendezvousError};
use crate::exchange::{Link, flush, grace};
use crate::frame::{self, Hello, MAX_HELLO, Message};
use crate::identity::Identity;

/// How long rank 0 tries to tell why it failed.
const TELL: Duration = Duration::from_millis(200);

/// Connections that have not said who they are; beyond these the oldest is dropped.
const MAX_STRANGERS: usize = 256;

/// Reasons kept for the message about missing ranks.
const MAX_REFUSED: usize = 8;

pub(super) fn meet(target: &Target, mut me: Party) -> Result<Met, RendezvousError> {
    let listener = Listener::open(target, &mut me)?;
    gather(listener, me)
}

/// Takes the others in, where it listens already.
pub(super) fn gather(listener: Listener, me: Party) -> Result<Met, RendezvousError> {
    let local = listener.is_local();
    let mut gathering = Gathering {
        members: (1..me.hello.world).map(|_| None).collect(),
        me,
        strangers: Vec::new(),
        refused: Vec::new(),
    };
    match gathering.run(&listener) {
        Ok(()) => {
            // Before anyone hears that all have come: whoever meets again here must not find
            // this listener, nor its file.
            drop(listener);
            Ok(gathering.welcome(local))
        }
        Err(refusal) => {
            gathering.dismiss(&refusal, &listener);
            Err(refusal.into())
        }
    }
}

struct Gathering {
    me: Party,
    /// Of ranks 1 and up.
    members: Vec<Option<Member>>,
    strangers: Vec<Conn>,
    refused: Vec<String>,
}

struct Member {
    identity: Identity,
    conn: Conn,
}

impl Gathering {
    fn run(&mut self, listener: &Listener) -> Result<(), Refusal> {
        loop {
            self.strangers.extend(listener.accept());
            let surplus = self.strangers.len().saturating_sub(MAX_STRANGERS);
            self.strangers.drain(..surplus);
            for stranger in std::mem::take(&mut self.strangers) {
                self.hear(stranger)?;
            }
            let late = self.listen_to_members()?;
            let absent: Vec<u32> = (1..)
                .zip(&self.members)
                .filter(|(_, member)| member.is_none())
                .map(|(rank, _)| rank)
                .collect();
            if absent.is_empty() {
                return Ok(());
            }
            let now = Instant::now();
            if late.is_some() || now >= self.me.until {
                let waited = late.unwrap_or_default().max(self.me.waited(now));
                let refused = std::mem::take(&mut self.refused);
                return Err(Refusal::Missing { ranks: absent, waited, refused });
            }
            let mut sockets = listener.interest();
            sockets.extend(self.strangers.iter().map(Conn::interest));
            sockets.extend(self.members.iter().flatten().map(|member| member.conn.interest()));
            wait(&mut sockets, self.me.until);
        }
    }

    /// A connection that has not said who it is.
    fn hear(&mut self, mut stranger: Conn) -> Result<(), Refusal> {
        stranger.advance();
        match stranger.next(MAX_HELLO) {
            Ok(Some(Message::Hello(hello))) => self.judge(hello, stranger),
            Ok(Some(_)) => {
                self.refuse("an unknown peer: it began with a message that is no greeting".into());
                Ok(())
            }
            Ok(None) => {
                // One that left without a word was a port scanner, or gave up.
                if stranger.closed().is_none() {
                    self.strangers.push(stranger);
                }
                Ok(())
            }
            Err(e) => {
                self.refuse(format!("an unknown peer: {e}"));
                Ok(())
            }
        }
    }

    fn judge(&mut self, hello: Hello, mut conn: Conn) -> Result<(), Refusal> {
        let refusal = match self.me.hello.refuses(&hello) {
            None if conn.closed().is_some() => return Ok(()), // it has given this connection up
            None => match self.holder(hello.rank) {
                None => {
                    conn.say(&Message::Noted { label: self.me.hello.identity.label() });
                    conn.advance();
                    let member = Member { identity: hello.identity, conn };
                    self.members[hello.rank as usize - 1] = Some(member);
                    return Ok(());
                }
                Some(holder) => {
                    let (first, second) = (holder.label(), hello.identity.label());
                    self.strangers.push(conn);
                    return Err(Refusal::Duplicate { rank: hello.rank, first, second });
                }
            },
            Some(refusal) => refusal,
        };
        self.refuse(refusal.to_string());
        conn.say(&Message::Refused(refusal));
        conn.advance();
        Ok(())
    }

    fn holder(&self, rank: u32) -> Option<&Identity> {
        match rank.checked_sub(1) {
            None => Some(&self.me.hello.identity),
            Some(at) => self.members[at as usize].as_ref().map(|member| &member.identity),
        }
    }

    /// Has a member asked who is missing, and for how long has it waited?
    fn listen_to_members(&mut self) -> Result<Option<Duration>, Refusal> {
        let mut late = None;
        for (rank, member) in (1..).zip(&mut self.members) {
            let Some(member) = member else { continue };
            member.conn.advance();
            let lost = |how: String| Refusal::Lost { rank, label: member.identity.label(), how };
            match member.conn.next(MAX_HELLO) {
                Ok(None) => {}
                Ok(Some(Message::Late { waited, .. })) => late = late.max(Some(waited)),
                Ok(Some(_)) => return Err(lost("it did not wait for the others".to_owned())),
                Err(e) => return Err(lost(e.to_string())),
            }
            if let Some(how) = member.conn.closed() {
                return Err(lost(how.to_owned()));
            }
        }
        Ok(late)
    }

    fn refuse(&mut self, why: String) {
        // A refused peer may knock again every few milliseconds.
        if self.refused.len() < MAX_REFUSED && !self.refused.contains(&why) {
            tracing::warn!("refused at the rendezvous: {why}");
            self.refused.push(why);
        }
    }

    fn welcome(self, local: bool) -> Met {
        let Party { hello, until, .. } = self.me;
        let (others, mut peers): (Vec<_>, Vec<_>) =
            self.members.into_iter().flatten().map(|m| (m.identity, m.conn)).unzip();
        let identities: Vec<Identity> = std::iter::once(hello.identity).chain(others).collect();
        let welcome = Message::Welcome { identities: identities.clone() };
        let frame = frame::encode(&welcome).expect("a world's identities are far below the bound");
        let frame = Arc::new(frame);
        peers.iter_mut().for_each(|peer| peer.queue(Arc::clone(&frame), Arc::default()));
        // What is not flushed by then is sent with, or found lost by, the first exchange.
        flush(&mut peers, until);
        Met { link: Link::Hub(peers), identities, local }
    }

    /// Tells all members, and a duplicate among the strangers, the same thing; then those that
    /// are only now on their way, for a moment.
    fn dismiss(self, refusal: &Refusal, listener: &Listener) {
        let mut awaited = self.members.iter().filter(|member| member.is_none()).count();
        let members = self.members.into_iter().flatten().map(|member| member.conn);
        let mut peers: Vec<Conn> = members.chain(self.strangers).collect();
        let message = Message::Refused(refusal.clone());
        peers.iter_mut().for_each(|peer| peer.say(&message));
        flush(&mut peers, Instant::now() + TELL);
        let until = (self.me.until + TELL).min(Instant::now() + grace(self.me.deadline));
        let mut arrivals = Vec::new();
        while awaited > 0 && Instant::now() < until {
            arrivals.extend(listener.accept());
            arrivals.retain_mut(|arrival| {
                arrival.advance();
                match arrival.next(MAX_HELLO) {
                    Ok(None) => return arrival.closed().is_none(),
                    Ok(Some(Message::Hello(hello))) if self.me.hello.refuses(&hello).is_none() => {
                        arrival.say(&message);
                        arrival.advance();
                        awaited -= 1;
                    }
                    _ => {}
                }
                false
            });
            let mut sockets = listener.interest();
            sockets.extend(arrivals.iter().map(Conn::interest));
            wait(&mut sockets, until);
        }
    }
}

impl Hello {
    /// Why rank 0, with this hello of its own, does not take `theirs`.
    fn refuses(&self, theirs: &Hello) -> Option<Refusal> {
        let label = theirs.identity.label();
        let host = self.identity.label();
        let job = self.job.clone();
        if theirs.job != job {
            return Some(Refusal::OtherJob { label, theirs: theirs.job.clone(), host, ours: job });
        }
        if theirs.attempt != self.attempt {
            let (theirs, ours) = (theirs.attempt, self.attempt);
            return Some(Refusal::OtherAttempt { label, job, theirs, host, ours });
        }
        if theirs.world != self.world || theirs.rank >= self.world {
            let (rank, theirs, ours) = (theirs.rank, theirs.world, self.world);
            return Some(Refusal::OtherWorld { label, rank, theirs, host, ours });
        }
        // A second rank 0 knows no run but its own; it is a duplicate, whatever it says.
        if theirs.run != self.run && theirs.rank != 0 {
            return Some(Refusal::OtherRun { label, job, host });
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> Hello {
        let identity = Identity::here(None);
        Hello { job: "j".into(), attempt: 2, run: 9, world: 4, rank: 1, identity }
    }

    #[track_caller]
    fn refused(theirs: Hello, part: &str) {
        let me = Hello { rank: 0, ..hello() };
        let why = me.refuses(&theirs).expect(part).to_string();
        assert!(why.contains(part), "{why}");
    }

    #[test]
    fn strangers_are_refused_by_name() {
        assert_eq!(Hello { rank: 0, ..hello() }.refuses(&hello()), None);
        refused(Hello { job: "k".into(), ..hello() }, "is of job `k`, but");
        refused(Hello { attempt: 1, ..hello() }, "is of attempt 1 of job `j`, but");
        refused(Hello { world: 8, ..hello() }, "is rank 1 of a world of 8, but");
        refused(Hello { rank: 4, ..hello() }, "is rank 4 of a world of 4, but");
        refused(Hello { run: 1, ..hello() }, "comes from another run of job `j`");
    }
}
