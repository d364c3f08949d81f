//! One group'\''s agreement, used for another.
#![allow(unused, unreachable_code)]
use crossover_core::agreement::{Agreed, Here, Local, Setup, SetupError, StepError, with_setup};
use crossover_core::backend::{Backend, Ready, Session};
use crossover_core::facts::GroupFacts;

struct Crooked;

impl Backend for Crooked {
    fn set_up<'g>(
        &self,
        setup: &mut Setup<'g>,
        _facts: &GroupFacts,
    ) -> Result<Ready<'g>, SetupError> {
        let session = setup.step("open", Local::new(()), session)?;
        let mut other: Option<Agreed<'g, u64>> = None;
        let boot: &dyn crossover_core::bootstrap::Bootstrap = unimplemented!();
        with_setup(boot, &Default::default(), |another| {
            other = another.min("agree on room", Local::new(1)).ok();
        });
        Ok(Ready { session, capacity: other.unwrap() })
    }
}

fn session(_: &Here<'_>, _: ()) -> Result<Box<dyn Session>, StepError> {
    Err(StepError::new("never opens"))
}

fn main() {}
