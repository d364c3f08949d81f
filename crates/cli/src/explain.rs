//! `crossover explain`: who would run a call, and why. Offline: the group is stated by options and
//! every backend that this program knows, linked or not, is taken as set up with room for all that it
//! states.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;

use clap::builder::TypedValueParser as _;
use crossover_core::call::{CallKind, Dtype, Mode, Op, ReduceOp};
use crossover_core::contract::{Determinism, Deviation};
use crossover_core::explain::{Explanation, Swept};
use crossover_core::facts::{Cap, GroupProfile, HOST_ARCH, Topology};
use crossover_core::plan::{Offer, OfferState, Plan};
use crossover_core::policy::{ByteRange, Match};
use crossover_core::registry::Registry;
use crossover_policy::bytes::{parse_size, range_text};
use crossover_policy::explain::{Record, text};
use crossover_policy::{Effective, Override, Settings, Sources, StatedGroup};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::group::joined;
use crate::out::Out;
use crate::words::{architecture, one_of};

/// Say who would run a call, and why the others would not
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The collective
    #[arg(long, value_parser = one_of::<Op>(Op::NAMES))]
    op: Op,
    /// Input bytes per rank, such as 64KiB, in whole elements; several with commas between
    #[arg(long, value_delimiter = ',', required_unless_present = "sweep",
          value_parser = clap::builder::StringValueParser::new().try_map(|text| parse_size(&text)))]
    bytes: Vec<u64>,
    /// Element type
    #[arg(long, default_value = "bf16", value_parser = one_of::<Dtype>(Dtype::NAMES))]
    dtype: Dtype,
    /// How contributions are combined
    #[arg(long, default_value = "sum", value_parser = one_of::<ReduceOp>(ReduceOp::NAMES))]
    reduce_op: ReduceOp,
    /// Whether the call runs now or is recorded into a device graph
    #[arg(long, default_value = "eager", value_parser = one_of::<Mode>(Mode::NAMES))]
    mode: Mode,
    /// Number of ranks
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    world: u32,
    /// Number of nodes [default: 1, and 2 for the topology multi_node]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    nodes: Option<u32>,
    /// Architecture of the devices, such as sm90 or gfx942; `host` for none
    #[arg(long, default_value = HOST_ARCH, value_parser = architecture)]
    arch: String,
    /// How the ranks reach one another [default: host, nvlink_full for sm*, xgmi_full for gfx*]
    #[arg(long, value_parser = one_of::<Topology>(Topology::NAMES))]
    topology: Option<Topology>,
    /// What every rank can do, with commas between [default: p2p for full and mnnvl topologies]
    #[arg(long, value_delimiter = ',', value_parser = one_of::<Cap>(Cap::NAMES))]
    caps: Option<Vec<Cap>>,
    /// The group's name in policies
    #[arg(long, default_value = "world")]
    group: String,
    /// The devices' name, such as "NVIDIA H200"
    #[arg(long, default_value = "")]
    device: String,
    /// Deviations that the caller accepts, with commas between
    #[arg(long, value_delimiter = ',', value_parser = one_of::<Deviation>(Deviation::NAMES))]
    accept: Vec<Deviation>,
    /// The least reproducibility that the caller demands
    #[arg(long, value_parser = one_of::<Determinism>(Determinism::NAMES))]
    determinism: Option<Determinism>,
    /// Force a backend or an algorithm
    #[arg(long = "use", value_name = "ID[/ALGO]")]
    forced: Option<String>,
    /// A policy file of the user layer; a later one is stronger
    #[arg(long, value_name = "FILE")]
    policy: Vec<PathBuf>,
    /// Room that a backend was set up with, in input bytes per rank [default: all that it can have]
    #[arg(long, value_name = "ID=SIZE", value_parser = capacity)]
    capacity: Vec<(String, u64)>,
    /// Take the builtin floor and the given files alone: no pack, and nothing from the environment
    #[arg(long)]
    isolated: bool,
    /// List who serves which sizes instead
    #[arg(long, conflicts_with = "bytes")]
    sweep: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let registry = crossover_backends::registry()?;
    args.refuse_parts_of_elements()?;
    let (settings, policy) = args.policy(&registry)?;
    let plan = args.plan(&registry, &settings, &policy);
    let call = CallKind {
        op: args.op,
        dtype: args.dtype,
        reduce_op: args.reduce_op,
        mode: args.mode,
        contract: plan.contract(),
    };
    if args.sweep { sweep(args, &plan, &call) } else { explain(args, &plan, &policy, &call) }
}

