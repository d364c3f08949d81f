//! Slurm's list of tasks per node.

use super::{LaunchError, Variables, number, set};

/// The number of this step's tasks on this node: `SLURM_STEP_TASKS_PER_NODE` lists all nodes'
/// numbers, such as `2(x3),1`, and `SLURM_NODEID` says which is this one.
pub(super) fn tasks_here(variable: &Variables<'_>, name: &'static str) -> Result<u32, LaunchError> {
    let node = number(variable, "SLURM_NODEID")?.unwrap_or(0);
    let value = set(variable, name).unwrap_or_default();
    tasks_on(&value, node).ok_or(LaunchError::NotANumber {
        variable: name,
        value,
        what: "list of tasks per node, such as `2(x3),1`, that covers SLURM_NODEID",
    })
}

fn tasks_on(list: &str, node: u32) -> Option<u32> {
    let mut first = 0u32;
    for entry in list.split(',') {
        let (tasks, nodes) = match entry.trim().split_once("(x") {
            Some((tasks, nodes)) => (tasks, nodes.strip_suffix(')')?.parse().ok()?),
            None => (entry.trim(), 1),
        };
        let tasks = tasks.parse().ok()?;
        first = first.checked_add(nodes)?;
        if node < first {
            return Some(tasks);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::tasks_on;

    #[test]
    fn lists() {
        assert_eq!(tasks_on("8", 0), Some(8));
        assert_eq!(tasks_on("2(x3),1", 2), Some(2));
        assert_eq!(tasks_on("2(x3),1", 3), Some(1));
        assert_eq!(tasks_on("2(x3),1", 4), None);
        assert_eq!(tasks_on("2(x,1", 0), None);
        assert_eq!(tasks_on("", 0), None);
        assert_eq!(tasks_on("1(x4294967295),1", 4_294_967_295), None);
    }
}
