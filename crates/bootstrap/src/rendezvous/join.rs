//! The other ranks' side: finds rank 0, says hello, and waits for the rest.

use std::fmt;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::listen::{in_use, no_delay, own_directory};
use super::place::Target;
use super::publish::{News, Notice};
use super::{Met, Party};
use crate::conn::{Conn, wait};
use crate::error::{Refusal, RendezvousError};
use crate::exchange::{Link, grace};
use crate::frame::{MAX_PAYLOAD, Message};

/// One attempt to connect may take so long; there are others.
pub(super) const TRY: Duration = Duration::from_secs(1);

/// How long a listener at one of several addresses may keep silent before another is tried.
const SILENCE: Duration = Duration::from_secs(2);

/// Between attempts.
const PAUSE: Duration = Duration::from_millis(10);

pub(super) fn meet(target: &Target, mut me: Party) -> Result<Met, RendezvousError> {
    let mut last = "nobody has answered there yet".to_owned();
    loop {
        let found = find(target, &mut me)?;
        if let Err(why) = &found {
            last.clone_from(why);
        }
        for door in found.unwrap_or_default() {
            // What answers at one of a node's addresses may be another node: try the next.
            let sure = !matches!(target, Target::File(_) | Target::AnyOf(_));
            match door.knock().map_err(|e| e.to_string()) {
                Ok(conn) => match greet(conn, &door, &me, sure)? {
                    Greeting::Met(met) => return Ok(*met),
                    Greeting::Again(why) => last = why,
                    // What was heard before says more.
                    Greeting::NotYet => {}
                },
                Err(why) => last = why,
            }
        }
        if Instant::now() + PAUSE >= me.until {
            let (address, waited) = (target.to_string(), me.deadline);
            return Err(RendezvousError::Unreachable { address, waited, last });
        }
        sleep(PAUSE);
    }
}

/// What rank 0 finds where it wants to listen: `Ok` if it should try again.
pub(super) fn probe(mut conn: Conn, place: &str, me: &Party) -> Result<(), RendezvousError> {
    conn.say(&Message::Hello(me.hello.clone()));
    let until = me.until.min(Instant::now() + SILENCE);
    let answer = loop {
        conn.advance();
        match conn.next(MAX_PAYLOAD) {
            Ok(Some(Message::Refused(refusal))) => break refusal,
            Ok(None) if conn.closed().is_none() && Instant::now() < until => {
                wait(&mut [conn.interest()], until);
            }
            Ok(None) if conn.closed().is_some() && Instant::now() + PAUSE < me.until => {
                // It may just have stopped listening.
                sleep(PAUSE);
                return Ok(());
            }
            Ok(None) => return Err(in_use(place, "something that has not answered")),
            Ok(_) => return Err(in_use(place, "something that does not answer as a rank does")),
            Err(e) => return Err(in_use(place, &format!("something that is no rank: {e}"))),
        }
    };
    match answer {
        Refusal::OtherAttempt { ours, theirs, .. }
            if ours < theirs && Instant::now() + PAUSE < me.until =>
        {
            // The attempt before this one is still about to end.
            sleep(PAUSE);
            Ok(())
        }
        Refusal::OtherJob { host, ours, .. } => {
            Err(in_use(place, &format!("job `{ours}` ({host})")))
        }
        refusal => Err(refusal.into()),
    }
}

