//! A call is checked once, here, so that no backend need check it again.

use crate::call::{CallSig, Op, Split};
use crate::communicator::CallError;

/// Is the call one that a group of `world` can make?
pub(crate) fn validate(call: &CallSig<'_>, world: u32) -> Result<(), CallError> {
    let invalid = |what: String| Err(CallError::Invalid { op: call.op, what });
    let world = world as usize;
    if call.root as usize >= world {
        return invalid(format!("root {} is not a rank of a group of {world}", call.root));
    }
    let output = match call.op {
        Op::AllGather => call.count.checked_mul(world),
        _ => Some(call.count),
    };
    let in_memory =
        |n: usize| n.checked_mul(call.dtype.size()).is_some_and(|b| b <= isize::MAX as usize);
    if !output.is_some_and(in_memory) {
        let (count, dtype) = (call.count, call.dtype);
        return invalid(format!("{count} x {dtype} over {world} ranks does not fit in memory"));
    }
    match call.split {
        Split::Even => match call.op {
            Op::ReduceScatter | Op::AllToAll if !call.count.is_multiple_of(world) => {
                invalid(format!("{} elements do not split evenly over {world} ranks", call.count))
            }
            _ => Ok(()),
        },
        Split::PerRank(counts) => {
            if counts.len() != world {
                return invalid(format!("{} counts for a group of {world}", counts.len()));
            }
            let total = counts.iter().try_fold(0usize, |sum, n| sum.checked_add(*n));
            let expected = match call.op {
                Op::AllGather => counts.iter().copied().max(),
                Op::ReduceScatter => total,
                _ => {
                    return invalid(
                        "only all_gather and reduce_scatter take counts per rank".to_owned(),
                    );
                }
            };
            if expected != Some(call.count) || !total.is_some_and(in_memory) {
                return invalid(format!("count {} does not follow from {counts:?}", call.count));
            }
            Ok(())
        }
    }
}
