//! Who started this process, what place it has, and what other variables will have their say.

use std::net::IpAddr;

use crossover_bootstrap::{Launch, Place};

use super::finding::Finding;

const CHECK: &str = "launcher";

type Variables<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// What launchers say of a process, theirs and their allocation's: shown whether or not they rank it.
const SHOWN: [&str; 22] = [
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "PMI_RANK",
    "PMI_SIZE",
    "MPI_LOCALRANKID",
    "MPI_LOCALNRANKS",
    "MV2_COMM_WORLD_RANK",
    "MV2_COMM_WORLD_SIZE",
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
    "SLURM_PROCID",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_LOCALID",
    "SLURM_STEP_TASKS_PER_NODE",
];

/// Variables of vendors that alter how this process's devices work, the value that does no harm, and
/// what any other one means.
const ALTERED: [(&str, &str, &str); 5] = [
    (
        "CUDA_LAUNCH_BLOCKING",
        "0",
        "every launch waits for its kernel, and a kernel for its peers': ranks that are threads of \
         one process hang",
    ),
    ("HIP_LAUNCH_BLOCKING", "0", "every launch waits for its kernel, and so for all peers"),
    ("AMD_SERIALIZE_KERNEL", "0", "every launch waits for its kernel, and so for all peers"),
    ("NCCL_P2P_DISABLE", "0", "NCCL goes through host memory between devices of a node"),
    ("NCCL_SHM_DISABLE", "0", "NCCL goes over the network where devices do not reach another"),
];

/// The place that a launcher gave this process, if one did, and what was found.
pub(super) fn examine(variable: &Variables<'_>) -> (Option<Launch>, Vec<Finding>) {
    let (launch, mut findings) = match Launch::from_env(variable) {
        Ok(None) => (None, vec![none(variable)]),
        Ok(Some(launch)) => {
            let findings = of_launch(&launch);
            (Some(launch), findings)
        }
        Err(e) => (None, vec![Finding::fail(CHECK, e.to_string(), None)]),
    };
    let value = |name: &&str| Some(format!("{name}={}", set(variable, name)?));
    let shown: Vec<String> = SHOWN.iter().filter_map(value).collect();
    if !shown.is_empty() {
        findings.push(Finding::ok("launcher_env", shown.join(", ")));
    }
    findings.extend(ALTERED.iter().filter_map(|(name, harmless, meaning)| {
        let value = set(variable, name).filter(|value| value != harmless)?;
        let advice = format!("unset {name}, unless that is meant");
        Some(Finding::warn("environment", format!("{name}={value}: {meaning}"), advice))
    }));
    (launch, findings)
}

/// An empty variable is an unset one.
fn set(variable: &Variables<'_>, name: &str) -> Option<String> {
    variable(name).filter(|value| !value.trim().is_empty())
}

fn none(variable: &Variables<'_>) -> Finding {
    match set(variable, "SLURM_JOB_ID") {
        Some(job) => Finding::hint(
            CHECK,
            format!("none has started this process, which is in Slurm's allocation {job}"),
            "start the ranks with srun",
        ),
        None => Finding::ok(CHECK, "none has started this process"),
    }
}

fn of_launch(launch: &Launch) -> Vec<Finding> {
    let (rank, world, family) = (launch.rank(), launch.world(), launch.family());
    let (local, here) = (launch.local_rank(), launch.local_world());
    let (job, attempt) = (launch.job(), launch.attempt());
    let place = launch.place().map(|place| format!(", meeting at {place}")).unwrap_or_default();
    let found = format!(
        "{family:?}: rank {rank} of {world}, {local} of {here} on this node, job {job}, attempt \
         {attempt}{place}"
    );
    let mut findings = vec![Finding::ok(CHECK, found)];
    if let (true, Some(Place::Tcp { host, .. })) = (launch.spans_nodes(), launch.place())
        && is_this_machine_alone(host)
    {
        findings.push(Finding::fail(
            CHECK,
            format!("the job spans several nodes and would meet at {host}, which each has itself"),
            Some(
                "give an address of rank 0's node that the others reach: MASTER_ADDR, or \
                  CROSSOVER_RENDEZVOUS",
            ),
        ));
    }
    findings
}

