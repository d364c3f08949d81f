//! `ROCR_VISIBLE_DEVICES`, which AMD's runtime applies first, and `HIP_VISIBLE_DEVICES`, which
//! counts what that leaves.
//!
//! Source: the filters of ROCR-Runtime and of the HIP runtime (clr), read for their rules.

use super::{Visible, by_prefix};

/// What `ROCR_VISIBLE_DEVICES` (`None`: not set) leaves of a machine's GPUs, which are `uuids` in
/// the kernel's order. Entries are numbers or starts of UUIDs; the list ends at an entry that names
/// none, or one that is there already. An empty list hides every GPU.
pub fn rocr(uuids: &[String], list: Option<&str>) -> Visible {
    let Some(list) = list else { return Visible::all(uuids.iter().cloned()) };
    let mut chosen: Vec<String> = Vec::new();
    for entry in list.split(',').map(str::trim) {
        let found = match entry.strip_prefix("GPU-") {
            Some(_) => by_prefix(uuids.iter().map(String::as_str), entry, starts_in_any_case),
            None => any_base(entry, uuids.len()),
        };
        let found = found.and_then(|at| match chosen.contains(&uuids[at]) {
            true => Err("it is there already"),
            false => Ok(at),
        });
        match found {
            Ok(at) => chosen.push(uuids[at].clone()),
            Err(_) if list.is_empty() => break,
            Err(why) => return ended(chosen, "ROCR_VISIBLE_DEVICES", entry, why),
        }
    }
    Visible::all(chosen)
}

/// What `HIP_VISIBLE_DEVICES`, or where that is not set or empty `CUDA_VISIBLE_DEVICES`, leaves of
/// what [`rocr`] left. Unlike there, an empty list says nothing, a repeated entry is passed over,
/// and a UUID may be given in part.
pub fn hip(left: &[String], hip_list: Option<&str>, cuda_list: Option<&str>) -> Visible {
    let lists = [("HIP_VISIBLE_DEVICES", hip_list), ("CUDA_VISIBLE_DEVICES", cuda_list)];
    let set = lists
        .into_iter()
        .find_map(|(name, list)| Some((name, list?)).filter(|(_, list)| !list.is_empty()));
    let Some((variable, list)) = set else { return Visible::all(left.iter().cloned()) };
    let mut chosen: Vec<String> = Vec::new();
    for entry in list.split(',') {
        let named = entry.contains("GPU-").then(|| left.iter().position(|u| u.contains(entry)));
        let found = match named {
            Some(at) => at.ok_or("no visible device is named so"),
            None => number(entry, left.len()),
        };
        match found {
            Ok(at) if !chosen.contains(&left[at]) => chosen.push(left[at].clone()),
            Ok(_) => {}
            Err(why) => return ended(chosen, variable, entry, why),
        }
    }
    Visible::all(chosen)
}

fn number(entry: &str, count: usize) -> Result<usize, &'static str> {
    match entry.parse() {
        // `01` and `+1` are not how a number is written, says the HIP runtime.
        Ok(at) if at < count && entry == format!("{at}") => Ok(at),
        Ok(_) => Err("there is no such device"),
        Err(_) => Err("it names no device"),
    }
}

/// A number as C reads it in any base: `0x1` and `01` are 1.
fn any_base(entry: &str, count: usize) -> Result<usize, &'static str> {
    let digits = entry.strip_prefix('+').unwrap_or(entry);
    let (digits, base) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if digits.len() > 1 && digits.starts_with('0') => (&digits[1..], 8),
        None => (digits, 10),
    };
    match usize::from_str_radix(digits, base) {
        Ok(at) if at < count => Ok(at),
        Ok(_) => Err("there is no such device"),
        Err(_) => Err("it names no device"),
    }
}

fn starts_in_any_case(uuid: &str, entry: &str) -> bool {
    uuid.get(..entry.len()).is_some_and(|start| start.eq_ignore_ascii_case(entry))
}

fn ended(chosen: Vec<String>, variable: &str, entry: &str, why: &str) -> Visible {
    Visible::cut(chosen, format!("{variable} ends at `{entry}`: {why}"))
}
