//! What programs read: JSON alone on stdout, with the promised keys.

use std::process::{Command, Output};

use serde_json::Value;

const OPS: [&str; 5] = ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all"];

fn crossover(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_crossover"))
        .args(arguments)
        .envs(variables.iter().copied())
        .output()
        .expect("the program starts")
}

/// Stdout as JSON; ends the test if it is anything else, or the exit code is another.
#[track_caller]
fn json(arguments: &[&str], variables: &[(&str, &str)], code: i32) -> Value {
    let output = crossover(arguments, variables);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{arguments:?}: {e}"))
}

fn perf(op: &str, more: &[&str]) -> Value {
    let arguments = [&["perf", op, "--json", "--iters", "5"], more].concat();
    json(&arguments, &[], 0)
}

#[track_caller]
fn assert_all_right(report: &Value) {
    let results = report["results"].as_array().expect("results");
    assert!(!results.is_empty());
    for result in results {
        for placement in ["out_of_place", "in_place"] {
            assert_eq!(result[placement]["nwrong"], 0, "{result}");
            for figure in ["time", "alg_bw", "bus_bw", "p50_us", "p99_us"] {
                assert!(result[placement][figure].is_number(), "{figure}: {result}");
            }
        }
        assert_eq!(result["astray"], false);
        assert_eq!(result["actual_iterations"], 5);
    }
    assert_eq!(report["out_of_bounds"]["okay"], true);
    assert_eq!(report["errors"], Value::Array(Vec::new()));
}

#[test]
fn every_op_is_right_and_has_the_keys_of_nccl_tests() {
    for op in OPS {
        let report = perf(op, &["-b", "8", "-e", "300K", "-f", "33"]);
        assert_all_right(&report);
        let of_nccl_tests = [
            "version",
            "start_time",
            "args",
            "env",
            "config",
            "devices",
            "results",
            "out_of_bounds",
            "average_bus_bandwidth",
            "errors",
            "end_time",
        ];
        for key in of_nccl_tests {
            assert!(report.get(key).is_some(), "{key}");
        }
        let result = &report["results"][1];
        for key in ["size", "count", "type", "redop", "root"] {
            assert!(result.get(key).is_some(), "{key}");
        }
        assert_eq!(result["op"], op);
        assert_eq!(result["size"], 264);
        assert_eq!(report["devices"].as_array().map(Vec::len), Some(2));
    }
}

#[test]
fn odd_worlds_and_sizes_are_right() {
    for (ranks, dtype, reduce_op) in [("1", "f16", "sum"), ("3", "i8", "max"), ("5", "f32", "avg")]
    {
        for op in OPS {
            let sizes = ["-n", ranks, "-b", "7", "-e", "70001", "-f", "100"];
            assert_all_right(&perf(op, &[&sizes[..], &["-d", dtype, "-o", reduce_op]].concat()));
        }
    }
}

#[test]
fn all_gather_counts_its_output_and_policies_its_input() {
    let report = perf("all_gather", &["-n", "3", "-b", "1K", "-e", "1K"]);
    let result = &report["results"][0];
    assert_eq!((&result["size"], &result["count"]), (&1020.into(), &170.into()));
    assert_eq!(result["bytes_input"], 340);
}

#[test]
fn rows_tell_who_really_ran() {
    let forced = perf("all_reduce", &["-b", "64", "-e", "64", "--use", "host/two_shot"]);
    assert_eq!(forced["results"][0]["use"], "host/two_shot");

    let all = perf("all_reduce", &["-b", "64", "-e", "64", "--use", "all"]);
    let rows = all["results"].as_array().expect("results");
    let marked = |mark: &str| rows.iter().filter(|row| row[mark] == true).count();
    assert!(rows.len() > 1, "{rows:?}");
    assert_eq!(marked("policy_pick"), 1);
    assert!(marked("fastest") >= 1);
    assert_all_right(&all);
}

#[test]
fn variables_of_others_stay_out_of_reports() {
    let variables = [("SECRET_TOKEN", "hunter2"), ("CROSSOVER_DISABLE", "host/one_shot")];
    let arguments = ["perf", "all_reduce", "--json", "--iters", "5", "-b", "8", "-e", "8"];
    let report = json(&arguments, &variables, 0);
    assert!(!report.to_string().contains("hunter2"));
    assert_eq!(report["results"][0]["use"], "host/two_shot");
}

#[test]
fn explanations_are_an_array_with_an_object_for_each_size() {
    let arguments = ["explain", "--op", "all_reduce", "--bytes", "8B,64MiB", "--json"];
    let told = json(&arguments, &[], 0);
    assert_eq!(told.as_array().map(Vec::len), Some(2));
    for key in ["op", "dtype", "bytes", "chosen", "considered", "holds", "next"] {
        assert!(told[0].get(key).is_some(), "{key}");
    }
    for key in ["use", "rule", "layer", "file", "line"] {
        assert!(told[0]["chosen"].get(key).is_some(), "{key}");
    }
    let nobody = json(&[&arguments[..], &["--mode", "graph"]].concat(), &[], 3);
    assert_eq!(nobody[0]["chosen"], Value::Null);
}

