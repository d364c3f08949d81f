//! Settings: which source wins, and what people are told about a wrong one.

mod support;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::time::Duration;

use crossover_core::call::{Op, Ops};
use crossover_core::contract::{Contract, Determinism, Deviation, Deviations};
use crossover_core::policy::Layer;
use crossover_core::settings::OnDivergence;
use crossover_policy::{DeviceChoice, Override, Settings};
use support::{Files, registry};

fn load(pairs: &[(&str, &str)]) -> Result<Settings, String> {
    load_with(pairs, &[])
}

fn load_with(pairs: &[(&str, &str)], options: &[(&str, &str)]) -> Result<Settings, String> {
    let variables: Vec<(OsString, OsString)> =
        pairs.iter().map(|(k, v)| (k.into(), v.into())).collect();
    let overrides: Vec<Override> = options
        .iter()
        .map(|(key, value)| Override {
            key: key.to_string(),
            value: value.to_string(),
            origin: format!("--{key}"),
        })
        .collect();
    Settings::load(variables, &overrides, &registry()).map_err(|e| e.to_string())
}

#[test]
fn a_users_cache_is_where_the_user_has_it() {
    let cache = |variables: &[(&str, &str)]| load(variables).unwrap().cache;
    let home = ("HOME", "/home/someone");
    assert_eq!(cache(&[]), None);
    assert_eq!(cache(&[home]), Some("/home/someone/.cache/crossover".into()));
    assert_eq!(cache(&[home, ("XDG_CACHE_HOME", "/c")]), Some("/c/crossover".into()));
    for none in ["", "relative"] {
        let found = cache(&[home, ("XDG_CACHE_HOME", none)]);
        assert_eq!(found, Some("/home/someone/.cache/crossover".into()));
    }
}

#[test]
fn nothing_set_is_the_defaults() {
    let settings = load(&[
        ("PATH", "/bin"),
        ("CROSSOVER_RANK", "3"),
        ("CROSSOVER_JOB", "j"),
        ("CROSSOVER_LOG", "debug"),
    ]);
    let settings = settings.unwrap();
    assert_eq!(settings.contract, Contract::DEFAULT);
    assert!(settings.policy.is_empty() && settings.forced.is_none() && !settings.strict);
    assert!(settings.disabled.is_none() && settings.enabled.is_none());
    assert_eq!(settings.site, std::path::PathBuf::from("/etc/crossover"));
    assert_eq!((settings.explain, settings.on_divergence), (Ops::NONE, OnDivergence::Error));
    assert_eq!(
        (settings.device.clone(), settings.allow_shared_device),
        (DeviceChoice::Host, false)
    );
    let group = settings.group("tp");
    assert_eq!(
        (group.backends.device.as_str(), group.backends.allow_shared_device),
        ("host", false)
    );
    assert_eq!((group.tag.as_str(), group.backends.call_deadline), ("tp", Duration::from_secs(60)));
}

