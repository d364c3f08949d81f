//! The architectures that kernels are compiled for.

use anyhow::{Result, bail};

/// Who makes the device, and so which `<platform.h>` a kernel is compiled against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Platform {
    /// NVIDIA.
    Cuda,
    /// AMD.
    Hip,
    /// This processor.
    Host,
}

impl Platform {
    /// As in `cargo xtask kernels cuda`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cuda => "cuda",
            Self::Hip => "hip",
            Self::Host => "host",
        }
    }

    /// The folder of its `platform.h`.
    pub(super) fn folder(self) -> &'static str {
        match self {
            Self::Cuda => "kernels-cuda",
            Self::Hip => "kernels-hip",
            Self::Host => "tests/kernel-emulation",
        }
    }

    /// How the sources that are its alone end.
    pub(super) fn ending(self) -> &'static str {
        match self {
            Self::Cuda => "cu",
            Self::Hip => "hip",
            Self::Host => "cpp",
        }
    }
}

/// One architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arch {
    /// As policies write it; the name of its folder.
    pub(crate) name: &'static str,
    /// Whose.
    pub(crate) platform: Platform,
    /// As the compiler writes it.
    pub(super) code: &'static str,
}

/// `sm90` is compiled as `sm_90a`: what Hopper alone has, such as multicast reductions, is not in
/// `sm_90`. A device of the same family and a later number runs its family's first.
const ARCHES: [Arch; 7] = [
    Arch { name: "sm80", platform: Platform::Cuda, code: "80" },
    Arch { name: "sm90", platform: Platform::Cuda, code: "90a" },
    Arch { name: "sm100", platform: Platform::Cuda, code: "100" },
    Arch { name: "gfx90a", platform: Platform::Hip, code: "gfx90a" },
    Arch { name: "gfx942", platform: Platform::Hip, code: "gfx942" },
    Arch { name: "gfx950", platform: Platform::Hip, code: "gfx950" },
    Arch { name: "host", platform: Platform::Host, code: "" },
];

impl Arch {
    /// Every architecture of a platform.
    pub(super) fn of(platform: Platform) -> impl Iterator<Item = Self> {
        ARCHES.into_iter().filter(move |arch| arch.platform == platform)
    }

    /// By the name that policies use, or the compiler's: `sm90`, `sm90a`.
    pub(super) fn parse(platform: Platform, name: &str) -> Result<Self> {
        let is_meant = |arch: &Self| {
            arch.name == name || name.strip_prefix("sm").is_some_and(|code| code == arch.code)
        };
        match Self::of(platform).find(is_meant) {
            Some(arch) => Ok(arch),
            None => {
                let known: Vec<_> = Self::of(platform).map(|arch| arch.name).collect();
                bail!("{name} is no architecture of {}: {}", platform.name(), known.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_names_of_an_architecture_are_taken() {
        let parse = |name| Arch::parse(Platform::Cuda, name).map(|arch| arch.name);
        assert_eq!(parse("sm90a").unwrap(), "sm90");
        assert_eq!(parse("sm90").unwrap(), "sm90");
        assert_eq!(parse("sm100").unwrap(), "sm100");
        let refusal = parse("gfx942").unwrap_err().to_string();
        assert_eq!(refusal, "gfx942 is no architecture of cuda: sm80, sm90, sm100");
    }
}
