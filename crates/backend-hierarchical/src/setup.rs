//! How a group comes up: who is where, a control plane for each group within, and those groups. Each
//! step is voted on, so it comes up on every rank or on none.

use crossover_backend_ipc::Ipc;
use crossover_backend_nccl::Nccl;
use crossover_core::agreement::{Local, Setup, SetupError, StepError};
use crossover_core::backend::{Backend, Ready, Session};
use crossover_core::facts::{GroupFacts, RankReport};
use crossover_core::policy::ParamValue;
use crossover_core::registry::Registration;
use crossover_core::settings::BackendSettings;

use crate::health::Health;
use crate::layout::Layout;
use crate::level::{Level, Own, Plan};
use crate::session::HierarchicalSession;

/// Backend `hierarchical`, before it is bound to a group.
pub struct Hierarchical;

impl Backend for Hierarchical {
    fn set_up<'g>(
        &self,
        setup: &mut Setup<'g>,
        facts: &GroupFacts,
    ) -> Result<Ready<'g>, SetupError> {
        let found = Layout::of(facts);
        let layout = setup.step("divide the group by nodes", Local::new(()), move |_, ()| {
            found.map_err(StepError)
        })?;
        let blocks = limit_blocks(setup, facts)?;
        let ranks_per_unit = facts.ranks_per_unit();
        let reports = facts.reports().to_vec();
        let settings = setup.read("read the settings of both levels", |s| Ok(s.clone()))?;
        let seat = layout.zip(setup.rank()).zip(settings);
        let seat = seat.map(move |((layout, rank), mut settings)| {
            // A group across counts its own ranks alone, and the others' calls run beside its own.
            let key = "nccl.ranks_per_device".to_owned();
            settings.values.entry(key).or_insert_with(|| ranks_per_unit.to_string());
            let report = reports[rank as usize].clone();
            let ((node, number), seat) = (layout.place(rank), Seat { report, settings });
            let inside = (node, (layout.inside(rank), seat.clone()));
            (inside, (number, (layout.across(rank), seat)))
        });
        let (inside, across) = seat.unzip();
        let launch = blocks.map(|n| vec![("blocks".to_owned(), ParamValue::Count(n))]);
        let launch = launch.unwrap_or_default();
        let kernels = Plan {
            place: "inside its node",
            backend: Registration {
                descriptor: &crossover_backend_ipc::DESCRIPTOR,
                make: || Box::new(Ipc),
            },
            chain: vec![("reduce_scatter", launch.clone()), ("all_gather", launch)],
        };
        let library = Plan {
            place: "across nodes",
            backend: Registration {
                descriptor: &crossover_backend_nccl::DESCRIPTOR,
                make: || Box::new(Nccl),
            },
            chain: vec![("", Vec::new())],
        };
        let inside = form(setup, inside, kernels)?;
        let across = form(setup, across, library)?;
        let session =
            setup.step("make room for what ranks tell", inside.zip(across), |here, both| {
                let (inside, across) = both;
                let device =
                    crossover_device::open(&here.settings().device).map_err(StepError::new)?;
                let nodes = across.world() as u32;
                let health = Health::new(&device, inside.world(), inside.rank(), nodes)?;
                Ok(Box::new(HierarchicalSession { inside, across, health }) as Box<dyn Session>)
            })?;
        let capacity = setup.equal("agree on capacity", Local::new(u64::MAX))?;
        Ok(Ready { session, capacity })
    }
}

/// What a rank brings to a group within the group.
#[derive(Clone)]
struct Seat {
    report: RankReport,
    settings: BackendSettings,
}

/// Forms one level: `own` is the color of this rank's group there and its ranks.
fn form(
    setup: &mut Setup<'_>,
    own: Local<(u32, (Vec<u32>, Seat))>,
    plan: Plan,
) -> Result<Local<Level>, SetupError> {
    let (color, own) = own.unzip();
    let place = plan.place;
    let channel = setup.split(&format!("meet {place}"), color)?;
    setup.step(&format!("form a group {place}"), channel.zip(own), |_, (channel, (ranks, seat))| {
        let Seat { report, settings } = seat;
        Level::form(plan, Own { channel, report, settings, ranks })
    })
}

/// Where nodes are only played and share devices, several groups' kernels are on one device, and
/// each of those groups knows of its own ranks alone: so many blocks leave room for the others', two
/// kernels of every rank, since the second may come early.
fn limit_blocks(setup: &mut Setup<'_>, facts: &GroupFacts) -> Result<Option<u64>, SetupError> {
    let reports = facts.reports();
    let is_elsewhere = |a: &RankReport, b: &RankReport| a.unit == b.unit && a.node != b.node;
    if !reports.iter().any(|a| reports.iter().any(|b| is_elsewhere(a, b))) {
        return Ok(None);
    }
    let counted = setup.step("count its multiprocessors", Local::new(()), |here, ()| {
        let device = crossover_device::open(&here.settings().device).map_err(StepError::new)?;
        Ok(u64::from(device.description().multiprocessors))
    })?;
    let least = setup.min("agree on multiprocessors", counted)?;
    let kernels = 2 * u64::from(facts.ranks_per_unit());
    Ok(Some((least.get() / kernels).max(1)))
}
