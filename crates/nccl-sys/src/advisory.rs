//! What is known to be wrong in some releases, as data: whoever tells users reads it from here.

use crate::{Vendor, Version};

/// A known fault of a range of releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Advisory {
    /// Whose library.
    pub library: Vendor,
    /// The first release that has it, as far as is known.
    pub from: Version,
    /// The first release without it.
    pub until: Version,
    /// What happens, and when.
    pub note: &'static str,
    /// Who says so.
    pub source: &'static str,
}

/// All that are known, by the release that ended them.
pub const ADVISORIES: &[Advisory] = &[
    Advisory {
        library: Vendor::Nccl,
        from: Version::new(2, 18, 1),
        until: Version::new(2, 22, 3),
        note: "between nodes whose processors are of different vendors, ranks choose different \
               algorithms and hang",
        source: "NVIDIA/nccl#1136",
    },
    Advisory {
        library: Vendor::Nccl,
        from: Version::new(2, 19, 0),
        until: Version::new(2, 22, 3),
        note: "capturing graphs takes much more device memory unless NCCL_CUMEM_ENABLE is 0",
        source: "NVIDIA/nccl#1234",
    },
    Advisory {
        library: Vendor::Rccl,
        // ROCm 6.4.0's; 6.4.1's, which is mended, says the same version.
        from: Version::new(2, 22, 3),
        until: Version::new(2, 26, 6),
        note: "as ROCm 6.4.0 has it, sums in graphs can be wrong unless RCCL_MSCCLPP_ENABLE is 0",
        source: "ROCm/TheRock#7871",
    },
    Advisory {
        library: Vendor::Nccl,
        from: Version::new(2, 25, 1),
        until: Version::new(2, 27, 5),
        note: "large reductions of bf16 write far outside their buffers",
        source: "ggml-org/llama.cpp#24489",
    },
    Advisory {
        library: Vendor::Rccl,
        // The first for these devices (ROCm 7.0).
        from: Version::new(2, 26, 6),
        until: Version::new(2, 28, 3),
        note: "collectives of small messages can hang on gfx950, whose LL protocol lacks a fence",
        source: "RCCL's change log, 2.28.3",
    },
    Advisory {
        library: Vendor::Nccl,
        from: Version::new(2, 27, 3),
        until: Version::new(2, 31, 2),
        note: "several symmetric windows in one allocation corrupt data",
        source: "NVIDIA/nccl#2198",
    },
    Advisory {
        library: Vendor::Nccl,
        from: Version::new(2, 28, 3),
        until: Version::new(2, 31, 2),
        note: "the first collective by copy engines hangs in a communicator of two ranks",
        source: "NVIDIA/nccl#2241",
    },
    Advisory {
        library: Vendor::Nccl,
        from: Version::new(2, 30, 3),
        until: Version::new(2, 31, 2),
        note: "with several ranks on one device, ranks disagree about the switch's multicast unless \
               NCCL_NVLS_ENABLE is 0",
        source: "NVIDIA/nccl#2257",
    },
];

/// Those that hold for a release.
pub fn advisories(library: Vendor, version: Version) -> impl Iterator<Item = &'static Advisory> {
    ADVISORIES
        .iter()
        .filter(move |it| it.library == library && it.from <= version && version < it.until)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(number: i32) -> Vec<&'static str> {
        let version = Version::from_number(number).unwrap();
        advisories(Vendor::Nccl, version).map(|it| it.source).collect()
    }

    #[test]
    fn a_range_ends_where_the_fault_does() {
        let writes_outside = "ggml-org/llama.cpp#24489";
        assert!(sources(22501).contains(&writes_outside));
        assert!(!sources(22705).contains(&writes_outside));
        assert_eq!(sources(23007).len(), 3);
        assert!(sources(23102).is_empty());
        assert!(sources(2804).is_empty());
        let of_rccl = |minor, patch| {
            let version = Version::new(2, minor, patch);
            advisories(Vendor::Rccl, version).map(|it| it.source).collect::<Vec<_>>()
        };
        assert_eq!(of_rccl(25, 1), ["ROCm/TheRock#7871"], "RCCL has its own faults");
        assert_eq!(of_rccl(27, 7), ["RCCL's change log, 2.28.3"]);
        assert!(of_rccl(21, 5).is_empty() && of_rccl(28, 3).is_empty());
    }

    #[test]
    fn ranges_are_ranges() {
        for it in ADVISORIES {
            assert!(it.from < it.until, "{}", it.source);
        }
        assert!(ADVISORIES.is_sorted_by_key(|it| it.until));
    }
}
