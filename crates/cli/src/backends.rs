//! `crossover backends`: what this program links or knows, and what each algorithm states.

use std::io::Write;

use crossover_core::backend::{Algorithm, Descriptor, Param, Values};
use crossover_core::bytes::size_text;
use crossover_core::call::Op;
use crossover_core::eligibility::{Eligibility, Nodes};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::out::Out;

/// List the backends, linked or only declared, their algorithms, and what each algorithm takes
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let registry = crossover_backends::registry()?;
    let backends = registry.descriptors();
    let linked = |backend: &Descriptor| registry.is_linked(backend.id);
    let mut out = Out::new();
    if args.json {
        let record = |backend: &&'static Descriptor| record(backend, linked(backend));
        return out.json(&backends.iter().map(record).collect::<Vec<Value>>());
    }
    for backend in backends {
        let declared = if linked(backend) { "" } else { " (declared, not linked)" };
        writeln!(out, "{} {}{declared}", backend.id, backend.version)?;
        for algorithm in backend.algorithms {
            writeln!(out, "  {}", backend.target(algorithm))?;
            for (clause, value) in clauses(&algorithm.eligibility) {
                writeln!(out, "    {clause:12} {value}")?;
            }
            for param in algorithm.params {
                let (values, default) = (values_in_words(param), param.in_words(param.default));
                writeln!(out, "    param {}: {values}, {default} if not set", param.name)?;
            }
        }
    }
    Ok(out.flush()?)
}

/// The clauses by the names that refusals call them, in the order in which they are judged.
fn clauses(e: &Eligibility) -> Vec<(&'static str, String)> {
    let mut clauses = vec![
        ("op", e.ops.to_string()),
        ("topology", e.topologies.to_string()),
        ("nodes", nodes(e.nodes).to_owned()),
        ("world", e.worlds.to_string()),
        ("caps", e.needs.to_string()),
        ("mode", e.modes.to_string()),
        ("dtype", e.dtypes.to_string()),
        ("reduce_dtype", e.dtypes.intersection(e.reduce_dtypes).to_string()),
        ("reduce_op", e.reduce_ops.to_string()),
        ("order", e.order.to_string()),
        ("determinism", format!("up to {}", e.determinism)),
        ("deviates", e.deviates.to_string()),
        ("multiple_of", format!("{} B", e.multiple_of)),
        ("max_bytes", room(e.max_bytes)),
    ];
    // What copies says nothing of how it reduces; and most reduce whatever they take.
    let reduces = e.ops.iter().any(Op::reduces);
    let about_reducing = ["reduce_dtype", "reduce_op", "order", "determinism"];
    let takes_less = !e.reduce_dtypes.covers(e.dtypes);
    clauses.retain(|(name, _)| match *name {
        "reduce_dtype" => reduces && takes_less,
        "determinism" if !e.deviates.is_empty() => true,
        name => reduces || !about_reducing.contains(&name),
    });
    clauses
}

fn record(backend: &Descriptor, is_linked: bool) -> Value {
    let algorithms: Vec<Value> = backend.algorithms.iter().map(|a| algorithm(backend, a)).collect();
    json!({
        "id": backend.id,
        "version": backend.version,
        "linked": is_linked,
        "algorithms": algorithms,
    })
}

fn algorithm(backend: &Descriptor, algorithm: &Algorithm) -> Value {
    let e = &algorithm.eligibility;
    json!({
        "use": backend.target(algorithm),
        "op": e.ops.iter().collect::<Vec<_>>(),
        "topology": e.topologies.iter().collect::<Vec<_>>(),
        "nodes": nodes(e.nodes),
        "world": e.worlds.to_string(),
        "caps": e.needs.iter().collect::<Vec<_>>(),
        "mode": e.modes.iter().collect::<Vec<_>>(),
        "dtype": e.dtypes.iter().collect::<Vec<_>>(),
        "reduce_dtype": e.dtypes.intersection(e.reduce_dtypes).iter().collect::<Vec<_>>(),
        "reduce_op": e.reduce_ops.iter().collect::<Vec<_>>(),
        "order": e.order,
        "determinism": e.determinism,
        "deviates": e.deviates.iter().collect::<Vec<_>>(),
        "multiple_of": e.multiple_of,
        "max_bytes": (e.max_bytes != u64::MAX).then_some(e.max_bytes),
        "params": algorithm.params.iter().map(param).collect::<Vec<_>>(),
    })
}

fn room(bytes: u64) -> String {
    if bytes == u64::MAX { "any".to_owned() } else { size_text(bytes) }
}

fn param(param: &Param) -> Value {
    let values = values_in_words(param);
    json!({ "name": param.name, "values": values, "default": param.in_words(param.default) })
}

fn values_in_words(param: &Param) -> String {
    match param.values {
        Values::Count { min, max } => format!("{min}..={max}"),
        Values::Bytes { min, max: u64::MAX } => format!("{}.. | none", size_text(min)),
        Values::Bytes { min, max } => format!("{}..={}", size_text(min), size_text(max)),
        Values::Words(words) => words.join(" | "),
        Values::Flag => "true | false".to_owned(),
    }
}

fn nodes(nodes: Nodes) -> &'static str {
    match nodes {
        Nodes::Any => "any",
        Nodes::One => "one",
    }
}
