//! What to do next, by class: commands that can be pasted, for the processes in question alone.

use crate::diagnosis::{Branch, Class};
use crate::image::{Record, What};

use super::group::Group;
use super::history::Difference;

/// After histories have parted.
pub(super) fn parting(
    group: &Group<'_>,
    difference: &Difference,
    class: Class,
    branch: Option<Branch>,
    usual: &Record,
) -> Vec<String> {
    let odd = difference.odd();
    let ranks = crossover_core::bootstrap::ranks_in_words(&odd);
    let place = crate::words::at_site(&usual.site);
    let mut lines = vec![match (class, branch) {
        (Class::StateDrift, _) => format!("look at what {ranks} did {}", steps(group, difference)),
        (Class::SizeMismatch, _) => format!(
            "compare what the engine's step gave the call{place} on {ranks}: batch, sequence \
             lengths, padding"
        ),
        (Class::DecisionDivergence, _) => format!(
            "compare `crossover explain` on the nodes of {ranks} and of another rank; the first \
             fact that differs is the cause"
        ),
        (Class::Left, _) => format!("find what made {ranks} close the group: a signal, an error"),
        (_, Some(Branch::EagerVsGraph)) => format!(
            "find why {ranks} did not take the same mode: was a graph captured for this size \
             everywhere?"
        ),
        (_, Some(Branch::OtherGraph)) => {
            format!("compare the batch by which {ranks} and the others chose a graph")
        }
        (Class::ArgumentMismatch, _) => {
            format!("compare the arguments of the call{place} on {ranks}")
        }
        _ => format!(
            "look for a condition before this call{place} that is not the same on all ranks: \
             an empty batch, a cache hit, a time, an exception that was caught"
        ),
    }];
    let is_noted = group
        .images
        .values()
        .any(|image| image.records.values().any(|record| record.what == What::State));
    if !is_noted && matches!(class, Class::SizeMismatch | Class::BranchDivergence) {
        lines.push(
            "let the engine note its state each step: the recorder then tells the step at which \
             it drifted"
                .to_owned(),
        );
    }
    lines
}

fn steps(group: &Group<'_>, difference: &Difference) -> String {
    let rank = difference.sides[0].first();
    let records = rank.and_then(|rank| group.images.get(rank)).map(|image| &image.records);
    let Some(records) = records else { return "before".to_owned() };
    let now = records.get(&difference.number).map_or(0, |record| record.step);
    let mut earlier = records.range(..=difference.equal).rev().map(|(_, record)| record);
    match earlier.find(|record| record.what == What::State) {
        Some(before) if before.step == now => format!("in step {now}, since it noted its state"),
        Some(before) => format!("between step {} and {now}", before.step),
        None => format!("before step {now}"),
    }
}

/// After a difference that is older than what is kept.
pub(super) fn before_window() -> Vec<String> {
    vec![
        "the cause is older than the rings: take the next dump earlier, by a shorter deadline of \
         the watchdog"
            .to_owned(),
        "let the engine note its state each step: the first note that differs is nearer to the \
         cause than the call that hangs"
            .to_owned(),
    ]
}

/// Ranks are configured otherwise.
pub(super) fn config(group: &Group<'_>, ranks: &[u32]) -> Vec<String> {
    vec![
        format!(
            "compare policy files, environment and installed version on {} with the others'",
            processes(group, ranks)
        ),
        "run `crossover policy show` on both nodes: the first line that differs is the cause"
            .to_owned(),
    ]
}

/// Processes that are gone, stopped or frozen.
pub(super) fn life(group: &Group<'_>, class: Class, ranks: &[u32]) -> Vec<String> {
    let who = processes(group, ranks);
    match class {
        Class::CrashedRank => vec![
            format!("read the exit status of {who} in the launcher's log, and its last lines"),
            "`dmesg | grep -i -e oom -e xid -e segfault` on its node".to_owned(),
        ],
        Class::StoppedRank => {
            let mut lines = vec![format!("find who stopped {who}: a debugger, SIGSTOP, a freezer")];
            lines.extend(ranks.iter().map(|rank| {
                let (host, pid) = place(group.member(*rank));
                format!("on {host}: `kill -CONT {pid}` lets it go on")
            }));
            lines
        }
        _ => ranks
            .iter()
            .map(|rank| {
                let (host, pid) = place(group.member(*rank));
                format!(
                    "on {host}: `cat /proc/{pid}/status /proc/{pid}/wchan`: state D is a driver or \
                     a file system that does not answer; a frozen cgroup shows in `cgroup.events`"
                )
            })
            .collect(),
    }
}

/// Ranks that have not come to a call: what do they do instead?
pub(super) fn stacks(group: &Group<'_>, ranks: &[u32]) -> Vec<String> {
    ranks
        .iter()
        .map(|rank| {
            let (host, pid) = place(group.member(*rank));
            format!(
                "see what rank {rank} does instead, on {host}: `py-spy dump --pid {pid}` or \
                 `gdb -p {pid} -batch -ex 'thread apply all bt'`"
            )
        })
        .collect()
}

/// Ranks left the group.
pub(super) fn left(group: &Group<'_>, ranks: &[u32]) -> Vec<String> {
    vec![format!(
        "find what made {} close or drop the group: a signal, an exception, an engine that ends",
        processes(group, ranks)
    )]
}

/// Ranks wait for one another over groups.
pub(super) fn deadlock() -> Vec<String> {
    vec![
        "let every process make its calls of these groups in one order: first all of one group, \
         then the other's"
            .to_owned(),
    ]
}

/// The call does not end, or only after a long time.
pub(super) fn transport(group: &Group<'_>) -> Vec<String> {
    let devices = group.images.values().any(|image| image.about.device != "host");
    let mut lines = vec!["`crossover doctor` on the nodes of this group".to_owned()];
    if devices {
        lines.push("`nvidia-smi nvlink -e` and `dmesg | grep -i xid`: errors of links".to_owned());
    } else {
        lines.push("look for a machine that is short of memory or of cores: `vmstat 1`".to_owned());
    }
    lines
}

/// Devices that have not come to a call.
pub(super) fn device_behind(group: &Group<'_>, ranks: &[u32]) -> Vec<String> {
    let mut lines: Vec<String> = ranks
        .iter()
        .map(|rank| {
            let (host, pid) = place(group.member(*rank));
            let device = group.images.get(rank).map_or("", |image| image.about.device.as_str());
            format!(
                "see what runs on rank {rank}'s device ({device}), on {host}: `nvidia-smi`, and \
                 `cuda-gdb -p {pid}` with `info cuda kernels`: what is ahead of the call in its \
                 stream?"
            )
        })
        .collect();
    lines.push(
        "if that device is idle, it has done its part, or got no work: `crossover doctor`, and \
         `dmesg | grep -i xid` on its node"
            .to_owned(),
    );
    lines
}

/// The group ended with an error.
pub(super) fn ended(group: &Group<'_>, ranks: &[u32]) -> Vec<String> {
    vec![format!("read the log of {} about the time of that error", processes(group, ranks))]
}

fn processes(group: &Group<'_>, ranks: &[u32]) -> String {
    let named: Vec<String> =
        ranks.iter().map(|rank| format!("rank {rank} ({})", group.member(*rank))).collect();
    named.join(", ")
}

fn place(member: &str) -> (&str, &str) {
    member.rsplit_once(':').unwrap_or((member, "PID"))
}
