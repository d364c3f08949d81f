//! The container that this process is in, if any, and what its walls mean for ranks beyond them.

use super::finding::Finding;
use super::root::Root;

/// Namespaces that decide what ranks see of one another, and the numbers that the kernel gives the
/// first of each, the machine's own (`include/linux/proc_ns.h`). A network's has none in older
/// kernels.
const NAMESPACES: [(&str, Option<u32>); 4] = [
    ("pid", Some(0xefff_fffc)),
    ("ipc", Some(0xefff_ffff)),
    ("user", Some(0xefff_fffd)),
    ("net", None),
];

/// `CAP_SYS_PTRACE` (linux/capability.h).
const TRACE: u64 = 1 << 19; // size: none, the bit of a right

pub(super) fn examine(root: &Root, variable: &dyn Fn(&str) -> Option<String>) -> Vec<Finding> {
    let kinds = kinds(root, variable);
    let container = match kinds.as_slice() {
        [] => "no sign of one".to_owned(),
        kinds => kinds.join(", "),
    };
    let mut findings = vec![Finding::ok("container", container)];
    findings.extend(namespaces(root));
    findings.extend(shared_memory(root));
    findings.extend(tracing(root));
    findings
}

/// Whose container this is, by the marks that each leaves.
fn kinds(root: &Root, variable: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let groups = root.text("proc/1/cgroup").unwrap_or_default();
    let mut kinds: Vec<String> = Vec::new();
    let mut mark = |kind: &str, sign: bool, is_there: &str| {
        if sign && !kinds.iter().any(|known| known.starts_with(kind)) {
            kinds.push(format!("{kind} ({is_there})"));
        }
    };
    let has_groups = |word: &str| groups.contains(word);
    mark("docker", root.has(".dockerenv"), "/.dockerenv");
    mark("podman", root.has("run/.containerenv"), "/run/.containerenv");
    let variables = [
        ("kubernetes", "KUBERNETES_SERVICE_HOST"),
        ("apptainer", "APPTAINER_CONTAINER"),
        ("singularity", "SINGULARITY_CONTAINER"),
    ];
    for (kind, name) in variables {
        mark(kind, variable(name).is_some(), name);
    }
    for (kind, word) in [("docker", "docker"), ("kubernetes", "kubepods"), ("lxc", "lxc")] {
        mark(kind, has_groups(word), &format!("{word} in /proc/1/cgroup"));
    }
    if let Some(manager) = root.text("run/systemd/container") {
        mark(&manager, true, "/run/systemd/container");
    }
    kinds
}

/// What is this process's own and what the machine's, and what that means.
fn namespaces(root: &Root) -> Option<Finding> {
    let told: Vec<(&str, bool, String)> = NAMESPACES
        .iter()
        .filter_map(|(name, first)| {
            let link = root.link(&format!("proc/self/ns/{name}"))?;
            let of_first = match first {
                Some(number) => link == format!("{name}:[{number}]"),
                // Process 1 is the machine's where this pid namespace is.
                None => root.link(&format!("proc/1/ns/{name}")).is_some_and(|one| one == link),
            };
            Some((*name, of_first, link))
        })
        .collect();
    if told.is_empty() {
        return None;
    }
    let words: Vec<String> = told
        .iter()
        .map(|(name, of_first, link)| match (of_first, *name) {
            (true, "net") => "net that of process 1".to_owned(),
            (false, "net") => "net another than that of process 1".to_owned(),
            (true, name) => format!("{name} the machine's"),
            (false, _) => format!("{link} not the machine's"),
        })
        .collect();
    let found = words.join(", ");
    let is_apart = |wanted: &str| told.iter().any(|(name, first, _)| *name == wanted && !first);
    let mut means = Vec::new();
    if is_apart("pid") {
        means.push(
            "ranks in other containers cannot open its files under /proc/PID/fd, which is how \
             descriptors pass between ranks of a node that meet over TCP, and CUDA's handles of \
             memory may not open there",
        );
    }
    if is_apart("user") {
        means.push("a user's rights beyond its walls are those of another");
    }
    let all = if means.is_empty() { found } else { format!("{found}: {}", means.join("; ")) };
    Some(match means.is_empty() {
        true => Finding::ok("namespaces", all),
        false => Finding::hint(
            "namespaces",
            all,
            "if the ranks of this node are all in here, nothing is amiss; else start their \
             containers with --pid=host --ipc=host, or with those of one (--pid=container:NAME), \
             and a folder for CROSSOVER_RENDEZVOUS that all mount",
        ),
    })
}