#[test]
fn every_setting_is_read() {
    let settings = load(&[
        ("CROSSOVER_POLICY", "/etc/a.toml:b.toml:"),
        ("CROSSOVER_USE", "host/two_shot"),
        ("CROSSOVER_SITE", "/"),
        ("CROSSOVER_DISABLE", "ipc"),
        ("CROSSOVER_ENABLE", "rule:a"),
        ("CROSSOVER_EXPLAIN", "all_gather, broadcast"),
        ("CROSSOVER_ON_DIVERGENCE", "adopt_rank0"),
        ("CROSSOVER_ACCEPT", "signed_zero_flush, lossy_int8"),
        ("CROSSOVER_DETERMINISM", "size_invariant"),
        ("CROSSOVER_STRICT", "1"),
        ("CROSSOVER_DEVICE", "cuda:3"),
        ("CROSSOVER_ALLOW_SHARED_DEVICE", "1"),
        ("CROSSOVER_NODE_ID", "007"),
        ("CROSSOVER_FORM_TIMEOUT", "2m"),
        ("CROSSOVER_CALL_TIMEOUT", "500ms"),
        ("CROSSOVER_SHM_DIR", "/dev/shm/x"),
        ("CROSSOVER_HOST__CHUNK", "64KiB"),
        ("CROSSOVER_NVLS__SHM_DIR", "/tmp"),
    ])
    .unwrap();
    assert_eq!(settings.policy, ["/etc/a.toml", "b.toml"].map(std::path::PathBuf::from));
    assert_eq!(settings.forced.as_ref().unwrap().value, "host/two_shot");
    assert_eq!(settings.forced.as_ref().unwrap().layer, Layer::Env);
    assert_eq!(settings.disabled.as_ref().unwrap().origin.to_string(), "CROSSOVER_DISABLE");
    assert_eq!(settings.enabled.as_ref().unwrap().origin.to_string(), "CROSSOVER_ENABLE");
    assert_eq!(settings.site, std::path::PathBuf::from("/"));
    let told = Ops::of(&[Op::AllGather, Op::Broadcast]);
    assert_eq!((settings.explain, settings.on_divergence), (told, OnDivergence::AdoptRank0));
    let third = DeviceChoice::On { driver: "cuda".to_owned(), ordinal: Some(3) };
    assert_eq!((settings.device.clone(), settings.allow_shared_device), (third, true));
    assert!(settings.group("tp").backends.allow_shared_device);
    let accept = Deviations::of(&[Deviation::SignedZeroFlush, Deviation::LossyInt8]);
    assert_eq!(settings.contract, Contract { determinism: Determinism::SizeInvariant, accept });
    assert!(settings.strict);
    assert_eq!(settings.node_id.as_deref(), Some("007"), "a text stays a text");
    assert_eq!(settings.form_timeout, Some(Duration::from_secs(120)));
    let group = settings.group("ep");
    assert_eq!(group.contract, settings.contract);
    assert_eq!((group.explain, group.on_divergence), (told, OnDivergence::AdoptRank0));
    assert_eq!(group.backends.call_deadline, Duration::from_millis(500));
    assert_eq!(group.backends.get("host.chunk"), Some("64KiB"));
    assert_eq!(group.backends.get("host.shm_dir"), Some("/dev/shm/x"));
    assert_eq!(group.backends.get("nvls.shm_dir"), Some("/tmp"), "its own goes before");
}

#[test]
fn a_switch_is_read_and_not_tested_for_presence() {
    for (text, on) in [
        ("1", true),
        ("true", true),
        ("ON", true),
        ("yes", true),
        ("0", false),
        ("False", false),
        ("off", false),
        ("no", false),
        ("", false),
    ] {
        assert_eq!(load(&[("CROSSOVER_STRICT", text)]).unwrap().strict, on, "`{text}`");
    }
    assert_eq!(
        load(&[("CROSSOVER_STRICT", "maybe")]).unwrap_err(),
        "CROSSOVER_STRICT: `maybe` is no value of the setting `strict`: \
         write 1, true, on or yes, or 0, false, off or no"
    );
}

