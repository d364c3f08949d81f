//! SGLang 0.5.23: `custom_all_reduce_v2.py` and its configuration.

use crossover_core::call::Mode;
use crossover_core::call::Mode::{Eager, Graph};

use Devices::{Other, Sm90, Sm100, Sm107};

/// Who runs an all-reduce of `bytes`, and by how many blocks and threads; 0 is a number that follows
/// the device. `capability` is the compute capability, 103 for 10.3.
pub fn all_reduce(
    capability: u32,
    world: u32,
    mode: Mode,
    multicast: bool,
    bytes: u64,
) -> (&'static str, u64, u64) {
    let nccl = ("nccl", 0, 0);
    let Some(rule) = rule(capability, world, mode) else { return nccl };
    let (.., [push, two_push, pull, two_pull], switch, switch_blocks, pull_blocks) = *rule;
    if bytes <= push {
        return ("ipc/one_shot_push", 0, 0);
    }
    if bytes <= two_push {
        return ("ipc/two_shot_push", 0, 0);
    }
    if bytes <= pull {
        return ("ipc/one_shot_pull", pull_blocks, 0);
    }
    if multicast && switch.is_some_and(|(low, high)| low <= bytes && bytes <= high) {
        return ("nvls/two_shot", switch_blocks, 512);
    }
    if bytes <= two_pull {
        return ("ipc/two_shot_pull", pull_blocks, 0);
    }
    nccl
}

/// Every bound of the table.
pub fn constants() -> Vec<u64> {
    let bounds = RULES.iter().flat_map(|(.., bounds, switch, _, _)| {
        bounds.iter().copied().chain(switch.iter().flat_map(|(low, high)| [*low, *high]))
    });
    let mut constants: Vec<u64> = bounds.collect();
    constants.sort_unstable();
    constants.dedup();
    constants
}

fn rule(capability: u32, world: u32, mode: Mode) -> Option<&'static Rule> {
    let devices = match capability {
        90..=99 => Sm90,
        100..=106 => Sm100,
        107.. => Sm107,
        _ => Other,
    };
    RULES.iter().find(|(d, low, high, m, ..)| {
        *d == devices && (*low..=*high).contains(&world) && *m == mode
    })
}

#[derive(Clone, Copy, PartialEq)]
enum Devices {
    Sm90,
    Sm100,
    Sm107,
    Other,
}

/// Devices, fewest and most ranks, mode; bounds of one-shot push, two-shot push, one-shot pull and
/// two-shot pull; range of the switch; blocks of the switch and of pull. Both ends of all included.
type Rule = (Devices, u32, u32, Mode, [u64; 4], Option<(u64, u64)>, u64, u64);

