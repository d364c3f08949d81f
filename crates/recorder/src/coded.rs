//! A record's words: what is told of a call or a note, and the digests by which ranks are compared.

use crossover_core::call::CallSig;
use crossover_core::record::Event;

/// What is recorded that is no call, where ops stand.
pub(crate) mod note {
    pub(crate) const STATE: u8 = 0x80;
    pub(crate) const REPLAY: u8 = 0x81;
    pub(crate) const COMMIT: u8 = 0x82;
    pub(crate) const CLOSE: u8 = 0x83;
}

/// What a record says of its event.
pub(crate) struct Coded {
    /// The word that says what it is.
    pub(crate) what: u64,
    pub(crate) count: u64,
    /// What else is compared.
    more: u64,
}

impl Coded {
    #[inline(always)]
    pub(crate) fn call(call: &CallSig<'_>, split: u64) -> Coded {
        // The reduce op means nothing to an op that copies, and may differ.
        let reduce_op = if call.op.reduces() { call.reduce_op as u64 } else { 0 };
        let what = call.op as u64
            | (call.dtype as u64) << 8
            | reduce_op << 16
            | (call.mode as u64) << 24
            | u64::from(call.root) << 32;
        Coded { what, count: call.count as u64, more: split }
    }

    #[inline(always)]
    pub(crate) fn state(step: u32, digest: u64) -> Coded {
        Coded { what: note::STATE.into(), count: digest, more: step.into() }
    }

    pub(crate) fn of(event: &Event<'_>) -> Coded {
        let note = |what: u8, count| Coded { what: what.into(), count, more: 0 };
        match *event {
            Event::Call(call) => Coded::call(call, call.split.digest()),
            Event::State { step, digest } => Coded::state(step, digest),
            Event::Replay { graph } => note(note::REPLAY, graph),
            Event::Commit => note(note::COMMIT, 0),
            Event::Close => note(note::CLOSE, 0),
        }
    }

    /// Of all that must be equal on every rank. Its two products do not wait for each other.
    #[inline(always)]
    pub(crate) fn fingerprint(&self, target: u64) -> u64 {
        // wyhash's third constant, which no count is: by it the one product is not the other's.
        const OTHER: u64 = 0x8EBC_6AF0_9C88_C6E3;
        mix(self.what, self.count) ^ mix(target << 32 ^ self.more, OTHER)
    }
}

/// Folds the product of 128 bits: every bit of both words reaches every bit of the result.
#[inline]
pub(crate) fn mix(a: u64, b: u64) -> u64 {
    // The constants are wyhash's, odd and with as many ones as zeros.
    let product = u128::from(a ^ 0xA076_1D64_78BD_642F) * u128::from(b ^ 0xE703_7ED1_A0B4_28DB);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn what_differs_a_little_has_another_fingerprint() {
        let mut seen = BTreeSet::new();
        for (what, count, more) in grid() {
            for target in 0..8 {
                let is_new = seen.insert(Coded { what, count, more }.fingerprint(target));
                assert!(is_new, "{what} {count} {more} {target}");
            }
        }
        // A step and its digest are no sum.
        let of = |step, digest| Coded::state(step, digest).fingerprint(0);
        assert!(of(6, 7) != of(7, 6) && of(1, 0) != of(0, 1));
    }

    fn grid() -> impl Iterator<Item = (u64, u64, u64)> {
        let whats = (0..24).map(|n| (n % 6) | ((n / 6) << 32));
        whats.flat_map(|what| {
            (0..40).flat_map(move |count| (0..12).map(move |more| (what, count * 513, more)))
        })
    }
}
