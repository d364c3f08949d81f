//! vLLM 0.33.0: `cuda_communicator.py`, `custom_all_reduce.py`, `symm_mem.py`, `quick_all_reduce.py`
//! and the tables of `all_reduce_utils.py`.

use crossover_core::call::Dtype;
use crossover_core::facts::Topology;

use super::{KIB, MIB};

/// A `tp` group of vLLM.
#[derive(Clone, Copy)]
pub struct Group {
    /// Such as `sm90`.
    pub arch: &'static str,
    /// Number of ranks.
    pub world: u32,
    /// How they are linked.
    pub topology: Topology,
    /// Can it multicast?
    pub multicast: bool,
}

/// Who runs an all-reduce of `bytes`.
pub fn all_reduce(group: Group, dtype: Dtype, bytes: u64) -> &'static str {
    let Group { arch, world, .. } = group;
    if custom_all_reduce(group, dtype, bytes) {
        return custom_kernel(world, bytes);
    }
    if symmetric_memory(group) && dtype == Dtype::Bf16 && bytes <= row(SYMM_SIZES, arch, world) {
        return if multimem(arch, world) { "nvls/two_shot" } else { "symm/two_shot" };
    }
    "nccl"
}

fn custom_all_reduce(group: Group, dtype: Dtype, bytes: u64) -> bool {
    let mut max_size = 8 * MIB;
    if symmetric_memory(group) {
        max_size = max_size.min(row(CUSTOM_SIZES, group.arch, group.world));
    }
    let supported = nvidia(group) || ["gfx942", "gfx950"].contains(&group.arch);
    let paired = group.world == 2 && group.topology == Topology::Pcie;
    supported
        && [2, 4, 6, 8].contains(&group.world)
        && (fully_connected(group) || paired)
        && float(dtype)
        && bytes < max_size
}

fn custom_kernel(world: u32, bytes: u64) -> &'static str {
    if world == 2
        || (world <= 4 && bytes < 512 * KIB)
        || (world > 4 && world <= 8 && bytes < 256 * KIB)
    {
        "ipc/one_shot_pull"
    } else {
        "ipc/two_shot_pull"
    }
}

fn symmetric_memory(group: Group) -> bool {
    group.multicast
        && group.topology == Topology::NvlinkFull
        && ARCHES.contains(&group.arch)
        && [2, 4, 6, 8].contains(&group.world)
}

fn multimem(arch: &str, world: u32) -> bool {
    match arch {
        "sm90" => [4, 6, 8].contains(&world),
        _ => [6, 8].contains(&world),
    }
}

/// With this codec switched on, does QuickReduce go before all others? `minimum` is its row.
pub fn quick_reduce(group: Group, dtype: Dtype, minimum: [u64; 3], bytes: u64) -> bool {
    let at = [2, 4, 8].iter().position(|world| *world == group.world);
    ["gfx942", "gfx950"].contains(&group.arch)
        && fully_connected(group)
        && [Dtype::F16, Dtype::Bf16].contains(&dtype)
        && at.is_some_and(|at| minimum[at] * MIB <= bytes && bytes <= 2048 * MIB)
}

/// Codecs and their smallest sizes in MiB, for 2, 4 and 8 ranks, of f16; also of bf16, which is cast.
pub const QUICK_REDUCE: &[(&str, [u64; 3])] =
    &[("fp16", [1, 1, 16]), ("int8", [2, 16, 4]), ("int6", [2, 4, 4]), ("int4", [1, 2, 2])];

