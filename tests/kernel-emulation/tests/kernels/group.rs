//! A group of ranks as a backend sets one up: arenas, states, and pages of the host.

use std::mem::{offset_of, size_of};
use std::time::Duration;

use crossover_kernel_abi::{Arena, Common, Failure, LAMPORT_EMPTY, MAX_WORLD, Room, State};
use crossover_kernel_emulation::scenario::{Address, Place, Scenario};

/// Small, so that data reaches the ends of places.
pub(crate) const ROOM: Room = Room { push: 1 << 10, lamport: 1 << 10, stage: 1 << 12 };
/// A wait that takes longer has failed. Machines that run tests are slow and shared.
const BUDGET: Duration = Duration::from_secs(30);

/// How a scenario is set up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) world: usize,
    pub(crate) seed: u64,
    /// Number of the first call.
    pub(crate) epoch: u64,
    pub(crate) blocks: u32,
    pub(crate) threads: u32,
    /// A flag that lines of all slots hold from long ago.
    pub(crate) stale_flag: u32,
    pub(crate) budget: Duration,
}

impl Setup {
    pub(crate) fn new(world: usize, seed: u64) -> Setup {
        Setup { world, seed, epoch: 1, blocks: 2, threads: 16, stale_flag: 0, budget: BUDGET }
    }
}

/// The group, and the scenario that its calls are added to.
pub(crate) struct Group {
    pub(crate) setup: Setup,
    pub(crate) scenario: Scenario,
    pub(crate) arena: Arena,
    arenas: Vec<usize>,
    states: Vec<usize>,
    /// The abort word, and at 64 the failure.
    hosts: Vec<usize>,
}

const HOST_BYTES: usize = FAILURE_AT + size_of::<Failure>();
/// Behind the word that aborts.
const FAILURE_AT: usize = 64;

impl Group {
    pub(crate) fn new(setup: Setup) -> Group {
        let mut scenario = Scenario::new(setup.world, setup.seed);
        scenario.hang = setup.budget * 2;
        let arena = Arena::new(setup.world as u32, ROOM);
        let mut buffers =
            |bytes: u64| (0..setup.world).map(|_| scenario.buffer(bytes)).collect::<Vec<_>>();
        let arenas = buffers(arena.bytes);
        let states = buffers((setup.blocks as usize * size_of::<State>()) as u64);
        let hosts = buffers(HOST_BYTES as u64);
        // Flags count calls of their own; in tests they begin with the calls' number, and are never 0.
        let (flag, slot) = ((setup.epoch as u32).max(1), (setup.epoch % 3) as u32);
        let state = State {
            epoch: setup.epoch,
            flag,
            slot,
            share_flag: flag,
            share_slot: slot,
            ..State::FIRST
        };
        let content = content(&arena, setup.stale_flag);
        for rank in 0..setup.world {
            scenario.load(rank, start(arenas[rank]), &content, &[]);
            scenario.load(
                rank,
                start(states[rank]),
                &state.as_bytes().repeat(setup.blocks as usize),
                &[],
            );
            scenario.load(rank, start(hosts[rank]), &[0; HOST_BYTES], &[]);
        }
        scenario.meet();
        Group { setup, scenario, arena, arenas, states, hosts }
    }

    /// What a kernel of this rank is told, but for addresses, which are those returned.
    pub(crate) fn common(
        &self,
        rank: usize,
        reduce_op: u32,
        early: bool,
    ) -> (Common, Vec<Address>) {
        let mut addresses: Vec<Address> = (self.arenas.iter().enumerate())
            .map(|(peer, arena)| Address {
                at: offset_of!(Common, arenas) + peer * 8,
                of: start(*arena),
            })
            .collect();
        debug_assert!(addresses.len() <= MAX_WORLD);
        addresses.push(Address { at: offset_of!(Common, states), of: start(self.states[rank]) });
        addresses.push(Address { at: offset_of!(Common, abort), of: start(self.hosts[rank]) });
        let failure = Place { buffer: self.hosts[rank], offset: FAILURE_AT as u64 };
        addresses.push(Address { at: offset_of!(Common, failure), of: failure });
        let common = Common {
            budget: self.setup.budget.as_nanos() as u64,
            rank: rank as u32,
            world: self.setup.world as u32,
            early: early.into(),
            reduce_op,
            blocks: self.setup.blocks,
            ..Common::ZERO
        };
        (common, addresses)
    }

    /// Tells a rank's kernels to give up.
    pub(crate) fn end(&mut self, rank: usize) {
        self.scenario.load(rank, start(self.hosts[rank]), &1u32.to_ne_bytes(), &[]);
    }

    /// The scenario, at whose end nobody may have given up.
    pub(crate) fn finish(mut self) -> Scenario {
        for rank in 0..self.setup.world {
            // Nothing failed. That a wait was long is told on a machine that does something else too.
            let before = &[0; FAILURE_AT + offset_of!(Failure, waiting)];
            self.scenario.check(rank, start(self.hosts[rank]), before);
        }
        self.scenario
    }
}

pub(crate) fn start(buffer: usize) -> Place {
    Place { buffer, offset: 0 }
}

/// Zeros, but for Lamport's places; and, where asked for, lines that came 2^32 calls ago.
fn content(arena: &Arena, stale_flag: u32) -> Vec<u8> {
    let mut bytes = vec![0; arena.bytes as usize];
    for word in bytes[arena.lamport as usize..arena.lamport_end() as usize].chunks_exact_mut(4) {
        word.copy_from_slice(&LAMPORT_EMPTY.to_le_bytes());
    }
    if stale_flag != 0 {
        let stale = (u64::from(stale_flag) << 32 | 0xdead).to_le_bytes();
        for atom in bytes[arena.push as usize..arena.lamport as usize].chunks_exact_mut(8) {
            atom.copy_from_slice(&stale);
        }
    }
    bytes
}
