//! The same under ThreadSanitizer, with fewer ranks and seeds.

use crossover_kernel_emulation::compile::{Make, common_kernels};
use crossover_kernel_emulation::scenario::Verdict;

use crate::common::{build, scratch};
use crate::group::Setup;
use crate::suite::{KINDS, scenario};

#[test]
fn nothing_races() {
    let kernels = common_kernels().expect("the sources can be listed");
    let Some(program) = build(Make::SanitizedProgram, &kernels, &[]) else { return };
    for (at, kind) in KINDS.iter().enumerate() {
        for world in [2, 3] {
            let scenario = scenario(Setup::new(world, at as u64), Some(*kind));
            let outcome = scenario.play_sanitized(&program, &scratch("suite"));
            let outcome = outcome.expect("the program runs");
            assert_eq!(outcome.verdict, Verdict::Done, "{kind:?} {world}: {}", outcome.report);
        }
    }
}