fn explain(args: &Args, plan: &Plan, policy: &Effective, call: &CallKind) -> Result<(), Failure> {
    let told: Vec<Explanation> = args.bytes.iter().map(|b| plan.explain_kind(call, *b)).collect();
    let mut out = Out::new();
    if args.json {
        out.json(&told.iter().map(Record::from).collect::<Vec<_>>())?;
    } else {
        for (at, explanation) in told.iter().enumerate() {
            let gap = if at > 0 { "\n" } else { "" };
            write!(out, "{gap}{}", text(plan.group(), explanation))?;
        }
        let off = switched_off(policy);
        if !off.is_empty() {
            writeln!(out, "  switched off: {}", off.join(", "))?;
        }
        if args.device.is_empty() && is_asked_for_device(plan, call) {
            writeln!(out, "  no device name is stated: --device gives one")?;
        }
        if let Some(absent) = args.taken_as_linked(&told)? {
            writeln!(out, "  this program does not link {absent}: taken as set up")?;
        }
        out.flush()?;
    }
    if told.iter().any(|e| e.chosen.is_none()) { Err(Failure::silent(3)) } else { Ok(()) }
}

fn sweep(args: &Args, plan: &Plan, call: &CallKind) -> Result<(), Failure> {
    let bands = plan.sweep(call);
    // A band ends where the next one starts.
    let ends = bands.iter().skip(1).map(|band| Some(band.from)).chain([None]);
    let bands: Vec<_> = bands.iter().zip(ends).collect();
    let mut out = Out::new();
    if args.json {
        let record = |(band, end): &(&Swept, Option<u64>)| {
            let params: BTreeMap<_, _> = band.params.iter().cloned().collect();
            json!({
                "op": args.op,
                "dtype": args.dtype,
                "from": band.from,
                "to": end.map(|end| end - 1),
                "use": band.target,
                "params": params,
            })
        };
        out.json(&bands.iter().map(record).collect::<Vec<Value>>())?;
    } else {
        let ranges: Vec<String> = bands
            .iter()
            .map(|(band, high)| range_text(ByteRange { low: band.from, high: *high }))
            .collect();
        let width = ranges.iter().map(String::len).max().unwrap_or(0);
        for ((band, _), range) in bands.iter().zip(&ranges) {
            let params: Vec<_> = band.params.iter().map(|(k, v)| format!("{k} {v}")).collect();
            let gap = if params.is_empty() { "" } else { "  " };
            let target = band.target.as_deref().unwrap_or("nothing serves");
            writeln!(out, "{range:width$}  {target}{gap}{}", params.join(", "))?;
        }
        out.flush()?;
    }
    let served = bands.iter().all(|(band, _)| band.target.is_some());
    if served { Ok(()) } else { Err(Failure::silent(3)) }
}

/// Does the name of the devices alone keep a rule from this call?
fn is_asked_for_device(plan: &Plan, call: &CallKind) -> bool {
    let fails = |when: &Match| when.failing(plan.group(), call);
    plan.rules().iter().any(|rule| {
        let without = Match { device: None, ..rule.when.clone() };
        fails(&rule.when) == Some("device") && fails(&without).is_none()
    })
}

/// Reads `ipc=16MiB`.
pub(crate) fn capacity(text: &str) -> Result<(String, u64), String> {
    let (target, size) = text.split_once('=').ok_or("write `ipc=16MiB`")?;
    Ok((target.to_owned(), parse_size(size).map_err(|e| e.to_string())?))
}

