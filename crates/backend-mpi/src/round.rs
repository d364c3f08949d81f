//! The exchanges of one call. In the first one every rank tells every other what it calls, in a message
//! of its own, so that whoever is late can be named; what is small travels with that. All others are
//! MPI's collectives, which begin only where all ranks are known to make the same call.

use std::time::Duration;

use crossover_backend_host::header::Header;
use crossover_backend_host::mismatch;
use crossover_core::backend::EnqueueError;

use crate::comm::{Comm, Failed};
use crate::library::layout::Request;
use crate::session::MpiSession;
use crate::staging::{BLOCK, HEADER, INLINE, Staging};
use crate::wait::{Ended, Wait};
use crate::watch::Watch;

/// Who gives what to whom in an exchange. What is given lies in `Memory::given`; [`Round::came`]
/// says where that of each rank is afterwards.
#[derive(Clone, Copy)]
pub(crate) enum Pattern<'a> {
    /// Every rank gives the same to all: so many bytes of each rank.
    Gather(&'a [usize]),
    /// Every rank gives a part to each: so many bytes to each rank, and so many from each.
    Scatter { to: &'a [usize], from: &'a [usize] },
    /// One rank gives so many bytes to all.
    Broadcast { root: u32, len: usize },
}

/// One call of a rank.
pub(crate) struct Round<'s> {
    comm: &'s Comm,
    watch: &'s Watch,
    pub(crate) staging: &'s mut Staging,
    deadline: Duration,
    header: Header,
    met: bool,
    /// Has the last exchange travelled with the headers?
    inline: bool,
}

impl<'s> Round<'s> {
    pub(crate) fn new(session: &'s mut MpiSession, header: Header) -> Self {
        let MpiSession { comm, watch, staging, deadline, .. } = session;
        Round { comm, watch, staging, deadline: *deadline, header, met: false, inline: false }
    }

    pub(crate) fn rank(&self) -> usize {
        self.comm.rank as usize
    }

    pub(crate) fn world(&self) -> usize {
        self.comm.world as usize
    }

    /// Makes an exchange.
    pub(crate) fn exchange(&mut self, pattern: Pattern<'_>) -> Result<(), EnqueueError> {
        self.inline = false;
        if !self.met {
            self.met = true;
            // The same on all ranks, or they learn from the headers that it is not.
            self.inline = pattern.largest() <= INLINE;
            return match self.inline {
                true => self.meet(Some(pattern)),
                false => self.meet(None).and_then(|()| self.collective(pattern)),
            };
        }
        self.collective(pattern)
    }

    /// Where what a rank gave lies. Not for a broadcast's root itself.
    pub(crate) fn came(&self, rank: usize) -> *const u8 {
        match self.inline {
            true => self.staging.heard[rank * BLOCK + HEADER..].as_ptr(),
            false => self.staging.come[self.staging.theirs.places[rank] as usize..].as_ptr(),
        }
    }

    /// Tells every rank the header, with what it is given if that is small, and compares what all told.
    pub(crate) fn meet(&mut self, small: Option<Pattern<'_>>) -> Result<(), EnqueueError> {
        let (me, world) = (self.rank(), self.world());
        let mut from = 0;
        for peer in 0..world {
            let len = small.map_or(0, |pattern| pattern.given(me, peer));
            let memory = &mut **self.staging;
            let block = &mut memory.told[peer * BLOCK..][..HEADER + len];
            for (to, word) in block.chunks_exact_mut(8).zip(self.header.words()) {
                to.copy_from_slice(&word.to_le_bytes());
            }
            block[HEADER..].copy_from_slice(&memory.given[from..][..len]);
            if peer == me {
                memory.heard[peer * BLOCK..][..HEADER + len].copy_from_slice(block);
            }
            from += small.map_or(0, |pattern| pattern.step(me, peer));
        }
        self.talk(small)?;
        let headers: Vec<Header> =
            (0..world).map(|rank| read(&self.staging.heard[rank * BLOCK..])).collect();
        match headers.iter().all(|theirs| *theirs == self.header) {
            true => Ok(()),
            false => Err(mismatch::explain(&headers, self.place(), self.header.seq())),
        }
    }

    /// Sends every block and waits for all others'.
    fn talk(&mut self, small: Option<Pattern<'_>>) -> Result<(), EnqueueError> {
        let (me, world) = (self.rank(), self.world());
        self.staging.begin();
        let peers = || (1..world).map(|next| (me + next) % world);
        for peer in peers() {
            let block = self.staging.heard[peer * BLOCK..][..BLOCK].as_mut_ptr();
            // SAFETY: the block is the message's until it has come, as `begin` promises.
            let begun = unsafe { self.comm.receive(block, BLOCK, peer as u32) };
            self.staging.received[peer] = begun.map_err(|e| self.failed(e))?;
        }
        for peer in peers() {
            let len = HEADER + small.map_or(0, |pattern| pattern.given(me, peer));
            let block = self.staging.told[peer * BLOCK..].as_ptr();
            // SAFETY: as above.
            let begun = unsafe { self.comm.send(block, len, peer as u32) };
            self.staging.sent[peer] = begun.map_err(|e| self.failed(e))?;
        }
        let mut wait = Wait::new(self.watch, self.deadline);
        loop {
            let (mut silent, mut deaf) = (Vec::new(), Vec::new());
            for peer in peers() {
                let request = &mut self.staging.received[peer];
                if *request != Request::NULL {
                    match self.comm.received(request) {
                        Ok(Some(len)) if len < HEADER => return Err(self.garbled(peer, len)),
                        Ok(Some(_)) => {}
                        Ok(None) => silent.push(peer as u32),
                        Err(e) => return Err(self.failed(e)),
                    }
                }
                let request = &mut self.staging.sent[peer];
                match self.comm.test(request) {
                    Ok(true) => {}
                    Ok(false) => deaf.push(peer as u32),
                    Err(e) => return Err(self.failed(e)),
                }
            }
            let awaited = if silent.is_empty() { deaf } else { silent };
            if awaited.is_empty() {
                self.staging.done();
                return Ok(());
            }
            wait.pause().map_err(|ended| self.ended(ended, awaited, "its call"))?;
        }
    }

