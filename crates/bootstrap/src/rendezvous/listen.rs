//! Rank 0's listening sockets, and what they leave on disk until they are dropped.

use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use super::Party;
use super::addresses;
use super::join::{dial, probe};
use super::place::Target;
use super::publish::{News, Notice};
use crate::conn::Conn;
use crate::error::RendezvousError;
use crate::exchange::grace;

/// More peers than ever join at once may knock.
const BACKLOG: i32 = 1024;

/// Removed from disk, and closed, on drop.
pub(super) struct Listener {
    sockets: Vec<OwnedFd>,
    local: bool,
    litter: Vec<Litter>,
}

enum Litter {
    File(PathBuf),
    Directory(PathBuf),
}

impl Listener {
    /// Listens, and says so in the rendezvous file if that is the target; where it cannot listen,
    /// it says that there.
    pub(super) fn open(target: &Target, me: &mut Party) -> Result<Self, RendezvousError> {
        match target {
            Target::Unix { socket, directory } => Listener::unix(socket, directory.as_deref(), me),
            Target::Tcp(all) => Listener::tcp(all, me),
            Target::File(path) => Listener::published(path, me),
            Target::AnyOf(_) => Listener::free_port().map(|(listener, _)| listener),
        }
    }

    pub(super) fn is_local(&self) -> bool {
        self.local
    }

    pub(super) fn interest(&self) -> Vec<PollFd<'_>> {
        self.sockets.iter().map(|s| PollFd::from_borrowed_fd(s.as_fd(), PollFlags::IN)).collect()
    }

    /// Everyone who has knocked.
    pub(super) fn accept(&self) -> Vec<Conn> {
        let mut all = Vec::new();
        for listener in &self.sockets {
            while let Ok(socket) = rustix::net::accept_with(listener, SocketFlags::CLOEXEC) {
                no_delay(&socket);
                all.extend(Conn::new(socket));
            }
        }
        all
    }

    fn unix(path: &Path, directory: Option<&Path>, me: &Party) -> Result<Self, RendezvousError> {
        let mut made = Listener { sockets: Vec::new(), local: true, litter: Vec::new() };
        if let Some(directory) = directory {
            private_directory(directory)?;
            made.litter.push(Litter::Directory(directory.to_owned()));
        }
        let io = |e: Errno| RendezvousError::Io {
            what: "listen at the Unix socket",
            path: path.to_owned(),
            why: e.to_string(),
        };
        // Listening before anyone can see it: a socket that is bound and does not listen yet looks
        // like what a killed process leaves, and would be taken away.
        let hidden = path.with_file_name(format!(".{:08x}", crate::random() as u32));
        SocketAddrUnix::new(path).map_err(io)?; // short enough for those who come
        let address = SocketAddrUnix::new(&hidden).map_err(io)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
            .map_err(io)?;
        rustix::net::bind(&socket, &address).map_err(io)?;
        made.litter.insert(0, Litter::File(hidden.clone()));
        rustix::net::listen(&socket, BACKLOG).map_err(io)?;
        loop {
            match rustix::fs::link(&hidden, path) {
                Ok(()) => {
                    rustix::fs::unlink(&hidden).or_else(gone).map_err(io)?;
                    made.litter[0] = Litter::File(path.to_owned());
                    made.sockets.push(socket);
                    return Ok(made);
                }
                Err(Errno::EXIST) => match dial(path) {
                    // It belongs to whoever listens, and so does the directory.
                    Ok(stream) => {
                        made.litter.truncate(1);
                        let stream = Conn::new(stream).map_err(|e| io(from_std(&e)))?;
                        probe(stream, &format!("unix:{}", path.display()), me)?;
                    }
                    // A socket file without a listener is what a killed process leaves. Any other
                    // file refuses connections as well, and is somebody's.
                    Err(e) if e.kind() == ErrorKind::ConnectionRefused => {
                        if !is_socket(path) {
                            return Err(RendezvousError::Io {
                                what: "listen at the Unix socket",
                                path: path.to_owned(),
                                why: "a file that is no socket is there: give another path".into(),
                            });
                        }
                        rustix::fs::unlink(path).or_else(gone).map_err(io)?;
                    }
                    Err(e) if e.kind() == ErrorKind::NotFound => {}
                    Err(e) if e.kind() == ErrorKind::WouldBlock => {
                        return Err(in_use(
                            &format!("unix:{}", path.display()),
                            "a listener that takes no connection",
                        ));
                    }
                    Err(e) => return Err(io(from_std(&e))),
                },
                Err(e) => return Err(io(e)),
            }
        }
    }

    fn tcp(all: &[SocketAddr], me: &Party) -> Result<Self, RendezvousError> {
        let mut made = Listener { sockets: Vec::new(), local: false, litter: Vec::new() };
        let mut refused = None;
        for address in all {
            loop {
                match bind_tcp(*address) {
                    Ok(socket) => made.sockets.push(socket),
                    Err(Errno::ADDRINUSE) => {
                        let place = format!("tcp://{address}");
                        match std::net::TcpStream::connect_timeout(address, super::join::TRY) {
                            Ok(stream) => {
                                let stream = Conn::new(stream.into());
                                let stream = stream.map_err(|e| in_use(&place, &e.to_string()))?;
                                probe(stream, &place, me)?;
                                continue;
                            }
                            Err(_) => {
                                return Err(in_use(&place, "a socket that takes no connection"));
                            }
                        }
                    }
                    // One of the host's addresses may be another node's: any one will do.
                    Err(e) => refused = Some((*address, e)),
                }
                break;
            }
        }
        match refused {
            Some((address, e)) if made.sockets.is_empty() => Err(RendezvousError::Io {
                what: "listen at the address",
                path: format!("tcp://{address}").into(),
                why: match e {
                    Errno::ADDRNOTAVAIL => {
                        "it is no address of this node; give an address of rank 0's node".to_owned()
                    }
                    e => e.to_string(),
                },
            }),
            _ => Ok(made),
        }
    }

    fn published(path: &Path, me: &mut Party) -> Result<Self, RendezvousError> {
        Notice::may_replace(path)?;
        me.hello.run = crate::random();
        let notice = |news| Notice {
            job: me.hello.job.clone(),
            attempt: me.hello.attempt,
            run: me.hello.run,
            news,
        };
        let opened = if me.several_nodes {
            Listener::free_port().and_then(|(listener, port)| {
                let all = addresses::own().into_iter().map(|ip| (ip, port).into()).collect();
                Ok((listener, News::Tcp(some(all)?)))
            })
        } else {
            let mut socket = path.as_os_str().to_owned();
            socket.push(".socket");
            Listener::unix(Path::new(&socket), None, me)
                .map(|listener| (listener, News::Unix(socket.into())))
        };
        match opened {
            Ok((mut listener, news)) => {
                notice(news).publish(path)?;
                listener.litter.push(Litter::File(path.to_owned()));
                Ok(listener)
            }
            Err(e) => {
                notice(News::Failed(e.to_string())).publish(path)?;
                // Long enough for the others to read it; left there it would fail the next run.
                std::thread::sleep(grace(me.deadline));
                let _ = std::fs::remove_file(path);
                Err(e)
            }
        }
    }

    /// At every address of this node, and which port was free.
    pub(super) fn free_port() -> Result<(Self, u16), RendezvousError> {
        let io = |e: Errno| RendezvousError::Io {
            what: "listen at the address",
            path: "tcp://[::]:0".into(),
            why: e.to_string(),
        };
        let any = [IpAddr::from(Ipv6Addr::UNSPECIFIED), IpAddr::from(Ipv4Addr::UNSPECIFIED)];
        // An IPv6 socket takes IPv4 as well; a kernel without IPv6 has the second.
        let socket =
            bind_tcp((any[0], 0).into()).or_else(|_| bind_tcp((any[1], 0).into())).map_err(io)?;
        let port = match SocketAddr::try_from(rustix::net::getsockname(&socket).map_err(io)?) {
            Ok(address) => address.port(),
            Err(e) => return Err(io(e)),
        };
        Ok((Listener { sockets: vec![socket], local: false, litter: Vec::new() }, port))
    }
}

