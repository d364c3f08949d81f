//! The kernel, the node and its processors.

use std::fs;
use std::path::Path;

use crossover_bootstrap::binding;

use super::finding::{Finding, mebibytes};

pub(super) fn examine() -> Vec<Finding> {
    let mut findings = vec![kernel(), node(), allowed_processors()];
    findings.extend(caches());
    findings.extend(memory());
    findings
}

fn kernel() -> Finding {
    let uname = rustix::system::uname();
    let word = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    let (system, release) = (word(uname.sysname()), word(uname.release()));
    Finding::ok("kernel", format!("{system} {release} {}", word(uname.machine())))
}

/// Ranks share memory exactly where their nodes are equal.
fn node() -> Finding {
    match fs::read_to_string("/proc/sys/kernel/random/boot_id") {
        Ok(id) => Finding::ok("node", format!("boot id {}", id.trim())),
        Err(e) => Finding::warn(
            "node",
            format!("the kernel's boot id cannot be read: {e}"),
            "mount /proc, or set CROSSOVER_NODE_ID to a name that each node has for itself",
        ),
    }
}

fn allowed_processors() -> Finding {
    let model = crossover::report(None).device;
    let numbers = binding::allowed();
    let found = format!("{} allowed ({}), {model}", numbers.len(), binding::list(&numbers));
    match numbers.len() {
        1 => Finding::warn(
            "processors",
            found,
            "ranks take turns on one processor, which costs a scheduler's time slice each: allow \
             as many processors as ranks (taskset, cpuset)",
        ),
        _ => Finding::ok("processors", found),
    }
}

fn caches() -> Option<Finding> {
    let folder = Path::new("/sys/devices/system/cpu/cpu0/cache");
    let read = |entry: &Path, name: &str| {
        fs::read_to_string(entry.join(name)).map(|text| text.trim().to_owned()).ok()
    };
    let mut caches: Vec<String> = fs::read_dir(folder)
        .ok()?
        .flatten()
        .filter_map(|entry| {
            let (path, of) = (entry.path(), |name: &str| read(&entry.path(), name));
            let kind = match of("type")?.as_str() {
                "Data" => "d",
                "Instruction" => return None,
                _ => "",
            };
            Some(format!("L{}{kind} {}iB", read(&path, "level")?, of("size")?))
        })
        .collect();
    caches.sort_unstable();
    (!caches.is_empty()).then(|| Finding::ok("caches", caches.join(", ")))
}

fn memory() -> Option<Finding> {
    let info = fs::read_to_string("/proc/meminfo").ok()?;
    let kibibytes = |key: &str| -> Option<u64> {
        let line = info.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().strip_suffix("kB")?.trim().parse().ok()
    };
    let (total, available) = (kibibytes("MemTotal:")?, kibibytes("MemAvailable:")?);
    let [total, available] = [total, available].map(|kibibytes| mebibytes(kibibytes << 10));
    let mut found = format!("{total}, {available} available");
    // Shared memory counts against the container's limit as well.
    let limit = fs::read_to_string("/sys/fs/cgroup/memory.max").unwrap_or_default();
    if let Ok(limit) = limit.trim().parse::<u64>() {
        found.push_str(&format!(", limited to {} by the control group", mebibytes(limit)));
    }
    Some(Finding::ok("memory", found))
}
