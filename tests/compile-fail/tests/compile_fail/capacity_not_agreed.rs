//! A capacity that no vote was taken on.
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
        let capacity = Local::new(1 << 20);
        Ok(Ready { session, capacity })
    }
}

fn session(_: &Here<'_>, _: ()) -> Result<Box<dyn Session>, StepError> {
    Err(StepError::new("never opens"))
}

fn main() {}