/// A node that only it can reach is no place to meet on.
fn some(all: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, RendezvousError> {
    if !all.is_empty() {
        return Ok(all);
    }
    Err(RendezvousError::Unresolved {
        host: "this node".to_owned(),
        why: "it has no address but loopback, and the job spans several nodes".to_owned(),
    })
}

impl Drop for Listener {
    fn drop(&mut self) {
        for litter in &self.litter {
            // What cannot be removed was removed by someone else.
            let _ = match litter {
                Litter::File(path) => std::fs::remove_file(path),
                Litter::Directory(path) => std::fs::remove_dir(path),
            };
        }
    }
}

/// Frames are small and each is waited for.
pub(super) fn no_delay(socket: impl AsFd) {
    // A Unix socket has no such option, and no such delay.
    let _ = sockopt::set_tcp_nodelay(socket, true);
}

pub(super) fn is_socket(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket())
}

fn bind_tcp(address: SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    // Connections of an earlier attempt may still be winding down.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if address.ip() == IpAddr::from(Ipv6Addr::UNSPECIFIED) {
        sockopt::set_ipv6_v6only(&socket, false)?;
    }
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

fn private_directory(path: &Path) -> Result<(), RendezvousError> {
    let error = |why: String| RendezvousError::Io {
        what: "make the job's directory",
        path: path.to_owned(),
        why,
    };
    match DirBuilder::new().mode(0o700).create(path) {
        Err(e) if e.kind() != ErrorKind::AlreadyExists => Err(error(e.to_string())),
        _ => own_directory(path).map_err(error),
    }
}

/// In a directory that anybody may write to, somebody else may have made this one first.
pub(super) fn own_directory(path: &Path) -> Result<(), String> {
    let stat = rustix::fs::lstat(path).map_err(|e| e.to_string())?;
    let is_directory = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir();
    if !is_directory
        || stat.st_uid != rustix::process::geteuid().as_raw()
        || stat.st_mode & 0o077 != 0
    {
        return Err("it is not a directory of this user alone; remove it".to_owned());
    }
    Ok(())
}

pub(super) fn in_use(place: &str, by: &str) -> RendezvousError {
    RendezvousError::InUse { address: place.to_owned(), by: by.to_owned() }
}

fn gone(e: Errno) -> Result<(), Errno> {
    if e == Errno::NOENT { Ok(()) } else { Err(e) }
}

fn from_std(e: &std::io::Error) -> Errno {
    Errno::from_io_error(e).unwrap_or(Errno::IO)
}
