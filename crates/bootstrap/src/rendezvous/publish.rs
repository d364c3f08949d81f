//! The rendezvous file: rank 0 says where it listens, or why it cannot.

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::error::RendezvousError;

const FIRST_LINE: &str = "crossover rendezvous 1";

/// What the file says. As text: one `key value` a line, after a line that names the format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Notice {
    pub(super) job: String,
    pub(super) attempt: u32,
    pub(super) run: u64,
    pub(super) news: News,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum News {
    Unix(PathBuf),
    /// All addresses of rank 0's node: which of them a peer can reach, only the peer can find out.
    Tcp(Vec<SocketAddr>),
    Failed(String),
}

impl Notice {
    /// Is there nothing at this path but, at most, a rendezvous file?
    pub(super) fn may_replace(path: &Path) -> Result<(), RendezvousError> {
        let old = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(e) => e.to_string().into_bytes(),
        };
        match std::str::from_utf8(&old).ok().and_then(Notice::parse) {
            Some(_) => Ok(()),
            None => Err(RendezvousError::Io {
                what: "write the rendezvous file",
                path: path.to_owned(),
                why: "something that is no rendezvous file is there: give another path".to_owned(),
            }),
        }
    }

    /// Writes the file in one step, so that nobody reads half of it.
    pub(super) fn publish(&self, path: &Path) -> Result<(), RendezvousError> {
        let error = |e: std::io::Error| RendezvousError::Io {
            what: "write the rendezvous file",
            path: path.to_owned(),
            why: e.to_string(),
        };
        let mut draft = path.as_os_str().to_owned();
        draft.push(format!(".{}-{:x}", std::process::id(), crate::random()));
        let draft = PathBuf::from(draft);
        std::fs::File::create_new(&draft)
            .and_then(|mut file| file.write_all(self.text().as_bytes()))
            .and_then(|()| std::fs::rename(&draft, path))
            .inspect_err(|_| drop(std::fs::remove_file(&draft)))
            .map_err(error)
    }

    fn text(&self) -> String {
        let Notice { job, attempt, run, news } = self;
        let job = job.escape_default();
        let mut text = format!("{FIRST_LINE}\njob {job}\nattempt {attempt}\nrun {run}\n");
        let lines = match news {
            News::Unix(path) => vec![format!("unix {}", path.display())],
            News::Tcp(all) => all.iter().map(|address| format!("tcp {address}")).collect(),
            News::Failed(why) => vec![format!("failed {}", why.replace('\n', " "))],
        };
        for line in lines {
            text.push_str(&line);
            text.push('\n');
        }
        text
    }

    /// What a file says; `None` if it is not a rendezvous file.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next() != Some(FIRST_LINE) {
            return None;
        }
        let mut field = |key: &str| lines.next()?.strip_prefix(key)?.strip_prefix(' ');
        let job = field("job")?.to_owned();
        let attempt = field("attempt")?.parse().ok()?;
        let run = field("run")?.parse().ok()?;
        let mut addresses = Vec::new();
        let mut news = None;
        for line in lines {
            match line.split_once(' ')? {
                ("tcp", address) => addresses.push(address.parse().ok()?),
                ("unix", path) => news = Some(News::Unix(path.into())),
                ("failed", why) => news = Some(News::Failed(why.to_owned())),
                _ => return None,
            }
        }
        let news = match news {
            None if addresses.is_empty() => return None,
            news => news.unwrap_or(News::Tcp(addresses)),
        };
        Some(Notice { job, attempt, run, news })
    }

    /// Is it about this job and attempt?
    pub(super) fn concerns(&self, job: &str, attempt: u32) -> bool {
        self.job == job.escape_default().to_string() && self.attempt == attempt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back() {
        let all = [
            News::Unix("/a b/c".into()),
            News::Tcp(vec!["10.1.2.3:4".parse().unwrap(), "[fd00::1]:4".parse().unwrap()]),
            News::Failed("cannot listen: all ports are gone".into()),
        ];
        for news in all {
            let notice = Notice { job: "a job".into(), attempt: 3, run: u64::MAX, news };
            assert_eq!(Notice::parse(&notice.text()), Some(notice.clone()));
            assert!(notice.concerns("a job", 3));
            assert!(!notice.concerns("a job", 2));
        }
    }

    #[test]
    fn other_files_are_no_notices() {
        for text in [
            "",
            "x",
            "crossover rendezvous 1\n",
            "crossover rendezvous 1\njob a\nattempt 0\nrun 1\n",
        ] {
            assert_eq!(Notice::parse(text), None, "{text:?}");
        }
    }
}
