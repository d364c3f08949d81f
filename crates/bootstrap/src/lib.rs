//! How ranks find each other, and the control plane they then talk over.
//!
//! - [`Launch`] says who this process is: stated by the engine, or read from a launcher's
//!   environment ([`Launch::from_env`]).
//! - [`connect`] meets the other ranks and returns their
//!   [`Bootstrap`](crossover_core::bootstrap::Bootstrap): a star through rank 0 over Unix sockets
//!   on one node, over TCP across nodes. Every wait has a deadline, every error names who is
//!   awaited at which step, and what rank 0 can see ends in the same sentence on every rank.
//! - [`threads`] and [`Solo`] are the same for ranks in one process, and for one rank.
//! - [`exit`] is a last word before the process ends.
//! - [`binding`] says on which processors ranks run; [`launcher`] starts the ranks of a job on this
//!   node.

pub mod binding;
mod channel;
mod conn;
mod descriptors;
mod environment;
mod error;
mod exchange;
pub mod exit;
mod frame;
mod identity;
mod launch;
pub mod launcher;
pub mod liveness;
mod rendezvous;
mod solo;
mod split;
mod threads;

pub use crate::environment::LaunchError;
pub use crate::error::{Refusal, RendezvousError};
pub use crate::identity::Identity;
pub use crate::launch::{Family, Launch};
pub use crate::rendezvous::{Options, Place, PlaceError, connect, own_addresses};
pub use crate::solo::Solo;
pub use crate::threads::{ThreadChannel, threads};

/// For the fuzzer alone: reads any bytes as a frame.
#[doc(hidden)]
pub fn fuzz_frame(bytes: &[u8]) {
    if let Ok(Some((message, used))) = frame::parse(bytes, frame::MAX_PAYLOAD) {
        assert!(used <= bytes.len());
        let again = frame::encode(&message).expect("what was read can be written");
        let read = frame::parse(&again, frame::MAX_PAYLOAD);
        assert_eq!(read.map(|read| read.map(|(message, _)| message)), Ok(Some(message)));
    }
}

/// A number that no other run has, from the standard library's source of hash seeds.
pub(crate) fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::hash::RandomState::new().build_hasher().finish()
}
