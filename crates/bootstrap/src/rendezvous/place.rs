//! Where to meet: as stated, and as resolved on this node.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::error::RendezvousError;
use crate::launch::Launch;

/// A rendezvous address. As text: `unix:/abs/path`, `file:/abs/path` or `tcp://host:port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A Unix socket: ranks of one node.
    Unix(PathBuf),
    /// A file in which rank 0 says where it listens: a Unix socket beside the file if all ranks
    /// are on one node, else a free TCP port. The file system must be shared by all ranks.
    File(PathBuf),
    /// A host name or address of rank 0's node, and a port that is free there.
    Tcp {
        /// A name, an IPv4 address, or an IPv6 address without brackets.
        host: String,
        /// Not 0: the others could not know which port was taken.
        port: u16,
    },
    /// A Unix socket in a directory of the job's own, made by rank 0 and removed once all have met.
    JobDirectory {
        /// The user's runtime directory; `/tmp` if it does not exist.
        base: PathBuf,
        /// Names the job; the same on all its ranks, and only there.
        name: String,
    },
}

/// A text that is no rendezvous address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not `unix:/abs/path`, `file:/abs/path` or `tcp://host:port`: {0}")]
pub struct PlaceError(String);

impl FromStr for Place {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        let absolute = |path: &str| {
            let path = PathBuf::from(path);
            if path.is_absolute() {
                Ok(path)
            } else {
                Err(PlaceError("the path is not absolute".into()))
            }
        };
        if let Some(path) = text.strip_prefix("unix:") {
            return absolute(path).map(Place::Unix);
        }
        if let Some(path) = text.strip_prefix("file:") {
            // Both `file:/path` and the URL form `file:///path`.
            return absolute(path.strip_prefix("//").unwrap_or(path)).map(Place::File);
        }
        let Some(address) = text.strip_prefix("tcp://") else {
            return Err(PlaceError("it starts with none of `unix:`, `file:` and `tcp://`".into()));
        };
        let Some((host, port)) = address.rsplit_once(':') else {
            return Err(PlaceError("the port is missing".into()));
        };
        let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        match port.parse() {
            _ if host.is_empty() => Err(PlaceError("the host is missing".into())),
            Ok(0) => {
                Err(PlaceError("port 0 is no port to meet at; use `file:` for a free one".into()))
            }
            Ok(port) => Ok(Place::Tcp { host: host.to_owned(), port }),
            Err(_) => Err(PlaceError(format!("`{port}` is no port"))),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Unix(path) => write!(f, "unix:{}", path.display()),
            Place::File(path) => write!(f, "file:{}", path.display()),
            Place::Tcp { host, port } if host.contains(':') => write!(f, "tcp://[{host}]:{port}"),
            Place::Tcp { host, port } => write!(f, "tcp://{host}:{port}"),
            Place::JobDirectory { base, name } => {
                write!(f, "unix:{}", job_socket(base, name).display())
            }
        }
    }
}

/// Where to meet, with names resolved and directories chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// `directory` is the job's own, to be made and removed.
    Unix {
        socket: PathBuf,
        directory: Option<PathBuf>,
    },
    File(PathBuf),
    Tcp(Vec<SocketAddr>),
    /// All addresses of one node, of which some may be other nodes' as well. To listen: a free
    /// port.
    AnyOf(Vec<SocketAddr>),
}

impl Target {
    /// Refuses a loopback address for several nodes before anything listens.
    pub(super) fn resolve(
        place: &Place,
        launch: &Launch,
        allow_loopback: bool,
    ) -> Result<Self, RendezvousError> {
        match place {
            Place::Unix(path) => Ok(Target::Unix { socket: path.clone(), directory: None }),
            Place::File(path) => Ok(Target::File(path.clone())),
            Place::JobDirectory { base, name } => {
                let socket = job_socket(base, name);
                Ok(Target::Unix { directory: socket.parent().map(Path::to_owned), socket })
            }
            Place::Tcp { host, port } => {
                let unresolved =
                    |why: String| RendezvousError::Unresolved { host: host.clone(), why };
                let all = (host.as_str(), *port)
                    .to_socket_addrs()
                    .map_err(|e| unresolved(e.to_string()))?;
                let all: Vec<SocketAddr> = all.collect();
                if all.is_empty() {
                    return Err(unresolved("it has no address".to_owned()));
                }
                if !launch.spans_nodes() || allow_loopback {
                    return Ok(Target::Tcp(all));
                }
                let (loopback, reachable): (Vec<_>, Vec<_>) =
                    all.into_iter().partition(|a| a.ip().to_canonical().is_loopback());
                match loopback.first() {
                    Some(address) if reachable.is_empty() => Err(RendezvousError::Loopback {
                        host: host.clone(),
                        address: *address,
                        local_world: launch.local_world(),
                        world: launch.world(),
                    }),
                    _ => Ok(Target::Tcp(reachable)),
                }
            }
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Unix { socket, .. } => write!(f, "unix:{}", socket.display()),
            Target::File(path) => write!(f, "file:{}", path.display()),
            Target::Tcp(addresses) | Target::AnyOf(addresses) => {
                let all: Vec<String> = addresses.iter().map(|a| format!("tcp://{a}")).collect();
                f.write_str(&all.join(" or "))
            }
        }
    }
}

fn job_socket(base: &Path, name: &str) -> PathBuf {
    let base = if base.is_dir() { base } else { Path::new("/tmp") };
    base.join(name).join("rendezvous")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        text.parse::<Place>().unwrap_err().to_string()
    }

    #[test]
    fn texts_come_back() {
        for text in
            ["unix:/a/b", "file:/a", "tcp://node7:29500", "tcp://[fe80::1]:1", "tcp://10.0.0.1:2"]
        {
            assert_eq!(text.parse::<Place>().unwrap().to_string(), text);
        }
        assert_eq!("file:///a/b".parse(), Ok(Place::File("/a/b".into())));
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert!(error("unix:a").contains("not absolute"));
        assert!(error("tcp://a").contains("port is missing"));
        assert!(error("tcp://:1").contains("host is missing"));
        assert!(error("tcp://a:0").contains("use `file:`"));
        assert!(error("tcp://a:70000").contains("`70000` is no port"));
        assert!(error("http://a:1").contains("starts with none"));
    }

    #[test]
    fn loopback_is_refused_for_several_nodes_alone() {
        let place: Place = "tcp://127.0.0.2:29500".parse().unwrap();
        let one = Launch::new(0, 4);
        assert!(Target::resolve(&place, &one, false).is_ok());
        let two = Launch::new(0, 4).local(0, 2);
        let e = Target::resolve(&place, &two, false).unwrap_err();
        assert!(
            e.to_string().contains("`127.0.0.2` is 127.0.0.2:29500, a loopback address"),
            "{e}"
        );
        assert!(Target::resolve(&place, &two, true).is_ok());
        for host in ["::1", "localhost", "::ffff:127.0.0.1"] {
            let place = Place::Tcp { host: host.into(), port: 1 };
            assert!(matches!(
                Target::resolve(&place, &two, false),
                Err(RendezvousError::Loopback { .. })
            ));
        }
    }
}