/// No call has such a size. (`perf` rounds as nccl-tests does, and says so.)
#[test]
fn a_size_in_parts_of_elements_is_not_explained() {
    let ask = |bytes, dtype| {
        crossover(&["explain", "--op", "all_reduce", "--bytes", bytes, "--dtype", dtype], &[])
    };
    let told = ask("2B,3B", "bf16");
    assert_eq!(told.status.code(), Some(2));
    let why = "--bytes: 3 B is no whole number of bf16 elements: write a multiple of 2 B\n";
    let error = String::from_utf8_lossy(&told.stderr);
    assert!(error.ends_with(why) && told.stdout.is_empty(), "{error}");
    for (bytes, dtype) in [("0B,2B", "bf16"), ("3B", "u8"), ("24B", "f64")] {
        assert_eq!(ask(bytes, dtype).status.code(), Some(0), "{bytes} {dtype}");
    }
}

#[test]
fn where_a_device_name_would_decide_explain_says_how_to_state_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("device.toml");
    let rule =
        "schema = 1\n[rule.mine]\nmatch = { device = 'NVIDIA H200' }\nchain = [{ use = 'host' }]";
    std::fs::write(&file, rule).unwrap();
    let file = file.display().to_string();
    let arguments =
        ["explain", "--op", "all_reduce", "--bytes", "8B", "--isolated", "--policy", &file];
    let hint = "  no device name is stated: --device gives one\n";
    let told = |more: &[&str]| {
        let output = crossover(&[&arguments[..], more].concat(), &[]);
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(told(&[]).contains(hint), "{}", told(&[]));
    assert!(!told(&["--device", "NVIDIA H100"]).contains(hint));
}

#[test]
fn an_isolated_explanation_takes_nothing_from_the_environment() {
    let arguments = ["explain", "--op", "all_reduce", "--bytes", "8B", "--json"];
    let forced = [("CROSSOVER_USE", "host/two_shot")];
    let told = json(&arguments, &forced, 0);
    assert_eq!(told[0]["chosen"]["rule"], "use:host/two_shot");
    assert_eq!(told[0]["chosen"]["layer"], "env");
    let told = json(&[&arguments[..], &["--isolated"]].concat(), &forced, 0);
    assert_eq!(told[0]["chosen"]["rule"], "floor");
}

/// Offline nobody knows the group's caches: a share of one is told as the policy writes it.
#[test]
fn a_share_of_a_cache_is_told_as_it_is_written_where_no_cache_is_known() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("shares.toml");
    let text = r#"schema = 1
[rule.mine]
match = { op = "all_gather" }
chain = [
  { use = "host/one_shot", bytes = "..=1MiB", params = { stream = "l2/2" } },
  { use = "host/one_shot", bytes = "..=2MiB", params = { stream = "llc/4/world" } },
  { use = "host/one_shot", params = { stream = "64KiB" } },
]
"#;
    std::fs::write(&file, text).expect("a file");
    let file = file.to_str().expect("a path in UTF-8");
    let arguments = ["explain", "--op", "all_gather", "--isolated", "--policy", file, "--json"];
    let told = json(&[&arguments[..], &["--bytes", "8B,2MiB,4MiB"]].concat(), &[], 0);
    let params = |at: usize| &told[at]["chosen"]["params"];
    assert_eq!(*params(0), serde_json::json!({ "stream": "l2/2" }));
    assert_eq!(*params(1), serde_json::json!({ "stream": "llc/4/world" }));
    assert_eq!(*params(2), serde_json::json!({ "stream": "64KiB" }));
    assert_eq!(told[0]["next"]["params"], *params(1), "shares that differ are bands that differ");
    let bands = json(&[&arguments[..], &["--sweep"]].concat(), &[], 0);
    let swept: Vec<_> = bands.as_array().unwrap().iter().map(|band| &band["params"]).collect();
    assert_eq!(swept, [params(0), params(1), params(2)]);
}

/// One backend that a policy sets otherwise from a size on serves two bands.
#[test]
fn a_sweep_tells_bands_of_one_backend_apart_by_what_the_policy_sets() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("two-bands.toml");
    let text = r#"schema = 1
[rule.mine]
match = { op = "all_reduce" }
chain = [
  { use = "nccl/pinned", bytes = "..=1MiB", params = { algorithm = "ring", protocol = "ll_or_ll128" } },
  { use = "nccl/pinned" },
]
"#;
    std::fs::write(&file, text).expect("a file");
    let policy = file.display().to_string();
    let arguments = ["explain", "--op", "all_reduce", "--arch", "sm90", "--isolated", "--sweep"];
    let arguments = [&arguments[..], &["--policy", policy.as_str()]].concat();
    let told = json(&[&arguments[..], &["--json"]].concat(), &[], 0);
    let band = |at: usize| (&told[at]["from"], &told[at]["use"], &told[at]["params"]);
    let set = serde_json::json!({ "algorithm": "ring", "protocol": "ll_or_ll128" });
    let nccl = Value::from("nccl/pinned");
    assert_eq!(band(0), (&Value::from(0), &nccl, &set));
    assert_eq!(band(1), (&Value::from(1_048_577), &nccl, &serde_json::json!({})));
    assert_eq!(told.as_array().map(Vec::len), Some(2));
    let text = String::from_utf8(crossover(&arguments, &[]).stdout).expect("text");
    let first = text.lines().next().unwrap_or_default();
    assert!(first.ends_with("  nccl/pinned  algorithm ring, protocol ll_or_ll128"), "{text}");
}

