//! What a result must be: order classes, determinism, and the deviations a caller accepts.

use serde::{Deserialize, Serialize};

use crate::vocabulary::vocabulary;

vocabulary! { "determinism",
    /// How reproducible a result must be, weakest first. Each level includes those before it.
    pub enum Determinism in Determinisms {
        /// Nothing is demanded.
        Any = "any",
        /// All ranks of one call hold the same bits.
        RankConsistent = "rank_consistent",
        /// The same call on the same data gives the same bits in every run.
        RunToRun = "run_to_run",
        /// An element's bits depend neither on its position nor on the size of the call.
        SizeInvariant = "size_invariant",
    }
}

vocabulary! { "deviation",
    /// A way in which an algorithm departs from the exact result. It is used only where the
    /// contract accepts it.
    pub enum Deviation in Deviations {
        /// A -0.0 arrives as +0.0 (Lamport kernels reserve the bit pattern of -0.0).
        SignedZeroFlush = "signed_zero_flush",
        /// Contributions travel as 8-bit floats.
        LossyFp8 = "lossy_fp8",
        /// Contributions travel as 8-bit integers with scales.
        LossyInt8 = "lossy_int8",
        /// Contributions travel as 6-bit integers with scales.
        LossyInt6 = "lossy_int6",
        /// Contributions travel as 4-bit integers with scales.
        LossyInt4 = "lossy_int4",
    }
}

vocabulary! { "order class",
    /// In which order an algorithm adds contributions up. Two algorithms of the class
    /// `rank_ordered` give the same bits for the same data.
    pub enum OrderClass in OrderClasses {
        /// Over ranks 0, 1, ..., N-1 starting from rank 0's value; in f32 for f32 and narrower
        /// floats, in the type itself for f64 and, wrapping, for integers; rounded once.
        RankOrdered = "rank_ordered",
        /// In the network switch, in an order it does not tell.
        Switch = "switch",
        /// In a vendor library, in an order that follows its algorithm, channels and sizes.
        Library = "library",
        /// Rank-ordered over contributions that a codec has rounded.
        Quantised = "quantised",
    }
}

/// What the caller demands of, and accepts in, a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Contract {
    /// The least reproducibility.
    pub determinism: Determinism,
    /// The deviations that are accepted.
    pub accept: Deviations,
}

impl Contract {
    /// Exact and alike on every rank: what applies where nobody says otherwise.
    pub const DEFAULT: Contract =
        Contract { determinism: Determinism::RankConsistent, accept: Deviations::NONE };

    /// The stricter of two contracts: a policy file can never make an engine accept more.
    pub fn intersection(self, other: Contract) -> Contract {
        Contract {
            determinism: self.determinism.max(other.determinism),
            accept: self.accept.intersection(other.accept),
        }
    }
}

impl Default for Contract {
    fn default() -> Self {
        Self::DEFAULT
    }
}
