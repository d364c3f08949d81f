//! Steps: publish, wait for everyone.

use super::Word;

/// The words that ranks publish in.
pub trait Board {
    /// What a word is made of.
    type Word: Word;

    /// The word that `rank` alone writes, for steps of this parity. Starts at 0.
    fn arrival(&self, rank: u32, parity: usize) -> &Self::Word;
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

/// The number of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step(u64);

impl Step {
    /// Which of a rank's two words and slots it uses.
    #[inline]
    pub fn parity(self) -> usize {
        (self.0 % 2) as usize
    }

    /// Has the owner of `word`, a word of this step's parity, arrived at this step?
    #[inline]
    pub fn reached<W: Word>(self, word: &W) -> bool {
        word.load_acquire() >= self.0
    }
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
    pub fn begin(&mut self) -> Step {
        self.current += 1;
        Step(self.current)
    }

    /// Publishes the step and waits for every peer. Afterwards the peers' slots of its parity may
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
    ) -> Result<(), P::Error> {
        board.arrival(self.rank, step.parity()).store_release(step.0);
        for peer in (0..self.world).filter(|peer| *peer != self.rank) {
            let word = board.arrival(peer, step.parity());
            while !step.reached(word) {
                patience.pause(step)?;
            }
        }
        Ok(())
    }
}
