//! What no algorithm can be faster than: what the device can do, as measured in the same run, put
//! together by what an algorithm must do.

use crossover_core::call::{Mode, Op};

use super::case::Case;

/// What the ranks' devices can, by kernels that do nothing else.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Floors {
    /// Microseconds of the host for a launch of an empty kernel, with nothing around it.
    pub(super) launch_us: f64,
    /// Microseconds of an empty kernel among others in a graph.
    pub(super) empty_us: f64,
    /// The same, where each may be put on the device before the one ahead of it has ended.
    pub(super) programmatic_us: f64,
    /// 10^9 bytes a second, read and written, of a copy that no cache holds.
    pub(super) memory: f64,
    /// The same, of a copy that the last cache holds.
    pub(super) cached: f64,
    /// Bytes of that cache.
    pub(super) cache: u64,
    /// Most ranks of a device.
    pub(super) ranks_per_device: u32,
    /// Between ranks 0 and 1, where one reaches the other's memory.
    pub(super) pair: Option<Pair>,
}

/// What goes between two ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pair {
    /// Microseconds from a store of one to the load of the other that sees it.
    pub(super) trip_us: f64,
    /// 10^9 bytes a second from one to the other, while nothing comes back.
    pub(super) one_way: f64,
    /// The same, of each direction, while both send.
    pub(super) both_ways: f64,
}

/// What an algorithm must do in a call.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Needs {
    /// How often a rank waits for what another does only when something has come to that one: a flag, or data
    /// that is its own. What a rank reads of a peer by itself is counted by its bytes alone.
    trips: u32,
    /// Bytes that a rank sends to peers, or reads from them; of a broadcast, its root.
    link: f64,
    /// Bytes that are read or written in device memory for a rank, by itself or peers, on average.
    memory: f64,
}

impl Floors {
    /// Microseconds that a call takes at least, out of place; `None` for an algorithm of which it is not
    /// known what it must do.
    fn of_call(&self, target: &str, case: &Case) -> Option<f64> {
        let pair = self.pair?;
        let least = ways(target, case).into_iter().map(|needs| self.of(&needs, &pair, case));
        let device = least.reduce(f64::min)?;
        // A stream that calls are put into one by one is no faster than its host.
        Some(if case.mode == Mode::Eager { device.max(self.launch_us) } else { device })
    }

    /// The same, of what really ran; where several did, it is not known.
    pub(super) fn of_row(&self, ran: &[String], case: &Case) -> Option<f64> {
        match ran {
            [target] => self.of_call(target, case),
            _ => None,
        }
    }

    fn of(&self, needs: &Needs, pair: &Pair, case: &Case) -> f64 {
        let memory = needs.memory * f64::from(self.ranks_per_device.min(case.world));
        let rate = if memory <= self.cache as f64 { self.cached } else { self.memory };
        // Of ranks on one device, what they send one another is in its memory and nowhere else.
        let link = if self.ranks_per_device > 1 { 0.0 } else { needs.link };
        // The root of a broadcast sends, and receives nothing.
        let one_way = case.op == Op::Broadcast;
        let link_rate = if one_way { pair.one_way } else { pair.both_ways };
        let moved = micros(memory, rate).max(micros(link, link_rate));
        self.programmatic_us + f64::from(needs.trips) * pair.trip_us + moved
    }
}

/// Microseconds for bytes at 10^9 a second.
fn micros(bytes: f64, rate: f64) -> f64 {
    bytes / rate / 1e3
}

