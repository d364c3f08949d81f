//! One line of a result.

use super::case::Case;
use super::measure::{Measured, Placed};
use super::stats::{Times, gigabytes_per_second};

pub(super) struct Row {
    pub(super) case: Case,
    pub(super) out_of_place: Figures,
    pub(super) in_place: Figures,
    /// Who really ran.
    pub(super) ran: Vec<String>,
    /// By which rule of the policy; empty for a copy.
    pub(super) rule: String,
    /// Microseconds that it takes at least, out of place, where that is known.
    pub(super) floor: Option<f64>,
    /// Something else ran than what was forced.
    pub(super) astray: bool,
    /// This is what the policy picks, where rows for several targets stand side by side.
    pub(super) picked: bool,
    /// Nothing else was faster, where rows for several targets stand side by side.
    pub(super) fastest: bool,
}

/// What is printed of one placement.
#[derive(Clone, Copy)]
pub(super) struct Figures {
    pub(super) wrong: u64,
    pub(super) times: Times,
    /// Calls of an iteration.
    pub(super) calls: usize,
    /// Microseconds that a call's caller waits, where the call goes on after that.
    pub(super) host: Option<f64>,
    /// nccl-tests' `algbw` and `busbw`, in 10^9 bytes per second.
    pub(super) algorithm_bandwidth: f64,
    pub(super) bus_bandwidth: f64,
}

impl Row {
    /// `wanted` is what was forced, if anything was.
    pub(super) fn new(case: &Case, measured: Measured, rule: String, wanted: Option<&str>) -> Row {
        let Measured { out_of_place, in_place, ran } = measured;
        let is_wanted = |target: &String, wanted: &str| {
            target == wanted || target.split_once('/').is_some_and(|(backend, _)| backend == wanted)
        };
        Row {
            case: *case,
            out_of_place: Figures::of(case, out_of_place),
            in_place: Figures::of(case, in_place),
            astray: ran.len() != 1
                || wanted.is_some_and(|wanted| !ran.iter().all(|target| is_wanted(target, wanted))),
            ran,
            rule,
            floor: None,
            picked: false,
            fastest: false,
        }
    }

    /// Wrong elements, in both placements.
    pub(super) fn wrong(&self) -> u64 {
        self.out_of_place.wrong + self.in_place.wrong
    }

    /// `*` the policy's pick, `<` the fastest, `!` not what was forced.
    pub(super) fn marks(&self) -> String {
        let marks = [(self.picked, '*'), (self.fastest, '<'), (self.astray, '!')];
        marks.iter().filter(|(set, _)| *set).map(|(_, mark)| mark).collect()
    }
}

impl Figures {
    fn of(case: &Case, placed: Placed) -> Figures {
        let Placed { wrong, times, calls, host } = placed;
        let algorithm_bandwidth = gigabytes_per_second(case.size(), times.p50);
        let bus_bandwidth = algorithm_bandwidth * case.bus_factor();
        Figures { wrong, times, calls, host, algorithm_bandwidth, bus_bandwidth }
    }
}

/// Marks, of rows that are for one size, what `policy` picks and what was fastest.
pub(super) fn compare(rows: &mut [Row], policy: Option<&str>) {
    let times = rows.iter().map(|row| row.out_of_place.times.p50);
    let least = times.fold(f64::INFINITY, f64::min);
    for row in rows {
        row.picked = policy.is_some_and(|policy| row.ran == [policy]);
        row.fastest = row.out_of_place.times.p50 <= least;
    }
}

#[cfg(test)]
mod tests {
    use crossover_core::call::{Dtype, Op, ReduceOp};

    use super::*;

    fn row(ran: &[&str], wanted: Option<&str>, nanoseconds: u64) -> Row {
        let case = Case::new(Op::AllReduce, Dtype::Bf16, ReduceOp::Sum, (0, 2), 64);
        let times = Times::of(vec![nanoseconds]);
        let placed = || Placed { wrong: 0, times, calls: 1, host: None };
        let ran = ran.iter().map(|target| (*target).to_owned()).collect();
        let measured = Measured { out_of_place: placed(), in_place: placed(), ran };
        Row::new(&case, measured, String::new(), wanted)
    }

    #[test]
    fn what_ran_must_be_what_was_forced() {
        let astray = |ran: &[&str], wanted| row(ran, wanted, 1000).astray;
        assert!(!astray(&["host/one_shot"], None));
        assert!(!astray(&["host/one_shot"], Some("host/one_shot")));
        assert!(!astray(&["host/one_shot"], Some("host")));
        assert!(astray(&["host/one_shot"], Some("host/two_shot")));
        assert!(astray(&["host/one_shot"], Some("hos")));
        assert!(astray(&["host/one_shot", "host/two_shot"], None));
        assert!(astray(&["copy"], Some("host")));
        assert!(astray(&[], None));
    }

    #[test]
    fn rows_of_one_size_are_compared() {
        let mut rows = [
            row(&["host/one_shot"], Some("host/one_shot"), 2000),
            row(&["host/two_shot"], Some("host/two_shot"), 1000),
        ];
        compare(&mut rows, Some("host/one_shot"));
        assert_eq!(rows.each_ref().map(Row::marks), ["*", "<"]);
        compare(&mut rows, Some("host/two_shot"));
        assert_eq!(rows.each_ref().map(Row::marks), ["", "*<"]);
    }
}