#[test]
fn wrong_values_are_told_by_variable_and_key() {
    let cases = [
        ("CROSSOVER_CALL_TIMEOUT", "10", "it has no unit; write `10s` or `10ms`"),
        ("CROSSOVER_CALL_TIMEOUT", "10 s", "write a duration such as `500ms`, `10s` or `2m`"),
        ("CROSSOVER_CALL_TIMEOUT", "s", "write a duration such as"),
        ("CROSSOVER_FORM_TIMEOUT", "-1s", "write a duration such as"),
        ("CROSSOVER_FORM_TIMEOUT", "0ms", "nothing can be done in no time"),
        ("CROSSOVER_FORM_TIMEOUT", "99999999999999999999s", "write a duration such as"),
        ("CROSSOVER_DETERMINISM", "batch_invariant", "known: any, rank_consistent"),
        ("CROSSOVER_ACCEPT", "lossy_int8,lossy_int5", "did you mean `lossy_int8`?"),
        ("CROSSOVER_EXPLAIN", "all_gather,all_reduces", "did you mean `all_reduce`?"),
        ("CROSSOVER_EXPLAIN", "everything", "broadcast, all_to_all, all"),
        ("CROSSOVER_EXPLAIN", "1", "known: all_reduce, all_gather, reduce_scatter"),
        ("CROSSOVER_ON_DIVERGENCE", "adopt", "did you mean `adopt_rank0`? known: error, adopt_ra"),
        ("CROSSOVER_DEVICE", "Cuda", "did you mean `cuda`? known: auto, host, cuda, hip, emulated"),
        ("CROSSOVER_DEVICE", "cuda:", "after the colon stands a device's number, as in `cuda:0`"),
        ("CROSSOVER_DEVICE", "cuda:+1", "after the colon stands a device's number"),
        ("CROSSOVER_DEVICE", "cuda:GPU-1", "after the colon stands a device's number"),
        ("CROSSOVER_DEVICE", "host:0", "`host` has no number"),
        ("CROSSOVER_ALLOW_SHARED_DEVICE", "2", "write 1, true, on or yes"),
        ("CROSSOVER_ON_DIVERGENCE", "warn", "known: error, adopt_rank0"),
        ("CROSSOVER_SITE", "/no/such/folder", "there is no such folder"),
        ("CROSSOVER_SITE", "/dev/null", "there is no such folder"),
    ];
    for (name, value, want) in cases {
        let told = load(&[(name, value)]).unwrap_err();
        let key = name.trim_start_matches("CROSSOVER_").to_lowercase();
        let start = format!("{name}: `{value}` is no value of the setting `{key}`: ");
        assert!(told.starts_with(&start) && told.contains(want), "{told}");
    }
}

#[test]
fn all_ops_are_explained_at_one_word() {
    for text in ["all", "broadcast,all", " all ,"] {
        assert_eq!(load(&[("CROSSOVER_EXPLAIN", text)]).unwrap().explain, Ops::ALL, "`{text}`");
    }
    for text in ["", ",", " , "] {
        assert_eq!(load(&[("CROSSOVER_EXPLAIN", text)]).unwrap().explain, Ops::NONE, "`{text}`");
    }
}

