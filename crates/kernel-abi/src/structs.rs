//! The structures. A kernel takes exactly one of those whose name ends in `Args`, by value.

use crate::declare::declare;

/// Most ranks of a group. Tables have so many places.
pub const MAX_WORLD: usize = 16;
/// Most blocks of a launch: each has a place in the barrier's table.
pub const MAX_BLOCKS: usize = 1024; // size: more than any device holds at a time
/// Most threads of a block of ours.
pub const MAX_THREADS: usize = 512;
/// The word that marks an empty place of Lamport's protocol: -0.0 as f32, and as the upper half of
/// a pair of 16-bit floats. Senders flush it to +0.0.
pub const LAMPORT_EMPTY: u32 = 0x8000_0000;

/// Why a kernel gave up, in [`Failure::code`].
pub mod code {
    /// It did not.
    pub const NONE: u32 = 0;
    /// The awaited rank did not come within the budget.
    pub const LATE: u32 = 1;
    /// Somebody aborted the group.
    pub const ABORTED: u32 = 2;
    /// A graph was replayed before its buffers were exchanged.
    pub const NOT_COMMITTED: u32 = 3;
}

/// What a kernel waited for, in [`Failure::step`].
pub mod step {
    /// A value beside its flag.
    pub const DATA: u32 = 0;
    /// A reduced share beside its flag.
    pub const SHARE: u32 = 1;
    /// The barrier before peers are read.
    pub const BARRIER: u32 = 2;
    /// The barrier after shares are reduced, or before inputs may change.
    pub const SECOND_BARRIER: u32 = 3;
    /// The token of a rank that sends nothing else.
    pub const TOKEN: u32 = 4;
    /// A value that is its own flag.
    pub const LAMPORT: u32 = 5;
}

