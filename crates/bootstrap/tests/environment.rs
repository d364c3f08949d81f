//! What launchers' variables mean, and what is said when they mean nothing.

use crossover_bootstrap::{Launch, LaunchError};

/// `A=1 B=2` as an environment.
fn read(text: &str) -> Result<Option<Launch>, LaunchError> {
    let pairs: Vec<(&str, &str)> =
        text.split_whitespace().map(|p| p.split_once('=').unwrap()).collect();
    Launch::from_env(&|name| {
        pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
    })
}

/// Family, rank/world, local rank/world, job, attempt and place, as one line.
#[track_caller]
fn is(text: &str, want: &str) {
    let l = read(text).unwrap().expect("a launch");
    let place = l.place().map(ToString::to_string).unwrap_or_default();
    let place =
        if place.starts_with("unix:/tmp/crossover-") { "own directory".into() } else { place };
    let got = format!(
        "{:?} {}/{} {}/{} {} {} {place}",
        l.family(),
        l.rank(),
        l.world(),
        l.local_rank(),
        l.local_world(),
        l.job(),
        l.attempt()
    );
    assert_eq!(got.trim_end(), want);
}

#[track_caller]
fn fails(text: &str, want: &str) {
    assert_eq!(read(text).unwrap_err().to_string(), want);
}

const OWN: &str =
    "CROSSOVER_RANK=1 CROSSOVER_WORLD_SIZE=4 CROSSOVER_LOCAL_RANK=1 CROSSOVER_LOCAL_WORLD_SIZE=4";
const TORCHRUN: &str = "RANK=1 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4";
const OPEN_MPI: &str = "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=4";
const HYDRA: &str = "PMI_RANK=1 PMI_SIZE=4 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=4";
const MVAPICH2: &str = "MV2_COMM_WORLD_RANK=1 MV2_COMM_WORLD_SIZE=4 MV2_COMM_WORLD_LOCAL_RANK=1 MV2_COMM_WORLD_LOCAL_SIZE=4";
const SLURM: &str = "SLURM_JOB_ID=7 SLURM_STEP_ID=2 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=4 SLURM_LOCALID=1 SLURM_STEP_TASKS_PER_NODE=4 SLURM_NODEID=0";

#[test]
fn each_family_alone() {
    is(OWN, "Crossover 1/4 1/4 unnamed 0 own directory");
    is(TORCHRUN, "Torchrun 1/4 1/4 unnamed 0 own directory");
    is(OPEN_MPI, "OpenMpi 1/4 1/4 unnamed 0 own directory");
    is(HYDRA, "Hydra 1/4 1/4 unnamed 0 own directory");
    is(MVAPICH2, "Mvapich2 1/4 1/4 unnamed 0 own directory");
    is(SLURM, "Slurm 1/4 1/4 7.2 0 own directory");
    assert_eq!(read("").unwrap(), None);
    assert_eq!(read("PATH=/bin RANK=").unwrap(), None);
    assert_eq!(read("CROSSOVER_JOB=x MASTER_ADDR=y").unwrap(), None);
}

#[test]
fn names_attempts_and_places() {
    let torchrun = format!(
        "{TORCHRUN} TORCHELASTIC_RUN_ID=r TORCHELASTIC_RESTART_COUNT=2 MASTER_ADDR=h MASTER_PORT=9"
    );
    is(&torchrun, "Torchrun 1/4 1/4 r-h-9 2 own directory");
    is(
        &format!("{torchrun} CROSSOVER_JOB=j CROSSOVER_ATTEMPT=5"),
        "Torchrun 1/4 1/4 j 5 own directory",
    );
    is(&format!("{SLURM} SLURM_RESTART_COUNT=1"), "Slurm 1/4 1/4 7.2 1 own directory");
    is(&format!("{OPEN_MPI} PMIX_NAMESPACE=ns"), "OpenMpi 1/4 1/4 ns 0 own directory");
    is(&format!("{OWN} CROSSOVER_RENDEZVOUS=file:/s/f"), "Crossover 1/4 1/4 unnamed 0 file:/s/f");
    let slurm = SLURM.replace("TASKS_PER_NODE=4", "TASKS_PER_NODE=2(x2)");
    is(&format!("{slurm} CROSSOVER_RENDEZVOUS=tcp://h:1"), "Slurm 1/4 1/2 7.2 0 tcp://h:1");
    is("RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1", "Torchrun 0/1 0/1 unnamed 0");
}

#[test]
fn directories_are_a_jobs_own() {
    let directory = |more: &str| {
        let launch = read(&format!("{TORCHRUN} XDG_RUNTIME_DIR=/tmp {more}")).unwrap().unwrap();
        launch.place().unwrap().to_string()
    };
    let all = ["", "MASTER_PORT=1", "MASTER_PORT=2", "TORCHELASTIC_RESTART_COUNT=1"].map(directory);
    for (i, one) in all.iter().enumerate() {
        assert!(!all[..i].contains(one), "{all:?}");
    }
    assert_eq!(directory("MASTER_PORT=1"), all[1]);
}

