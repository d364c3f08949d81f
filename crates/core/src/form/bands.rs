//! Who serves which sizes of an op, in a few lines: what a group logs of itself when it is asked.

use crate::bytes::{is_round, size_text};
use crate::call::{CallKind, Dtype, Dtypes, Mode, Modes, Op, ReduceOp};
use crate::explain::Swept;
use crate::plan::Plan;

/// One line for each set of dtypes and modes that are decided alike; of ops that reduce, for sums.
/// Sizes are input bytes per rank.
pub(crate) fn bands_in_words(plan: &Plan, op: Op) -> Vec<String> {
    let mut lines: Vec<(Dtypes, Modes, Vec<Swept>)> = Vec::new();
    for &mode in Mode::ALL {
        for (dtypes, bands) in decided_alike(plan, op, mode) {
            match lines.iter_mut().find(|line| (line.0, &line.2) == (dtypes, &bands)) {
                Some((_, modes, _)) => *modes = modes.union(Modes::of(&[mode])),
                None => lines.push((dtypes, Modes::of(&[mode]), bands)),
            }
        }
    }
    let call = if op.reduces() { format!("{op} {}", ReduceOp::Sum) } else { op.to_string() };
    let line = |(dtypes, modes, bands): &(Dtypes, Modes, Vec<Swept>)| {
        let dtypes = if *dtypes == Dtypes::ALL { "any dtype".into() } else { dtypes.to_string() };
        let modes = if *modes == Modes::ALL { "any mode".into() } else { modes.to_string() };
        format!("{call} of {dtypes} ({modes}): {}", in_words(bands))
    };
    lines.iter().map(line).collect()
}

fn decided_alike(plan: &Plan, op: Op, mode: Mode) -> Vec<(Dtypes, Vec<Swept>)> {
    let mut groups: Vec<(Dtypes, Vec<Swept>)> = Vec::new();
    for &dtype in Dtype::ALL {
        let contract = plan.contract();
        let bands = plan.sweep(&CallKind { op, dtype, reduce_op: ReduceOp::Sum, mode, contract });
        match groups.iter_mut().find(|group| group.1 == bands) {
            Some((dtypes, _)) => *dtypes = dtypes.union(Dtypes::of(&[dtype])),
            None => groups.push((Dtypes::of(&[dtype]), bands)),
        }
    }
    groups
}

/// `ipc/one_shot up to 64KiB, ipc/two_shot below 1MiB, then nccl`
fn in_words(bands: &[Swept]) -> String {
    let ends = bands.iter().skip(1).map(|band| Some(band.from)).chain([None]);
    let words = bands.iter().zip(ends).map(|(band, end)| {
        let target = target_in_words(band);
        match end {
            None if band.from == 0 => target,
            None => format!("then {target}"),
            Some(end) if is_round(end) => format!("{target} below {}", size_text(end)),
            Some(end) => format!("{target} up to {}", size_text(end - 1)),
        }
    });
    words.collect::<Vec<_>>().join(", ")
}

/// `nccl (algorithm ring, channels 4)`
fn target_in_words(band: &Swept) -> String {
    let target = band.target.as_deref().unwrap_or("nothing");
    if band.params.is_empty() {
        return target.to_owned();
    }
    let params: Vec<_> =
        band.params.iter().map(|(name, value)| format!("{name} {value}")).collect();
    format!("{target} ({})", params.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_are_told_by_their_rounder_ends() {
        let band = |from, target: &str| {
            let target = (target != "-").then(|| target.to_owned());
            Swept { from, target, params: Vec::new() }
        };
        assert_eq!(in_words(&[band(0, "copy")]), "copy");
        assert_eq!(in_words(&[band(0, "-")]), "nothing");
        let bands = [band(0, "-"), band(1, "a/x"), band(65_537, "a/y"), band(1 << 20, "b")];
        assert_eq!(in_words(&bands), "nothing up to 0B, a/x up to 64KiB, a/y below 1MiB, then b");
        let bands = [band(0, "a"), band(1001, "b"), band(3 << 30, "-")];
        assert_eq!(in_words(&bands), "a up to 1000B, b below 3GiB, then nothing");
        let params = vec![("algorithm", "ring".to_owned()), ("channels", "4".to_owned())];
        let bands = [band(0, "n"), Swept { params, ..band(1 << 20, "n") }];
        assert_eq!(in_words(&bands), "n below 1MiB, then n (algorithm ring, channels 4)");
    }
}
