//! How a rank's arena is laid out.

use crate::structs::{MAX_BLOCKS, MAX_WORLD};

/// Bytes of a place for one rank's part, by protocol. Powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Payload bytes of one rank's place of data beside flags, which take as much again.
    pub push: u64,
    /// Bytes of one rank's place of Lamport's protocol.
    pub lamport: u64,
    /// Bytes that a rank stages for its peers to read.
    pub stage: u64,
}

/// Where everything is in an arena, in bytes from its start: a pure function of the group's size
/// and agreed room, so that every rank knows every arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arena {
    /// The rooms that it was made for.
    pub room: Room,
    /// A word of 64 bits for each (block, rank), one writer each.
    pub barrier: u64,
    /// Data beside flags: three slots of a place for each rank.
    pub push: u64,
    /// Reduced shares beside flags: the same again.
    pub shares: u64,
    /// Lamport's: three slots of a place for each rank, every word
    /// [`LAMPORT_EMPTY`](crate::LAMPORT_EMPTY) at the start.
    pub lamport: u64,
    /// Staged inputs: two, by parity of the call.
    pub stage: u64,
    /// Reduced shares to be read by peers: two, by parity of the call.
    pub results: u64,
    /// The end.
    pub bytes: u64,
}

/// Slots of the protocols that rotate over three.
pub const SLOTS: u64 = 3;
/// Regions start at multiples of this: a cache line pair.
const LINE: u64 = 256;

impl Arena {
    /// The layout for a group of `world`.
    pub fn new(world: u32, room: Room) -> Arena {
        let world = u64::from(world);
        let mut end = 0;
        let mut region = |bytes: u64| {
            let start = end;
            end = (start + bytes).next_multiple_of(LINE);
            start
        };
        let barrier = region((MAX_BLOCKS * MAX_WORLD * 8) as u64);
        let push = region(SLOTS * world * 2 * room.push);
        let shares = region(SLOTS * world * 2 * room.push);
        let lamport = region(SLOTS * world * room.lamport);
        let stage = region(2 * room.stage);
        let results = region(2 * room.stage);
        Arena { room, barrier, push, shares, lamport, stage, results, bytes: end }
    }

    /// Where Lamport's region ends.
    pub fn lamport_end(&self) -> u64 {
        self.stage
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_follow_one_another_and_do_not_overlap() {
        let room = Room { push: 1 << 10, lamport: 1 << 9, stage: 1 << 12 };
        for world in 2..=16 {
            let arena = Arena::new(world, room);
            let w = u64::from(world);
            let sizes = [
                (arena.barrier, (MAX_BLOCKS * MAX_WORLD * 8) as u64),
                (arena.push, 6 * w * room.push),
                (arena.shares, 6 * w * room.push),
                (arena.lamport, 3 * w * room.lamport),
                (arena.stage, 2 * room.stage),
                (arena.results, 2 * room.stage),
            ];
            let mut end = 0;
            for (start, bytes) in sizes {
                assert!(start >= end && start % LINE == 0, "{world}: {start} after {end}");
                end = start + bytes;
            }
            assert!(arena.bytes >= end);
        }
    }
}