/// Room can only be stated of a backend that there is.
pub(crate) fn known(capacities: &[(String, u64)], registry: &Registry) -> Result<(), Failure> {
    let ids: Vec<&str> = registry.descriptors().iter().map(|d| d.id).collect();
    match capacities.iter().find(|(id, _)| !ids.contains(&id.as_str())) {
        None => Ok(()),
        Some((id, _)) => Err(Failure::usage(format!(
            "--capacity: there is no backend `{id}`; known: {}",
            ids.join(", ")
        ))),
    }
}

/// Rules, tables and backends that files or variables take away; the rows of a table are one.
fn switched_off(policy: &Effective) -> Vec<String> {
    let rules = policy.disabled_rules().iter().map(|rule| match rule.id.split_once('@') {
        Some((table, _)) => format!("rows of table {table}"),
        None => format!("rule {}", rule.id),
    });
    let mut off: Vec<String> =
        rules.chain(policy.disabled.iter().map(ToString::to_string)).collect();
    off.dedup();
    off
}

impl Args {
    /// No call has such a size: what is said of it would be wrong, however it is rounded.
    fn refuse_parts_of_elements(&self) -> Result<(), Failure> {
        let element = self.dtype.size() as u64;
        match self.bytes.iter().find(|bytes| !bytes.is_multiple_of(element)) {
            None => Ok(()),
            Some(bytes) => Err(Failure::usage(format!(
                "--bytes: {bytes} B is no whole number of {} elements: write a multiple of \
                 {element} B",
                self.dtype
            ))),
        }
    }

    /// The backends that serve here, and could not in this program.
    fn taken_as_linked(&self, told: &[Explanation]) -> Result<Option<String>, Failure> {
        let registry = crossover_backends::registry()?;
        let chosen = told.iter().filter_map(|e| e.chosen.as_ref());
        let backends = chosen.filter_map(|c| c.target.split('/').next());
        let absent: BTreeSet<&str> =
            backends.filter(|id| registry.find(id).is_some() && !registry.is_linked(id)).collect();
        let absent: Vec<&str> = absent.into_iter().collect();
        Ok((!absent.is_empty()).then(|| absent.join(", ")))
    }

    fn policy(&self, registry: &Registry) -> Result<(Settings, Effective), Failure> {
        known(&self.capacity, registry)?;
        let variables = std::env::vars_os().filter(|_| !self.isolated);
        let settings = Settings::load(variables, &self.overrides(), registry)?;
        let sources = Sources::of(&settings, &self.arch);
        let sources = if self.isolated { sources.alone() } else { sources };
        let policy = sources.load(registry)?;
        Ok((settings, policy))
    }

    fn plan(&self, registry: &Registry, settings: &Settings, policy: &Effective) -> Plan {
        let contract = settings.contract.intersection(policy.policy.contract);
        let offers = registry.descriptors().into_iter().map(|descriptor| {
            let stated = self.capacity.iter().find(|(id, _)| id == descriptor.id);
            let capacity = stated.map_or(u64::MAX, |(_, bytes)| *bytes);
            Offer { descriptor, state: OfferState::Open { capacity } }
        });
        Plan::compile(self.group(), contract, &policy.policy, offers.collect())
    }

    fn overrides(&self) -> Vec<Override> {
        let accept: Vec<&str> = self.accept.iter().map(|deviation| deviation.name()).collect();
        let stated = [
            ("policy", "--policy", (!self.policy.is_empty()).then(|| joined(&self.policy))),
            ("use", "--use", self.forced.clone()),
            ("determinism", "--determinism", self.determinism.map(|d| d.to_string())),
            ("accept", "--accept", (!accept.is_empty()).then(|| accept.join(","))),
        ];
        stated
            .into_iter()
            .filter_map(|(key, option, value)| {
                Some(Override { key: key.to_owned(), value: value?, origin: option.to_owned() })
            })
            .collect()
    }

    fn group(&self) -> GroupProfile {
        let group = StatedGroup {
            arch: Some(self.arch.clone()),
            device: Some(self.device.clone()),
            world: Some(self.world),
            nodes: self.nodes,
            topology: self.topology,
            caps: self.caps.as_ref().map(|caps| caps.iter().copied().collect()),
            tag: Some(self.group.clone()),
        };
        group.profile()
    }
}