#[test]
fn several_nodes_need_an_address() {
    let torchrun = "RANK=1 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2";
    is(
        &format!("{torchrun} MASTER_ADDR=h MASTER_PORT=29500"),
        "Torchrun 1/4 1/2 h-29500 0 tcp://h:29500",
    );
    let what_to_do = "set CROSSOVER_RENDEZVOUS to tcp://HOST:PORT, with a free port of rank 0's node, or to file:/PATH on a shared file system";
    let none = "the job spans several nodes and has no address to meet at: ";
    fails(torchrun, &format!("{none}{what_to_do}"));
    fails(
        &format!("{torchrun} MASTER_ADDR=h"),
        &format!("{none}MASTER_ADDR is set but MASTER_PORT is not; {what_to_do}"),
    );
    fails(
        &format!("{torchrun} MASTER_ADDR=h MASTER_PORT=29500 TORCHELASTIC_USE_AGENT_STORE=True"),
        &format!(
            "{none}torchrun itself listens at MASTER_PORT (TORCHELASTIC_USE_AGENT_STORE is true); {what_to_do}"
        ),
    );
    fails(
        &format!("{torchrun} MASTER_ADDR=h MASTER_PORT=http"),
        "MASTER_PORT is `http`, which is no port",
    );
    fails(
        &format!("{torchrun} CROSSOVER_RENDEZVOUS=h:1"),
        "CROSSOVER_RENDEZVOUS is `h:1`: it is not `unix:/abs/path`, `file:/abs/path` or `tcp://host:port`: it starts with none of `unix:`, `file:` and `tcp://`",
    );
}

#[test]
fn contradictions_inside_a_family() {
    fails(
        "RANK=4 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4",
        "RANK=4 must be less than WORLD_SIZE=4: the two were not set by one launcher",
    );
    fails(
        "RANK=1 WORLD_SIZE=4 LOCAL_RANK=2 LOCAL_WORLD_SIZE=2",
        "LOCAL_RANK=2 must be less than LOCAL_WORLD_SIZE=2: the two were not set by one launcher",
    );
    fails(
        "PMI_RANK=1 PMI_SIZE=4 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=8",
        "MPI_LOCALNRANKS=8 must be at most PMI_SIZE=4: the two were not set by one launcher",
    );
    fails(
        "RANK=1 WORLD_SIZE=4 LOCAL_WORLD_SIZE=4",
        "RANK is set but LOCAL_RANK is not: start with torchrun, or set all of RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE",
    );
    fails(
        "WORLD_SIZE=4",
        "WORLD_SIZE is set but RANK is not: start with torchrun, or set all of RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE",
    );
    fails(&TORCHRUN.replace("RANK=1 W", "RANK=one W"), "RANK is `one`, which is no number");
    fails(&TORCHRUN.replace("RANK=1 W", "RANK=-1 W"), "RANK is `-1`, which is no number");
    fails(
        &SLURM.replace("NODEID=0", "NODEID=1"),
        "SLURM_STEP_TASKS_PER_NODE is `4`, which is no list of tasks per node, such as `2(x3),1`, that covers SLURM_NODEID",
    );
}

#[test]
fn contradictions_between_families() {
    fails(
        &format!("{TORCHRUN} {}", OPEN_MPI.replace("WORLD_RANK=1", "WORLD_RANK=3")),
        "RANK=1 (torchrun) and OMPI_COMM_WORLD_RANK=3 (Open MPI's mpirun) contradict each other: unset the variables of the launcher that did not start this process",
    );
    fails(
        &format!("{HYDRA} {}", SLURM.replace("NUM_TASKS=4", "NUM_TASKS=8")),
        "PMI_SIZE=4 (Hydra's mpiexec) and SLURM_STEP_NUM_TASKS=8 (srun) contradict each other: unset the variables of the launcher that did not start this process",
    );
    is(&format!("{HYDRA} {MVAPICH2} {OPEN_MPI}"), "OpenMpi 1/4 1/4 unnamed 0 own directory");
    // The own family is explicit: it wins without a word, but not incomplete.
    is(
        &format!("{OWN} {}", TORCHRUN.replace('4', "8")),
        "Crossover 1/4 1/4 unnamed 0 own directory",
    );
    fails(
        &format!("CROSSOVER_RANK=1 {TORCHRUN}"),
        "CROSSOVER_RANK is set but CROSSOVER_WORLD_SIZE is not: start with crossover launch, or set all of CROSSOVER_RANK, CROSSOVER_WORLD_SIZE, CROSSOVER_LOCAL_RANK, CROSSOVER_LOCAL_WORLD_SIZE",
    );
}

#[test]
fn slurm_is_often_only_around_another_launcher() {
    // A batch script: rank 0 of all tasks, but no step.
    let batch =
        "SLURM_JOB_ID=7 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=8 SLURM_TASKS_PER_NODE=4(x2)";
    assert_eq!(read(batch).unwrap(), None);
    is(&format!("{batch} {TORCHRUN}"), "Torchrun 1/4 1/4 unnamed 0 own directory");
    // An interactive shell in an allocation: a step of one task.
    let shell = "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 SLURM_LOCALID=0 SLURM_STEP_TASKS_PER_NODE=1 SLURM_NODEID=0";
    is(shell, "Slurm 0/1 0/1 7.0 0");
    is(&format!("{shell} {HYDRA}"), "Hydra 1/4 1/4 unnamed 0 own directory");
    // `srun --ntasks-per-node=1 torchrun`, and mpirun's daemons: one task a node.
    let daemon = "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=0 SLURM_STEP_TASKS_PER_NODE=1(x2) SLURM_NODEID=1";
    let torchrun =
        "RANK=3 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 CROSSOVER_RENDEZVOUS=tcp://h:1";
    is(&format!("{daemon} {torchrun}"), "Torchrun 3/4 1/2 unnamed 0 tcp://h:1");
    // `srun --mpi=pmi2` sets a part of Hydra's variables.
    is(&format!("{SLURM} PMI_RANK=1 PMI_SIZE=4"), "Slurm 1/4 1/4 7.2 0 own directory");
}
