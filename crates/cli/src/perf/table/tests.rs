use crossover_core::call::{Dtype, ReduceOp};

use super::super::case::Case;
use super::super::stats::Times;
use super::*;

/// The heading of nccl-tests 2.19.
const NCCL_TESTS_GROUPS: &str = "#                                                              out-of-place                       in-place";
const NCCL_TESTS: &str = "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong";

fn row(size: u64) -> Row {
    let case = Case::new(Op::AllReduce, Dtype::Bf16, ReduceOp::Sum, (0, 2), size);
    let times = Times { min: 1.0, p50: 12.345, p99: 1234.56, max: 9e9, iterations: 20 };
    let figures = Figures {
        wrong: 0,
        times,
        calls: 1,
        host: None,
        algorithm_bandwidth: 123.456,
        bus_bandwidth: 98_765.4,
    };
    Row {
        case,
        out_of_place: figures,
        in_place: figures,
        ran: vec!["host/one_shot".to_owned()],
        rule: "a-rule".to_owned(),
        floor: None,
        astray: false,
        picked: true,
        fastest: true,
    }
}

fn written(row: &Row) -> String {
    let mut line = Vec::new();
    write_row(&mut line, row, row.floor.is_some()).expect("memory takes it");
    String::from_utf8(line).expect("text")
}

#[test]
fn the_first_thirteen_columns_are_those_of_nccl_tests() {
    let mut heading = Vec::new();
    write_columns(&mut heading, false, false).expect("memory takes it");
    let heading = String::from_utf8(heading).expect("text");
    let lines: Vec<&str> = heading.lines().collect();
    assert_eq!(lines[0], NCCL_TESTS_GROUPS);
    assert!(lines[1].starts_with(NCCL_TESTS), "{heading}");
    assert_eq!(
        lines[1][NCCL_TESTS.len()..].split_whitespace().collect::<Vec<_>>(),
        ["p50", "p99", "backend/algorithm", "rule"]
    );
}

#[test]
fn a_row_stands_under_its_heading() {
    let line = written(&row(131_072));
    let fields: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(fields[..5], ["131072", "65536", "bf16", "sum", "-1"]);
    assert_eq!(fields[5..9], ["12.35", "123.5", "98765", "0"]);
    assert_eq!(fields[9..13], ["12.35", "123.5", "98765", "0"]);
    assert_eq!(fields[13..], ["12.35", "1234.6", "host/one_shot", "a-rule", "*<"]);
    // Right-aligned columns end where their headings do.
    for (end, field) in [(12, "131072"), (26, "65536"), (36, "bf16"), (44, "sum"), (52, "-1")] {
        assert!(line[..end].ends_with(field), "{line}");
        assert!(NCCL_TESTS[..end].ends_with(|c: char| c.is_ascii_alphabetic()));
    }
}

#[test]
fn what_callers_wait_and_what_nothing_is_faster_than_have_columns_on_devices() {
    let mut heading = Vec::new();
    write_columns(&mut heading, true, true).expect("memory takes it");
    let heading = String::from_utf8(heading).expect("text");
    let end = heading.lines().nth(1).and_then(|line| line.find("host")).expect("a column") + 4;
    let mut row = row(8);
    row.out_of_place.host = Some(2.25);
    row.floor = Some(1.5);
    let line = written(&row);
    assert!(line[..end].ends_with(" 2.25"), "{line}");
    assert!(line[end..].starts_with("     1.50  host/one_shot"), "{line}");
    assert!(heading.lines().nth(1).is_some_and(|line| line[end..].starts_with("    floor  back")));
}

#[test]
fn a_row_that_went_astray_is_marked() {
    let row = Row { astray: true, picked: false, fastest: false, ..row(8) };
    assert!(written(&row).ends_with("a-rule  !\n"));
}

#[test]
fn numbers_keep_to_their_columns() {
    for (value, text) in [(0.0, "0.00"), (999.994, "999.99"), (12345.67, "12345.7")] {
        assert_eq!(number(value, 8), text);
    }
    assert_eq!(number(99.999, 6), "100.0");
    assert_eq!(number(12_345_678.9, 7), "12345679");
}