/// A bare name begins with the library's own choice, which would serve every call and ignore them.
#[test]
fn params_of_a_bare_library_are_refused_and_their_owner_is_named() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("bare-params.toml");
    let text = "schema = 1\n[rule.mine]\nchain = [{ use = \"nccl\", params = { channels = 4 } }]\n";
    std::fs::write(&file, text).expect("a file");
    let told = crossover(&["policy", "lint", "--isolated", &file.display().to_string()], &[]);
    assert_eq!(told.status.code(), Some(2));
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(
        text.contains("`nccl` alone leaves all to the library: no `channels` is set"),
        "{text}"
    );
    assert!(text.contains("write `use = \"nccl/pinned\"`, which takes it"), "{text}");
}

#[test]
fn backends_state_every_clause() {
    let backends = json(&["backends", "--json"], &[], 0);
    let algorithm = &backends[0]["algorithms"][0];
    for clause in [
        "use",
        "op",
        "topology",
        "nodes",
        "world",
        "caps",
        "mode",
        "dtype",
        "reduce_dtype",
        "reduce_op",
        "order",
        "determinism",
        "deviates",
        "multiple_of",
    ] {
        assert!(algorithm.get(clause).is_some(), "{clause}");
    }
}

#[test]
fn the_doctor_finds_what_is_wrong() {
    let verdict = |report: &Value, check: &str| -> Vec<String> {
        let findings = report["findings"].as_array().expect("findings").iter();
        let of_check = findings.filter(|finding| finding["check"] == check);
        of_check.map(|finding| finding["verdict"].as_str().expect("a word").to_owned()).collect()
    };
    let report = json(&["doctor", "--json"], &[], 0);
    assert_eq!(verdict(&report, "group"), ["ok", "ok", "ok"]);
    assert_eq!(verdict(&report, "settings"), ["ok"]);
    for library in ["nccl", "rccl"] {
        assert_ne!(verdict(&report, library), [""; 0], "it is told, or why there is none");
    }

    let report = json(&["doctor", "--json"], &[("CROSSOVER_SHM_DIR", "/nonexistent")], 1);
    assert_eq!(verdict(&report, "shm_dir"), ["fail"]);
    assert_eq!(verdict(&report, "group"), ["fail"]);
    assert_eq!(report["verdict"], "fail");

    let report = json(&["doctor", "--json"], &[("CROSSOVER_DISBALE", "host")], 1);
    assert_eq!(verdict(&report, "settings"), ["fail"]);

    let report = json(&["doctor", "--json"], &[("OMPI_COMM_WORLD_RANK", "0")], 1);
    assert_eq!(verdict(&report, "launcher"), ["fail"]);
}

#[test]
fn the_log_goes_to_stderr() {
    let arguments = ["perf", "all_reduce", "-e", "8", "--iters", "3", "--json"];
    let output = crossover(&arguments, &[("CROSSOVER_LOG", "info")]);
    assert!(serde_json::from_slice::<Value>(&output.stdout).is_ok());
    assert!(String::from_utf8_lossy(&output.stderr).contains("group formed"));
}

#[test]
fn a_lost_rank_is_named_and_nobody_hangs() {
    let script = r#"
        perf="$0 perf all_reduce -b 1K -e 1K --iters 100000000"
        [ "$CROSSOVER_RANK" = 0 ] && exec $perf
        $perf & sleep 1; kill -9 $!; wait
    "#;
    let program = env!("CARGO_BIN_EXE_crossover");
    let output = crossover(&["launch", "-n", "2", "--", "sh", "-c", script, program], &[]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{error}");
    assert!(error.contains("rank 1 was lost"), "{error}");
}

/// One machine plays two nodes, and nothing moves host memory between them.
#[test]
fn a_group_that_no_backend_serves_is_told_so_once() {
    let script = r#"CROSSOVER_NODE_ID=node$CROSSOVER_RANK exec "$0" perf all_reduce --device host"#;
    let arguments = ["launch", "-n", "2", "--", "sh", "-c", script];
    let arguments = [&arguments[..], &[env!("CARGO_BIN_EXE_crossover")]].concat();
    let output = crossover(&arguments, &[("CROSSOVER_DISABLE", "mpi")]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{error}");
    let sentence = "error: no backend is available to this group of 2: ";
    assert_eq!(error.matches(sentence).count(), 1, "{error}");
    assert!(error.contains("`host`: topology: wants host, got multi_node"), "{error}");
}