#[rustfmt::skip]
const RULES: &[Rule] = &[
    (Sm90, 2, 2, Graph, [16_777_216, 0, 134_217_728, 134_217_728], None, 0, 64),
    (Sm90, 2, 2, Eager, [33_554_432, 0, 134_217_728, 134_217_728], None, 0, 64),
    (Sm90, 3, 3, Graph, [1_310_720, 0, 1_310_720, 134_217_728], None, 0, 64),
    (Sm90, 3, 3, Eager, [3_145_728, 0, 3_145_728, 16_777_216], None, 0, 64),
    (Sm90, 4, 4, Graph, [393_216, 0, 393_216, 134_217_728], None, 0, 64),
    (Sm90, 4, 4, Eager, [917_504, 0, 917_504, 33_554_432], Some((0, 33_554_432)), 32, 64),
    (Sm90, 5, 5, Graph, [196_608, 0, 196_608, 33_554_432], None, 0, 64),
    (Sm90, 5, 5, Eager, [393_216, 0, 393_216, 33_554_432], Some((0, 33_554_432)), 25, 64),
    (Sm90, 6, 6, Graph, [131_072, 0, 131_072, 33_554_432], Some((8_388_608, 33_554_432)), 21, 64),
    (Sm90, 6, 6, Eager, [196_608, 0, 196_608, 33_554_432], Some((0, 33_554_432)), 21, 64),
    (Sm90, 7, 7, Graph, [131_072, 0, 131_072, 33_554_432], Some((1_048_576, 33_554_432)), 18, 64),
    (Sm90, 7, 7, Eager, [131_072, 0, 131_072, 33_554_432], Some((0, 33_554_432)), 18, 64),
    (Sm90, 8, 8, Graph, [131_072, 0, 131_072, 33_554_432], Some((524_288, 134_217_728)), 16, 64),
    (Sm90, 8, 8, Eager, [131_072, 0, 131_072, 134_217_728], Some((0, 134_217_728)), 16, 64),
    (Sm100, 2, 2, Graph, [8_388_608, 0, 33_554_432, 134_217_728], None, 0, 0),
    (Sm100, 2, 2, Eager, [16_777_216, 0, 134_217_728, 134_217_728], None, 0, 0),
    (Sm100, 3, 3, Graph, [4_194_304, 0, 4_194_304, 134_217_728], None, 0, 96),
    (Sm100, 3, 3, Eager, [8_388_608, 0, 8_388_608, 33_554_432], None, 0, 96),
    (Sm100, 4, 4, Graph, [655_360, 8_388_608, 655_360, 134_217_728], None, 0, 96),
    (Sm100, 4, 4, Eager, [655_360, 8_388_608, 655_360, 33_554_432], None, 0, 96),
    (Sm100, 5, 5, Graph, [1_572_864, 0, 1_572_864, 134_217_728], None, 0, 96),
    (Sm100, 5, 5, Eager, [2_097_152, 0, 2_097_152, 33_554_432], Some((0, 33_554_432)), 64, 96),
    (Sm100, 6, 6, Graph, [1_048_576, 0, 1_048_576, 134_217_728], None, 0, 96),
    (Sm100, 6, 6, Eager, [1_310_720, 0, 1_310_720, 67_108_864], Some((0, 67_108_864)), 48, 96),
    (Sm100, 7, 7, Graph, [655_360, 0, 655_360, 134_217_728], None, 0, 96),
    (Sm100, 7, 7, Eager, [1_048_576, 0, 1_048_576, 67_108_864], Some((0, 67_108_864)), 48, 96),
    (Sm100, 8, 8, Graph, [262_144, 8_388_608, 262_144, 134_217_728], Some((8_388_608, 134_217_728)), 32, 96),
    (Sm100, 8, 8, Eager, [262_144, 8_388_608, 262_144, 134_217_728], Some((0, 134_217_728)), 32, 96),
    (Sm100, 16, 16, Graph, [262_144, 0, 262_144, 134_217_728], Some((262_144, 134_217_728)), 32, 96),
    (Sm100, 16, 16, Eager, [262_144, 0, 262_144, 134_217_728], Some((262_144, 134_217_728)), 32, 96),
    (Sm107, 2, 2, Graph, [134_217_728, 0, 134_217_728, 134_217_728], None, 0, 0),
    (Sm107, 2, 2, Eager, [134_217_728, 0, 134_217_728, 134_217_728], None, 0, 0),
    (Sm107, 3, 3, Graph, [20_578_304, 0, 20_578_304, 134_217_728], None, 0, 0),
    (Sm107, 3, 3, Eager, [41_091_596, 0, 41_091_596, 134_217_728], None, 0, 0),
    (Sm107, 4, 4, Graph, [7_275_020, 0, 7_275_020, 134_217_728], None, 0, 0),
    (Sm107, 4, 4, Eager, [10_288_627, 0, 10_288_627, 134_217_728], Some((10_288_628, 134_217_728)), 128, 0),
    (Sm107, 5, 5, Graph, [7_275_020, 0, 7_275_020, 134_217_728], Some((7_275_021, 134_217_728)), 128, 0),
    (Sm107, 5, 5, Eager, [7_275_020, 0, 7_275_020, 134_217_728], Some((7_275_021, 134_217_728)), 128, 0),
    (Sm107, 6, 6, Graph, [5_111_808, 0, 5_111_808, 134_217_728], Some((5_111_808, 134_217_728)), 128, 0),
    (Sm107, 6, 6, Eager, [5_111_808, 0, 5_111_808, 134_217_728], Some((5_111_808, 134_217_728)), 128, 0),
    (Sm107, 7, 7, Graph, [3_605_004, 0, 3_605_004, 134_217_728], Some((3_605_005, 134_217_728)), 128, 0),
    (Sm107, 7, 7, Eager, [3_605_004, 0, 3_605_004, 134_217_728], Some((3_605_005, 134_217_728)), 128, 0),
    (Sm107, 8, 8, Graph, [2_556_428, 0, 2_556_428, 134_217_728], Some((2_556_429, 134_217_728)), 96, 0),
    (Sm107, 8, 8, Eager, [2_556_428, 0, 2_556_428, 134_217_728], Some((2_556_429, 134_217_728)), 96, 0),
    (Sm107, 16, 16, Graph, [851_968, 0, 851_968, 134_217_728], Some((851_968, 134_217_728)), 32, 0),
    (Sm107, 16, 16, Eager, [851_968, 0, 851_968, 134_217_728], Some((851_968, 134_217_728)), 32, 0),
    (Other, 2, 16, Graph, [1_048_576, 0, 1_048_576, 16_777_216], None, 0, 0),
    (Other, 2, 16, Eager, [1_048_576, 0, 1_048_576, 16_777_216], None, 0, 0),
];
