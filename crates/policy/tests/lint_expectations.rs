//! `[[expect]]` blocks: what is told of one that is not met, and which of them are run.

mod support;

use crossover_policy::Sources;
use crossover_policy::lint::{Options, Report, lint};
use support::Files;

/// With the backends of this workspace.
#[track_caller]
fn told(sources: &Sources) -> Report {
    let registry = crossover_backends::registry().unwrap();
    lint(sources, &registry, &Options::default()).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn an_expectation_that_is_not_met_names_the_nearest_rules_that_do_not_match() {
    let rule = |id: &str, priority: i32, keys: &str| {
        format!(
            "[rule.{id}]\npriority = {priority}\nmatch = {{ op = 'all_reduce'{keys} }}\n\
             chain = [{{ use = 'ipc/one_shot_push' }}]\n"
        )
    };
    let text = [
        "schema = 1\n".to_owned(),
        rule("far", 4, ", arch = 'gfx942', world = 4, mode = 'graph'"),
        rule("near", 1, ", device = 'B200'"),
        rule("farther", 3, ", arch = 'gfx942', world = 4, mode = 'graph', dtype = 'f32'"),
        rule("between", 2, ", device = 'B200', world = '2..=4'"),
        "[[expect]]\nop = 'all_reduce'\narch = 'sm90'\ndevice = 'NVIDIA H200'\nworld = 8\n\
         bytes = '64KiB'\nuse = 'ipc/one_shot_push'"
            .to_owned(),
    ];
    let files = Files::of(&[&text.concat()]);
    let report = told(&Sources::isolated(files.paths()));
    let unmet = report.findings.iter().find(|f| f.code.name() == "E016").unwrap();
    let help = unmet.help.as_deref().unwrap();
    let file = &unmet.file;
    assert_eq!(
        help,
        format!(
            "rule `near` ({file}:6) does not match: device; rule `between` ({file}:14) does not \
             match: device, world"
        )
    );
}

/// Who names a shipped file wants to know about that file; who includes it, about their own.
#[test]
fn a_shipped_file_is_told_of_where_it_is_named_and_not_where_it_is_included() {
    let shipped = std::fs::read_to_string("../../policies/sm90.toml").unwrap();
    let blocks = shipped.lines().filter(|line| *line == "[[expect]]").count();
    assert!(blocks > 0);
    let named = Sources::isolated(vec!["shipped:sm90.toml".into()]);
    let report = told(&named);
    assert_eq!((report.expectations, report.findings), (blocks, vec![]));
    // What lies over it takes everything, so that nothing of it is ever chosen.
    let over = "schema = 1\ninclude = ['shipped:sm90.toml']\n[rule.mine]\npriority = 99\n\
                last = true\nchain = [{ use = 'nccl' }, { use = 'host' }]";
    let files = Files::of(&[over]);
    let over = told(&Sources::isolated(files.paths()));
    assert_eq!((over.expectations, over.findings), (0, vec![]));
}
