//! Rings that this user may not read: whose they are, and what to do.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crossover_recorder::Refused;

/// A sentence for each user whose rings they are.
pub(super) fn in_words(refused: &[Refused]) -> Vec<String> {
    let mut by_user: BTreeMap<u32, Vec<&Refused>> = BTreeMap::new();
    for ring in refused {
        by_user.entry(ring.user).or_default().push(ring);
    }
    by_user.into_iter().map(|(user, rings)| of_user(user, &rings)).collect()
}

/// That a folder is another user's.
pub(super) fn folder(path: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let user = fs::metadata(path).ok()?.uid();
    let own = rustix::process::geteuid().as_raw();
    (user != own).then(|| format!("it is {}'s: {}", named(user), run_again(user, None)))
}

fn of_user(user: u32, rings: &[&Refused]) -> String {
    let mut jobs: Vec<&str> = rings.iter().filter_map(|ring| ring.job.as_deref()).collect();
    jobs.sort_unstable();
    jobs.dedup();
    let folders = rings.iter().filter_map(|ring| ring.path.parent().map(Path::to_owned));
    let mut folders: Vec<PathBuf> = folders.collect();
    folders.dedup();
    let folder = folders.first().map_or_else(String::new, |one| format!(" in {}", one.display()));
    let (rings, are) = match rings.len() {
        1 => ("a ring".to_owned(), "is"),
        many => (format!("{many} rings"), "are"),
    };
    let of_jobs = match jobs.as_slice() {
        [] => String::new(),
        jobs => format!(" of `{}`", jobs.join("`, `")),
    };
    let (whose, again) = (named(user), run_again(user, jobs.first().copied()));
    format!("{rings}{of_jobs}{folder} {are} {whose}'s and not readable by this user: {again}")
}

/// What to run.
fn run_again(user: u32, job: Option<&str>) -> String {
    let who = name(user).unwrap_or_else(|| format!("'#{user}'"));
    match job {
        None => format!("run it as that user, `sudo -u {who} crossover diagnose ...`, or as root"),
        Some(job) => format!("`sudo -u {who} crossover diagnose {job}`"),
    }
}

fn named(user: u32) -> String {
    name(user).map_or_else(|| format!("user {user}"), |name| format!("user {name} ({user})"))
}

/// As this machine's own list has it, which names no users of a network's directory.
fn name(user: u32) -> Option<String> {
    let users = fs::read_to_string("/etc/passwd").ok()?;
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == user.to_string()).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_told_of_once_each_with_what_to_run() {
        let ring = |job: Option<&str>, rank: u32, user| Refused {
            path: PathBuf::from(format!("/dev/shm/{rank}")),
            user,
            job: job.map(str::to_owned),
        };
        let other = 4_000_000_000;
        let rings = [ring(Some("b"), 0, 0), ring(Some("a"), 1, 0), ring(None, 2, other)];
        let [root, nobody] = &in_words(&rings)[..] else { panic!("two users") };
        assert_eq!(
            root,
            "2 rings of `a`, `b` in /dev/shm are user root (0)'s and not readable by this user: \
             `sudo -u root crossover diagnose a`"
        );
        assert_eq!(
            nobody,
            "a ring in /dev/shm is user 4000000000's and not readable by this user: run it as that \
             user, `sudo -u '#4000000000' crossover diagnose ...`, or as root"
        );
    }
}
