//! Under shuttle: ranks that meet step after step, with the very code of the sessions' rendezvous,
//! and sleep at each other whenever they are early.

use std::convert::Infallible;
use std::panic::catch_unwind;
use std::time::Duration;

use crossover_backend_host::protocol::{
    Bell, Board, Patience, Step, Steps, Word, ring_if_marked, sleep_unless,
};
use shuttle::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use shuttle::sync::{Arc, Condvar, Mutex};

struct Flag(AtomicU64);

impl Word for Flag {
    fn load_acquire(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    fn store_release(&self, value: u64) {
        self.0.store(value, Ordering::Release);
    }

    fn compare_exchange(&self, current: u64, new: u64) -> bool {
        self.0.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

#[derive(Default)]
struct Model {
    mark: AtomicBool,
    rings: AtomicU32,
    kernel: Mutex<()>,
    woken: Condvar,
}

impl Bell for Model {
    fn is_marked(&self) -> bool {
        self.mark.load(Ordering::Relaxed)
    }

    fn set_mark(&self, marked: bool) {
        self.mark.store(marked, Ordering::Relaxed);
    }

    fn rings(&self) -> u32 {
        self.rings.load(Ordering::Acquire)
    }

    fn count_ring(&self) {
        self.rings.fetch_add(1, Ordering::Release);
    }

    fn wake(&self) {
        drop(self.kernel.lock().unwrap());
        self.woken.notify_all();
    }

    fn sleep(&self, rings: u32, _: Duration) {
        let kernel = self.kernel.lock().unwrap();
        if self.rings() == rings {
            drop(self.woken.wait(kernel).unwrap());
        }
    }

    // Shuttle's memory is sequentially consistent.
    fn fence_publisher(&self) {}
}

/// Words and bells of all ranks.
struct Memory {
    words: Vec<[Flag; 2]>,
    bells: Vec<Model>,
    rings: bool,
}

impl Board for Memory {
    type Word = Flag;

    fn arrival(&self, rank: u32, parity: usize) -> &Flag {
        &self.words[rank as usize][parity]
    }

    fn after_publish(&self, rank: u32) {
        if self.rings {
            ring_if_marked(&self.bells[rank as usize]);
        }
    }
}

/// Sleeps at once, over the first rank that has not arrived.
struct Sleepy<'a> {
    rank: u32,
    memory: &'a Memory,
}

impl Patience for Sleepy<'_> {
    type Error = Infallible;

    fn pause(&mut self, step: Step) -> Result<(), Infallible> {
        let arrived = |rank| step.reached(self.memory.arrival(rank, step.parity()));
        let ranks = 0..self.memory.bells.len() as u32;
        if let Some(late) = ranks.clone().find(|rank| *rank != self.rank && !arrived(*rank)) {
            sleep_unless(&self.memory.bells[late as usize], || Duration::MAX, || arrived(late));
        }
        Ok(())
    }
}

fn run(ranks: u32, steps: usize, rings: bool) {
    let once = move || {
        let memory = Arc::new(Memory {
            words: (0..ranks).map(|_| [0, 1].map(|_| Flag(AtomicU64::new(0)))).collect(),
            bells: (0..ranks).map(|_| Model::default()).collect(),
            rings,
        });
        let threads: Vec<_> = (0..ranks)
            .map(|rank| {
                let memory = Arc::clone(&memory);
                shuttle::thread::spawn(move || {
                    let mut own = Steps::new(rank, ranks);
                    for _ in 0..steps {
                        let step = own.begin(0);
                        own.publish(step, &*memory);
                        let mut patience = Sleepy { rank, memory: &memory };
                        let Ok(_) = own.meet(step, &*memory, &mut patience);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    };
    shuttle::check_random(once, 3000);
}

#[test]
fn three_ranks() {
    run(3, 6, true);
}

#[test]
fn five_ranks() {
    run(5, 4, true);
}

#[test]
fn ranks_that_never_ring_are_found() {
    assert!(catch_unwind(|| run(3, 6, false)).is_err());
}
