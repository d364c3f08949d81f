//! What NVIDIA's kernel module has reported of its GPUs since the machine started: numbered events,
//! Xid, in the kernel's log, which root alone may read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::finding::Finding;

const CHECK: &str = "xid";
/// A record of the log has no more bytes (printk's `CONSOLE_EXT_LOG_MAX`).
const RECORD: usize = 8 * 1024; // size: the kernel's
/// More records than a kernel's log has room for: whoever writes as fast as it is read ends here.
const MOST: usize = 200_000;

/// Nothing if the log cannot be read, or has no such event.
pub(super) fn examine() -> Vec<Finding> {
    log(Path::new("/dev/kmsg")).map(|text| of_text(&text)).unwrap_or_default()
}

/// The log's records; each reading gives one.
fn log(path: &Path) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file: OwnedFd = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let (mut file, mut record) = (File::from(file), vec![0; RECORD]);
    let mut text = String::new();
    for _ in 0..MOST {
        match file.read(&mut record) {
            Ok(0) => break,
            Ok(bytes) => text.push_str(&String::from_utf8_lossy(&record[..bytes])),
            // Records that were overwritten meanwhile are gone; the next one is there.
            Err(e) if e.raw_os_error() == Some(rustix::io::Errno::PIPE.raw_os_error()) => {}
            Err(_) => break,
        }
    }
    Some(text)
}

/// One finding a GPU and event: how often, and what it means where that is known.
fn of_text(text: &str) -> Vec<Finding> {
    let mut events: BTreeMap<(&str, u32), usize> = BTreeMap::new();
    for line in text.lines() {
        if let Some(event) = event(line) {
            *events.entry(event).or_default() += 1;
        }
    }
    let told = events.into_iter().map(|((gpu, number), times)| {
        let (what, advice) = meaning(number);
        let found = format!("GPU at {gpu}: Xid {number}, {times} times since the start: {what}");
        Finding::warn(CHECK, found, advice)
    });
    told.collect()
}

/// `NVRM: Xid (PCI:0000:17:00): 79, pid=1234, name=python, GPU has fallen off the bus.`
fn event(line: &str) -> Option<(&str, u32)> {
    let (_, rest) = line.split_once("NVRM: Xid (PCI:")?;
    let (gpu, rest) = rest.split_once("): ")?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((gpu, digits.parse().ok()?))
}

/// Source: NVIDIA, "XID Errors", r580: those that end a collective.
fn meaning(number: u32) -> (&'static str, &'static str) {
    const EXCHANGE: &str = "reset the GPU or restart the machine, and have the GPU looked after if it \
                            comes back";
    const PROGRAM: &str = "a program's fault mostly: look which process it names in dmesg";
    match number {
        13 => ("a kernel did what it may not", PROGRAM),
        31 => ("a kernel touched memory that is not mapped", PROGRAM),
        43 => ("a program's channel was stopped", PROGRAM),
        45 => ("a program's work was ended, as when it is killed", PROGRAM),
        48 | 94 | 95 => ("an error of its memory was not put right", EXCHANGE),
        63 | 64 => ("a row of its memory was put out of use", EXCHANGE),
        74 => ("an error of NVLink", "look after its NVLinks: nvidia-smi nvlink -e"),
        79 => ("it has fallen off the bus", EXCHANGE),
        119 | 120 => ("its own processor does not answer", EXCHANGE),
        _ => ("see NVIDIA's table of Xid errors", "look in dmesg what stands with it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
6,1201,5133214,-;NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.65.06
4,1344,99120034,-;NVRM: Xid (PCI:0000:17:00): 31, pid=4711, name=python, Ch 00000008, intr 00000000
4,1345,99120121,-;NVRM: Xid (PCI:0000:17:00): 31, pid=4711, name=python, Ch 00000008, intr 00000000
3,1346,99220034,-;NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.
3,1347,99220035,-;NVRM: Xid (PCI:broken): what
";

    #[test]
    fn events_are_counted_by_gpu_and_number() {
        let told: Vec<String> = of_text(LOG).into_iter().map(|finding| finding.found).collect();
        let want = [
            "GPU at 0000:17:00: Xid 31, 2 times since the start: a kernel touched memory that is \
             not mapped",
            "GPU at 0000:3b:00: Xid 79, 1 times since the start: it has fallen off the bus",
        ];
        assert_eq!(told, want);
    }

    #[test]
    fn a_log_is_read_to_its_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("kmsg");
        assert_eq!(log(&file), None);
        std::fs::write(&file, LOG.repeat(40)).expect("written");
        assert_eq!(log(&file).as_deref(), Some(LOG.repeat(40).as_str()));
    }
}
