//! Policy files as a JSON Schema: what an editor completes and underlines. It knows words and
//! shapes; what a policy means is the lint's to judge.

use crossover_core::backend::{Descriptor, Param, Values};
use crossover_core::call::{Dtype, Mode, Op, ReduceOp};
use crossover_core::contract::{Determinism, Deviation};
use crossover_core::facts::{Cap, Topology};
use crossover_core::policy::EvidenceKind;
use crossover_core::registry::Registry;
use serde_json::{Map, Value, json};

/// The schema of policy files, in which backends are those of `registry`, linked or declared.
pub fn schema(registry: &Registry) -> Value {
    let backends = registry.descriptors();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A Crossover policy",
        "description": "Which backends serve which collective calls, in what order, for which sizes",
        "type": "object",
        "required": ["schema"],
        "additionalProperties": false,
        "properties": {
            "schema": { "const": 1, "description": "The version of this format" },
            "include": {
                "description": "Files laid beneath this one: relative to it, or `shipped:..`",
                "type": "array", "items": { "type": "string" },
            },
            "contract": contract(),
            "rule": named("Rules, by name", rule()),
            "table": named("Rules of one shape, a row each", table()),
            "preset": named("Chains to be named in chains", preset()),
            "expect": {
                "description": "The policy's own tests: `crossover policy lint` runs them",
                "type": "array", "items": expect(&backends),
            },
        },
        "$defs": {
            "size": { "type": "string", "pattern": format!("^{SIZE}$") },
            "bytes": {
                "description": "Sizes: `any`, `64KiB`, `..64KiB`, `..=64KiB`, `64KiB..1MiB`, `1MiB..`",
                "type": "string",
                "pattern": format!("^(any|{SIZE}|{SIZE}\\.\\.|({SIZE})?\\.\\.=?{SIZE})$"),
            },
            "bytes_of": {
                "description": "Whose bytes ranges count, per rank",
                "enum": ["input", "output"], "default": "input",
            },
            "match": matching(),
            "params": params(&backends),
            "candidate": candidate(&backends),
            "chain": {
                "type": "array", "minItems": 1,
                "items": { "anyOf": [
                    { "$ref": "#/$defs/candidate" },
                    closed(&["preset"], json!({ "preset": { "type": "string" } })),
                ] },
            },
            "evidence": evidence(),
        },
    })
}

const SIZE: &str = "[0-9]+(B|KiB|MiB|GiB)";

fn named(description: &str, of: Value) -> Value {
    json!({
        "description": description,
        "type": "object",
        "additionalProperties": of,
    })
}

/// An object that has these keys and no other.
fn closed(required: &[&str], properties: Value) -> Value {
    json!({
        "type": "object",
        "required": required,
        "additionalProperties": false,
        "properties": properties,
    })
}

/// A value, or a list of at least one.
fn or_list(of: Value) -> Value {
    json!({ "anyOf": [of, { "type": "array", "minItems": 1, "items": of }] })
}

fn words(names: &[&str]) -> Value {
    json!({ "enum": names })
}

fn contract() -> Value {
    let mut contract = closed(
        &[],
        json!({
            "determinism": words(Determinism::NAMES),
            "accept": { "anyOf": [
                words(Deviation::NAMES),
                { "type": "array", "items": words(Deviation::NAMES) },
            ] },
        }),
    );
    contract["description"] = "Intersected with what the engine demands and accepts".into();
    contract
}

/// What rules and tables have in common.
fn common() -> Value {
    json!({
        "match": { "$ref": "#/$defs/match" },
        "priority": {
            "description": "Higher goes first, within a layer", "type": "integer", "default": 0,
        },
        "last": {
            "description": "Nothing after it is tried", "type": "boolean", "default": false,
        },
        "enabled": { "type": "boolean", "default": true },
        "bytes_of": { "$ref": "#/$defs/bytes_of" },
        "evidence": { "$ref": "#/$defs/evidence" },
    })
}

fn with(mut object: Value, more: Value) -> Value {
    if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
        object.extend(more);
    }
    object
}

fn rule() -> Value {
    closed(&[], with(common(), json!({ "chain": { "$ref": "#/$defs/chain" } })))
}

fn preset() -> Value {
    closed(
        &["chain"],
        json!({ "chain": {
        "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/candidate" },
    } }),
    )
}

fn table() -> Value {
    let cell = json!({ "anyOf": [
        { "const": "-", "description": "Never" },
        { "$ref": "#/$defs/bytes" },
        closed(&["bytes"], json!({
            "bytes": { "$ref": "#/$defs/bytes" },
            "params": { "$ref": "#/$defs/params" },
        })),
    ] });
    let row = json!({ "type": "array", "minItems": 1, "items": cell });
    closed(
        &[],
        with(
            common(),
            json!({
                "key": {
                    "description": "Match keys; a row's name has a value for each, with `-` between",
                    "type": "array", "minItems": 1, "items": { "type": "string" },
                },
                "columns": {
                    "description": "Backends and algorithms, in the order in which they are tried",
                    "type": "array", "minItems": 1, "items": { "type": "string" },
                },
                "rows": named("A range of sizes for each column; `-` is never", row),
                "params": named("Params of a column", json!({ "$ref": "#/$defs/params" })),
            }),
        ),
    )
}

