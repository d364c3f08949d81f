//! Two hosts, played by two network namespaces with a cable between them.

#![allow(clippy::print_stderr, reason = "says what a rank saw, and why the test skips")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crossover_bootstrap::{Launch, Options, Place, connect};

/// Not a test by itself: one rank, in a process of its own.
#[test]
fn as_a_rank() {
    let Ok(place) = std::env::var("TEST_PLACE") else { return };
    let number = |name: &str| std::env::var(name).unwrap().parse::<u32>().unwrap();
    let (rank, node) = (number("TEST_RANK"), number("TEST_NODE"));
    let place: Place = place.parse().unwrap();
    let launch = Launch::new(rank, 5)
        .local(rank / 2, if node == 0 { 3 } else { 2 })
        .named("hosts", 0)
        .at(place);
    let options = Options {
        deadline: Duration::from_secs(number("TEST_DEADLINE").into()),
        node_id: Some(format!("node{node}")),
        ..Options::default()
    };
    match connect(&launch, &options) {
        Err(e) => eprintln!("SAID {e}"),
        Ok(boot) => {
            let all = boot.all_gather("exchange", &[rank as u8; 70_000]).unwrap();
            assert!((0..5).all(|rank| all[rank] == vec![rank as u8; 70_000]));
            // Those of a node among themselves, and the first, second and third of each node.
            for (what, color) in [("inside", node), ("across", rank / 2)] {
                let part = boot.split(what, color).unwrap_or_else(|e| panic!("{e}"));
                let all = part.all_gather("exchange", &[rank as u8]).unwrap();
                let is_in =
                    |other: u32| if what == "inside" { other % 2 } else { other / 2 } == color;
                let want: Vec<_> = (0..5).filter(|r| is_in(*r)).map(|r| vec![r as u8]).collect();
                assert_eq!(all, want, "{what}");
            }
            eprintln!("SAID {}", boot.all_gather_fds("pass", &[]).unwrap_err());
        }
    }
}

/// Ranks 0, 2 and 4 on one host, 1 and 3 on the other; what each says.
fn ranks(hosts: &Hosts, place: &str, deadline: u32) -> Vec<String> {
    let me = std::env::current_exe().unwrap();
    let start = |rank: u32| -> Child {
        let node = rank % 2;
        Command::new("ip")
            .args(["netns", "exec", &hosts.names[node as usize]])
            .arg(&me)
            .args(["--exact", "as_a_rank", "--nocapture", "--quiet"])
            .env("TEST_PLACE", place)
            .env("TEST_RANK", rank.to_string())
            .env("TEST_NODE", node.to_string())
            .env("TEST_DEADLINE", deadline.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let all: Vec<Child> = (0..5).map(start).collect();
    all.into_iter()
        .map(|rank| {
            let output = rank.wait_with_output().unwrap();
            let text = String::from_utf8(output.stderr).unwrap();
            let said =
                text.split_once("SAID ").map(|(_, said)| said.lines().next().unwrap().to_owned());
            said.unwrap_or_else(|| panic!("{text}"))
        })
        .collect()
}

#[test]
fn ranks_on_two_hosts_meet_over_a_real_address_and_not_over_loopback() {
    if std::env::var("TEST_PLACE").is_ok() {
        return;
    }
    let hosts = match Hosts::new() {
        Ok(hosts) => hosts,
        Err(why) => {
            eprintln!("skipped: two network namespaces need root and iproute2: {why}");
            return;
        }
    };
    let dir = tempfile::tempdir().unwrap();
    // Rank 0's address; and none at all, but a file: it has two addresses, of which one is reachable.
    let file = format!("file:{}", dir.path().join("meet").display());
    for place in ["tcp://10.213.7.1:29517", &file] {
        for said in ranks(&hosts, place, 20) {
            assert!(
                said.contains("rank 1 (") && said.contains("is on another node than rank 0"),
                "{place}: {said}"
            );
        }
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    for said in ranks(&hosts, "tcp://localhost:29517", 20) {
        assert!(said.contains("a loopback address, but the job spans several nodes"), "{said}");
    }
    // An address of the other host: rank 0 cannot listen there, and says so.
    let said = ranks(&hosts, "tcp://10.213.7.2:29517", 1).remove(0);
    assert!(said.contains("it is no address of this node"), "{said}");
}

/// Removed on drop, and so also when a test fails.
struct Hosts {
    names: [String; 2],
}

impl Hosts {
    fn new() -> Result<Self, String> {
        let pid = std::process::id();
        let hosts = Hosts { names: [format!("crossover-{pid}-a"), format!("crossover-{pid}-b")] };
        let [a, b] = &hosts.names;
        let cable = format!("xo{pid}");
        let commands = [
            format!("netns add {a}"),
            format!("netns add {b}"),
            // The same name on both ends, each in its own namespace.
            format!("-n {a} link add {cable} type veth peer name {cable} netns {b}"),
            format!("-n {a} addr add 10.213.7.1/24 dev {cable}"),
            format!("-n {b} addr add 10.213.7.2/24 dev {cable}"),
            format!("-n {a} addr add 10.99.1.1/32 dev lo"), // no way for the other host
            format!("-n {a} link set lo up"),
            format!("-n {b} link set lo up"),
            format!("-n {a} link set {cable} up"),
            format!("-n {b} link set {cable} up"),
        ];
        commands.iter().try_for_each(|command| ip(command))?;
        Ok(hosts)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in self.names.iter().filter(|name| Path::new("/run/netns").join(name).exists()) {
            let _ = ip(&format!("netns del {name}"));
        }
    }
}

fn ip(arguments: &str) -> Result<(), String> {
    let output =
        Command::new("ip").args(arguments.split(' ')).output().map_err(|e| format!("ip: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("`ip {arguments}`: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