    fn collective(&mut self, pattern: Pattern<'_>) -> Result<(), EnqueueError> {
        let memory = &mut **self.staging;
        let (given, come) = (memory.given.as_mut_ptr(), memory.come.as_mut_ptr());
        // SAFETY: `room` was made for what the pattern says; nobody touches memory or shares until
        // the request has completed, as `begin` promises.
        let (call, begun) = unsafe {
            match pattern {
                Pattern::Gather(lens) => {
                    memory.theirs.set(lens);
                    ("MPI_Iallgatherv", self.comm.all_gather(given, come, &memory.theirs))
                }
                Pattern::Scatter { to, from } => {
                    memory.mine.set(to);
                    memory.theirs.set(from);
                    let begun = self.comm.all_to_all(given, &memory.mine, come, &memory.theirs);
                    ("MPI_Ialltoallv", begun)
                }
                Pattern::Broadcast { root, len } => {
                    memory.theirs.set(&vec![0; self.comm.world as usize]);
                    let buffer = if root == self.comm.rank { given } else { come };
                    ("MPI_Ibcast", self.comm.broadcast(buffer, len, root))
                }
            }
        };
        self.staging.begin();
        let mut request = begun.map_err(|e| self.failed(e))?;
        let mut wait = Wait::new(self.watch, self.deadline);
        loop {
            match self.comm.test(&mut request) {
                Ok(true) => break,
                Ok(false) => {}
                Err(e) => return Err(self.failed(e)),
            }
            let others = || (0..self.comm.world).filter(|rank| *rank != self.comm.rank).collect();
            wait.pause().map_err(|ended| self.ended(ended, others(), call))?;
        }
        self.staging.done();
        Ok(())
    }

    /// Where this rank is, in words.
    fn place(&self) -> String {
        mismatch::call_in_words(crate::DESCRIPTOR.id, &self.header)
    }

    /// `what` is what was waited for.
    #[cold]
    fn ended(&self, ended: Ended, awaited: Vec<u32>, what: &str) -> EnqueueError {
        let (step, seq) = (format!("{}, {what}", self.place()), self.header.seq());
        match ended {
            Ended::Verdict(verdict) => verdict.into_error(&step, seq),
            Ended::Lost { rank, how } => {
                EnqueueError::Lost { step, seq, rank, how: how.to_owned() }
            }
            Ended::Late(waited) => EnqueueError::Late { step, seq, ranks: awaited, waited },
        }
    }

    /// A function of MPI failed, maybe because of a peer whose end is not yet seen.
    #[cold]
    fn failed(&self, failed: Failed) -> EnqueueError {
        let mut wait = Wait::new(self.watch, crate::wait::GRACE * 2);
        loop {
            match wait.pause() {
                Ok(()) => {}
                Err(Ended::Late(_)) => break,
                Err(ended) => return self.ended(ended, Vec::new(), failed.call),
            }
        }
        let (step, seq) = (self.place(), self.header.seq());
        EnqueueError::Vendor { step, seq, call: failed.call, text: failed.text }
    }

    #[cold]
    fn garbled(&self, peer: usize, len: usize) -> EnqueueError {
        let text = format!("a message of rank {peer} has {len} B, which is no call");
        EnqueueError::Vendor { step: self.place(), seq: self.header.seq(), call: "MPI_Irecv", text }
    }
}

impl Pattern<'_> {
    /// Most bytes from one rank to another.
    fn largest(&self) -> usize {
        match self {
            Pattern::Gather(lens) => lens.iter().copied().max().unwrap_or(0),
            Pattern::Scatter { to, from } => to.iter().chain(*from).copied().max().unwrap_or(0),
            Pattern::Broadcast { len, .. } => *len,
        }
    }

    /// Bytes that `me` gives to `peer`.
    fn given(&self, me: usize, peer: usize) -> usize {
        match self {
            Pattern::Gather(lens) => lens[me],
            Pattern::Scatter { to, .. } => to[peer],
            Pattern::Broadcast { root, len } => {
                if *root as usize == me {
                    *len
                } else {
                    0
                }
            }
        }
    }

    /// How far behind what `peer` gets begins what the next one gets.
    fn step(&self, me: usize, peer: usize) -> usize {
        match self {
            Pattern::Scatter { .. } => self.given(me, peer),
            Pattern::Gather(_) | Pattern::Broadcast { .. } => 0,
        }
    }
}

fn read(block: &[u8]) -> Header {
    let word = |nth: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&block[nth * 8..][..8]);
        u64::from_le_bytes(bytes)
    };
    Header::from_words([word(0), word(1), word(2), word(3)])
}
