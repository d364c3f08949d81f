//! Everyone has a turn in every round, for each collective anew, so that whatever else the machine does
//! hits all alike, and a group is measured where it was formed: processors of a virtual machine move.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use super::complaint::complaint;
use super::options::OPS;
use super::peer::{Contender, Kind, contenders};
use super::record::{ABOUT, LINES};
use super::{Peers, install};

/// Has a turn as a contender has.
const FLOOR: Contender = Contender { name: "floor", kind: Kind::Own };

/// Who runs, and with what.
struct Turn {
    contender: Contender,
    /// Of a peer.
    adapter: Option<PathBuf>,
}

/// What is the same for all turns.
struct Bench<'a> {
    args: &'a Peers,
    /// Where cargo builds.
    target: &'a Path,
    /// Where our programs are.
    programs: PathBuf,
    /// Where the peers are.
    dir: PathBuf,
    processors: usize,
}

/// Measures, and writes what came of it. A peer that fails is said and left out.
///
/// # Errors
///
/// `out` has raw data already, the loop cannot be built, or nothing was measured.
pub(super) fn run(root: &Path, target: &Path, out: &Path, args: &Peers) -> Result<()> {
    let path = out.join(LINES);
    ensure!(!path.exists(), "{} is there already: name another --out", path.display());
    let dir = std::env::var_os("PEERS_DIR").map(PathBuf::from);
    let dir = args.peers_dir.clone().or(dir).unwrap_or_else(|| target.join("peers"));
    let dir = std::path::absolute(dir)?; // adapters find their libraries from anywhere
    let programs = install::build(root, target)?;
    let processors = std::thread::available_parallelism()?.get();
    let bench = Bench { args, target, programs, dir, processors };
    let (turns, mut left_out) = turns(root, &bench)?;

    ensure!(!turns.is_empty(), "nothing was measured: no contender can be had");

    fs::create_dir_all(out)?;
    let mut lines = File::create_new(&path)?;
    let mut cells = 0;
    for round in 1..=args.rounds {
        for &ranks in &args.ranks {
            let floor = Turn { contender: FLOOR, adapter: None };
            let of_op = |op: &'static str| turns.iter().map(move |turn| (turn, Some(op)));
            let all = std::iter::once((&floor, None)).chain(ops(args).flat_map(of_op));
            for (turn, op) in all {
                let what = [Some(turn.contender.name), op].into_iter().flatten();
                let name = what.collect::<Vec<_>>().join(", ");
                crate::say(&format!("round {round}, {ranks} ranks: {name}"));
                let (found, failure) = bench.turn(turn, ranks, op)?;
                if let Some(why) = failure {
                    let why = format!("{name}, {ranks} ranks, {why}, after {} lines", found.len());
                    crate::say(&why);
                    left_out.push(format!("round {round}: {why}"));
                }
                cells += found.iter().filter(|line| line["contender"].is_string()).count();
                write(&mut lines, round, found)?;
            }
        }
    }
    if cells == 0 {
        fs::remove_file(&path)?; // so that the next attempt may write there
        bail!("nothing was measured: every contender failed, as said above");
    }
    let about = json!({
        "command": std::env::args().skip(1).collect::<Vec<_>>().join(" "),
        "commit": told_by("git", &["rev-parse", "HEAD"]),
        "machine": told_by("lscpu", &[]),
        "kernel": told_by("uname", &["-sr"]),
        "load": fs::read_to_string("/proc/loadavg").unwrap_or_default().trim(),
        "processors": processors,
        "left_out": left_out,
    });
    fs::write(out.join(ABOUT), format!("{about:#}\n"))?;
    Ok(())
}

/// Which collectives are measured.
fn ops(args: &Peers) -> impl Iterator<Item = &'static str> {
    let is_asked = |op: &&str| args.ops.is_empty() || args.ops.iter().any(|asked| asked == op);
    OPS.into_iter().filter(is_asked)
}

