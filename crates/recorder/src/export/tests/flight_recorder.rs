use std::process::{Command, Stdio};

use serde_json::Value;

use super::*;
use crate::export::{RankDump, flight_recorder};

/// What Python makes of the files, as JSON; `None` where there is no Python.
fn unpickled(dumps: &[RankDump]) -> Option<Vec<Value>> {
    let folder = tempfile::tempdir().expect("a folder");
    for dump in dumps {
        std::fs::write(folder.path().join(&dump.name), &dump.bytes).expect("a file");
    }
    // Tuples are told from lists, which JSON has alone.
    let program = "import json, os, pickle, sys\n\
                   def told(v):\n \
                     if isinstance(v, tuple): return {'tuple': told(list(v))}\n \
                     if isinstance(v, list): return [told(x) for x in v]\n \
                     return {k: told(x) for k, x in v.items()} if isinstance(v, dict) else v\n\
                   for name in sorted(os.listdir(sys.argv[1])):\n \
                     print(json.dumps(told(pickle.load(open(os.path.join(sys.argv[1], name), 'rb')))))";
    let mut python = Command::new("python3");
    let python = python.args(["-c", program]).arg(folder.path()).stderr(Stdio::inherit());
    let output = match python.output() {
        Ok(output) => output,
        Err(error) => {
            // What a test that skips says is seen with `--nocapture`.
            let _ = std::io::Write::write_fmt(
                &mut std::io::stderr(),
                format_args!("skipped: python3 cannot be started: {error}\n"),
            );
            return None;
        }
    };
    assert!(output.status.success());
    let lines = String::from_utf8(output.stdout).expect("text");
    Some(lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect())
}

#[test]
fn python_reads_what_is_written() {
    let mut images = group("t<p>", 7, 2);
    calls(&mut images, 3);
    record(&mut images[0], What::Call(Op::AllGather), 64, "L31.o_proj");
    hangs(&mut images[0]);
    let dumps = flight_recorder(&images).expect("written");
    assert_eq!(dumps.iter().map(|d| d.name.as_str()).collect::<Vec<_>>(), ["rank_0", "rank_1"]);
    let Some(read) = unpickled(&dumps) else { return };

    let group = "0000000000000007";
    assert_eq!(read[0]["version"], "2.4");
    assert_eq!(read[0]["pg_config"][group]["desc"], "t<p>");
    assert_eq!(read[0]["pg_config"][group]["ranks"], "[0, 1]");
    assert_eq!(read[0]["pg_status"]["0"]["last_started_collective"], 4);
    assert_eq!(read[0]["pg_status"]["0"]["last_completed_collective"], 3);
    assert_eq!(read[1]["entries"].as_array().map(Vec::len), Some(3));
    let entries = read[0]["entries"].as_array().expect("a list");
    assert_eq!(entries[0]["frames"][0]["filename"], "model.rs");
    assert_eq!(entries[0]["frames"][0]["line"], 88);
    assert_eq!(entries[0]["state"], "completed");
    let last = &entries[3];
    assert_eq!(last["profiling_name"], "nccl:_all_gather_base");
    assert_eq!(last["process_group"], serde_json::json!({ "tuple": [group, "t<p>"] }));
    assert_eq!(last["input_sizes"], serde_json::json!([[64]]));
    assert_eq!(last["output_sizes"], serde_json::json!([[128]]));
    assert_eq!(last["input_dtypes"], serde_json::json!(["Float"]));
    assert_eq!((&last["state"], &last["collective_seq_id"]), (&"started".into(), &4.into()));
    assert_eq!(last["time_discovered_completed_ns"], Value::Null);
    assert_eq!(last["frames"][0]["name"], "host/one_shot");
    assert_eq!(last["frames"][0]["filename"], "L31.o_proj");
}

#[test]
fn no_rank_seems_to_lack_what_another_has_forgotten() {
    let mut images = group("tp", 7, 3);
    calls(&mut images, 40);
    images[1].records.retain(|number, _| *number > 30);
    let Some(read) = unpickled(&flight_recorder(&images).expect("written")) else { return };
    for rank in &read {
        let entries = rank["entries"].as_array().expect("a list");
        let seqs: Vec<u64> =
            entries.iter().filter_map(|e| e["collective_seq_id"].as_u64()).collect();
        assert_eq!(seqs, (31..=40).collect::<Vec<_>>());
        assert_eq!(entries[0]["record_id"], 0);
    }
}

#[test]
fn a_device_has_calls_that_were_given_to_it() {
    let mut images = group("tp", 7, 1);
    images[0].about.device = "cuda:0".to_owned();
    calls(&mut images, 1);
    let Some(read) = unpickled(&flight_recorder(&images).expect("written")) else { return };
    assert_eq!(read[0]["entries"][0]["state"], "scheduled");
    images[0].progress.phase = Phase::Closed;
    let Some(read) = unpickled(&flight_recorder(&images).expect("written")) else { return };
    assert_eq!(read[0]["entries"][0]["state"], "completed");
}

#[test]
fn the_widest_group_says_which_process_is_which() {
    let mut world = group("world", 9, 4);
    let mut tp = group("tp", 3, 2);
    for image in &mut tp {
        image.about.members = vec!["node:102".to_owned(), "node:103".to_owned()];
    }
    calls(&mut world, 2);
    calls(&mut tp, 1);
    let images: Vec<Image> = tp.into_iter().chain(world).collect();
    let dumps = flight_recorder(&images).expect("written");
    let Some(read) = unpickled(&dumps) else { return };
    let tp = "0000000000000003";
    assert_eq!(dumps.len(), 4);
    assert_eq!(read[2]["pg_config"][tp]["ranks"], "[2, 3]");
    assert_eq!(read[0]["pg_config"][tp], Value::Null);
    assert_eq!(read[3]["entries"].as_array().map(Vec::len), Some(3));
}

#[test]
fn ranks_that_are_threads_of_one_process_have_a_file_each() {
    let mut images = group("tp", 3, 3);
    for image in &mut images {
        image.about.members = vec!["node:1".to_owned(); 3];
    }
    calls(&mut images, 1);
    let dumps = flight_recorder(&images).expect("written");
    assert_eq!(dumps.iter().map(|d| d.rank).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn of_nothing_there_is_no_file() {
    assert_eq!(flight_recorder(&[]).expect("written"), []);
}
