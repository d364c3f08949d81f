//! The entry points that a group uses, all loaded while it is set up: loading one later may wait
//! for the whole device, and so for peers that wait for this rank.

use crossover_core::agreement::StepError;
use crossover_core::call::{Dtype, ReduceOp};
use crossover_device::device::Device;
use crossover_device::error::DeviceError;
use crossover_device::images::Places;
use crossover_device::library::Library;
use crossover_device::module::Kernel;
use crossover_kernel_abi::{MAX_THREADS, header};
use sha2::{Digest, Sha256};
use std::path::Path;

/// A family of entry points that reduce: one for each element type and kind of op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduction {
    OneShotPush,
    OneShotPull,
    TwoShotPush,
    TwoShotPull,
    Lamport,
    ScatterPush,
    ScatterPull,
}

/// An entry point that copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copying {
    /// Equal parts, the same to all.
    GatherPush,
    GatherPull,
    /// Any parts.
    PartsPush,
    PartsPull,
    /// Equal parts of 32-bit floats, and of 16-bit ones.
    LamportF32,
    LamportHalf,
}

const REDUCTIONS: [&str; 7] = [
    "one_shot_push",
    "one_shot_pull",
    "two_shot_push",
    "two_shot_pull",
    "lamport",
    "reduce_scatter_push",
    "reduce_scatter_pull",
];
const DTYPES: [&str; 3] = ["f32", "f16", "bf16"];
const KINDS: [&str; 2] = ["sum", "other"];

/// The kernels of a group.
pub(crate) struct Kernels {
    /// By family, element type, kind of op; then those that copy.
    all: Vec<Entry>,
    pub(crate) probe: Kernel,
}

/// A kernel, the same for short calls alone where there is one, and the most blocks that a launch of
/// either may have, agreed.
pub(crate) struct Entry {
    pub(crate) kernel: Kernel,
    pub(crate) short: Option<Kernel>,
    pub(crate) blocks: u64,
}

impl Entry {
    /// Blocks of the most threads that the device holds at a time.
    fn resident_blocks(&self) -> Result<u32, DeviceError> {
        let of = |kernel: &Kernel| kernel.resident_blocks(MAX_THREADS as u32);
        let short = self.short.as_ref().map_or(Ok(u32::MAX), of)?;
        Ok(of(&self.kernel)?.min(short))
    }
}

impl Kernels {
    /// Loads them all; `places` says where images are.
    pub(crate) fn load(
        device: &Device,
        folder: Option<&Path>,
        world: u32,
    ) -> Result<Kernels, StepError> {
        let library = Library::open(device, &Places::new(folder)).map_err(StepError::new)?;
        check_abi(&library)?;
        let load = |name: &str| library.kernel(name).map_err(StepError::new);
        let many = match world {
            2 | 4 | 8 => world.to_string(),
            _ => "any".to_owned(),
        };
        let mut names = Vec::new();
        for family in REDUCTIONS {
            for dtype in DTYPES {
                for kind in KINDS {
                    let many = if kind == "sum" { many.as_str() } else { "any" };
                    names.push(format!("{family}_{dtype}_{kind}_{many}"));
                }
            }
        }
        names.extend([
            format!("gather_push_{many}"),
            "gather_pull".to_owned(),
            "parts_push".to_owned(),
            "parts_pull".to_owned(),
            format!("gather_lamport_f32_{many}"),
            format!("gather_lamport_half_{many}"),
        ]);
        let entry = |name: &String| {
            // Those that push have one, but for ops that are rare.
            let short = match name.contains("pull") || name.contains("other") {
                true => None,
                false => Some(load(&format!("{name}_short"))?),
            };
            Ok(Entry { kernel: load(name)?, short, blocks: 1 })
        };
        let all = names.iter().map(entry).collect::<Result<_, StepError>>()?;
        Ok(Kernels { all, probe: load("probe")? })
    }

    #[inline]
    pub(crate) fn reduction(&self, family: Reduction, dtype: Dtype, op: ReduceOp) -> &Entry {
        let dtype = match dtype {
            Dtype::F32 => 0,
            Dtype::F16 => 1,
            _ => 2,
        };
        let other = usize::from(!matches!(op, ReduceOp::Sum | ReduceOp::Avg));
        &self.all[(family as usize * DTYPES.len() + dtype) * KINDS.len() + other]
    }

    #[inline]
    pub(crate) fn copying(&self, which: Copying) -> &Entry {
        &self.all[REDUCTIONS.len() * DTYPES.len() * KINDS.len() + which as usize]
    }

    /// Blocks of the most threads that this device holds at a time, of each kernel.
    pub(crate) fn resident_blocks(&self) -> Result<Vec<u32>, DeviceError> {
        self.all.iter().map(Entry::resident_blocks).collect()
    }

    /// Takes the limits that were agreed, in the same order.
    pub(crate) fn limit(&mut self, blocks: &[u64]) {
        for (entry, blocks) in self.all.iter_mut().zip(blocks) {
            entry.blocks = *blocks;
        }
    }
}

/// Images of other structures than this program's would read parameters that are not there.
fn check_abi(library: &Library) -> Result<(), StepError> {
    let ours: String =
        Sha256::digest(header().as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let images = library.images();
    match images.abi() == ours {
        true => Ok(()),
        false => Err(StepError(format!(
            "the kernel images in {} are of another version than this program: build them again \
             with `cargo xtask kernels`",
            images.folder().display()
        ))),
    }
}
