//! One entry of a string: `allreduce:0-4k:host:[2-8]:inf:@sra_knomial`.

use std::ops::Range;

use crossover_core::call::Op;
use crossover_core::policy::ByteRange;

use super::transport::{Serves, Transport};
use super::{pieces, size, span};
use crate::import::findings::{Findings, short};
use crate::import::ranges::Counts;

/// What an entry says, of one layer.
pub(super) struct Entry {
    pub(super) span: Range<usize>,
    pub(super) transport: &'static Transport,
    pub(super) ops: Vec<Op>,
    pub(super) sizes: Vec<ByteRange>,
    pub(super) teams: Vec<Counts>,
    pub(super) score: u64,
    /// Of each op, in their order.
    pub(super) algorithms: Vec<Option<&'static str>>,
}

/// UCC's collectives, and ours.
const COLLECTIVES: [(&str, Option<Op>); 16] = [
    ("allgather", Some(Op::AllGather)),
    ("allgatherv", None),
    ("allreduce", Some(Op::AllReduce)),
    ("alltoall", Some(Op::AllToAll)),
    ("alltoallv", None),
    ("barrier", None),
    ("bcast", Some(Op::Broadcast)),
    ("fanin", None),
    ("fanout", None),
    ("gather", None),
    ("gatherv", None),
    ("reduce", None),
    ("reduce_scatter", Some(Op::ReduceScatter)),
    ("reduce_scatterv", None),
    ("scatter", None),
    ("scatterv", None),
];

const MEMORY: [(&str, Serves); 7] = [
    ("host", Serves::Host),
    ("cuda", Serves::Device),
    ("rocm", Serves::Device),
    ("cuda_managed", Serves::Nothing),
    ("cudamanaged", Serves::Nothing),
    ("rocm_managed", Serves::Nothing),
    ("rocmmanaged", Serves::Nothing),
];

/// The score that wins over every other.
const INF: u64 = i32::MAX as u64;

/// The words of an entry, each once at most.
#[derive(Default)]
struct Words {
    ops: Option<Vec<Op>>,
    sizes: Option<Vec<ByteRange>>,
    memory: Option<Vec<Serves>>,
    teams: Option<Vec<Counts>>,
    score: Option<u64>,
    algorithm: Option<(Range<usize>, String)>,
}

/// Reads an entry; `None` if it is wrong, or says nothing that a policy can say.
pub(super) fn read(
    findings: &mut Findings<'_>,
    transport: &'static Transport,
    text: &str,
    at: usize,
) -> Option<Entry> {
    let mut words = Words::default();
    let mut right = true;
    for (at, word) in pieces(text, at, ':') {
        right &= self::word(findings, &mut words, word, at).is_some();
    }
    let all = Op::ALL.to_vec();
    let named = words.ops.is_some();
    let mut ops = words.ops.take().unwrap_or(all);
    let algorithms = match &words.algorithm {
        None => vec![None; ops.len()],
        Some((span, name)) => {
            if !named {
                ops.retain(|op| !transport.algorithms(*op).is_empty());
            }
            let of = |op: &Op| algorithm(findings, transport, *op, span, name);
            let found: Vec<Option<&'static str>> = ops.iter().map(of).collect();
            right &= found.iter().all(Option::is_some);
            found
        }
    };
    if !right {
        return None;
    }
    let span = span(at, text);
    if words.score.is_none() && words.algorithm.is_none() {
        let message = "an entry without a score and an algorithm changes nothing in UCC: left out";
        findings.note(span, message);
        return None;
    }
    if words.score == Some(0) {
        let message = format!(
            "score 0 takes `{}` away; a candidate is taken away by not being in a chain, or by \
             `CROSSOVER_DISABLE`: left out",
            transport.name
        );
        findings.loss(span, message);
        return None;
    }
    let served = transport.serves;
    // A layer of one kind of memory has no other; `ucp` has every kind.
    let memory = words.memory.unwrap_or_else(|| match served {
        Serves::Host => vec![Serves::Host, Serves::Device],
        other => vec![other],
    });
    if served == Serves::Nothing || !memory.contains(&served) {
        let message = format!("`{}` on this memory has no equal here: left out", transport.name);
        findings.loss_once(span, message);
        return None;
    }
    if memory.iter().any(|kind| *kind != served) {
        let message =
            format!("`{}` on other memory than {served} has no equal here", transport.name);
        findings.loss_once(span.clone(), message);
    }
    Some(Entry {
        span,
        transport,
        ops,
        sizes: words.sizes.unwrap_or_else(|| vec![ByteRange::ANY]),
        teams: words.teams.unwrap_or_else(|| vec![Counts::ANY]),
        score: words.score.unwrap_or(transport.score),
        algorithms,
    })
}