/// Containers share memory by name only where they mount the same device at /dev/shm.
fn shared_memory(root: &Root) -> Option<Finding> {
    let mounts = root.text("proc/self/mountinfo")?;
    // The last of several mounts is the one that is seen.
    let mount = mounts.lines().filter_map(Mount::read).rfind(|mount| mount.at == "/dev/shm")?;
    let Mount { device, options, .. } = mount;
    Some(Finding::ok("shm_mount", format!("/dev/shm is device {device} ({options})")))
}

struct Mount<'a> {
    device: &'a str,
    at: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    /// A line of `mountinfo` (proc_pid_mountinfo(5)): `30 25 0:27 / /dev/shm rw - tmpfs shm rw,size=64k`.
    fn read(line: &'a str) -> Option<Mount<'a>> {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(2);
        let (device, at) = (left.next()?, left.nth(1)?);
        Some(Mount { device, at, options: right.split(' ').nth(2)? })
    }
}

/// Backends here read no other process's memory; other libraries, debuggers and profilers do.
fn tracing(root: &Root) -> Option<Finding> {
    let scope = match root.number("proc/sys/kernel/yama/ptrace_scope")? {
        0 => "0: any process of the same user",
        1 => "1: descendants alone",
        2 => "2: who has CAP_SYS_PTRACE",
        _ => "3: nobody",
    };
    let status = root.text("proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let right = match mask {
        Some(mask) if mask & TRACE != 0 => "has CAP_SYS_PTRACE",
        _ => "has not CAP_SYS_PTRACE",
    };
    Some(Finding::ok(
        "ptrace_scope",
        format!(
            "{scope} may be traced; this process {right} (no backend needs it: MPI's and UCX's \
             cross memory attach, py-spy and gdb do)"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict;
    use crate::doctor::root::written::root;

    fn nothing(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn a_bare_machine_has_no_walls() {
        let (_folder, root) = root(&[
            ("proc/1/cgroup", "0::/init.scope\n"),
            ("proc/self/ns/pid", "->pid:[4026531836]"),
            ("proc/self/ns/ipc", "->ipc:[4026531839]"),
            ("proc/self/ns/user", "->user:[4026531837]"),
            ("proc/self/ns/net", "->net:[4026531840]"),
            ("proc/1/ns/net", "->net:[4026531840]"),
        ]);
        let told = examine(&root, &nothing);
        assert_eq!(told[0].found, "no sign of one");
        let want =
            "pid the machine's, ipc the machine's, user the machine's, net that of process 1";
        assert_eq!((told[1].found.as_str(), &told[1].advice), (want, &None));
        assert_eq!(told.len(), 2);
    }

    #[test]
    fn a_pods_walls_are_told_with_what_they_mean() {
        let (_folder, root) = root(&[
            (".dockerenv", ""),
            ("proc/1/cgroup", "4:memory:/kubepods/besteffort/pod1/ab\n"),
            ("proc/self/ns/pid", "->pid:[4026532481]"),
            ("proc/self/ns/ipc", "->ipc:[4026532480]"),
            ("proc/self/ns/user", "->user:[4026531837]"),
            (
                "proc/self/mountinfo",
                "25 24 0:23 / /dev/shm rw,relatime - tmpfs tmpfs rw,size=24684084k\n\
                 30 25 0:27 / /dev/shm rw,nosuid shared:7 - tmpfs shm rw,size=65536k\n\
                 31 25 0:28 / /dev/mqueue rw - mqueue mqueue rw\n",
            ),
            ("proc/sys/kernel/yama/ptrace_scope", "1\n"),
            ("proc/self/status", "Name:\tx\nCapEff:\t00000000a80425fb\n"),
        ]);
        let kubernetes =
            |name: &str| (name == "KUBERNETES_SERVICE_HOST").then(|| "10.0.0.1".to_owned());
        let told = examine(&root, &kubernetes);
        assert_eq!(told[0].found, "docker (/.dockerenv), kubernetes (KUBERNETES_SERVICE_HOST)");
        let start = "pid:[4026532481] not the machine's, ipc:[4026532480] not the machine's, user \
                     the machine's: ranks in other containers cannot open";
        assert!(told[1].found.starts_with(start), "{}", told[1].found);
        assert!(told[1].advice.as_deref().expect("advice").contains("--pid=host --ipc=host"));
        assert_eq!(told[2].found, "/dev/shm is device 0:27 (rw,size=65536k)");
        assert!(
            told[3].found.starts_with("1: descendants alone may be traced; this process has not")
        );
        assert!(told.iter().all(|finding| finding.verdict == Verdict::Ok));
    }

    #[test]
    fn without_proc_there_is_nothing_to_tell() {
        let (_folder, root) = root(&[]);
        let told = examine(&root, &nothing);
        assert_eq!(told.len(), 1);
    }
}
