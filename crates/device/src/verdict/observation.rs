//! What a probe saw, and what that means.

use super::Verdict;

/// The words that a probe saw. It gives what it read, not its opinion, so that there is one judge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// What the owner's memory held before, in every word.
    pub before: u32,
    /// What the user's kernel stored through its mapping: plain stores of its processors. A copy by
    /// the driver proves nothing, since it may be staged through the host.
    pub wrote: Vec<u32>,
    /// What the user's kernel loaded through the same mapping afterwards.
    pub user_read: Vec<u32>,
    /// What the owner found in its own memory afterwards.
    pub owner_read: Vec<u32>,
}

/// The verdict on what was seen: the owner's own view decides.
pub fn judge(seen: &Observation) -> Verdict {
    let words = seen.wrote.len();
    if words == 0 || seen.user_read.len() != words || seen.owner_read.len() != words {
        return Verdict::Inconclusive(format!(
            "the probe wrote {words} words, and read {} as user and {} as owner",
            seen.user_read.len(),
            seen.owner_read.len()
        ));
    }
    if let Some(at) = seen.wrote.iter().position(|word| *word == seen.before) {
        // Such a word would look right if it never arrived.
        return Verdict::Inconclusive(format!("the probe wrote word {at} as it was before"));
    }
    let untouched = |read: &[u32]| read.iter().all(|word| *word == seen.before);
    let user_right = seen.user_read == seen.wrote;
    if seen.owner_read == seen.wrote {
        return match user_right {
            true => Verdict::Proven,
            false => Verdict::Broken(format!(
                "writes arrive, and reads give something else: {}",
                difference(&seen.wrote, &seen.user_read)
            )),
        };
    }
    Verdict::Broken(match (untouched(&seen.owner_read), user_right) {
        (true, true) => {
            "writes land in a copy that only the writer sees; the owner reads what was before"
                .to_owned()
        }
        (true, false) => "writes are lost; the owner reads what was before".to_owned(),
        (false, _) => {
            format!("the owner reads something else: {}", difference(&seen.wrote, &seen.owner_read))
        }
    })
}

fn difference(wrote: &[u32], read: &[u32]) -> String {
    let wrong = wrote.iter().zip(read).filter(|(a, b)| a != b).count();
    let first = wrote.iter().zip(read).enumerate().find(|(_, (a, b))| a != b);
    let first = first.map_or(String::new(), |(at, (want, got))| {
        format!(", the first at {at}: {got:#010x} instead of {want:#010x}")
    });
    format!("{wrong} of {} words{first}", wrote.len())
}