/// The ways in which an algorithm of backend `ipc` may serve a call, as its kernels go
/// (`kernels-common`). Data beside its flag has twice its bytes. What is staged is written and read
/// once more, and what is cleared behind is written once more. What one thread reads twice in a row
/// counts once.
fn ways(target: &str, case: &Case) -> Vec<Needs> {
    let Some(algorithm) = target.strip_prefix("ipc/") else { return Vec::new() };
    let world = f64::from(case.world);
    let peers = world - 1.0;
    // A rank's input; what one rank gets of it, where it is split.
    let input = case.input_bytes() as f64;
    let part = input / world;
    let captured = case.mode == Mode::Graph;
    let needs = |trips, link, memory| Needs { trips, link, memory };
    // Input and output of one tensor.
    let both = 2.0 * input;
    match algorithm {
        "one_shot_push" => {
            vec![needs(1, 2.0 * peers * input, both + 4.0 * peers * input)]
        }
        "lamport" => vec![needs(1, peers * input, both + 3.0 * peers * input)],
        "two_shot_push" => vec![needs(2, 4.0 * peers * part, both + 8.0 * peers * part)],
        // Read where it is, there is a barrier at the end.
        "one_shot_pull" if captured => vec![needs(2, peers * input, both + peers * input)],
        "one_shot_pull" => vec![needs(1, peers * input, both + input + peers * input)],
        // The reduced share is written for peers as well, who each read it.
        "two_shot_pull" => {
            let staged = if captured { 0.0 } else { input + peers * part };
            vec![needs(2, 2.0 * peers * part, staged + both + part + peers * part)]
        }
        "all_gather" => {
            let own = input + world * input;
            vec![
                needs(1, 2.0 * peers * input, own + 4.0 * peers * input),
                needs(1, peers * input, own + input + peers * input),
            ]
        }
        "lamport_all_gather" => {
            vec![needs(1, peers * input, input + world * input + 3.0 * peers * input)]
        }
        "reduce_scatter" | "all_to_all" => {
            let output = if case.op == Op::ReduceScatter { part } else { input };
            vec![
                needs(1, 2.0 * peers * part, input + output + 4.0 * peers * part),
                needs(1, peers * part, input + output + 2.0 * peers * part),
            ]
        }
        // The root's is read once for all peers; every rank has an output.
        "broadcast" => vec![
            needs(1, 2.0 * peers * input, (input + 4.0 * peers * input) / world + input),
            needs(1, peers * input, (both + peers * input) / world + input),
        ],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use crossover_core::call::{Dtype, ReduceOp};

    use super::*;

    const FLOORS: Floors = Floors {
        launch_us: 2.0,
        empty_us: 0.6,
        programmatic_us: 0.5,
        memory: 4000.0,
        cached: 8000.0,
        cache: 60_000_000,
        ranks_per_device: 1,
        pair: Some(Pair { trip_us: 0.25, one_way: 200.0, both_ways: 100.0 }),
    };

    fn case(op: Op, world: u32, size: u64, mode: Mode) -> Case {
        Case::new(op, Dtype::F32, ReduceOp::Sum, (0, world), size).mode(mode)
    }

    fn floor(floors: &Floors, target: &str, case: &Case) -> f64 {
        floors.of_call(target, case).expect("it is known")
    }

    #[test]
    fn nothing_costs_a_node_and_its_trips() {
        for (target, trips) in [("ipc/lamport", 1.0), ("ipc/two_shot_push", 2.0)] {
            let floor = floor(&FLOORS, target, &case(Op::AllReduce, 4, 0, Mode::Graph));
            assert_eq!(floor, 0.5 + trips * 0.25, "{target}");
        }
        // On its input where it is, a second barrier lets peers finish.
        for (mode, trips) in [(Mode::Graph, 2), (Mode::Eager, 1)] {
            let case = case(Op::AllReduce, 4, 0, mode);
            assert_eq!(ways("ipc/one_shot_pull", &case)[0].trips, trips);
        }
        let eager = floor(&FLOORS, "ipc/lamport", &case(Op::AllReduce, 4, 0, Mode::Eager));
        assert_eq!(eager, FLOORS.launch_us, "the host is the floor");
    }

    #[test]
    fn bytes_take_their_time_on_links_or_in_memory() {
        let case = case(Op::AllReduce, 2, 1_000_000, Mode::Graph);
        // 1 MB to the peer at 100 GB/s.
        let apart = floor(&FLOORS, "ipc/lamport", &case);
        assert!((apart - (0.75 + 10.0)).abs() < 1e-9, "{apart}");
        // 5 MB of each of two ranks at 8000 GB/s.
        let together = Floors { ranks_per_device: 2, ..FLOORS };
        let shared = floor(&together, "ipc/lamport", &case);
        assert!((shared - (0.75 + 1.25)).abs() < 1e-9, "{shared}");
        // No cache holds it any more.
        let small = Floors { cache: 9_999_999, ..together };
        let shared = floor(&small, "ipc/lamport", &case);
        assert!((shared - (0.75 + 2.5)).abs() < 1e-9, "{shared}");
    }

    #[test]
    fn two_shots_send_less_and_parts_are_parts() {
        let needs =
            |target: &str, op, world| ways(target, &case(op, world, 8_000, Mode::Eager)).remove(0);
        let one = needs("ipc/one_shot_push", Op::AllReduce, 8);
        let two = needs("ipc/two_shot_push", Op::AllReduce, 8);
        assert_eq!((one.link, two.link), (2.0 * 7.0 * 8_000.0, 4.0 * 7.0 * 1_000.0));
        assert!(two.memory < one.memory);
        // A scatter is half of that, and its output a part.
        let scatter = needs("ipc/reduce_scatter", Op::ReduceScatter, 8);
        assert_eq!((scatter.link, scatter.memory), (14_000.0, 8_000.0 + 1_000.0 + 28_000.0));
        let all = needs("ipc/all_to_all", Op::AllToAll, 8);
        assert_eq!(all.memory, scatter.memory + 7_000.0);
    }

    #[test]
    fn every_algorithm_of_the_backend_is_known() {
        let declared = crossover_backends::DECLARED.iter().find(|backend| backend.id == "ipc");
        for algorithm in declared.expect("it is declared").algorithms {
            let target = format!("ipc/{}", algorithm.name);
            let op = algorithm.eligibility.ops.iter().next().expect("it takes something");
            for mode in [Mode::Eager, Mode::Graph] {
                let case = case(op, 4, 4096, mode);
                let all = ways(&target, &case);
                assert!(!all.is_empty(), "{target}");
                for Needs { trips, link, memory } in all {
                    // At least the input is read and the output written, and what is sent is too.
                    let least = case.input_bytes() + (case.output * case.dtype.size()) as u64;
                    assert!(trips >= 1 && link > 0.0 && memory >= least as f64, "{target}");
                }
            }
        }
        assert_eq!(FLOORS.of_call("nccl", &case(Op::AllReduce, 4, 64, Mode::Graph)), None);
    }
}
