//! For trace viewers (Perfetto, `chrome://tracing`): a process a rank, a track a group, an event a
//! record.

use serde::Serialize;
use serde_json::json;

use super::places::{Group, groups};
use super::word;
use crate::diagnosis::{Diagnosis, Verdict};
use crate::image::{Image, Record, What};

/// Writes the records as trace events, in JSON. An event lasts until the rank's next record in
/// the group; one that has not come back, until the ring was looked at. Clocks are those of the
/// ranks' nodes. Verdicts are marks on the tracks of the ranks that they name.
///
/// Times are microseconds since the earliest record, which `otherData` tells in nanoseconds since
/// 1970.
pub fn chrome_trace(images: &[Image], diagnosis: &Diagnosis) -> String {
    let groups = groups(images);
    let records = images.iter().flat_map(|image| image.records.values());
    let zero = records.map(|record| record.at).min().unwrap_or(0);
    let mut events = Vec::new();
    for (track, group) in groups.iter().enumerate() {
        for (rank, image) in group.seen() {
            let on = Track { zero, process: group.places[rank], track };
            events.extend(on.names(rank, group, image));
            events.extend(image.records.values().map(|record| on.record(image, record)));
            let of_it = diagnosis.verdicts.iter().filter(|v| v.group == group.number);
            let named = of_it.filter(|v| v.ranks.contains(&(rank as u32)));
            events.extend(named.map(|verdict| on.verdict(image, verdict)));
        }
    }
    json!({
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": { "job": diagnosis.job, "zero_ns": zero.to_string() },
    })
    .to_string()
}

/// Where events of one rank in one group are.
struct Track {
    zero: u64,
    process: u32,
    track: usize,
}

#[derive(Serialize)]
struct Event {
    name: String,
    ph: &'static str,
    pid: u32,
    tid: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    /// Of a mark: how wide. `t`, its track; `p`, its process.
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cname: Option<&'static str>,
    args: serde_json::Value,
}

impl Track {
    fn names(&self, rank: usize, group: &Group, image: &Image) -> [Event; 3] {
        let member = group.members.get(rank).map_or("", String::as_str);
        let process = format!("rank {} ({member}, {})", self.process, image.about.device);
        [
            self.event("M", "process_name", json!({ "name": process })),
            self.event("M", "process_sort_index", json!({ "sort_index": self.process })),
            self.event("M", "thread_name", json!({ "name": format!("{} rank {rank}", group.tag) })),
        ]
    }

    fn record(&self, image: &Image, record: &Record) -> Event {
        let outstanding = record.number > image.progress.finished;
        let args = match record.what {
            What::Call(op) => json!({
                "number": record.number, "call": record.seq, "step": record.step,
                "site": record.site, "served by": record.target, "mode": record.mode.name(),
                "dtype": record.dtype.name(), "count": record.count, "bytes": record.bytes(),
                "reduce op": op.reduces().then(|| record.reduce_op.name()),
                "root": record.root, "chain": format!("{:016x}", record.chain),
                "came back": !outstanding,
            }),
            _ => json!({
                "number": record.number, "after call": record.seq, "step": record.step,
                "site": record.site, "value": format!("{:016x}", record.count),
                "chain": format!("{:016x}", record.chain),
            }),
        };
        let is_call = matches!(record.what, What::Call(_) | What::Replay);
        let next = image.records.range(record.number + 1..).next().map(|(_, next)| next.at);
        let end = next.or(outstanding.then_some(image.progress.taken)).unwrap_or(record.at);
        Event {
            ts: Some(self.time(record.at)),
            dur: is_call.then(|| end.saturating_sub(record.at) as f64 / 1e3),
            s: (!is_call).then_some("t"),
            cname: (is_call && outstanding).then_some("terrible"),
            ..self.event(if is_call { "X" } else { "i" }, word(record.what), args)
        }
    }

    fn verdict(&self, image: &Image, verdict: &Verdict) -> Event {
        let at = verdict.number.and_then(|number| image.records.get(&number));
        let last = image.records.last_key_value().map(|(_, last)| last);
        let args = json!({ "evidence": verdict.evidence, "advice": verdict.advice });
        Event {
            ts: Some(self.time(at.or(last).map_or(self.zero, |record| record.at))),
            s: Some("p"),
            ..self.event("i", &verdict.sentence, args)
        }
    }

    fn event(&self, ph: &'static str, name: &str, args: serde_json::Value) -> Event {
        let (pid, tid) = (self.process, self.track);
        Event {
            name: name.to_owned(),
            ph,
            pid,
            tid,
            ts: None,
            dur: None,
            s: None,
            cname: None,
            args,
        }
    }

    fn time(&self, at: u64) -> f64 {
        at.saturating_sub(self.zero) as f64 / 1e3
    }
}
