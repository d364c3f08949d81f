//! The table of all pairs.

use crossover_device::topology::kfd;
use crossover_device::topology::mesh::{Join, Matrix};

use crate::machines::{bridged, divide, gpu, group, mi300x, pcie, radeons, switched, write};

/// A table without its margins.
fn cells(matrix: &Matrix) -> Vec<String> {
    let words = |row: &Vec<Join>| {
        let words: Vec<String> = row.iter().map(ToString::to_string).collect();
        words.join(" ")
    };
    matrix.joins.iter().map(words).collect()
}

#[test]
fn rows_and_columns_are_the_devices_in_the_order_asked_for() {
    let facts = bridged(pcie(4), &[(0, 1), (2, 3)], 4);
    let table = Matrix::nvidia(&facts, &group(&[0, 1, 2, 3]));
    assert_eq!(cells(&table), ["X NV4 PHB PHB", "NV4 X PHB PHB", "PHB PHB X NV4", "PHB PHB NV4 X"]);
    let table = Matrix::nvidia(&facts, &group(&[1, 2, 0]));
    assert_eq!(cells(&table), ["X PHB NV4", "PHB X PHB", "NV4 PHB X"]);
    let text = "       0   1   2\n0      X PHB NV4\n1    PHB   X PHB\n2    NV4 PHB   X";
    assert_eq!(table.to_string(), text);
}

#[test]
fn switches_count_the_links_that_both_have_up() {
    let facts = switched(2, 17);
    assert_eq!(cells(&Matrix::nvidia(&facts, &group(&[0, 1]))), ["X NV17", "NV17 X"]);
}

#[test]
fn instances_meet_on_their_board_and_strangers_are_unknown() {
    let mut facts = pcie(2);
    divide(&mut facts, 0, 2);
    let parts = facts.gpus[0].instances.iter().map(|part| part.uuid.clone());
    let devices: Vec<String> = parts.chain([gpu(1), "GPU-9".to_owned()]).collect();
    let table = Matrix::nvidia(&facts, &devices);
    assert_eq!(cells(&table), ["X PSB PHB ?", "PSB X PHB ?", "PHB PHB X ?", "? ? ? X"]);
}

#[test]
fn amds_links_are_those_of_the_kernel() {
    let table = |nodes: &[crate::machines::Node]| {
        let folder = tempfile::tempdir().unwrap();
        write(nodes, folder.path());
        let facts = kfd::read(folder.path()).unwrap();
        let devices: Vec<String> = facts.gpus().map(kfd::Node::uuid).collect();
        cells(&Matrix::amd(&facts, &devices))
    };
    let full = table(&mi300x());
    assert_eq!((full.len(), full[0].as_str()), (8, "X XGMI XGMI XGMI XGMI XGMI XGMI XGMI"));
    assert_eq!(table(&radeons()), ["X PCIE", "PCIE X"]);
    let mut nodes = mi300x();
    nodes[4].links.iter_mut().filter(|link| link.0 == 7).for_each(|link| link.2 = 30);
    nodes[4].links.retain(|link| link.0 != 8);
    assert_eq!(table(&nodes)[2], "XGMI XGMI X XGMI XGMI XGMI*2 ? XGMI");
}