/// Who runs an all-gather of `bytes` from each rank, asked for by the sequence-parallel code.
pub fn all_gather(group: Group, dtype: Dtype, bytes: u64) -> &'static str {
    if !nvidia(group) || !float(dtype) || bytes == 0 {
        return "nccl";
    }
    if group.multicast {
        let limit = match group.world {
            2 => 8 * MIB,
            4 => 4 * MIB,
            6 | 8 => 2 * MIB,
            16 if group.topology == Topology::Mnnvl => 2 * MIB,
            _ => 0,
        };
        let linked = fully_connected(group) || fabric(group);
        return if linked && bytes <= limit { "nvls/lamport_all_gather" } else { "nccl" };
    }
    let served = fully_connected(group) && [2, 4, 6, 8].contains(&group.world);
    if served && bytes <= 2 * MIB { "ipc/all_gather" } else { "nccl" }
}

/// The kernel that runs a reduce-scatter of `bytes` into each rank, by vLLM's name for it.
pub fn reduce_scatter(group: Group, dtype: Dtype, bytes: u64) -> &'static str {
    if !nvidia(group) || !float(dtype) {
        return "nccl";
    }
    let worlds: &[u32] = if fabric(group) { &[2, 4, 6, 8, 16] } else { &[2, 4, 6, 8] };
    let linked = fully_connected(group) || fabric(group);
    if linked && worlds.contains(&group.world) && bytes <= 16 * MIB {
        return if group.multicast { "lamport" } else { "one_shot" };
    }
    let family_100 = group.arch.starts_with("sm10");
    let switch = group.multicast && linked && family_100 && [2, 4, 8].contains(&group.world);
    if switch && bytes <= 64 * MIB { "multimem" } else { "nccl" }
}

fn nvidia(group: Group) -> bool {
    group.arch.starts_with("sm")
}

fn fully_connected(group: Group) -> bool {
    matches!(group.topology, Topology::NvlinkFull | Topology::XgmiFull)
}

/// Several nodes, only with capability 10.0 and multicast.
fn fabric(group: Group) -> bool {
    group.topology == Topology::Mnnvl && group.multicast && group.arch != "sm90"
}

fn float(dtype: Dtype) -> bool {
    [Dtype::F32, Dtype::F16, Dtype::Bf16].contains(&dtype)
}

/// Every size at which something above changes.
pub fn constants() -> Vec<u64> {
    let tables = CUSTOM_SIZES.iter().chain(SYMM_SIZES).flatten().copied();
    let codecs = QUICK_REDUCE.iter().flat_map(|(_, row)| row.map(|mib| mib * MIB));
    let others = [256 * KIB, 512 * KIB, 2 * MIB, 4 * MIB, 8 * MIB, 16 * MIB, 64 * MIB, 2048 * MIB];
    let mut constants: Vec<u64> = tables.chain(codecs).chain(others).collect();
    constants.sort_unstable();
    constants.dedup();
    constants
}

fn row(table: &[[u64; 4]; 4], arch: &str, world: u32) -> u64 {
    let arch = ARCHES.iter().position(|a| *a == arch).expect("an architecture of the tables");
    table[arch][world as usize / 2 - 1]
}

const ARCHES: [&str; 4] = ["sm90", "sm100", "sm103", "sm107"];

/// `CUSTOM_ALL_REDUCE_MAX_SIZES`, for 2, 4, 6 and 8 ranks.
const CUSTOM_SIZES: &[[u64; 4]; 4] = &[
    [64 * MIB, 32 * MIB, 512 * KIB, 256 * KIB],
    [2 * MIB, 2 * MIB, MIB, MIB],
    [4 * MIB, 4 * MIB, 8 * MIB, 4 * MIB],
    [4 * MIB, 4 * MIB, 8 * MIB, 4 * MIB],
];

/// `SYMM_MEM_ALL_REDUCE_MAX_SIZES`, for 2, 4, 6 and 8 ranks.
const SYMM_SIZES: &[[u64; 4]; 4] = &[
    [64 * MIB, 32 * MIB, 64 * MIB, 64 * MIB],
    [8 * MIB, 32 * MIB, 128 * MIB, 128 * MIB],
    [4 * MIB, 32 * MIB, 32 * MIB, 64 * MIB],
    [4 * MIB, 32 * MIB, 32 * MIB, 64 * MIB],
];
