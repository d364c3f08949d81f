//! Where these tests run: in processes of their own, with the variables that NCCL wants where ranks
//! share a device, since to set a variable while other threads run is not sound.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crossover_core::bootstrap::Bootstrap;
use crossover_core::communicator::Communicator;
use crossover_core::form::FormError;
use crossover_core::policy::Policy;
use crossover_tests::device::{Stand, Target};
use crossover_tests::groups::{Plan, forcing, on_channels};
use crossover_tests::nccl::{StandIn, install, stand_in};

pub(crate) const VARIABLES: [(&str, &str); 2] =
    [("NCCL_MULTI_RANK_GPU_ENABLE", "1"), ("NCCL_NVLS_ENABLE", "0")];

/// Runs a test in a process of its own. `name` is its path, as the harness knows it, behind the name
/// of the test program.
#[expect(clippy::print_stderr, reason = "a test that skips says so")]
pub(crate) fn apart(name: &str, test: fn(&'static Stand)) {
    let stand = match Stand::find() {
        Ok(stand) if stand.is_emulated() => stand,
        Ok(_) => return eprintln!("skipped: the stand-in works on the emulated device alone"),
        Err(why) => return eprintln!("skipped: {why}"),
    };
    if VARIABLES.iter().all(|(name, value)| std::env::var(name).as_deref() == Ok(value)) {
        return test(stand);
    }
    let (_, path) = name.split_once("::").expect("a program and a test");
    let output = Command::new(std::env::current_exe().expect("this program has a file"))
        .args([path, "--exact", "--nocapture", "--test-threads=1"])
        .envs(VARIABLES)
        .output()
        .expect("this program can be started again");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success(), "{}\n{said}", output.status);
    assert!(said.contains("1 passed"), "there is no test {path}: {said}");
}

/// A test in a process of its own.
macro_rules! tests_apart {
    ($(fn $name:ident($stand:ident) $body:block)+) => {$(
        #[test]
        fn $name() {
            fn test($stand: &'static crossover_tests::device::Stand) $body
            let name = concat!(module_path!(), "::", stringify!($name));
            $crate::stage::apart(name, test);
        }
    )+};
}
pub(crate) use tests_apart;

/// The library of these macros, given the driver's streams.
pub(crate) struct Library {
    pub(crate) stand_in: StandIn,
    pub(crate) path: PathBuf,
}

impl Library {
    pub(crate) fn build(stand: &Stand, defines: &[&str]) -> Library {
        Library::at(stand, stand_in(defines).expect("g++ is there: kernels were compiled"))
    }

    /// The same under NCCL's name, so that it is taken where no other is named.
    pub(crate) fn named_as_nccl(stand: &Stand, defines: &[&str]) -> Library {
        let built = stand_in(defines).expect("g++ is there: kernels were compiled");
        let folder = built.with_extension("named");
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("libnccl.so.2");
        if !path.exists() {
            let part = folder.join(format!("part-{}", std::process::id()));
            fs::copy(&built, &part).expect("a copy");
            // Another process may be as far, and have loaded its own: the first one stays.
            let linked = fs::hard_link(&part, &path);
            assert!(linked.is_ok() || path.exists(), "{linked:?}");
            fs::remove_file(&part).expect("the copy's other name");
        }
        Library::at(stand, path)
    }

    fn at(stand: &Stand, path: PathBuf) -> Library {
        let driver = stand.emulated.as_ref().expect("the device is emulated");
        Library { stand_in: install(&path, driver).expect("it can be loaded"), path }
    }
}

/// A group that has a target and nothing else, with the library at a path.
pub(crate) fn plan(stand: &Stand, target: &'static str, library: &Path) -> Plan {
    stand.plan(&Target::parse(target)).set("nccl.library", &library.display().to_string())
}

/// The same, where an algorithm that cannot be had is passed over.
pub(crate) fn willing(mut plan: Plan, chain: &[&str]) -> Plan {
    let mut rule = plan.policy.rules()[0].clone();
    rule.forced = false;
    rule.chain = chain.iter().map(|one| forcing(one).rules()[0].chain[0].clone()).collect();
    plan.policy = Policy::new(plan.policy.contract, vec![rule]);
    plan
}

/// Forms a group of ranks that each report a device of their own.
pub(crate) fn form<R: Send>(
    stand: &Stand,
    world: u32,
    plan_of: impl Fn(u32) -> Plan + Sync,
    body: impl Fn(&dyn Bootstrap, Result<Communicator, FormError>) -> R + Sync,
) -> Vec<R> {
    on_channels(world, Duration::from_secs(60), |boot| {
        let plan = plan_of(boot.rank());
        let mut report = stand.report();
        report.unit = format!("GPU-{}", boot.rank());
        let (registry, policy) = (&plan.registry, &plan.policy);
        body(boot, Communicator::form(boot, registry, policy, report, &plan.settings))
    })
}

/// Why a group cannot form: the same sentence on every rank.
pub(crate) fn refusal(stand: &Stand, world: u32, plan_of: impl Fn(u32) -> Plan + Sync) -> String {
    let errors = form(stand, world, plan_of, |_, formed| match formed {
        Ok(_) => "it forms".to_owned(),
        Err(e) => e.to_string(),
    });
    assert!(errors.iter().all(|e| *e == errors[0]), "ranks tell different stories: {errors:#?}");
    errors[0].clone()
}
