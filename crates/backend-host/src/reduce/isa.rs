//! Which instructions this machine has, found out once.

use std::sync::OnceLock;

/// A set of vector instructions. All of them give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// Whatever every machine of this architecture has.
    Portable,
    /// 256-bit vectors, with conversions of binary16.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 512-bit vectors of elements of any size, with masks.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// The same, with the rounding to bfloat16.
    #[cfg(target_arch = "x86_64")]
    Avx512Bf16,
}

impl Isa {
    /// The best one of this machine.
    #[inline(always)]
    pub fn best() -> Self {
        static BEST: OnceLock<Isa> = OnceLock::new();
        *BEST.get_or_init(|| Isa::available().last().unwrap_or(Isa::Portable))
    }

    /// Those that this machine has, the best one last.
    pub fn available() -> impl Iterator<Item = Self> {
        Isa::ALL.iter().copied().filter(|isa| isa.is_present())
    }

    #[cfg(target_arch = "x86_64")]
    const ALL: &[Self] = &[Isa::Portable, Isa::Avx2, Isa::Avx512, Isa::Avx512Bf16];

    #[cfg(not(target_arch = "x86_64"))]
    const ALL: &[Self] = &[Isa::Portable];

    fn is_present(self) -> bool {
        match self {
            Isa::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c"),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Bf16 => Isa::Avx512.is_present() && is_x86_feature_detected!("avx512bf16"),
        }
    }
}
