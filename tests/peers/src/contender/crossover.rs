//! This project, as an engine uses it: through the public communicator, with the policy in force
//! and every check on.

use anyhow::Result;
use crossover::{Builder, CallBuffers, CallSig, Communicator, Contract, Mode, Op, ReduceOp, Split};

use super::Contender;
use crate::call::Dtype;

pub(crate) struct Crossover {
    group: Communicator,
    contract: Contract,
}

impl Crossover {
    /// Forms the group. Collective.
    pub(crate) fn form() -> Result<Crossover> {
        let group = Builder::from_env()?.tag("tp").form()?;
        let contract = group.plan().contract();
        Ok(Crossover { group, contract })
    }

    #[inline]
    unsafe fn run(
        &self,
        op: Op,
        dtype: Dtype,
        count: usize,
        input: *const u8,
        output: *mut u8,
    ) -> Result<()> {
        let call = CallSig {
            op,
            dtype: match dtype {
                Dtype::F32 => crossover::Dtype::F32,
                Dtype::Bf16 => crossover::Dtype::Bf16,
            },
            reduce_op: ReduceOp::Sum,
            count,
            mode: Mode::Eager,
            root: 0,
            split: Split::Even,
            contract: self.contract,
        };
        // SAFETY: the caller's promise.
        Ok(unsafe { self.group.run(&call, &CallBuffers { input, output, stream: 0 }) }?)
    }
}

impl Contender for Crossover {
    fn rank(&self) -> usize {
        self.group.rank() as usize
    }

    fn world(&self) -> usize {
        self.group.world() as usize
    }

    unsafe fn all_reduce(
        &mut self,
        dtype: Dtype,
        count: usize,
        input: *const u8,
        output: *mut u8,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.run(Op::AllReduce, dtype, count, input, output) }
    }

    unsafe fn all_gather(
        &mut self,
        dtype: Dtype,
        count: usize,
        input: *const u8,
        output: *mut u8,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.run(Op::AllGather, dtype, count, input, output) }
    }

    unsafe fn reduce_scatter(
        &mut self,
        dtype: Dtype,
        count: usize,
        input: *const u8,
        output: *mut u8,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.run(Op::ReduceScatter, dtype, count, input, output) }
    }

    unsafe fn broadcast(&mut self, dtype: Dtype, count: usize, buffer: *mut u8) -> Result<()> {
        // SAFETY: the caller's promise; in place is allowed.
        unsafe { self.run(Op::Broadcast, dtype, count, buffer, buffer) }
    }

    fn finish(self: Box<Self>) -> Result<()> {
        Ok(self.group.close()?)
    }
}
