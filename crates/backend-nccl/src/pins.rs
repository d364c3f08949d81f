//! What a policy prefers of the library's own choice, call by call. It is given as a preference: not
//! every op has every algorithm, nor every machine, and a call that has none of those named runs as
//! the library chooses, rather than fail after a policy has chosen it.

use std::ffi::CString;

use crossover_core::call::{CallSig, Op, Split};
use crossover_nccl_sys::layout::CollConfig;

use crate::eligibility::{ALGORITHMS, PROTOCOLS};

/// What calls had so far.
pub(crate) struct Pins {
    /// By op and the values of the params. The library reads a name before the call returns.
    known: Vec<(Op, [u64; 3], Option<CString>)>,
    /// Most blocks of the communicator's kernels, if it has such a bound: more cannot be had.
    most: Option<u64>,
}

/// The library's names for what it has by rings, which every op has.
const RINGS: &[&str] = &["RING_LL", "RING_LL128", "RING_SIMPLE"];
/// What it has beside them, by op, as 2.32.3 resolves names. They are written out: a name stands for
/// all that begin with it, so that `NVLS` alone would be `NVLSTREE_SIMPLE` too.
const OF_ALL_REDUCE: &[&str] = &[
    "TREE_LL",
    "TREE_LL128",
    "TREE_SIMPLE",
    "COLLNET_DIRECT_SIMPLE",
    "COLLNET_CHAIN_SIMPLE",
    "NVLS_SIMPLE",
    "NVLSTREE_SIMPLE",
];
const OF_PARTS: &[&str] = &["COLLNET_DIRECT_SIMPLE", "NVLS_SIMPLE", "PAT_SIMPLE"];

impl Pins {
    /// `max_ctas` is the communicator's, in its configuration's terms.
    pub(crate) fn new(max_ctas: i32) -> Pins {
        let most = u64::try_from(max_ctas).ok().filter(|most| *most > 0);
        Pins { known: Vec::new(), most }
    }

    /// How a call is to run; `None` where that is left to the library.
    pub(crate) fn of(&mut self, call: &CallSig<'_>, params: &[u64]) -> Option<CollConfig> {
        let &[algorithm, protocol, channels] = params else { return None };
        let op = made_of(call)?;
        let key = [algorithm, protocol, channels];
        let at = match self.known.iter().position(|(of, known, _)| (*of, *known) == (op, key)) {
            Some(at) => at,
            None => {
                let names = names(op, algorithm as usize, protocol as usize);
                self.known.push((op, key, names));
                self.known.len() - 1
            }
        };
        let names = self.known[at].2.as_ref();
        if names.is_none() && channels == 0 {
            return None;
        }
        let mut config = CollConfig::new();
        config.force_alg_selection = 0;
        if channels > 0 {
            let channels = self.most.map_or(channels, |most| channels.min(most)) as i32;
            config = config.ctas(channels, channels);
        }
        if let Some(names) = names {
            config.alg_selection = names.as_ptr();
        }
        Some(config)
    }
}

/// The op whose configuration the library's calls take; none if they take none. Parts that differ
/// are gathered by broadcasts, and reduced by reductions to each rank in turn, for which nothing can
/// be said here.
fn made_of(call: &CallSig<'_>) -> Option<Op> {
    match (call.op, call.split) {
        (Op::AllGather, Split::PerRank(_)) => Some(Op::Broadcast),
        (Op::ReduceScatter, Split::PerRank(_)) => None,
        (op, _) => Some(op),
    }
}

