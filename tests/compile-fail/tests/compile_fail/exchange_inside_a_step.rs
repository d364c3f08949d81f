//! An exchange inside local work, which only some ranks might reach.
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
        let capacity = setup.min("agree on room", Local::new(1))?;
        let session = setup.step("open", Local::new(()), |here, ()| {
            if here.rank() == 0 {
                setup.all("only rank 0 comes here", Local::new(true)).ok();
            }
            session(here, ())
        })?;
        Ok(Ready { session, capacity })
    }
}

fn session(_: &Here<'_>, _: ()) -> Result<Box<dyn Session>, StepError> {
    Err(StepError::new("never opens"))
}

fn main() {}
