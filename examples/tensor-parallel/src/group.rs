//! The group that adds partial sums up, and what it says of itself.

use std::collections::BTreeMap;

use crossover::{Builder, Communicator, Op, ReduceOp};
use tensor_parallel::Error;
use tensor_parallel::encoder::Reduce;

/// A rank's communicator as the encoder uses it.
pub(crate) struct Group {
    pub(crate) comm: Communicator,
    /// All-reduces so far, by elements.
    calls: BTreeMap<usize, u64>,
}

impl Group {
    /// From the launcher's variables; a group of one without. `target` forces a backend.
    pub(crate) fn form(target: Option<&str>) -> Result<Group, Error> {
        let mut builder = Builder::from_env()?.tag("tp");
        if let Some(target) = target {
            builder = builder.set("use", target, "--use");
        }
        Ok(Group { comm: builder.form()?, calls: BTreeMap::new() })
    }

    /// One line for each size of the model's all-reduces: how many, and by which rule they are
    /// served; then who really served them, by the group's own counters.
    pub(crate) fn served(&self) -> Vec<String> {
        let size = |(elements, calls): (&usize, &u64)| {
            let call = self.comm.signature::<f32>(Op::AllReduce, *elements);
            let chosen = self.comm.explain(&call).chosen;
            let chosen = chosen.map_or("nothing".to_owned(), |c| match c.rule.as_str() {
                "" => c.target,
                rule => format!("{} by rule {rule}", c.target),
            });
            format!("{calls:>5} {} {} of {} B: {chosen}", call.op, call.dtype, call.bytes())
        };
        let mut really: BTreeMap<String, u64> = BTreeMap::new();
        for count in self.comm.counters() {
            *really.entry(count.target).or_default() += count.calls;
        }
        let really: Vec<String> =
            really.into_iter().map(|(target, calls)| format!("{target} {calls}")).collect();
        let served = format!("counted: {}", really.join(", "));
        self.calls.iter().map(size).chain([served]).collect()
    }

    /// Are these the same bits on every rank?
    pub(crate) fn alike(&self, values: &[f32]) -> Result<bool, Error> {
        let bits: Vec<u32> = values.iter().map(|v| v.to_bits()).collect();
        let mut all = vec![0; bits.len() * self.comm.world() as usize];
        self.comm.all_gather(&bits, &mut all)?;
        Ok(all.chunks(bits.len().max(1)).all(|of_rank| of_rank == bits))
    }
}

impl Reduce for Group {
    fn all_reduce(&mut self, partial: &mut [f32]) -> Result<(), Error> {
        *self.calls.entry(partial.len()).or_default() += 1;
        Ok(self.comm.all_reduce_in_place(partial, ReduceOp::Sum)?)
    }
}
