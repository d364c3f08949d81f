//! The group that adds partial sums up, and what it says of itself.

use crossover::core::counters::Count;
use crossover::{Builder, Communicator, ReduceOp};
use tensor_parallel::Error;
use tensor_parallel::encoder::Reduce;

/// A rank's communicator as the encoder uses it.
pub(crate) struct Group(pub(crate) Communicator);

impl Group {
    /// From the launcher's variables; a group of one without. `target` forces a backend.
    pub(crate) fn form(target: Option<&str>) -> Result<Group, Error> {
        let mut builder = Builder::from_env()?.tag("tp");
        if let Some(target) = target {
            builder = builder.set("use", target, "--use");
        }
        Ok(Group(builder.form()?))
    }

    /// One line for each kind of collective that was made: how many, how large, who served them
    /// and by which rule.
    pub(crate) fn served(&self) -> Vec<String> {
        self.0.counters().iter().map(|count| self.line(count)).collect()
    }

    fn line(&self, count: &Count) -> String {
        let Count { op, target, at_least, calls, bytes } = count;
        let elements = *at_least as usize / size_of::<f32>();
        let chosen = self.0.explain(&self.0.signature::<f32>(*op, elements)).chosen;
        // A bucket of sizes may hold two bands: name the rule only where it chose this target.
        let rule = chosen.filter(|c| c.target == *target).map(|c| c.rule);
        let rule = rule.filter(|rule| !rule.is_empty());
        let rule = rule.map(|rule| format!(" by rule {rule}")).unwrap_or_default();
        format!("{calls:>5} {op} f32 from {at_least} B, {bytes} B in all: {target}{rule}")
    }

    /// Are these the same bits on every rank?
    pub(crate) fn alike(&self, values: &[f32]) -> Result<bool, Error> {
        let bits: Vec<u32> = values.iter().map(|v| v.to_bits()).collect();
        let mut all = vec![0; bits.len() * self.0.world() as usize];
        self.0.all_gather(&bits, &mut all)?;
        Ok(all.chunks(bits.len().max(1)).all(|of_rank| of_rank == bits))
    }
}

impl Reduce for Group {
    fn all_reduce(&mut self, partial: &mut [f32]) -> Result<(), Error> {
        Ok(self.0.all_reduce_in_place(partial, ReduceOp::Sum)?)
    }
}