/// Takes a word in; `None` if it is wrong, which is told.
fn word(findings: &mut Findings<'_>, words: &mut Words, text: &str, at: usize) -> Option<()> {
    let place = span(at, text);
    let twice = |findings: &mut Findings<'_>, what: &str| {
        let message = format!("the entry has {what} already");
        findings.error(place.clone(), message, "entries are parted by `#`, lists by commas");
        None
    };
    let lower = text.to_ascii_lowercase();
    let first = lower.split(',').next().unwrap_or("");
    if text.is_empty() {
        let message = "an empty word, which UCC takes for score 0: the layer would be off";
        findings.error(place, message, "take one `:` out, or write what is missing");
        return None;
    }
    if let Some(name) = text.strip_prefix('@') {
        if words.algorithm.is_some() {
            return twice(findings, "an algorithm");
        }
        words.algorithm = Some((place, name.to_owned()));
    } else if text.starts_with('[') {
        if words.teams.is_some() {
            return twice(findings, "numbers of ranks");
        }
        if !text.ends_with(']') {
            findings.error(place, format!("`{}` has no `]`", short(text)), "write `[2-8]`");
            return None;
        }
        words.teams = Some(size::teams(findings, text, at)?);
    } else if lower == "inf" || lower.bytes().all(|b| b.is_ascii_digit()) {
        if words.score.is_some() {
            return twice(findings, "a score");
        }
        let score =
            if lower == "inf" { Some(INF) } else { lower.parse().ok().filter(|s| *s <= INF) };
        if score.is_none() {
            let message = format!("score `{}` is greater than {INF}", short(text));
            findings.error(place, message, "write `inf` for the greatest");
        }
        words.score = Some(score?);
    } else if lower.starts_with(|c: char| c.is_ascii_digit()) {
        if words.sizes.is_some() {
            return twice(findings, "sizes");
        }
        words.sizes = Some(size::sizes(findings, text, at)?);
    } else if MEMORY.iter().any(|(name, _)| *name == first) {
        if words.memory.is_some() {
            return twice(findings, "a memory type");
        }
        words.memory = Some(list(findings, "memory type", &MEMORY, text, at)?);
    } else {
        let collectives = list(findings, "word or collective", &COLLECTIVES, text, at)?;
        if words.ops.is_some() {
            return twice(findings, "a collective");
        }
        for ((at, name), _) in
            pieces(text, at, ',').zip(&collectives).filter(|(_, op)| op.is_none())
        {
            let message = format!("there is no collective `{name}` here: it is left out");
            findings.loss_once(span(at, name), message);
        }
        words.ops = Some(collectives.into_iter().flatten().collect());
    }
    Some(())
}

/// The meanings of words with commas between, in any case.
fn list<T: Copy>(
    findings: &mut Findings<'_>,
    kind: &str,
    known: &[(&'static str, T)],
    text: &str,
    at: usize,
) -> Option<Vec<T>> {
    let mut meanings = Vec::new();
    for (at, word) in pieces(text, at, ',') {
        match known.iter().find(|(name, _)| word.eq_ignore_ascii_case(name)) {
            Some((_, meaning)) => meanings.push(*meaning),
            None => {
                let message = format!("unknown {kind} `{}`", short(word));
                let names = known.iter().map(|(name, _)| *name);
                findings.unknown(span(at, word), message, word, names);
                return None;
            }
        }
    }
    Some(meanings)
}

/// An algorithm of a layer's for an op, by name or number; `None` if it has none such.
fn algorithm(
    findings: &mut Findings<'_>,
    transport: &Transport,
    op: Op,
    place: &Range<usize>,
    name: &str,
) -> Option<&'static str> {
    let known = transport.algorithms(op);
    let by_number = name.parse::<usize>().ok().and_then(|id| known.get(id));
    let found = by_number.or_else(|| known.iter().find(|k| k.eq_ignore_ascii_case(name)));
    if found.is_none() {
        let message = format!("`{}` has no algorithm `{}` for {op}", transport.name, short(name));
        findings.unknown(place.clone(), message, name, known.iter().copied());
    }
    found.copied()
}
