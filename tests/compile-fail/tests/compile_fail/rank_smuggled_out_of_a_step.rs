//! A step that writes the rank to a variable outside.
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
        let mut rank = 0;
        setup.step("look", Local::new(()), |here, ()| {
            rank = here.rank();
            Ok(())
        })?;
        if rank > 0 {
            setup.all("all but rank 0 come here", Local::new(true))?;
        }
        let capacity = setup.min("agree on room", Local::new(1))?;
        let session = setup.step("open", Local::new(()), session)?;
        Ok(Ready { session, capacity })
    }
}

fn session(_: &Here<'_>, _: ()) -> Result<Box<dyn Session>, StepError> {
    Err(StepError::new("never opens"))
}

fn main() {}
