//! Who is measured.

mod crossover;
mod library;

use anyhow::{Context as _, Result};

pub(crate) use self::crossover::Crossover;
pub(crate) use self::library::Library;
use crate::call::Dtype;

/// A library of collectives, as one rank of a job sees it. Reductions are sums.
///
/// Every call is blocking: the output is complete and the input may be overwritten when it returns.
pub(crate) trait Contender {
    fn rank(&self) -> usize;

    fn world(&self) -> usize;

    /// # Safety
    ///
    /// `count` elements at `input` and at `output`, which do not overlap.
    unsafe fn all_reduce(
        &mut self,
        dtype: Dtype,
        count: usize,
        input: *const u8,
        output: *mut u8,
    ) -> Result<()>;

    /// # Safety
    ///
    /// `count` elements at `input`, as many for each rank at `output`; they do not overlap.
    unsafe fn all_gather(
        &mut self,
        dtype: Dtype,
        count: usize,
        input: *const u8,
        output: *mut u8,
    ) -> Result<()>;

    /// # Safety
    ///
    /// `count` elements at `input`, a multiple of the ranks; an equal part of them at `output`;
    /// they do not overlap.
    unsafe fn reduce_scatter(
        &mut self,
        dtype: Dtype,
        count: usize,
        input: *const u8,
        output: *mut u8,
    ) -> Result<()>;

    /// From rank 0, in place.
    ///
    /// # Safety
    ///
    /// `count` elements at `buffer`.
    unsafe fn broadcast(&mut self, dtype: Dtype, count: usize, buffer: *mut u8) -> Result<()>;

    /// Says goodbye, collectively.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// This process's rank and the number of ranks, from the launcher's variables.
pub(crate) fn place() -> Result<(usize, usize)> {
    let launch = ::crossover::bootstrap::Launch::from_env(&|name| std::env::var(name).ok())?;
    let launch = launch.context(
        "no launcher's variables: start it as `crossover launch -n N --bind none -- peers ..`",
    )?;
    Ok((launch.rank() as usize, launch.world() as usize))
}