/// As the library reads it: names between commas. `None` if it is all the same, or the op has none
/// of them.
fn names(op: Op, algorithm: usize, protocol: usize) -> Option<CString> {
    if (algorithm, protocol) == (0, 0) {
        return None;
    }
    let others = match op {
        Op::AllReduce => OF_ALL_REDUCE,
        Op::AllGather | Op::ReduceScatter => OF_PARTS,
        _ => &[],
    };
    let family = match ALGORITHMS[algorithm] {
        "nvls_tree" => "NVLSTREE".to_owned(),
        other => other.to_uppercase(),
    };
    let is_meant = |name: &&str| {
        let Some((of, with)) = name.rsplit_once('_') else { return false };
        let with_protocol = protocol == 0
            || match PROTOCOLS[protocol] {
                // `RING_LL` is `RING_LL128` too, to the library.
                "ll_or_ll128" => with == "LL",
                other => with == other.to_uppercase(),
            };
        (algorithm == 0 || of == family) && with_protocol
    };
    let meant: Vec<&str> = RINGS.iter().chain(others).copied().filter(is_meant).collect();
    if meant.is_empty() { None } else { CString::new(meant.join(",")).ok() }
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use crossover_core::call::{Dtype, Mode, ReduceOp};
    use crossover_core::contract::Contract;
    use crossover_nccl_sys::layout::UNDEFINED;

    use super::*;

    fn call(op: Op, split: Split<'_>) -> CallSig<'_> {
        CallSig {
            op,
            dtype: Dtype::F32,
            reduce_op: ReduceOp::Sum,
            count: 64,
            mode: Mode::Eager,
            root: 0,
            split,
            contract: Contract::DEFAULT,
        }
    }

    fn word(words: &[&str], word: &str) -> u64 {
        words.iter().position(|known| *known == word).expect("a word") as u64
    }

    fn said(op: Op, split: Split<'_>, algorithm: &str, protocol: &str) -> Option<String> {
        let params = [word(ALGORITHMS, algorithm), word(PROTOCOLS, protocol), 0];
        let mut pins = Pins::new(UNDEFINED);
        let config = pins.of(&call(op, split), &params)?;
        assert_eq!(config.force_alg_selection, 0, "a preference");
        // SAFETY: a text of `pins`, which is there.
        Some(unsafe { CStr::from_ptr(config.alg_selection) }.to_string_lossy().into_owned())
    }

    #[test]
    fn what_is_preferred_is_said_in_names_that_stand_for_nothing_else() {
        let of = |algorithm, protocol| said(Op::AllReduce, Split::Even, algorithm, protocol);
        assert_eq!(of("auto", "auto"), None);
        assert_eq!(of("nvls", "auto").as_deref(), Some("NVLS_SIMPLE"));
        assert_eq!(of("nvls_tree", "simple").as_deref(), Some("NVLSTREE_SIMPLE"));
        assert_eq!(of("ring", "auto").as_deref(), Some("RING_LL,RING_LL128,RING_SIMPLE"));
        assert_eq!(of("auto", "ll_or_ll128").as_deref(), Some("RING_LL,TREE_LL"));
        assert_eq!(of("auto", "ll128").as_deref(), Some("RING_LL128,TREE_LL128"));
        assert_eq!(of("collnet_direct", "auto").as_deref(), Some("COLLNET_DIRECT_SIMPLE"));
    }

    #[test]
    fn what_an_op_has_not_is_left_to_the_library() {
        let of = |op, algorithm| said(op, Split::Even, algorithm, "auto");
        assert_eq!(of(Op::Broadcast, "tree"), None);
        assert_eq!(of(Op::AllGather, "tree"), None);
        assert_eq!(of(Op::ReduceScatter, "nvls_tree"), None);
        assert_eq!(of(Op::AllReduce, "pat"), None);
        assert_eq!(of(Op::AllGather, "pat").as_deref(), Some("PAT_SIMPLE"));
        assert_eq!(said(Op::AllReduce, Split::Even, "nvls", "ll128"), None);
        // Of broadcasts, and of nothing.
        let parts = Split::PerRank(&[32, 32]);
        assert_eq!(said(Op::AllGather, parts, "pat", "auto"), None);
        assert_eq!(said(Op::AllGather, parts, "ring", "simple").as_deref(), Some("RING_SIMPLE"));
        assert_eq!(said(Op::ReduceScatter, parts, "ring", "simple"), None);
    }

    #[test]
    fn no_call_wants_more_channels_than_the_communicator_has() {
        let call = call(Op::AllReduce, Split::Even);
        let channels = |most, channels| {
            let config = Pins::new(most).of(&call, &[0, 0, channels]).expect("channels");
            assert_eq!(config.min_ctas, config.max_ctas);
            config.max_ctas
        };
        assert_eq!((channels(16, 64), channels(16, 8), channels(UNDEFINED, 64)), (16, 8, 64));
    }
}