/// The contenders that can be had, and why the others cannot.
fn turns(root: &Path, bench: &Bench<'_>) -> Result<(Vec<Turn>, Vec<String>)> {
    let only = &bench.args.only;
    let (mut turns, mut left_out) = (Vec::new(), Vec::new());
    for contender in contenders() {
        if !only.is_empty() && !only.iter().any(|name| name == contender.name) {
            continue;
        }
        let adapter = match &contender.kind {
            Kind::Own => None,
            Kind::Peer(peer) => match install::install(root, bench.target, &bench.dir, peer) {
                Ok(adapter) => Some(adapter),
                Err(why) => {
                    let why = format!("{} is left out: {why:#}", contender.name);
                    crate::say(&why);
                    left_out.push(why);
                    continue;
                }
            },
        };
        turns.push(Turn { contender, adapter });
    }
    Ok((turns, left_out))
}

impl Bench<'_> {
    /// What a contender printed of a collective, and how it failed if it did.
    fn turn(
        &self,
        turn: &Turn,
        ranks: u32,
        op: Option<&str>,
    ) -> Result<(Vec<Value>, Option<String>)> {
        let name = turn.contender.name;
        let command = match (&turn.contender.kind, &turn.adapter) {
            (Kind::Peer(peer), Some(adapter)) => {
                let mut command = peer.launcher(&self.dir, ranks, self.processors);
                command.arg(self.programs.join("peers")).arg(adapter).args(["--name", name]);
                command
            }
            _ if name == FLOOR.name => {
                // Its ranks have a processor each; one alone has no floor.
                let ranks = ranks.min(self.processors as u32);
                if ranks < 2 {
                    return Ok((Vec::new(), None));
                }
                let mut command = self.launch(ranks);
                command.arg(name);
                command
            }
            _ => {
                let mut command = self.launch(ranks);
                command.arg(name);
                command
            }
        };
        self.lines(command, op)
    }

    fn launch(&self, ranks: u32) -> Command {
        let mut command = Command::new(self.programs.join("crossover"));
        command.args(["launch", "--bind", "none", "-n"]).arg(ranks.to_string()).arg("--");
        command.arg(self.programs.join("peers"));
        command
    }

    /// Runs to the end or the time limit. What was measured before a failure is kept.
    fn lines(&self, inner: Command, op: Option<&str>) -> Result<(Vec<Value>, Option<String>)> {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5"]).arg(self.args.timeout.to_string());
        command.arg(inner.get_program()).args(inner.get_args());
        for (name, value) in inner.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        let options = [
            ("--ops", op.map(str::to_owned)),
            ("--dtypes", joined(&self.args.dtypes)),
            ("--sizes", self.args.sizes.clone()),
            ("--time-ms", self.args.time_ms.map(|time| time.to_string())),
        ];
        for (name, value) in options {
            if let Some(value) = value {
                command.args([name, &value]);
            }
        }
        let page = format!("/dev/shm/crossover-peers-{}", std::process::id());
        command.env("PEERS_PAGE", &page).env("LC_ALL", "C").env("RUST_BACKTRACE", "0");
        let output = command.stdin(Stdio::null()).stderr(Stdio::piped()).output();
        let _ = fs::remove_file(&page); // there only if a rank ended before all had come
        let output = output.context("`timeout` cannot be run")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let lines: Vec<Value> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let wrong = lines.iter().any(|line| line["check"] == "WRONG"); // the tables say so
        let failure = (!output.status.success() && !wrong).then(|| match output.status.code() {
            Some(124) => format!("it took more than {} seconds", self.args.timeout),
            _ => format!("{}: {}", output.status, complaint(&output.stderr)),
        });
        Ok((lines, failure))
    }
}

/// `None` where nothing is said of it.
fn joined(names: &[String]) -> Option<String> {
    (!names.is_empty()).then(|| names.join(","))
}

fn write(file: &mut File, round: u32, lines: Vec<Value>) -> Result<()> {
    for mut line in lines {
        line["round"] = round.into();
        writeln!(file, "{line}")?;
    }
    Ok(())
}

/// What a program prints; nothing if it cannot be run.
fn told_by(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output();
    output.map_or(String::new(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
