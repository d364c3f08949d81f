//! A process ends with its own status, whatever of it is still inside the library. The stand-in takes
//! itself down at the end of its process, and crashes it where a thread is in it then.

use std::process::Command;
use std::time::{Duration, Instant};

use crossover_bootstrap::exit;
use crossover_tests::device::Stand;

use crate::ends::{SOON, Tensor, soon};
use crate::stage::{Library, VARIABLES, form, refusal};

/// Set in the process that ends.
const ENDS: &str = "CROSSOVER_TEST_ENDS";
/// Longer than any of these takes, on a slow machine too.
const LONGEST: Duration = Duration::from_secs(20);
/// What it ends with.
const STATUS: i32 = 7;

/// Runs a body in a process of its own, which it ends.
#[expect(clippy::print_stderr, reason = "a test that skips says so")]
fn ends_itself(name: &str, body: fn(&'static Stand)) {
    let stand = match Stand::find() {
        Ok(stand) if stand.is_emulated() => stand,
        Ok(_) => return eprintln!("skipped: the stand-in works on the emulated device alone"),
        Err(why) => return eprintln!("skipped: {why}"),
    };
    if std::env::var(ENDS).is_ok() {
        return body(stand);
    }
    let (_, path) = name.split_once("::").expect("a program and a test");
    let began = Instant::now();
    let output = Command::new(std::env::current_exe().expect("this program has a file"))
        .args([path, "--exact", "--nocapture", "--test-threads=1"])
        .envs(VARIABLES)
        .env(ENDS, "1")
        .output()
        .expect("this program can be started again");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert_eq!(output.status.code(), Some(STATUS), "{}\n{said}", output.status);
    assert!(!said.contains("panicked"), "{said}");
    assert!(began.elapsed() < LONGEST, "{:?}", began.elapsed());
}

macro_rules! tests {
    ($($(#[$note:meta])* fn $name:ident($stand:ident) $body:block)+) => {$(
        $(#[$note])*
        #[test]
        fn $name() {
            fn body($stand: &'static Stand) $body
            ends_itself(concat!(module_path!(), "::", stringify!($name)), body);
        }
    )+};
}

#[expect(clippy::exit, reason = "it is what is tested")]
fn end() -> ! {
    std::process::exit(STATUS)
}

/// The same; a process that takes longer for it has another status.
fn end_within(time: Duration) -> ! {
    std::thread::spawn(move || {
        std::thread::sleep(time);
        exit::at_once(STATUS + 1)
    });
    end()
}

/// A group of two whose ranks drop it without a word. Kernels of theirs are none.
fn dropped(stand: &'static Stand, fails: &str) {
    let library = Library::build(stand, &["DISTINCT_DEVICES"]);
    library.stand_in.fail(Some(fails));
    form(
        stand,
        2,
        |_| soon(stand, &library),
        |boot, formed| {
            let comm = formed.expect("it forms");
            boot.all_gather("formed", &[]).expect("all are here");
            drop(comm);
        },
    );
}

tests! {
    fn right_behind_a_dropped_group(stand) {
        dropped(stand, "");
        end()
    }

    fn while_an_abort_is_under_way(stand) {
        dropped(stand, "abort=slow");
        end()
    }

    fn while_an_abort_does_not_end(stand) {
        dropped(stand, "abort=hang");
        end()
    }

    /// From within: no group is dropped, and no rank comes to close it.
    fn amid_a_group(stand) {
        let library = Library::build(stand, &["DISTINCT_DEVICES"]);
        form(stand, 2, |_| soon(stand, &library), |boot, formed| {
            let _comm = formed.expect("it forms");
            boot.all_gather("formed", &[]).expect("all are here");
            if boot.rank() == 1 {
                end()
            }
            std::thread::sleep(Duration::from_secs(10));
        });
    }

    fn while_a_group_is_being_formed(stand) {
        let library = Library::build(stand, &["DISTINCT_DEVICES"]);
        library.stand_in.fail(Some("rank=1 init=hang"));
        std::thread::spawn(move || {
            std::thread::sleep(SOON / 3);
            end()
        });
        // Behind the end of the process.
        let late = SOON + LONGEST;
        let why = refusal(stand, 2, |_| soon(stand, &library).deadline(late));
        panic!("the process should have ended by now: {why}");
    }

    fn behind_a_group_that_could_not_be_formed(stand) {
        let library = Library::build(stand, &["DISTINCT_DEVICES"]);
        library.stand_in.fail(Some("rank=1 init=hang"));
        let why = refusal(stand, 2, |_| soon(stand, &library));
        assert!(why.contains("ncclCommInitRankConfig has not returned"), "{why}");
        end()
    }

    /// Of which nothing is outstanding: the process waits as long as a close takes, and no longer.
    fn behind_a_group_whose_graphs_are_kept(stand) {
        let library = Library::build(stand, &["DISTINCT_DEVICES"]);
        library.stand_in.fail(Some("finalize=held"));
        form(stand, 2, |_| soon(stand, &library), |boot, formed| {
            let comm = formed.expect("it forms");
            let tensor = Tensor::new(stand);
            std::mem::forget(tensor.capture(boot, &comm));
            assert_eq!(comm.close(), Ok(()));
            boot.all_gather("closed", &[]).expect("all are here");
        });
        end_within(Duration::from_secs(1))
    }

    fn behind_a_group_that_was_closed(stand) {
        let library = Library::build(stand, &["DISTINCT_DEVICES"]);
        form(stand, 2, |_| soon(stand, &library), |_, formed| {
            formed.expect("it forms").close().expect("all close");
        });
        end()
    }
}
