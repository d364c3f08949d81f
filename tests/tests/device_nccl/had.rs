//! What of the backend a group has: which library, which of its algorithms, and why not.

use crossover_core::call::{CallBuffers, Op};
use crossover_core::policy::{ParamValue, Policy};
use crossover_device::memory::Buffer;
use crossover_device::stream::Stream;
use crossover_tests::device::Target;

use crate::stage::{Library, form, plan, refusal, tests_apart, willing};

const CANNOT: &str =
    "`nccl` was asked for by the test and cannot be had: setup: wants set-up on every rank, got ";

tests_apart! {
    fn a_library_that_is_not_there_is_told_with_what_was_tried(stand) {
        let nowhere = std::path::Path::new("/nowhere/libnccl.so.2");
        let why = refusal(stand, 2, |_| plan(stand, "nccl", nowhere));
        let words = "rank 0 could not open its device and load the library: no NCCL: \
                     /nowhere/libnccl.so.2: ";
        assert!(why.starts_with(&format!("{CANNOT}{words}")), "{why}");
        assert!(why.ends_with("nccl.library is the setting that names its file"), "{why}");
    }

    fn a_rank_with_another_version_is_named(stand) {
        let usual = Library::build(stand, &["VERSION=22705", "DISTINCT_DEVICES"]);
        let old = Library::build(stand, &["VERSION=22105", "DISTINCT_DEVICES"]);
        let why = refusal(stand, 3, |rank| {
            plan(stand, "nccl", if rank == 2 { &old.path } else { &usual.path })
        });
        let words = format!(
            "{CANNOT}rank 2 could not use one version with the others: rank 2 has NCCL 2.21.5 \
             ({}), the others NCCL 2.27.5",
            old.path.display()
        );
        assert_eq!(why, words);
    }

    fn a_library_that_is_too_old_is_refused_with_the_least_that_will_do(stand) {
        let library = Library::build(stand, &["VERSION=21304", "DISTINCT_DEVICES"]);
        let why = refusal(stand, 2, |_| plan(stand, "nccl", &library.path));
        assert!(why.contains("it is version 2.13.4, and it has no "), "{why}");
        assert!(why.contains("`ncclCommInitRankConfig`"), "{why}");
        assert!(why.contains("It takes NCCL 2.14 or later"), "{why}");
    }

    fn a_library_that_lacks_a_function_is_refused_by_its_name(stand) {
        let library = Library::build(stand, &["WITHOUT_UNIQUE_ID", "DISTINCT_DEVICES"]);
        let why = refusal(stand, 2, |_| plan(stand, "nccl", &library.path));
        assert!(why.contains("it has no `ncclGetUniqueId`"), "{why}");
    }

    fn an_older_library_has_the_rest(stand) {
        let library = Library::build(stand, &["VERSION=22605", "DISTINCT_DEVICES"]);
        let chain = ["nccl/symmetric", "nccl/pinned", "nccl"];
        let plan_of = |_| willing(plan(stand, "nccl", &library.path), &chain);
        form(stand, 2, plan_of, |_, formed| {
            let comm = formed.expect("it has the rest");
            let call = comm.signature::<f32>(Op::AllReduce, 64);
            let explained = comm.explain(&call);
            assert_eq!(explained.chosen.expect("served").target, "nccl");
            let why = |nth: usize| explained.considered[nth].reason.as_str();
            let setup = "setup: wants set-up on every rank, got ";
            let windows = "rank 0 could not have windows: NCCL 2.26.5 has no windows: 2.27 is the \
                           first";
            assert_eq!(why(0), format!("{setup}{windows}"));
            let pins = "NCCL 2.26.5 takes no configuration of a call: 2.31 is the first";
            assert_eq!(why(1), format!("{setup}{pins}"));
            comm.close().expect("all close");
        });
        for (target, words) in [("nccl/symmetric", "has no windows"), ("nccl/pinned", "no config")] {
            let why = refusal(stand, 2, |_| plan(stand, target, &library.path));
            assert!(why.starts_with(&format!("`{target}` was asked for by the test")), "{why}");
            assert!(why.contains(words), "{why}");
        }
    }

    fn what_is_pinned_and_an_op_has_not_is_left_to_the_library(stand) {
        let library = Library::build(stand, &["DISTINCT_DEVICES"]);
        let pinned = |algorithm: &str, protocol: &str| {
            let mut plan = plan(stand, "nccl/pinned", &library.path);
            let mut rule = plan.policy.rules()[0].clone();
            let word = |word: &str| ParamValue::Word(word.to_owned());
            rule.chain[0].params = vec![
                ("algorithm".to_owned(), word(algorithm)),
                ("protocol".to_owned(), word(protocol)),
            ];
            plan.policy = Policy::new(plan.policy.contract, vec![rule]);
            plan
        };
        for (algorithm, protocol, names) in [
            ("tree", "auto", "algorithms=TREE_LL,TREE_LL128,TREE_SIMPLE"),
            ("nvls", "auto", "algorithms=NVLS_SIMPLE"),
            ("pat", "ll128", ""),
        ] {
            form(stand, 2, |_| pinned(algorithm, protocol), |_, formed| {
                let comm = formed.expect("it can pin");
                let device = stand.open();
                let memory = Buffer::new(&device, 4096).expect("memory");
                let stream = Stream::new(&device).expect("a stream");
                let (input, output) = (memory.address(), memory.address() + 2048);
                let buffers = CallBuffers {
                    input: input as *const u8,
                    output: output as *mut u8,
                    stream: stream.raw(),
                };
                for op in [Op::AllReduce, Op::AllGather, Op::ReduceScatter, Op::Broadcast] {
                    let call = comm.signature::<f32>(op, 64);
                    // SAFETY: the memory has room, and lives until the stream is done.
                    unsafe { comm.run(&call, &buffers) }.expect("no pin makes it fail");
                }
                stream.synchronize().expect("what runs ends");
                comm.close().expect("all close");
            });
            let told = library.stand_in.told();
            assert!(told.contains(names), "{told}");
        }
    }

    fn windows_that_one_rank_cannot_have_are_had_by_none(stand) {
        let library = Library::build(stand, &["DISTINCT_DEVICES"]);
        let chain = ["nccl/symmetric", "nccl"];
        for (fails, words) in [
            ("rank=1 window=fail", "rank 1 could not have windows: ncclCommWindowRegister failed"),
            ("window=null", "rank 0 could not have windows: the library has no windows on this"),
            ("memory=fail", "rank 0 could not have windows: ncclMemAlloc failed"),
        ] {
            library.stand_in.fail(Some(fails));
            let plan_of = |_| willing(plan(stand, "nccl", &library.path), &chain);
            form(stand, 2, plan_of, |_, formed| {
                let comm = formed.expect("it has the rest");
                let explained = comm.explain(&comm.signature::<f32>(Op::AllReduce, 64));
                assert_eq!(explained.chosen.expect("served").target, "nccl");
                let why = &explained.considered[0].reason;
                assert!(why.contains(words), "{fails}: {why}");
                comm.close().expect("all close");
            });
        }
    }

    fn windows_have_room_for_what_is_set_and_can_be_off(stand) {
        let library = Library::build(stand, &["DISTINCT_DEVICES"]);
        let chain = ["nccl/symmetric", "nccl"];
        let with = |window: &'static str| {
            willing(plan(stand, "nccl", &library.path), &chain).set("nccl.window", window)
        };
        form(stand, 2, |_| with("64KiB"), |_, formed| {
            let comm = formed.expect("it forms");
            let served = |bytes: usize| {
                let call = comm.signature::<f32>(Op::AllReduce, bytes / 4);
                comm.explain(&call).chosen.expect("served").target
            };
            assert_eq!((served(65_536), served(65_540)), ("nccl/symmetric".into(), "nccl".into()));
            comm.close().expect("all close");
        });
        form(stand, 2, |_| with("0B"), |_, formed| {
            let comm = formed.expect("it forms");
            let explained = comm.explain(&comm.signature::<f32>(Op::AllReduce, 64));
            assert!(explained.considered[0].reason.ends_with("nccl.window is 0"));
            comm.close().expect("all close");
        });
        let wrong = refusal(stand, 2, |_| with("3MiB"));
        let words = "rank 0 could not read nccl.window: setting nccl.window is `3MiB`";
        assert!(wrong.starts_with(words), "{wrong}");
    }

    fn the_library_keeps_nothing_of_groups_that_were_closed(stand) {
        let library = Library::named_as_nccl(stand, &[]);
        let target = Target::parse("nccl/symmetric");
        crossover_tests::device::groups_come_and_go(stand, &target, 20);
        let alive = library.stand_in.alive();
        assert_eq!(alive, Default::default());
    }
}

/// Ranks that share a device, as the library takes them or not.
mod shared {
    use super::*;

    tests_apart! {
        fn an_old_library_is_told_the_ranks_and_the_device(stand) {
            let library = Library::build(stand, &["VERSION=22809"]);
            let unit = stand.report().unit;
            let plan = plan(stand, "nccl", &library.path);
            let errors = crossover_tests::groups::on_channels(
                2,
                std::time::Duration::from_secs(60),
                |boot| {
                    let (registry, policy) = (&plan.registry, &plan.policy);
                    let (report, settings) = (stand.report(), &plan.settings);
                    crossover_core::communicator::Communicator::form(
                        boot, registry, policy, report, settings,
                    )
                    .map(|_| ())
                    .expect_err("it is refused")
                    .to_string()
                },
            );
            let words = format!(
                "{CANNOT}rank 0 could not share its device: ranks 0 and 1 are both on {unit}, and \
                 NCCL 2.28.9 takes one rank a device: 2.30 is the first that takes more"
            );
            assert_eq!(errors, [words.clone(), words]);
            let told = library.stand_in.told();
            assert!(!told.contains("ncclCommInitRank"), "it was not asked to join: {told}");
        }
    }
}
