//! The kernel, the node and its processors.

use crossover_bootstrap::binding;
use crossover_device::verdict::platform::Platform;

use super::control_group::Allowance;
use super::finding::{Finding, mebibytes};
use super::root::Root;

/// `ranks` is how many ranks are here, where a launcher says so.
pub(super) fn examine(
    root: &Root,
    platform: &Platform,
    allowance: Allowance,
    ranks: Option<u32>,
) -> Vec<Finding> {
    let mut findings = vec![kernel(platform), node(root), allowed_processors(ranks)];
    findings.extend(caches(root));
    findings.extend(memory(root, allowance));
    findings
}

fn kernel(platform: &Platform) -> Finding {
    let uname = rustix::system::uname();
    let word = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    let (system, release) = (word(uname.sysname()), word(uname.release()));
    let found = format!("{system} {release} {}", word(uname.machine()));
    match platform.refusal() {
        None => Finding::ok("kernel", found),
        Some(why) => Finding::warn(
            "kernel",
            format!("{found}: {why}"),
            "backend ipc declines here: let another backend serve, or run Linux itself",
        ),
    }
}

/// Ranks share memory exactly where their nodes are equal.
fn node(root: &Root) -> Finding {
    let file = "proc/sys/kernel/random/boot_id";
    match root.text(file) {
        Some(id) => Finding::ok("node", format!("boot id {id}")),
        None => Finding::warn(
            "node",
            format!("the kernel's boot id cannot be read (/{file})"),
            "mount /proc, or set CROSSOVER_NODE_ID to a name that each node has for itself",
        ),
    }
}

fn allowed_processors(ranks: Option<u32>) -> Finding {
    let model = crossover::report(None).device;
    let numbers = binding::allowed();
    let found = format!("{} allowed ({}), {model}", numbers.len(), binding::list(&numbers));
    of_processors(numbers.len(), ranks, found)
}

fn of_processors(allowed: usize, ranks: Option<u32>, found: String) -> Finding {
    let wanted = ranks.unwrap_or(2).max(1) as usize;
    if allowed >= wanted || allowed == 0 {
        return Finding::ok("processors", found);
    }
    // Ranks are seldom bound apart before they start: the mask may be this rank's own.
    let of_all =
        ranks.map(|ranks| format!("; {ranks} ranks share them, if they are not this one's own"));
    let found = format!("{found}{}", of_all.unwrap_or_default());
    let advice = "ranks that share a processor take turns, which costs a scheduler's time slice \
                  each: allow as many processors as ranks (taskset, cpuset)";
    Finding::warn("processors", found, advice)
}

fn caches(root: &Root) -> Option<Finding> {
    let folder = "sys/devices/system/cpu/cpu0/cache";
    let mut caches: Vec<String> = root
        .names(folder)
        .iter()
        .filter_map(|entry| {
            let read = |name: &str| root.text(&format!("{folder}/{entry}/{name}"));
            let kind = match read("type")?.as_str() {
                "Data" => "d",
                "Instruction" => return None,
                _ => "",
            };
            Some(format!("L{}{kind} {}iB", read("level")?, read("size")?))
        })
        .collect();
    caches.sort_unstable();
    (!caches.is_empty()).then(|| Finding::ok("caches", caches.join(", ")))
}

fn memory(root: &Root, allowance: Allowance) -> Option<Finding> {
    let info = root.text("proc/meminfo")?;
    let kibibytes = |key: &str| -> Option<u64> {
        let line = info.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().strip_suffix("kB")?.trim().parse().ok()
    };
    let (total, available) = (kibibytes("MemTotal:")?, kibibytes("MemAvailable:")?);
    let [total, available] = [total, available].map(|kibibytes| mebibytes(kibibytes << 10));
    let mut found = format!("{total}, {available} available");
    // Shared memory counts against the container's limit as well.
    if let Some(limit) = allowance.memory {
        found.push_str(&format!(", limited to {} by the control group", mebibytes(limit)));
    }
    Some(Finding::ok("memory", found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict;
    use crate::doctor::root::written::root;

    #[test]
    fn linux_inside_of_windows_is_told() {
        let of = |release: &str| {
            let (folder, _) = root(&[("proc/sys/kernel/osrelease", release)]);
            kernel(&Platform::below(folder.path()))
        };
        assert_eq!(of("6.8.0-45-generic\n").verdict, Verdict::Ok);
        let told = of("5.15.167.4-microsoft-standard-WSL2\n");
        assert_eq!(told.verdict, Verdict::Warn);
        assert!(told.found.contains(": wsl2: "), "{}", told.found);
    }

    #[test]
    fn processors_are_compared_with_ranks() {
        let of = |allowed, ranks| of_processors(allowed, ranks, format!("{allowed} allowed"));
        assert_eq!(of(2, None).verdict, Verdict::Ok);
        assert_eq!(of(1, None).verdict, Verdict::Warn);
        assert_eq!(of(8, Some(8)).verdict, Verdict::Ok);
        let told = of(4, Some(8));
        let want = "4 allowed; 8 ranks share them, if they are not this one's own";
        assert_eq!((told.verdict, told.found.as_str()), (Verdict::Warn, want));
        assert_eq!(of(1, Some(1)).verdict, Verdict::Ok);
    }

    #[test]
    fn memory_and_caches_are_read_from_the_kernels_files() {
        let cache = "sys/devices/system/cpu/cpu0/cache";
        let at = |name: &str| format!("{cache}/{name}");
        let (level, kind, size) = (at("index0/level"), at("index0/type"), at("index0/size"));
        let (_folder, root) = root(&[
            ("proc/meminfo", "MemTotal:  2097152 kB\nMemAvailable:  1048576 kB\n"),
            (&level, "1\n"),
            (&kind, "Data\n"),
            (&size, "48K\n"),
        ]);
        assert_eq!(caches(&root).expect("one").found, "L1d 48KiB");
        let limited = Allowance { memory: Some(512 << 20), ..Allowance::default() };
        let found = memory(&root, limited).expect("told").found;
        assert_eq!(found, "2048 MiB, 1024 MiB available, limited to 512 MiB by the control group");
    }

    #[test]
    fn a_machine_without_files_is_told_as_far_as_it_can_be() {
        let (folder, root) = root(&[]);
        let platform = Platform::below(folder.path());
        let told = examine(&root, &platform, Allowance::default(), None);
        let checks: Vec<&str> = told.iter().map(|finding| finding.check).collect();
        assert_eq!(checks, ["kernel", "node", "processors"]);
        assert_eq!(told[1].verdict, Verdict::Warn);
    }
}
