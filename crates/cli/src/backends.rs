//! `crossover backends`: what is linked into this program, and what each algorithm states.

use std::io::Write;

use crossover_core::backend::{Algorithm, Descriptor};
use crossover_core::eligibility::{Eligibility, Nodes};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::out::Out;

/// List the linked backends, their algorithms, and what each algorithm takes
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let registry = crossover_backends::registry()?;
    let backends: Vec<&Descriptor> = registry.entries().iter().map(|e| e.descriptor).collect();
    let mut out = Out::new();
    if args.json {
        return out.json(&backends.into_iter().map(record).collect::<Vec<Value>>());
    }
    if backends.is_empty() {
        writeln!(out, "no backend is linked into this program")?;
    }
    for backend in backends {
        writeln!(out, "{} {}", backend.id, backend.version)?;
        for algorithm in backend.algorithms {
            writeln!(out, "  {}/{}", backend.id, algorithm.name)?;
            for (clause, value) in clauses(&algorithm.eligibility) {
                writeln!(out, "    {clause:12} {value}")?;
            }
        }
    }
    Ok(out.flush()?)
}

/// The clauses by the names that refusals call them, in the order in which they are judged.
fn clauses(e: &Eligibility) -> Vec<(&'static str, String)> {
    vec![
        ("op", e.ops.to_string()),
        ("topology", e.topologies.to_string()),
        ("nodes", nodes(e.nodes).to_owned()),
        ("world", e.worlds.to_string()),
        ("caps", e.needs.to_string()),
        ("mode", e.modes.to_string()),
        ("dtype", e.dtypes.to_string()),
        ("reduce_op", e.reduce_ops.to_string()),
        ("order", e.order.to_string()),
        ("determinism", format!("up to {}", e.determinism)),
        ("deviates", e.deviates.to_string()),
        ("multiple_of", format!("{} B", e.multiple_of)),
    ]
}

fn record(backend: &Descriptor) -> Value {
    let algorithms: Vec<Value> = backend.algorithms.iter().map(|a| algorithm(backend, a)).collect();
    json!({ "id": backend.id, "version": backend.version, "algorithms": algorithms })
}

fn algorithm(backend: &Descriptor, algorithm: &Algorithm) -> Value {
    let e = &algorithm.eligibility;
    json!({
        "use": format!("{}/{}", backend.id, algorithm.name),
        "op": e.ops.iter().collect::<Vec<_>>(),
        "topology": e.topologies.iter().collect::<Vec<_>>(),
        "nodes": nodes(e.nodes),
        "world": e.worlds.to_string(),
        "caps": e.needs.iter().collect::<Vec<_>>(),
        "mode": e.modes.iter().collect::<Vec<_>>(),
        "dtype": e.dtypes.iter().collect::<Vec<_>>(),
        "reduce_op": e.reduce_ops.iter().collect::<Vec<_>>(),
        "order": e.order,
        "determinism": e.determinism,
        "deviates": e.deviates.iter().collect::<Vec<_>>(),
        "multiple_of": e.multiple_of,
    })
}

fn nodes(nodes: Nodes) -> &'static str {
    match nodes {
        Nodes::Any => "any",
        Nodes::One => "one",
    }
}