#[test]
fn each_verb_of_the_strongest_source_counts() {
    let files = Files::of(&["site = '/'
enable = ['rule:a', 'rule:b']
disable = 'rule:c'
explain = ['all_reduce', 'all_gather']
on_divergence = 'adopt_rank0'
"]);
    let file = files.paths()[0].display().to_string();
    let config = ("CROSSOVER_CONFIG", file.as_str());
    let alone = load(&[config]).unwrap();
    let enabled = alone.enabled.unwrap();
    assert_eq!((enabled.value.as_str(), enabled.layer), ("rule:a,rule:b", Layer::Env));
    assert_eq!(enabled.origin.to_string(), format!("{file}:2"));
    assert_eq!(alone.disabled.unwrap().origin.to_string(), format!("{file}:3"));
    assert_eq!(alone.explain, Ops::of(&[Op::AllReduce, Op::AllGather]));
    assert_eq!(alone.on_divergence, OnDivergence::AdoptRank0);
    assert_eq!(alone.site, std::path::PathBuf::from("/"));

    let unset = [
        "CROSSOVER_SITE",
        "CROSSOVER_ENABLE",
        "CROSSOVER_DISABLE",
        "CROSSOVER_EXPLAIN",
        "CROSSOVER_ON_DIVERGENCE",
    ];
    let emptied: Vec<_> = unset.map(|name| (name, "")).into_iter().chain([config]).collect();
    assert_eq!(load(&emptied).unwrap(), load(&[config]).unwrap(), "an empty text sets nothing");

    let stronger = [
        config,
        ("CROSSOVER_ENABLE", "rule:d"),
        ("CROSSOVER_EXPLAIN", "broadcast"),
        ("CROSSOVER_ON_DIVERGENCE", "error"),
    ];
    let variables = load(&stronger).unwrap();
    assert_eq!(variables.enabled.as_ref().unwrap().value, "rule:d", "replaced, not added to");
    assert_eq!(variables.enabled.unwrap().origin.to_string(), "CROSSOVER_ENABLE");
    assert_eq!(variables.explain, Ops::of(&[Op::Broadcast]));
    assert_eq!(variables.on_divergence, OnDivergence::Error);

    let folder = std::env::temp_dir().display().to_string();
    let options = [("enable", "rule:e"), ("explain", "all"), ("site", folder.as_str())];
    let program = load_with(&stronger, &options).unwrap();
    let enabled = program.enabled.unwrap();
    assert_eq!((enabled.value.as_str(), enabled.layer), ("rule:e", Layer::Program));
    assert_eq!(enabled.origin.to_string(), "--enable");
    assert_eq!(program.explain, Ops::ALL);
    assert_eq!(program.site, std::env::temp_dir());
    let told = load_with(&stronger, &[("on_divergence", "adopt_rank1")]).unwrap_err();
    let start = "--on_divergence: `adopt_rank1` is no value of the setting `on_divergence`: ";
    assert!(told.starts_with(start), "{told}");
}

#[test]
fn an_unknown_variable_is_an_error_with_a_suggestion() {
    let told = load(&[("CROSSOVER_POLCY", "x")]).unwrap_err();
    assert!(told.starts_with("CROSSOVER_POLCY: there is no setting `polcy`"), "{told}");
    assert!(told.contains("did you mean `CROSSOVER_POLICY`?"), "{told}");
    for name in [
        "CROSSOVER_",
        "CROSSOVER_policy",
        "CROSSOVER_NCCL__X",
        "CROSSOVER_HOST__",
        "CROSSOVER_HOST__CHUNKS",
    ] {
        let told = load(&[(name, "x")]).unwrap_err();
        assert!(told.starts_with(&format!("{name}: there is no setting")), "{told}");
    }
    // Of backends' settings as well, as a variable is written.
    for (wrong, meant) in [
        ("HOST__CHUNKS", "HOST__CHUNK"),
        ("HOST__CHNK", "HOST__CHUNK"),
        ("HOST_CHUNK", "HOST__CHUNK"),
        ("HSOT__CHUNK", "HOST__CHUNK"),
        ("host__chunk", "HOST__CHUNK"),
        ("NVLS__SHMDIR", "NVLS__SHM_DIR"),
        ("POLICY__", "POLICY"),
    ] {
        let told = load(&[(&format!("CROSSOVER_{wrong}"), "1")]).unwrap_err();
        let meant = format!("; did you mean `CROSSOVER_{meant}`? known: CROSSOVER_");
        assert!(told.contains(&meant), "{told}");
    }
    // What is common to all says nothing.
    let told = load(&[("CROSSOVER_NCCL__X", "1")]).unwrap_err();
    assert!(told.contains("`nccl.x`; known: CROSSOVER_"), "{told}");
    // Others' variables are not ours to judge, whatever is in them.
    let foreign = (OsString::from_vec(vec![0xff]), OsString::from_vec(vec![0xff]));
    Settings::load([foreign], &[], &registry()).unwrap();
    let ours = ("CROSSOVER_USE".into(), OsString::from_vec(vec![0xff]));
    let told = Settings::load([ours], &[], &registry()).unwrap_err().to_string();
    assert_eq!(told, "the variable CROSSOVER_USE does not hold UTF-8 text");
}

#[test]
fn the_program_goes_before_variables_and_they_before_the_file() {
    let files = Files::of(&["use = 'ipc'
strict = true
call_timeout = '5s'
policy = ['/a.toml', '/b.toml']
accept = ['signed_zero_flush']
[host]
chunk = 4096
depth = 2
"]);
    let file = files.paths()[0].display().to_string();
    let config = ("CROSSOVER_CONFIG", file.as_str());
    let alone = load(&[config]).unwrap();
    assert_eq!(alone.forced.unwrap().origin.to_string(), format!("{file}:1"));
    assert_eq!((alone.strict, alone.policy.len()), (true, 2));
    assert_eq!(alone.contract.accept.to_string(), "signed_zero_flush");

    let emptied = load(&[config, ("CROSSOVER_USE", ""), ("CROSSOVER_CALL_TIMEOUT", "")]).unwrap();
    assert_eq!(emptied.forced.unwrap().value, "ipc", "an empty variable sets nothing");
    assert_eq!(emptied.call_timeout, Some(Duration::from_secs(5)));

    let variables = [config, ("CROSSOVER_USE", "host"), ("CROSSOVER_HOST__CHUNK", "8192")];
    let with_variables = load(&variables).unwrap();
    assert_eq!(with_variables.forced.unwrap().origin.to_string(), "CROSSOVER_USE");
    assert_eq!(with_variables.backends["host.chunk"], "8192");
    assert_eq!(with_variables.backends["host.depth"], "2");
    assert_eq!(with_variables.call_timeout, Some(Duration::from_secs(5)));

    let options = [("use", "host/two_shot"), ("strict", "no"), ("host.chunk", "1")];
    let program = load_with(&variables, &options).unwrap();
    let forced = program.forced.unwrap();
    assert_eq!((forced.origin.to_string(), forced.layer), ("--use".to_owned(), Layer::Program));
    assert_eq!((program.strict, program.backends["host.chunk"].as_str()), (false, "1"));
    let told = load_with(&[], &[("polices", "x")]).unwrap_err();
    assert!(told.starts_with("--polices: there is no setting `polices`; did you mean `policy`?"));
}

#[test]
fn mistakes_in_the_settings_file_are_told_by_line() {
    let cases = [
        ("strict = true\npolcy = 'a'\n", ":2: there is no setting `polcy`; did you mean `policy`?"),
        (
            "\n[hots]\nchunk = 1\n",
            ":3: there is no setting `hots.chunk`; did you mean `host.chunk`? known: ",
        ),
        (
            "call_timeout = 10\n",
            ":1: `10` is no value of the setting `call_timeout`: it has no unit",
        ),
        ("use = 2026-01-31\n", ":1: `datetime` is no value of the setting `use`: write a string"),
        ("strict = \n", ":1: the settings file is not TOML: "),
        ("config = 'other.toml'\n", ":1: there is no setting `config`"),
    ];
    for (text, want) in cases {
        let files = Files::of(&[text]);
        let file = files.paths()[0].display().to_string();
        let told = load(&[("CROSSOVER_CONFIG", &file)]).unwrap_err();
        assert!(told.starts_with(&format!("{file}{want}")), "{told}");
    }
    let told = load(&[("CROSSOVER_CONFIG", "/no/such.toml")]).unwrap_err();
    assert!(told.starts_with("the settings file /no/such.toml, named by CROSSOVER_CONFIG"));
}

#[test]
fn a_device_is_a_driver_and_perhaps_a_number() {
    let device = |text| load(&[("CROSSOVER_DEVICE", text)]).unwrap().device;
    let on = |driver: &str, ordinal| DeviceChoice::On { driver: driver.to_owned(), ordinal };
    assert_eq!(device("auto"), DeviceChoice::Auto);
    assert_eq!(device("host"), DeviceChoice::Host);
    assert_eq!(device("cuda"), on("cuda", None));
    assert_eq!(device("hip:12"), on("hip", Some(12)));
    assert_eq!(device("emulated:0"), on("emulated", Some(0)));
}
