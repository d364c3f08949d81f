//! This process's own limits, `ulimit`, which ranks inherit.

use super::finding::{Finding, mebibytes};
use super::root::Root;

pub(super) fn examine(root: &Root, ranks: u32) -> Vec<Finding> {
    let Some(text) = root.text("proc/self/limits") else { return Vec::new() };
    let has_infiniband = !root.names("sys/class/infiniband").is_empty();
    of_text(&text, ranks, has_infiniband)
}

/// `text` is a `/proc/PID/limits`.
fn of_text(text: &str, ranks: u32, has_infiniband: bool) -> Vec<Finding> {
    let limit = |name: &str| Limit::read(text, name);
    let [files, locked, stack, core, size, space, tasks] = [
        "Max open files",
        "Max locked memory",
        "Max stack size",
        "Max core file size",
        "Max file size",
        "Max address space",
        "Max processes",
    ]
    .map(limit);
    let words = [
        files.map(|limit| format!("{} descriptors", limit.count())),
        tasks.map(|limit| format!("{} processes", limit.count())),
        locked.map(|limit| format!("locked memory {}", limit.size())),
        stack.map(|limit| format!("stack {}", limit.size())),
        core.map(|limit| format!("core files {}", limit.size())),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    let mut findings = vec![Finding::ok("ulimit", words.join(", "))];
    let mut warn = |limit: Option<Limit>, least: u64, found: &str, advice: String| {
        if limit.is_some_and(|limit| limit.soft < least) {
            findings.push(Finding::warn("ulimit", found, advice));
        }
    };
    let wanted = descriptors(ranks);
    warn(
        files,
        wanted,
        &format!("{ranks} ranks here may need {wanted} descriptors, and fewer are allowed"),
        format!("ulimit -n {wanted}"),
    );
    warn(
        size,
        Limit::NONE,
        "the size of files is limited, and of shared memory with it: it is a file",
        "ulimit -f unlimited".to_owned(),
    );
    warn(
        space,
        Limit::NONE,
        "the address space is limited, and a GPU's driver reserves far more than it uses",
        "ulimit -v unlimited".to_owned(),
    );
    if has_infiniband {
        warn(
            locked,
            Limit::NONE,
            "locked memory is limited, and there is InfiniBand here, whose buffers are locked",
            "ulimit -l unlimited (docker --ulimit memlock=-1)".to_owned(),
        );
    }
    findings
}

/// Rank 0 keeps a connection to each peer, a launcher two pipes and a connection a rank; the rest is
/// a process's own, a GPU's driver among it.
fn descriptors(ranks: u32) -> u64 {
    256 + 4 * u64::from(ranks)
}

#[derive(Clone, Copy)]
struct Limit {
    soft: u64,
}

impl Limit {
    const NONE: u64 = u64::MAX;

    /// The line `Max open files   1024   4096   files`: what holds now, what it may be raised to.
    fn read(text: &str, name: &str) -> Option<Limit> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let soft = match line.split_whitespace().next()? {
            "unlimited" => Limit::NONE,
            number => number.parse().ok()?,
        };
        Some(Limit { soft })
    }

    fn count(self) -> String {
        if self.soft == Limit::NONE { "any number of".to_owned() } else { self.soft.to_string() }
    }

    fn size(self) -> String {
        match self.soft {
            Limit::NONE => "unlimited".to_owned(),
            0 => "none".to_owned(),
            bytes => mebibytes(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict;

    const USUAL: &str = "\
Limit                     Soft Limit           Hard Limit           Units
Max file size             unlimited            unlimited            bytes
Max stack size            8388608              unlimited            bytes
Max core file size        0                    unlimited            bytes
Max processes             96365                96365                processes
Max open files            1024                 1048576              files
Max locked memory         8388608              8388608              bytes
Max address space         unlimited            unlimited            bytes";

    fn warnings(text: &str, ranks: u32, has_infiniband: bool) -> Vec<String> {
        let findings = of_text(text, ranks, has_infiniband).into_iter();
        let warnings = findings.filter(|finding| finding.verdict == Verdict::Warn);
        warnings.filter_map(|finding| finding.advice).collect()
    }

    #[test]
    fn usual_limits_are_told_and_hinder_nobody() {
        let told = of_text(USUAL, 8, false);
        let want = "1024 descriptors, 96365 processes, locked memory 8 MiB, stack 8 MiB, core files \
                    none";
        assert_eq!((told.len(), told[0].found.as_str()), (1, want));
    }

    #[test]
    fn what_is_too_little_is_told_with_the_command() {
        assert_eq!(warnings(USUAL, 512, false), ["ulimit -n 2304"]);
        let infiniband = "ulimit -l unlimited (docker --ulimit memlock=-1)";
        assert_eq!(warnings(USUAL, 8, true), [infiniband]);
        let bounded = USUAL.replace("Max address space         unlimited", "Max address space  9");
        assert_eq!(warnings(&bounded, 8, false), ["ulimit -v unlimited"]);
        let small = USUAL.replace("Max file size             unlimited", "Max file size  65536");
        assert_eq!(warnings(&small, 8, false), ["ulimit -f unlimited"]);
    }
}
