//! What MPI does where one of its functions fails. Of a program's world it is to end the process, unless the
//! program wants something else: while functions of the world are called here they return their
//! errors, and then it is the program's choice again.

use std::sync::{Mutex, PoisonError};

use crate::keeper::judge;
use crate::library::Library;
use crate::library::layout::{Comm, Errhandler};

/// Whose functions are called: the world's, and those of no communicator, whose errors are the process's own.
const WHOSE: [Comm; 2] = [Comm::WORLD, Comm::SELF];

/// Calls that are under way, and what the program wants of [`WHOSE`].
struct Now {
    calls: u32,
    wanted: [Errhandler; 2],
}

static NOW: Mutex<Now> = Mutex::new(Now { calls: 0, wanted: [Errhandler::NULL; 2] });

/// From now on, in a program that does not use MPI itself.
pub(crate) fn are_returned(library: &Library) -> Result<(), String> {
    WHOSE.iter().try_for_each(|comm| set(library, *comm, Errhandler::RETURN))
}

/// While `work` calls functions. Several threads may do so.
///
/// # Errors
///
/// What `work` says, or that MPI does not tell what the program wants.
pub(crate) fn returned<T>(
    library: &Library,
    work: impl FnOnce() -> Result<T, String>,
) -> Result<T, String> {
    begin(library)?;
    let result = work();
    end(library);
    result
}

fn begin(library: &Library) -> Result<(), String> {
    let mut now = NOW.lock().unwrap_or_else(PoisonError::into_inner);
    if now.calls == 0 {
        for (comm, wanted) in WHOSE.iter().zip(&mut now.wanted) {
            // SAFETY: MPI has begun; a place for the answer.
            let told = unsafe { (library.calls.comm_get_errhandler)(*comm, wanted) };
            judge(library, "MPI_Comm_get_errhandler", told)?;
        }
        are_returned(library)?;
    }
    now.calls += 1;
    Ok(())
}

fn end(library: &Library) {
    let mut now = NOW.lock().unwrap_or_else(PoisonError::into_inner);
    now.calls -= 1;
    if now.calls > 0 {
        return;
    }
    for (comm, wanted) in WHOSE.iter().zip(&mut now.wanted) {
        if let Err(why) = set(library, *comm, *wanted) {
            tracing::warn!(target: "crossover::mpi", %why, "errors of MPI stay returned");
        }
        // SAFETY: a name of it that `begin` was given.
        unsafe { (library.calls.errhandler_free)(wanted) };
    }
}

fn set(library: &Library, comm: Comm, handler: Errhandler) -> Result<(), String> {
    // SAFETY: MPI has begun.
    let told = unsafe { (library.calls.comm_set_errhandler)(comm, handler) };
    judge(library, "MPI_Comm_set_errhandler", told)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::ptr::null_mut;

    use crate::comm::Comm as Ours;
    use crate::library::layout::THREAD_MULTIPLE;

    use super::*;

    /// A process of its own world, in which the program has begun: a failure that is not returned ends the
    /// tests.
    #[test]
    fn a_failure_is_told_where_the_program_began() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let path = root.join("target/toolchains/mpich-5.0.2/lib/libmpi_abi.so.1");
        if !path.exists() {
            return skip("there is no MPI library here; `cargo xtask mpi` fetches one");
        }
        let library = Library::of_process(Some(&path)).expect("it is one");
        let (calls, mut level) = (&library.calls, 0);
        // SAFETY: nobody else begins in this process; a place for the answer.
        let told =
            unsafe { (calls.init_thread)(null_mut(), null_mut(), THREAD_MULTIPLE, &raw mut level) };
        assert_eq!(judge(library, "MPI_Init_thread", told), Ok(()));
        let wanted = wanted_of(library);
        assert_ne!(wanted, [Errhandler::RETURN; 2], "it ends the process");

        let why = |ranks: &[u32], tag| Ours::create(library, ranks, 0, tag).err().expect("refused");
        assert!(why(&[5], 1).contains("MPI_Group_incl failed"), "{}", why(&[5], 1));
        assert!(why(&[0], -1).contains("MPI_Comm_create_group failed"), "{}", why(&[0], -1));
        assert_eq!(wanted_of(library), wanted, "the program's choice again");
        Ours::create(library, &[0], 0, 1).expect("it is alone").free();
        assert_eq!(wanted_of(library), wanted);
        // SAFETY: by the thread that began, and once.
        assert_eq!(judge(library, "MPI_Finalize", unsafe { (calls.finalize)() }), Ok(()));
    }

    fn wanted_of(library: &Library) -> [Errhandler; 2] {
        WHOSE.map(|comm| {
            let mut wanted = Errhandler::NULL;
            // SAFETY: MPI has begun; a place for the answer.
            unsafe { (library.calls.comm_get_errhandler)(comm, &raw mut wanted) };
            wanted
        })
    }

    #[expect(clippy::print_stderr, reason = "a test that skips says so")]
    fn skip(why: &str) {
        eprintln!("skipped: {why}");
    }
}
