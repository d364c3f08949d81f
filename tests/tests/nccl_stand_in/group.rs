//! Communicators of the stand-in, a thread a rank, on streams of the emulated driver.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crossover_device::driver::Driver;
use crossover_kernel_emulation::compile::CompileError;
use crossover_kernel_emulation::driver::{Emulated, Options};
use crossover_nccl_sys::layout::{Comm, Config, Status, UniqueId};
use crossover_nccl_sys::{Library, Vendor};
use crossover_tests::nccl::{StandIn, install, stand_in};

/// After so long, a test has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A build of the library, for one test: how it fails and what it was told are the process's.
pub(crate) struct Bench {
    pub(crate) driver: Arc<Emulated>,
    pub(crate) stand: StandIn,
    pub(crate) nccl: Library,
    _one_at_a_time: MutexGuard<'static, ()>,
}

impl Bench {
    /// Of ranks with a device each, unless the macros say more.
    pub(crate) fn new() -> Option<Bench> {
        Bench::of(&["DISTINCT_DEVICES"])
    }

    #[expect(clippy::print_stderr, reason = "a test that skips says so")]
    pub(crate) fn of(defines: &[&str]) -> Option<Bench> {
        static ONE: Mutex<()> = Mutex::new(());
        static DRIVER: OnceLock<Arc<Emulated>> = OnceLock::new();
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let path = match stand_in(defines) {
            Ok(path) => path,
            Err(error @ CompileError::NoCompiler(_)) => {
                eprintln!("skipped: {error}");
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        let driver = DRIVER.get_or_init(|| Emulated::new(Options::default()));
        let stand = install(&path, driver).expect("it loads");
        stand.fail(Some(""));
        let nccl = Library::load(Some(&path), Vendor::Nccl).expect("it has what is required");
        Some(Bench { driver: Arc::clone(driver), stand, nccl, _one_at_a_time: one })
    }

    pub(crate) fn id(&self) -> UniqueId {
        let mut id = UniqueId::ZERO;
        // SAFETY: the pointer is valid.
        ok(unsafe { (self.nccl.calls.get_unique_id)(&raw mut id) });
        id
    }

    /// A rank that has begun to join, and may still be at it.
    pub(crate) fn join(
        &self,
        id: UniqueId,
        rank: usize,
        world: usize,
        mut config: Config,
    ) -> Rank<'_> {
        let context = self.driver.retain(0).expect("there is a device");
        self.driver.make_current(context).expect("it was retained");
        let stream = self.driver.create_stream().expect("a stream").0;
        let mut rank =
            Rank { bench: self, comm: std::ptr::null_mut(), rank, world, stream, began: OK };
        // SAFETY: the pointers are valid; the communicator is ended with the rank.
        rank.began = unsafe {
            let init = self.nccl.calls.comm_init_rank_config;
            init(&raw mut rank.comm, world as i32, id, rank.rank as i32, &raw mut config)
        };
        rank
    }

    /// Runs `body` on every rank of a fresh communicator that blocks.
    pub(crate) fn ranks<T: Send>(
        &self,
        world: usize,
        body: impl Fn(&Rank<'_>) -> T + Sync,
    ) -> Vec<T> {
        self.ranks_of(world, Config::new().blocking(true), |rank| {
            ok(rank.settle());
            body(rank)
        })
    }

    /// The same, whether the communicator comes about or not.
    pub(crate) fn ranks_of<T: Send>(
        &self,
        world: usize,
        config: Config,
        body: impl Fn(&Rank<'_>) -> T + Sync,
    ) -> Vec<T> {
        let id = self.id();
        let config = Shared(config);
        let (body, config) = (&body, &config);
        thread::scope(|scope| {
            let ranks: Vec<_> = (0..world)
                .map(|rank| scope.spawn(move || body(&self.join(id, rank, world, config.0))))
                .collect();
            ranks.into_iter().map(|rank| rank.join().expect("no rank panics")).collect()
        })
    }
}

const OK: Status = Status::SUCCESS;

/// It holds no pointer that is not null.
struct Shared(Config);
// SAFETY: as above.
unsafe impl Sync for Shared {}

/// A communicator of one rank. Dropped, it is aborted if it still is.
pub(crate) struct Rank<'a> {
    pub(crate) bench: &'a Bench,
    pub(crate) comm: Comm,
    pub(crate) rank: usize,
    pub(crate) world: usize,
    pub(crate) stream: u64,
    /// What its initialisation returned.
    pub(crate) began: Status,
}

// SAFETY: a communicator can be used and aborted by any thread.
unsafe impl Sync for Rank<'_> {}

impl Rank<'_> {
    pub(crate) fn raw_stream(&self) -> *mut c_void {
        self.stream as *mut c_void
    }

    /// What has become of what was begun.
    pub(crate) fn settle(&self) -> Status {
        if self.comm.is_null() {
            return self.began;
        }
        let began = Instant::now();
        loop {
            let state = self.state();
            if state != Status::IN_PROGRESS {
                return state;
            }
            assert!(began.elapsed() < PATIENCE, "it is still in progress");
            thread::sleep(Duration::from_millis(1));
        }
    }

    pub(crate) fn state(&self) -> Status {
        let mut state = OK;
        // SAFETY: the pointer is valid.
        ok(unsafe { (self.bench.nccl.calls.comm_get_async_error)(self.comm, &raw mut state) });
        state
    }

    /// Waits for the stream's work.
    pub(crate) fn synchronize(&self) {
        self.bench.driver.synchronize_stream(self.stream).expect("nothing fails there");
    }

    pub(crate) fn abort(&self) {
        // SAFETY: at worst there is no such communicator any more.
        ok(unsafe { (self.bench.nccl.calls.comm_abort)(self.comm) });
    }

    pub(crate) fn finalize(&self) -> Status {
        // SAFETY: as above.
        unsafe { (self.bench.nccl.calls.comm_finalize)(self.comm) }
    }

    pub(crate) fn destroy(&self) -> Status {
        // SAFETY: as above.
        unsafe { (self.bench.nccl.calls.comm_destroy)(self.comm) }
    }
}

impl Drop for Rank<'_> {
    fn drop(&mut self) {
        // SAFETY: a handle that was given back is refused.
        unsafe { (self.bench.nccl.calls.comm_abort)(self.comm) };
        let stream = crossover_device::driver::Handle(self.stream);
        let _ = self.bench.driver.synchronize_stream(self.stream);
        let _ = self.bench.driver.destroy_stream(stream);
    }
}

/// It went well.
#[track_caller]
pub(crate) fn ok(status: Status) {
    assert_eq!(status, Status::SUCCESS);
}

/// Waits, within patience, until it is so.
#[track_caller]
pub(crate) fn until(what: impl Fn() -> bool) {
    let began = Instant::now();
    while !what() {
        assert!(began.elapsed() < PATIENCE, "it does not come true");
        thread::sleep(Duration::from_millis(1));
    }
}
