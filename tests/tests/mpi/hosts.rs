//! Two hosts: network namespaces that reach each other by one wire alone. The launcher starts ranks on
//! the other one as it would by ssh.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crossover::{Builder, ReduceOp};
use crossover_core::call::Op;
use crossover_tests::mpi::Job;

/// Addresses of the hosts.
const HERE: &str = "10.213.77.1";
const THERE: &str = "10.213.77.2";
/// Elements that are summed: more than a chunk.
const COUNT: usize = 2_000_003;

/// Both, for as long as this lives.
pub(crate) struct Hosts {
    names: [String; 2],
}

impl Hosts {
    /// Makes them, and a program in `folder` that runs commands on the second.
    pub(crate) fn new(folder: &Path) -> Result<Hosts, String> {
        let name = |host: &str| format!("crossover-{}-{host}", std::process::id());
        let hosts = Hosts { names: [name("a"), name("b")] };
        let [a, b] = &hosts.names;
        ip(&format!("netns add {a}"))?;
        ip(&format!("netns add {b}"))?;
        ip(&format!("link add wire netns {a} type veth peer name wire netns {b}"))?;
        for (host, address) in [(a, HERE), (b, THERE)] {
            ip(&format!("-n {host} addr add {address}/24 dev wire"))?;
            ip(&format!("-n {host} link set wire up"))?;
            ip(&format!("-n {host} link set lo up"))?;
        }
        hosts.until_wired()?;
        // The launcher gives ssh's options, the host and the command.
        let script = format!(
            "#!/bin/sh\nwhile [ \"${{1#-}}\" != \"$1\" ]; do shift; done\nshift\n\
             exec ip netns exec {b} sh -c \"$*\"\n"
        );
        let program = folder.join("on-the-other-host");
        std::fs::write(&program, script).map_err(|e| e.to_string())?;
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))
            .map_err(|e| e.to_string())?;
        Ok(hosts)
    }

    /// The kernel takes up to a second to see that both ends of a wire are up.
    fn until_wired(&self) -> Result<(), String> {
        let until = Instant::now() + Duration::from_secs(10);
        for name in &self.names {
            while !ip(&format!("-n {name} -o link show wire"))?.contains("state UP") {
                if Instant::now() > until {
                    return Err(format!("the wire of {name} does not come up"));
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        Ok(())
    }

    /// Runs [`rank`] twice on each.
    pub(crate) fn run(&self, library: &Path, folder: &Path, test: &str) {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[0]]).arg(library.join("bin/mpiexec"));
        // What ranks of one machine could take instead of the wire is switched off.
        let job = Job::by(command, library, folder, test)
            .env("UCX_TLS", "tcp,self")
            .env("UCX_NET_DEVICES", "wire")
            .env("FI_PROVIDER", "tcp")
            .env("CROSSOVER_RENDEZVOUS", &format!("tcp://{HERE}:29477"));
        let program = folder.join("on-the-other-host").display().to_string();
        let hosts = format!("{HERE},{THERE}");
        let options = ["-launcher", "ssh", "-launcher-exec", &program, "-hosts", &hosts];
        let ended = job.run(&[&options[..], &["-ppn", "2", "-n", "4"]].concat());
        ended.verdict(4).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(ended.said.matches("1 passed").count(), 4, "{ended:#?}");
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = ip(&format!("netns del {name}"));
        }
    }
}

/// What the program says.
fn ip(arguments: &str) -> Result<String, String> {
    let output = Command::new("ip").args(arguments.split(' ')).output();
    let output = output.map_err(|e| format!("ip cannot be run: {e}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!("ip {arguments}: {}", said.trim()))
        }
    }
}

/// One of the four: forms the group as an engine does, and makes calls.
pub(crate) fn rank() {
    let host = std::env::var("PMI_HOSTNAME").expect("the launcher tells ranks their host");
    let builder = Builder::from_env().expect("the variables are the launcher's");
    let group = builder.set("node_id", host, "the test").form().expect("the group forms");
    let profile = group.facts().profile();
    assert_eq!((profile.nodes, profile.world, profile.topology.name()), (2, 4, "multi_node"));

    let call = group.signature::<f32>(Op::AllReduce, COUNT);
    let chosen = group.explain(&call).chosen.expect("it is served").target;
    assert_eq!(chosen, "mpi/two_shot");
    let small = group.signature::<f32>(Op::AllReduce, 100);
    assert_eq!(group.explain(&small).chosen.expect("it is served").target, "mpi/one_shot");

    let rank = group.rank() as usize;
    let before = over_the_wire();
    let mut data: Vec<f32> = (0..COUNT).map(|i| ((i + rank) % 1000) as f32).collect();
    group.all_reduce_in_place(&mut data, ReduceOp::Sum).expect("all are here");
    for (i, got) in data.iter().enumerate() {
        let want: usize = (0..4).map(|rank| (i + rank) % 1000).sum();
        assert_eq!(*got, want as f32, "element {i}");
    }
    // A host's two ranks give both of the other's a quarter, and then a quarter of the results.
    let (sent, at_least) = (over_the_wire() - before, (COUNT * size_of::<f32>()) as u64);
    assert!(sent > at_least, "{sent} B went over the wire, and {at_least} B have to");

    let mut parts = vec![0i64; 10];
    let counts = [1, 2, 3, 4];
    let mine = vec![rank as i64; counts[rank]];
    group.all_gather_v(&mine, &counts, &mut parts).expect("all are here");
    assert_eq!(parts, [0, 1, 1, 2, 2, 2, 3, 3, 3, 3]);
    let served = group.counters();
    assert!(served.iter().all(|line| line.target.starts_with("mpi/")), "{served:?}");
    assert_eq!(served.iter().map(|line| line.calls).sum::<u64>(), 2);
    group.close().expect("all close");
}

/// Bytes that this host has sent.
fn over_the_wire() -> u64 {
    let table = std::fs::read_to_string("/proc/net/dev").expect("the kernel's table");
    let wire = table.lines().find_map(|line| line.trim().strip_prefix("wire:"));
    // Eight numbers of what came, then those of what went.
    let sent = wire.and_then(|numbers| numbers.split_whitespace().nth(8)?.parse().ok());
    sent.expect("the host has a wire")
}
