//! A backend as it should be: its eligibility is a constant, its set-up agrees at every step.
use crossover_core::agreement::{Local, Setup, SetupError, StepError};
use crossover_core::backend::{Algorithm, Backend, Descriptor, Ready, Session};
use crossover_core::eligibility::{Eligibility, Nodes, Worlds};
use crossover_core::facts::GroupFacts;

const ELIGIBILITY: Eligibility =
    Eligibility { worlds: Worlds::range(2, 16), nodes: Nodes::One, ..Eligibility::EVERYTHING };

crossover_core::register_backend!(
    Descriptor {
        id: "straight",
        version: "1",
        settings: &[],
        algorithms: &[Algorithm { name: "one", eligibility: ELIGIBILITY, params: &[] }],
    },
    || Box::new(Straight)
);

struct Straight;

impl Backend for Straight {
    fn set_up<'g>(
        &self,
        setup: &mut Setup<'g>,
        _facts: &GroupFacts,
    ) -> Result<Ready<'g>, SetupError> {
        let room = setup.step("allocate", Local::new(()), |here, ()| Ok(u64::from(here.rank())))?;
        let capacity = setup.min("agree on room", room)?;
        let session = setup.step("open", Local::new(()), |_, ()| {
            Err::<Box<dyn Session>, _>(StepError::new("this one never opens"))
        })?;
        Ok(Ready { session, capacity })
    }
}