declare! {
    /// What a block of a rank's kernels remembers from call to call, in device memory that no other rank writes. Each block
    /// that a launch may have has one of its own, and a launch advances them all: block b of B those of b, b+B, b+2B and so
    /// on, so that within a launch nobody but the block itself writes what it reads. Read by every thread, 16 bytes at a time.
    pub struct State {
        /// Number of the call, the same on every rank; starts at 1.
        pub epoch: u64,
        /// The flag beside data: calls that push so far, the same on every rank; starts at 1, and is never 0.
        pub flag: u32,
        /// Which of three slots the next call that pushes uses.
        pub slot: u32,
        /// The flag beside reduced shares: calls that push them so far; starts at 1, and is never 0.
        pub share_flag: u32,
        /// Which of three slots of shares the next such call uses.
        pub share_slot: u32,
        /// Not 0: a kernel gave up. Those behind it end at once.
        pub poisoned: u32,
        /// Keeps what follows aligned.
        pub reserved: u32,
        /// Which of three slots the next Lamport call uses. It turns by itself: such a call clears what the one before it
        /// wrote.
        pub lamport_slot: u32,
        /// Packs of each rank that are dirty in each Lamport slot.
        pub lamport_dirty: [u32; 3],
        /// Keeps blocks half a cache line apart.
        pub unused: [u32; 4],
    }

    /// Where and for whom a kernel gave up, in pages of the host. One a rank; the first thread that gives up, which is
    /// the one that poisons the state, fills it: devices need not have atomics on the host's memory.
    pub struct Failure {
        /// Why, one of `code`; written last.
        pub code: u32,
        /// The awaited rank.
        pub awaited: u32,
        /// What for, one of `step`.
        pub step: u32,
        /// The block that waited.
        pub block: u32,
        /// The thread that waited.
        pub thread: u32,
        /// The flag of the call.
        pub flag: u32,
        /// Keeps what follows aligned.
        pub reserved: [u32; 2],
        /// The call, as the device counts.
        pub epoch: u64,
        /// What it saw instead.
        pub observed: u64,
        /// What a thread waits for that has waited for long: the call, as the device counts (its low 32 bits, on top), the
        /// time in milliseconds (16 bits), the awaited rank and what for, one of `step` (8 bits each). The time
        /// moves for as long as it waits.
        pub waiting: u64,
        /// Keeps ranks in cache lines of their own.
        pub unused: u64,
    }

    /// What every kernel is told that waits. It has the abort word and the budget, so that no such kernel can forget them.
    pub struct Common {
        /// Every rank's arena, as this device sees it.
        pub arenas: [u64; 16],
        /// This rank's [`State`]s, one for each block.
        pub states: u64,
        /// A word in pages of the host: not 0 ends every wait.
        pub abort: u64,
        /// This rank's [`Failure`].
        pub failure: u64,
        /// Nanoseconds that a wait may take.
        pub budget: u64,
        /// This rank.
        pub rank: u32,
        /// Number of ranks.
        pub world: u32,
        /// Not 0: the kernel behind may be put on the device while this one runs. It waits for the end of this one by itself.
        pub early: u32,
        /// How contributions are combined: the index in the vocabulary of reduce ops (sum, prod, min, max, avg).
        pub reduce_op: u32,
        /// Blocks that have a state: the most of any launch.
        pub blocks: u32,
        /// Keeps the size a multiple of 8.
        pub reserved: u32,
    }

    /// A mark that every rank leaves with every other, for the owner to find.
    pub struct ProbeArgs {
        /// What every kernel is told.
        pub common: Common,
        /// Bytes from an arena's start to the barrier's table, where block 0's words are.
        pub barrier: u64,
        /// The mark.
        pub mark: u64,
    }

    /// A kernel that does nothing.
    pub struct EmptyArgs {
        /// Not 0: the kernel behind may be put on the device while this one runs.
        pub early: u64,
    }

    /// A word that goes to and fro between ranks 0 and 1.
    pub struct TripArgs {
        /// What every kernel is told that waits. An arena is one word, which the other rank writes.
        pub common: Common,
        /// How often it goes there and back.
        pub rounds: u64,
        /// What it is in the first round; one more in each that follows, and never what it has been before.
        pub first: u64,
        /// Where nanoseconds go, of all rounds but the first.
        pub took: u64,
    }

    /// A copy, whatever its alignment.
    pub struct CopyArgs {
        /// From where.
        pub from: u64,
        /// To where.
        pub to: u64,
        /// How many bytes.
        pub bytes: u64,
        /// Not 0: the kernel behind may be put on the device while this one runs.
        pub early: u64,
    }

    /// A reduction of one tensor that every rank receives whole.
    pub struct AllReduceArgs {
        /// What every kernel is told.
        pub common: Common,
        /// This rank's tensor.
        pub input: u64,
        /// The result; may be `input`.
        pub output: u64,
        /// Bytes of each.
        pub bytes: u64,
        /// Bytes from an arena's start to the region that the algorithm uses first.
        pub region: u64,
        /// Bytes of one rank's place in a slot of that region.
        pub place: u64,
        /// The second region: shares (push) or results (pull).
        pub second: u64,
        /// Bytes of one rank's place in a slot of the second region.
        pub second_place: u64,
        /// Bytes from an arena's start to the barrier's table.
        pub barrier: u64,
        /// A row of as many addresses as ranks: every rank's input, to be read where it is. 0: inputs are staged.
        /// The row's first word is 0 until it is committed, and 1 where it was agreed to stage.
        pub row: u64,
        /// The same of every rank's output, to be written where it is. 0: results are staged.
        pub output_row: u64,
    }

    /// A collective in which each rank sends one part to each rank, of which some may be equal or empty.
    pub struct PartsArgs {
        /// What every kernel is told.
        pub common: Common,
        /// This rank's tensor.
        pub input: u64,
        /// The result; may overlap the input as the call allows.
        pub output: u64,
        /// Bytes from an arena's start to the region.
        pub region: u64,
        /// Bytes of one rank's place in a slot of that region; of the whole slot, where it is staged.
        pub place: u64,
        /// Bytes from an arena's start to the barrier's table.
        pub barrier: u64,
        /// Not 0: some part is empty, so that ranks tell each other apart from data that they have come.
        pub tokens: u64,
        /// A row of as many addresses as ranks, as in [`AllReduceArgs`]; one that nobody reads may be any but 0 and 1. In a
        /// peer's input, what is for this rank starts where in its own input the part that it keeps does.
        pub row: u64,
        /// Bytes of each part that are staged at a time.
        pub piece: u64,
        /// Pieces of the largest part, the same on every rank: where inputs are staged, the call counts as so many.
        pub pieces: u64,
        /// Where the part for each rank starts in the input.
        pub send_at: [u64; 16],
        /// Bytes of the part for each rank.
        pub send_bytes: [u64; 16],
        /// Where the part from each rank goes in the output.
        pub receive_at: [u64; 16],
        /// Bytes of the part from each rank.
        pub receive_bytes: [u64; 16],
        /// Where the part for each rank is staged, a piece at a time.
        pub stage_at: [u64; 16],
        /// Where each rank stages the part for this one.
        pub fetch_at: [u64; 16],
    }
}

impl State {
    /// Before the first call.
    pub const FIRST: State = State { epoch: 1, flag: 1, share_flag: 1, ..State::ZERO };
}
