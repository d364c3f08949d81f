//! What the control groups that this process is in allow it, in either version of their files.

use super::finding::Finding;
use super::root::Root;

/// Version 1 writes a great number where nothing is set: the kernel's largest, in whole pages.
const UNSET: u64 = 1 << 62;

/// The least that any group from this process's own to the root allows; `None` where nothing does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Allowance {
    /// Bytes of memory, shared memory among them.
    pub(super) memory: Option<u64>,
    /// Processors' worth of time.
    pub(super) processors: Option<f64>,
    /// Processes and threads.
    pub(super) tasks: Option<u64>,
    /// How often it has been stopped because its time was used up.
    pub(super) stopped: u64,
}

pub(super) fn read(root: &Root) -> Allowance {
    let groups = root.text("proc/self/cgroup").unwrap_or_default();
    let mut all = Allowance::default();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(kinds), Some(path)) = (fields.next(), fields.next()) else { continue };
        // Of version 2 there is one hierarchy, which has no kind.
        let (of_version_2, mounts): (bool, Vec<String>) = match kinds {
            "" => (true, vec!["sys/fs/cgroup".into(), "sys/fs/cgroup/unified".into()]),
            kinds => (false, vec![format!("sys/fs/cgroup/{kinds}")]),
        };
        for folder in mounts.iter().flat_map(|mount| upwards(mount, path)) {
            let found = if of_version_2 { second(root, &folder) } else { first(root, &folder) };
            all = all.and(found);
        }
    }
    all
}

/// The folders of a group and of all above it. A container may see its own group as the root, or
/// be told a path that it does not see: then only the last folder is there.
fn upwards(mount: &str, path: &str) -> Vec<String> {
    let mut path = path.trim_matches('/');
    let mut folders = Vec::new();
    while !path.is_empty() {
        folders.push(format!("{mount}/{path}"));
        path = path.rsplit_once('/').map_or("", |(above, _)| above);
    }
    folders.push(mount.to_owned());
    folders
}

fn second(root: &Root, folder: &str) -> Allowance {
    let processors = root.text(&format!("{folder}/cpu.max")).and_then(|text| {
        let (quota, period) = text.split_once(' ')?;
        share(quota.parse().ok()?, period.parse().ok()?)
    });
    Allowance {
        memory: root.number(&format!("{folder}/memory.max")),
        processors,
        tasks: root.number(&format!("{folder}/pids.max")),
        stopped: stopped(root, folder),
    }
}

fn first(root: &Root, folder: &str) -> Allowance {
    let number = |name: &str| root.number(&format!("{folder}/{name}"));
    let quota = number("cpu.cfs_quota_us").zip(number("cpu.cfs_period_us"));
    Allowance {
        memory: number("memory.limit_in_bytes").filter(|bytes| *bytes < UNSET),
        processors: quota.and_then(|(quota, period)| share(quota, period)),
        tasks: number("pids.max"),
        stopped: stopped(root, folder),
    }
}

fn share(quota: u64, period: u64) -> Option<f64> {
    (period > 0).then(|| quota as f64 / period as f64)
}

fn stopped(root: &Root, folder: &str) -> u64 {
    let text = root.text(&format!("{folder}/cpu.stat")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("nr_throttled "));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

impl Allowance {
    fn and(self, other: Allowance) -> Allowance {
        let least = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        let processors = [self.processors, other.processors].into_iter().flatten();
        Allowance {
            memory: least(self.memory, other.memory),
            processors: processors.reduce(f64::min),
            tasks: least(self.tasks, other.tasks),
            stopped: self.stopped.max(other.stopped),
        }
    }

    /// What it means for `ranks` ranks here.
    pub(super) fn findings(self, ranks: u32) -> Vec<Finding> {
        let mut findings = Vec::new();
        if let Some(processors) = self.processors {
            let found = format!(
                "the control group has the time of {processors} processors, and was stopped {} \
                 times when it was used up",
                self.stopped
            );
            findings.push(match processors < f64::from(ranks) {
                true => Finding::warn(
                    "quota",
                    format!("{found}: a stopped rank is one that its peers wait for"),
                    format!(
                        "raise it to {ranks}, the number of ranks here, or more, or give ranks \
                         processors of their own instead (a cpuset; in Kubernetes the static CPU \
                         manager)"
                    ),
                ),
                false => Finding::ok("quota", found),
            });
        }
        if let Some(tasks) = self.tasks.filter(|tasks| *tasks < tasks_wanted(ranks)) {
            findings.push(Finding::warn(
                "tasks",
                format!("the control group allows {tasks} processes and threads in all"),
                format!("raise it (pids.max, docker --pids-limit) to {}", tasks_wanted(ranks)),
            ));
        }
        findings
    }
}

/// Threads of a GPU's driver, of a library of collectives and of an engine.
fn tasks_wanted(ranks: u32) -> u64 {
    64 * u64::from(ranks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict;
    use crate::doctor::root::written::root;

    #[test]
    fn the_least_of_a_group_and_those_above_it_holds() {
        let (_folder, root) = root(&[
            ("proc/self/cgroup", "0::/kubepods/pod1/c1\n"),
            ("sys/fs/cgroup/kubepods/pod1/c1/memory.max", "max\n"),
            ("sys/fs/cgroup/kubepods/pod1/c1/cpu.max", "250000 100000\n"),
            ("sys/fs/cgroup/kubepods/pod1/c1/cpu.stat", "nr_periods 9\nnr_throttled 7\n"),
            ("sys/fs/cgroup/kubepods/pod1/memory.max", "8589934592\n"),
            ("sys/fs/cgroup/kubepods/pod1/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/kubepods/pids.max", "100\n"),
        ]);
        let found = read(&root);
        let want = Allowance {
            memory: Some(8 << 30), // size: of the test
            processors: Some(2.5),
            tasks: Some(100),
            stopped: 7,
        };
        assert_eq!(found, want);
        let told = found.findings(4);
        assert_eq!((told.len(), told[0].verdict), (2, Verdict::Warn));
        assert!(told[0].found.contains("time of 2.5 processors, and was stopped 7 times"));
        assert!(told[1].advice.as_deref().expect("advice").ends_with("to 256"));
        assert_eq!(found.findings(1).iter().map(|f| f.verdict).max(), Some(Verdict::Ok));
    }

    #[test]
    fn the_first_version_is_read_as_well() {
        let (_folder, root) = root(&[
            (
                "proc/self/cgroup",
                "9:name=systemd:/\n4:memory:/docker/ab\n1:cpu,cpuacct:/docker/ab\n",
            ),
            ("sys/fs/cgroup/memory/docker/ab/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n"),
            // A container sees its own group as the root, whatever path it is told.
            ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
        ]);
        let memory = Some(1 << 30); // size: of the test
        assert_eq!(read(&root), Allowance { memory, ..Allowance::default() });
    }

    #[test]
    fn without_control_groups_nothing_is_limited() {
        let (_folder, root) = root(&[]);
        assert_eq!(read(&root), Allowance::default());
        assert!(read(&root).findings(8).is_empty());
    }
}