fn is_this_machine_alone(host: &str) -> bool {
    let is_loopback = |address: IpAddr| address.to_canonical().is_loopback();
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict;

    #[track_caller]
    fn check(variables: &[(&str, &str)], want: &[(Verdict, &str)]) {
        let value = |name: &str| {
            let (_, value) = variables.iter().find(|(known, _)| *known == name)?;
            Some((*value).to_owned())
        };
        let (_, findings) = examine(&value);
        let told: Vec<(Verdict, &str)> =
            findings.iter().map(|finding| (finding.verdict, finding.found.as_str())).collect();
        assert_eq!(told, want);
    }

    const TORCHRUN: [(&str, &str); 6] = [
        ("RANK", "9"),
        ("WORLD_SIZE", "16"),
        ("LOCAL_RANK", "1"),
        ("LOCAL_WORLD_SIZE", "8"),
        ("MASTER_ADDR", "10.0.0.1"),
        ("MASTER_PORT", "29500"),
    ];
    const SHOWN: &str = "RANK=9, WORLD_SIZE=16, LOCAL_RANK=1, LOCAL_WORLD_SIZE=8, \
                         MASTER_ADDR=10.0.0.1, MASTER_PORT=29500";

    #[test]
    fn a_place_is_told_with_what_it_was_read_from() {
        check(&[], &[(Verdict::Ok, "none has started this process")]);
        let place = "Torchrun: rank 9 of 16, 1 of 8 on this node, job 10.0.0.1-29500, attempt 0, \
                     meeting at tcp://10.0.0.1:29500";
        check(&TORCHRUN, &[(Verdict::Ok, place), (Verdict::Ok, SHOWN)]);
    }

    #[test]
    fn contradictions_and_parts_fail() {
        let others = [
            ("OMPI_COMM_WORLD_RANK", "3"),
            ("OMPI_COMM_WORLD_SIZE", "16"),
            ("OMPI_COMM_WORLD_LOCAL_RANK", "3"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "8"),
        ];
        let both = [&TORCHRUN[..], &others[..]].concat();
        let why = "RANK=9 (torchrun) and OMPI_COMM_WORLD_RANK=3 (Open MPI's mpirun) contradict each \
                   other: unset the variables of the launcher that did not start this process";
        let shown = format!(
            "{SHOWN}, OMPI_COMM_WORLD_RANK=3, OMPI_COMM_WORLD_SIZE=16, \
             OMPI_COMM_WORLD_LOCAL_RANK=3, OMPI_COMM_WORLD_LOCAL_SIZE=8"
        );
        check(&both, &[(Verdict::Fail, why), (Verdict::Ok, &shown)]);
        let told = examine(&|name| (name == "PMI_RANK").then(|| "0".to_owned())).1;
        assert_eq!((told[0].verdict, told.len()), (Verdict::Fail, 2));
    }

    #[test]
    fn several_nodes_do_not_meet_at_home() {
        for host in ["127.0.0.1", "localhost", "::1", "::ffff:127.0.0.1"] {
            let mut variables = TORCHRUN;
            variables[4].1 = host;
            let value = |name: &str| {
                let (_, value) = variables.iter().find(|(known, _)| *known == name)?;
                Some((*value).to_owned())
            };
            assert_eq!(examine(&value).1[1].verdict, Verdict::Fail, "{host}");
        }
        assert!(!is_this_machine_alone("10.0.0.1") && !is_this_machine_alone("node7"));
    }

    #[test]
    fn an_allocation_is_no_launch() {
        let none = "none has started this process, which is in Slurm's allocation 12";
        let variables = [("SLURM_JOB_ID", "12"), ("SLURM_PROCID", "0")];
        check(&variables, &[(Verdict::Ok, none), (Verdict::Ok, "SLURM_JOB_ID=12, SLURM_PROCID=0")]);
    }

    #[test]
    fn variables_that_alter_devices_are_told() {
        let none = (Verdict::Ok, "none has started this process");
        check(&[("CUDA_LAUNCH_BLOCKING", "0"), ("NCCL_DEBUG", "INFO")], &[none]);
        let through_host = "NCCL_P2P_DISABLE=1: NCCL goes through host memory between devices of a \
                            node";
        check(&[("NCCL_P2P_DISABLE", "1")], &[none, (Verdict::Warn, through_host)]);
    }
}
