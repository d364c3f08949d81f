//! Steps: publish, wait for everyone.

use super::Word;

/// The words that ranks publish in.
pub trait Board {
    /// What a word is made of.
    type Word: Word;

    /// The word that `rank` alone writes, for steps of this parity. Starts at 0.
    fn arrival(&self, rank: u32, parity: usize) -> &Self::Word;

    /// Called each time that `rank`, this one, has published. Where ranks sleep it wakes them:
    /// [`ring_if_marked`](super::ring_if_marked).
    #[inline]
    fn after_publish(&self, _rank: u32) {}
}

/// How to wait.
pub trait Patience {
    /// Why a wait ends without success.
    type Error;

    /// Called each time that an awaited word was found wanting.
    ///
    /// # Errors
    ///
    /// Waiting on makes no sense.
    fn pause(&mut self, step: Step) -> Result<(), Self::Error>;
}

/// A step, as a rank takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    number: u64,
    tag: u32,
}

impl Step {
    /// Which of a rank's two words and slots it uses.
    #[inline]
    pub fn parity(self) -> usize {
        (self.number % 2) as usize
    }

    /// Has the owner of `word`, a word of this step's parity, arrived at this step?
    #[inline]
    pub fn reached<W: Word>(self, word: &W) -> bool {
        self.is_of(word.load_acquire())
    }

    /// Was this published at this step?
    #[inline]
    fn is_of(self, word: u64) -> bool {
        word as u32 == self.number as u32
    }

    /// What a rank publishes that takes it.
    #[inline]
    fn word(self) -> u64 {
        u64::from(self.tag) << 32 | self.number & u64::from(u32::MAX)
    }
}

/// Whom a step brought together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// Ranks with one tag.
    Alike,
    /// Some rank has another tag.
    Unlike,
}

/// One rank's place in the sequence of steps.
#[derive(Debug)]
pub struct Steps {
    rank: u32,
    world: u32,
    current: u64,
}

impl Steps {
    /// Before the first step.
    pub fn new(rank: u32, world: u32) -> Self {
        Steps { rank, world, current: 0 }
    }

    /// Begins the next step: from now on the own slot of its parity may be written.
    #[inline]
    pub fn begin(&mut self, tag: u32) -> Step {
        self.current += 1;
        Step { number: self.current, tag }
    }

    /// Tells the peers that the own slot is filled.
    #[inline]
    pub fn publish<B: Board>(&self, step: Step, board: &B) {
        board.arrival(self.rank, step.parity()).store_release(step.word());
        board.after_publish(self.rank);
    }

    /// Waits until every peer has published the step. Afterwards the peers' slots of its parity may
    /// be read, until the next step is published.
    ///
    /// # Errors
    ///
    /// What `patience` said; the group's steps are then over.
    #[inline]
    pub fn meet<B: Board, P: Patience>(
        &self,
        step: Step,
        board: &B,
        patience: &mut P,
    ) -> Result<Met, P::Error> {
        let mut met = Met::Alike;
        for peer in (0..self.world).filter(|peer| *peer != self.rank) {
            let word = board.arrival(peer, step.parity());
            loop {
                let found = word.load_acquire();
                if found == step.word() {
                    break;
                }
                if step.is_of(found) {
                    met = Met::Unlike;
                    break;
                }
                patience.pause(step)?;
            }
        }
        Ok(met)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    type Words = [[AtomicU64; 2]; 2];

    impl Board for Words {
        type Word = AtomicU64;

        fn arrival(&self, rank: u32, parity: usize) -> &AtomicU64 {
            &self[rank as usize][parity]
        }
    }

    /// Is out of patience at once.
    struct None;

    impl Patience for None {
        type Error = Step;

        fn pause(&mut self, step: Step) -> Result<(), Step> {
            Err(step)
        }
    }

    #[test]
    fn numbers_wrap_and_nobody_notices() {
        let board = Words::default();
        let at = |rank| Steps { rank, world: 2, current: u64::from(u32::MAX) - 3 };
        let mut ranks = [at(0), at(1)];
        for _ in 0..8 {
            let step = ranks[0].begin(1);
            ranks[0].publish(step, &board);
            assert_eq!(ranks[0].meet(step, &board, &mut None), Err(step), "nobody else is there");
            let same = ranks[1].begin(1);
            ranks[1].publish(same, &board);
            for rank in &ranks {
                assert_eq!(rank.meet(step, &board, &mut None), Ok(Met::Alike));
            }
        }
    }
}