fn matching() -> Value {
    let count = json!({ "anyOf": [
        { "type": "integer", "minimum": 1 },
        { "type": "string", "pattern": r"^([0-9]+|[0-9]*\.\.=?[0-9]+|[0-9]+\.\.)$" },
    ] });
    let arch = json!({
        "type": "string",
        "pattern": "^(host|sm[0-9]+x?|gfx[0-9a-f]+x?)$",
        "examples": ["sm90", "sm10x", "gfx942", "gfx94x", "host"],
    });
    let mut when = closed(
        &[],
        json!({
            "arch": or_list(arch),
            "device": or_list(json!({ "type": "string" })),
            "world": or_list(count.clone()),
            "nodes": or_list(count),
            "topology": or_list(words(Topology::NAMES)),
            "group": or_list(json!({ "type": "string" })),
            "op": or_list(words(Op::NAMES)),
            "dtype": or_list(words(Dtype::NAMES)),
            "reduce_op": or_list(words(ReduceOp::NAMES)),
            "mode": or_list(words(Mode::NAMES)),
            "fusion": or_list(words(&["none"])),
            "caps": or_list(words(Cap::NAMES)),
        }),
    );
    when["description"] = "For which groups and calls; what is absent constrains nothing".into();
    when
}

fn candidate(backends: &[&Descriptor]) -> Value {
    let mut candidate = closed(
        &["use"],
        json!({
            "use": { "type": "string", "examples": targets(backends) },
            "bytes": { "$ref": "#/$defs/bytes" },
            "bytes_of": { "$ref": "#/$defs/bytes_of" },
            "optional": {
                "description": "The program need not know the backend",
                "type": "boolean", "default": false,
            },
            "params": { "$ref": "#/$defs/params" },
        }),
    );
    let is_optional = json!({
        "required": ["optional"], "properties": { "optional": { "const": true } },
    });
    candidate["if"] = is_optional;
    candidate["then"] = json!({});
    candidate["else"] = json!({ "properties": { "use": { "enum": targets(backends) } } });
    candidate
}

/// Everything that `use` can name.
fn targets(backends: &[&Descriptor]) -> Vec<String> {
    let of = |d: &&Descriptor| {
        let algorithms = d.algorithms.iter().map(|a| d.target(a)).filter(|t| t != d.id);
        std::iter::once(d.id.to_owned()).chain(algorithms).collect::<Vec<_>>()
    };
    backends.iter().flat_map(of).collect()
}

/// Every param of any algorithm. Params of one name can differ between algorithms.
fn params(backends: &[&Descriptor]) -> Value {
    let mut known: Map<String, Value> = Map::new();
    for param in backends.iter().flat_map(|d| d.algorithms).flat_map(|a| a.params) {
        let shape = known.entry(param.name).or_insert_with(|| json!({ "anyOf": [] }));
        let one = values(param);
        if let Some(any) = shape["anyOf"].as_array_mut()
            && !any.contains(&one)
        {
            any.push(one);
        }
    }
    json!({
        "description": "What the algorithm is told; each has its own",
        "type": "object",
        "properties": known,
    })
}

fn values(param: &Param) -> Value {
    match param.values {
        Values::Count { min, max } => json!({ "anyOf": [
            { "type": "integer", "minimum": min, "maximum": max },
            { "type": "string", "pattern": "^[0-9]+/world$" },
        ] }),
        Values::Bytes { .. } => json!({ "anyOf": [
            { "$ref": "#/$defs/size" },
            { "type": "string", "pattern": "^((l2|llc)(/[1-9][0-9]*)?(/world)?|none)$" },
        ] }),
        Values::Words(all) => words(all),
        Values::Flag => json!({ "type": "boolean" }),
    }
}

fn evidence() -> Value {
    let text = json!({ "type": ["string", "number"] });
    let mut properties = Map::new();
    properties.insert("kind".to_owned(), words(EvidenceKind::NAMES));
    for key in crate::file::EVIDENCE_KEYS.iter().filter(|key| **key != "kind") {
        properties.insert((*key).to_owned(), text.clone());
    }
    // A date is a TOML type of its own, which editors hand over as a string.
    closed(&[], Value::Object(properties))
}

fn expect(backends: &[&Descriptor]) -> Value {
    let mut known = targets(backends);
    known.push("none".to_owned());
    closed(
        &["op", "bytes", "use"],
        json!({
            "op": words(Op::NAMES),
            "arch": { "type": "string" },
            "device": { "type": "string" },
            "world": { "type": "integer", "minimum": 1 },
            "nodes": { "type": "integer", "minimum": 1 },
            "topology": words(Topology::NAMES),
            "group": { "type": "string" },
            "caps": { "anyOf": [
                words(Cap::NAMES), { "type": "array", "items": words(Cap::NAMES) },
            ] },
            "dtype": words(Dtype::NAMES),
            "reduce_op": words(ReduceOp::NAMES),
            "mode": words(Mode::NAMES),
            "determinism": words(Determinism::NAMES),
            "accept": { "anyOf": [
                words(Deviation::NAMES), { "type": "array", "items": words(Deviation::NAMES) },
            ] },
            "bytes": { "$ref": "#/$defs/size" },
            "use": { "enum": known },
        }),
    )
}
