//! Ranks made different calls: one sentence, the same on every rank, since all read the same
//! headers.

use crossover_core::backend::EnqueueError;
use crossover_core::bootstrap::ranks_in_words;
use crossover_core::call::{Dtype, Op, ReduceOp};
use crossover_core::camps::first_difference;

use crate::eligibility::DESCRIPTOR;
use crate::header::{CLOSE, Header};
use crate::segment::Segment;

/// The error of ranks that met in a step of this parity, the call's rendezvous number `met`, and
/// turn out to make different calls.
#[cold]
pub(crate) fn found(segment: &Segment, header: &Header, met: u32, parity: usize) -> EnqueueError {
    let world = segment.layout().world;
    let headers: Vec<Header> = (0..world).map(|rank| Header::read(segment, rank, parity)).collect();
    explain(&headers, place(header, met), header.seq())
}

/// Where a rank is in a call, in words.
pub(crate) fn place(header: &Header, met: u32) -> String {
    format!("{}, rendezvous {met}", call_in_words(DESCRIPTOR.id, header))
}

/// A call of a backend whose algorithms are called as this one's are, such as `host/one_shot
/// all_reduce`.
pub fn call_in_words(backend: &str, header: &Header) -> String {
    let algorithm = algorithm_in_words(header.algorithm());
    format!("{backend}/{algorithm} {}", op_in_words(header.op()))
}

/// The error for headers, in rank order, that are not all equal. `step` and `seq` are the
/// reader's own.
pub fn explain(headers: &[Header], step: String, seq: u64) -> EnqueueError {
    if let Some((rank, how)) = closed(headers) {
        return EnqueueError::Lost { step, seq, rank, how };
    }
    // Numbers can differ; every rank must print the same one.
    let seq = headers.iter().map(Header::seq).min().unwrap_or(seq);
    EnqueueError::Mismatch { seq, what: difference(headers) }
}

/// Did some ranks close the group while others went on?
fn closed(headers: &[Header]) -> Option<(u32, String)> {
    let rank = headers.iter().position(|h| h.op() == CLOSE)? as u32;
    let others = |(_, h): &(u32, &Header)| h.op() != CLOSE;
    let calling: Vec<_> = (0..).zip(headers).filter(others).collect();
    let (_, first) = calling.first()?;
    let ranks: Vec<u32> = calling.iter().map(|(rank, _)| *rank).collect();
    let op = op_in_words(first.op());
    Some((rank, format!("it closed the group while {} called {op}", ranks_in_words(&ranks))))
}

/// What can differ: its name, where it is in a header, and how to say it. What serves the call comes
/// last: it follows from the rest.
struct Field(&'static str, fn(&Header) -> u64, fn(u64) -> String);

const FIELDS: [Field; 8] = [
    Field("op", Header::op, op_in_words),
    Field("call number", Header::seq, |n| n.to_string()),
    Field("dtype", Header::dtype, |n| name(n, Dtype::NAMES)),
    Field("reduce op", Header::reduce_op, |n| name(n, ReduceOp::NAMES)),
    Field("root", Header::root, |n| n.to_string()),
    Field("count", Header::count, |n| n.to_string()),
    Field("counts per rank", Header::split, split_in_words),
    Field("algorithm", Header::algorithm, algorithm_in_words),
];

/// The first field that differs, who has which value, the odd ones first.
fn difference(headers: &[Header]) -> String {
    let names = FIELDS.each_ref().map(|field| field.0);
    let words = |header| FIELDS.iter().map(|Field(_, of, words)| words(of(header))).collect();
    let values: Vec<Vec<String>> = headers.iter().map(words).collect();
    first_difference(&names, &values)
        .unwrap_or_else(|| "their headers are equal and yet were found different".to_owned())
}

fn op_in_words(n: u64) -> String {
    if n == CLOSE { "close".to_owned() } else { name(n, Op::NAMES) }
}

/// The name after the slash.
fn algorithm_in_words(n: u64) -> String {
    let known = DESCRIPTOR.algorithms.get(n as usize);
    known.map_or_else(|| format!("number {n}"), |a| a.name.to_owned())
}

fn split_in_words(digest: u64) -> String {
    if digest == 0 { "alike".to_owned() } else { format!("with digest {digest:016x}") }
}

fn name(n: u64, names: &[&str]) -> String {
    names.get(n as usize).map_or_else(|| format!("number {n}"), |name| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use crossover_core::call::{CallSig, Mode, Split};
    use crossover_core::contract::Contract;

    use super::*;

    #[test]
    fn the_op_is_named_before_what_follows_from_it() {
        let headers = [call(Op::AllGather, 4), call(Op::AllReduce, 8), call(Op::AllReduce, 8)];
        let what = difference(&headers.map(|c| Header::of_call(0, 1, &c)));
        assert_eq!(what, "rank 0 has op all_gather, ranks 1 and 2 have all_reduce");
    }

    #[test]
    fn what_the_engine_asked_for_is_named_before_what_serves_it() {
        let usual = call(Op::AllReduce, 4);
        let cases = [
            (CallSig { count: 8, ..usual }, "count 8"),
            (CallSig { dtype: Dtype::F64, ..usual }, "dtype f64"),
            (CallSig { root: 1, ..usual }, "root 1"),
            (CallSig { reduce_op: ReduceOp::Max, ..usual }, "reduce op max"),
            (CallSig { split: Split::PerRank(&[1, 1, 2]), ..usual }, "counts per rank with digest"),
            (usual, "algorithm two_shot"),
        ];
        for (odd, expected) in cases {
            // The same algorithm would serve it, or another: rules go by size.
            let headers = [(0, usual), (1, odd), (0, usual)];
            let said = difference(&headers.map(|(at, call)| Header::of_call(at, 1, &call)));
            assert!(said.starts_with(&format!("rank 1 has {expected}")), "{said}");
        }
    }

    #[test]
    fn a_goodbye_is_a_loss() {
        let call = Header::of_call(0, 2, &call(Op::Broadcast, 4));
        let headers = [call, Header::of_close(1), call];
        let how = "it closed the group while ranks 0 and 2 called broadcast";
        assert_eq!(closed(&headers), Some((1, how.to_owned())));
    }

    fn call(op: Op, count: usize) -> CallSig<'static> {
        CallSig {
            op,
            dtype: Dtype::F32,
            reduce_op: ReduceOp::Sum,
            count,
            mode: Mode::Eager,
            root: 0,
            split: Split::Even,
            contract: Contract::DEFAULT,
        }
    }
}