/// Where rank 0 may listen.
enum Door {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

enum Greeting {
    Met(Box<Met>),
    /// Not rank 0, or not yet.
    Again(String),
    /// The deadline passed before an answer was due, so that nothing is known of who listens.
    NotYet,
}

/// The doors to knock at now, or why there is none yet.
fn find(target: &Target, me: &mut Party) -> Result<Result<Vec<Door>, String>, RendezvousError> {
    match target {
        Target::Unix { socket, directory } => {
            if let Some(path) = directory.as_ref().filter(|path| path.exists()) {
                own_directory(path)
                    .or_else(|why| if path.exists() { Err(why) } else { Ok(()) })
                    .map_err(|why| RendezvousError::Io {
                        what: "use the job's directory",
                        path: path.clone(),
                        why,
                    })?;
            }
            Ok(Ok(vec![Door::Unix(socket.clone())]))
        }
        Target::Tcp(all) | Target::AnyOf(all) => {
            Ok(Ok(all.iter().copied().map(Door::Tcp).collect()))
        }
        Target::File(path) => {
            let text = match std::fs::read_to_string(path) {
                Ok(text) => text,
                Err(e) => return Ok(Err(format!("the file cannot be read: {e}"))),
            };
            let notice = match Notice::parse(&text) {
                None => return Ok(Err("the file is no rendezvous file".to_owned())),
                Some(notice) if !notice.concerns(&me.hello.job, me.hello.attempt) => {
                    let Notice { job, attempt, .. } = notice;
                    return Ok(Err(format!("the file is of job `{job}`, attempt {attempt}")));
                }
                Some(notice) => notice,
            };
            me.hello.run = notice.run;
            match notice.news {
                News::Unix(path) => Ok(Ok(vec![Door::Unix(path)])),
                News::Tcp(all) => Ok(Ok(all.into_iter().map(Door::Tcp).collect())),
                News::Failed(why) => Err(RendezvousError::Published(why)),
            }
        }
    }
}

/// Connects without waiting: where more knock than the listener takes in, it is an error now rather
/// than a wait without an end.
pub(super) fn dial(path: &Path) -> std::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

impl Door {
    fn knock(&self) -> std::io::Result<Conn> {
        match self {
            Door::Unix(path) => Conn::new(dial(path)?),
            Door::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, TRY)?;
                // Without a listener, a local port can be given to the very socket that asks for it.
                if stream.local_addr()? == stream.peer_addr()? {
                    return Err(std::io::ErrorKind::ConnectionRefused.into());
                }
                no_delay(&stream);
                Conn::new(stream.into())
            }
        }
    }
}

impl fmt::Display for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Door::Unix(path) => write!(f, "unix:{}", path.display()),
            Door::Tcp(address) => write!(f, "tcp://{address}"),
        }
    }
}

/// `sure`: only rank 0 is expected behind this door.
fn greet(mut conn: Conn, door: &Door, me: &Party, sure: bool) -> Result<Greeting, RendezvousError> {
    conn.say(&Message::Hello(me.hello.clone()));
    let foreign = |what: &str| {
        if sure {
            Err(RendezvousError::Foreign { address: door.to_string(), what: what.to_owned() })
        } else {
            Ok(Greeting::Again(format!("what listens at {door} is not rank 0: {what}")))
        }
    };
    let answer = me.until + grace(me.deadline);
    let due = Instant::now() + SILENCE;
    let silence = if sure { me.until } else { me.until.min(due) };
    let mut noted = None;
    let mut asked = false;
    loop {
        conn.advance();
        match conn.next(MAX_PAYLOAD) {
            Ok(Some(Message::Noted { label })) => {
                noted = Some(label);
                continue;
            }
            Ok(Some(Message::Welcome { identities }))
                if identities.len() == me.hello.world as usize =>
            {
                let local = matches!(door, Door::Unix(_));
                let link = Link::Spoke(me.hello.rank, conn);
                return Ok(Greeting::Met(Box::new(Met { link, identities, local })));
            }
            Ok(Some(Message::Refused(refusal))) => return refused(refusal, sure),
            Ok(Some(_)) => return foreign("it answers out of turn"),
            Ok(None) => {}
            Err(e) => return foreign(&e.to_string()),
        }
        if let Some(how) = conn.closed() {
            return match noted {
                Some(label) => Err(Refusal::Lost { rank: 0, label, how: how.to_owned() }.into()),
                None => {
                    Ok(Greeting::Again(format!("{door} closed the connection without an answer")))
                }
            };
        }
        let now = Instant::now();
        let next = match &noted {
            None if now >= silence && now < due => return Ok(Greeting::NotYet),
            None if now >= silence => return foreign("it took the connection and never answered"),
            None => silence,
            Some(_) if now >= answer => {
                let (ranks, waited) = (vec![0], me.waited(now));
                return Err(Refusal::Missing { ranks, waited, refused: Vec::new() }.into());
            }
            Some(_) if asked => answer,
            Some(_) if now >= me.until => {
                conn.say(&Message::Late { seq: 0, waited: me.waited(now) });
                asked = true;
                continue;
            }
            Some(_) => me.until,
        };
        wait(&mut [conn.interest()], next);
    }
}

fn refused(refusal: Refusal, sure: bool) -> Result<Greeting, RendezvousError> {
    match &refusal {
        // The attempt before this one still listens; this one's rank 0 will take its place.
        Refusal::OtherAttempt { ours, theirs, .. } if ours < theirs => {}
        Refusal::OtherRun { .. } | Refusal::OtherJob { .. } if !sure => {}
        _ => return Err(refusal.into()),
    }
    Ok(Greeting::Again(refusal.to_string()))
}
