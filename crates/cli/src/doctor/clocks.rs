//! How fast this machine tells the time, and whether its processors' clocks are held down.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::finding::Finding;
use super::root::Root;

const SOURCE: &str = "sys/devices/system/clocksource/clocksource0/current_clocksource";
const POLICIES: &str = "sys/devices/system/cpu/cpufreq";
/// A clock that is read without the kernel takes 15 to 60 ns; one that is not, 200 ns and up.
const SLOW: Duration = Duration::from_nanos(150);
/// Drivers under which `powersave` is a word for what the processor decides by itself (the kernel's
/// documentation of `intel_pstate` and `amd-pstate`).
const DECIDE_THEMSELVES: [&str; 3] = ["intel_pstate", "amd-pstate-epp", "amd_pstate_epp"];

pub(super) fn examine(root: &Root) -> Vec<Finding> {
    let source = root.text(SOURCE);
    let mut findings = vec![of_source(source.as_deref(), reading())];
    findings.extend(governor(root));
    findings
}

/// What a reading of the clock takes: the least of several tries, so that a processor that was taken
/// away meanwhile does not count.
fn reading() -> Duration {
    const TRIES: u32 = 20;
    const READINGS: u32 = 100;
    let a_try = || {
        let start = Instant::now();
        for _ in 1..READINGS {
            std::hint::black_box(Instant::now());
        }
        start.elapsed() / READINGS
    };
    (0..TRIES).map(|_| a_try()).min().unwrap_or_default()
}

fn of_source(source: Option<&str>, reading: Duration) -> Finding {
    let source = source.unwrap_or("a clock of which the kernel does not tell");
    let found = format!("{source}, {} ns a reading", reading.as_nanos());
    if reading < SLOW {
        return Finding::ok("clock", found);
    }
    let advice = "start the kernel with clocksource=tsc (on a machine whose processors' counters \
                  are in step: `tsc: Marking TSC unstable` in dmesg says that they are not); in a \
                  virtual machine let its host show the counter";
    Finding::warn("clock", format!("{found}: every call reads the clock more than once"), advice)
}

fn governor(root: &Root) -> Option<Finding> {
    let policies = root.names(POLICIES);
    let all = |file: &str| -> BTreeSet<String> {
        let files = policies.iter().map(|policy| format!("{POLICIES}/{policy}/{file}"));
        files.filter_map(|file| root.text(&file)).collect()
    };
    let (governors, drivers) = (all("scaling_governor"), all("scaling_driver"));
    if governors.is_empty() {
        return None;
    }
    let words =
        |words: &BTreeSet<String>| words.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let found = format!("{} by {}", words(&governors), words(&drivers));
    let by_itself = drivers.iter().all(|d| DECIDE_THEMSELVES.contains(&d.as_str()));
    Some(match governors.contains("powersave") && !by_itself {
        true => Finding::warn(
            "governor",
            format!("{found}: it holds processors at their lowest clock"),
            "cpupower frequency-set -g performance",
        ),
        false => Finding::ok("governor", found),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict;
    use crate::doctor::root::written::root;

    #[test]
    fn a_clock_that_asks_the_kernel_is_slow() {
        let told = of_source(Some("tsc"), Duration::from_nanos(22));
        assert_eq!((told.verdict, told.found.as_str()), (Verdict::Ok, "tsc, 22 ns a reading"));
        let told = of_source(Some("hpet"), Duration::from_nanos(1350));
        assert_eq!(told.verdict, Verdict::Warn);
        assert!(told.found.starts_with("hpet, 1350 ns a reading: "), "{}", told.found);
        assert!(reading() > Duration::ZERO);
    }

    #[test]
    fn a_governor_that_saves_power_is_told_unless_the_processor_decides() {
        let of = |governor: &str, driver: &str| {
            let (_folder, root) = root(&[
                ("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", governor),
                ("sys/devices/system/cpu/cpufreq/policy1/scaling_governor", "performance\n"),
                ("sys/devices/system/cpu/cpufreq/policy0/scaling_driver", driver),
            ]);
            governor_of(&root)
        };
        assert_eq!(of("powersave\n", "intel_pstate\n").verdict, Verdict::Ok);
        let held = of("powersave\n", "acpi-cpufreq\n");
        let want = "performance, powersave by acpi-cpufreq: it holds processors at their lowest \
                    clock";
        assert_eq!((held.verdict, held.found.as_str()), (Verdict::Warn, want));
        assert_eq!(of("schedutil\n", "acpi-cpufreq\n").verdict, Verdict::Ok);
        let (_folder, none) = root(&[]);
        assert!(governor(&none).is_none());
    }

    fn governor_of(root: &Root) -> Finding {
        governor(root).expect("there are policies")
    }
}
