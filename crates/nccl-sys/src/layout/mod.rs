//! Types, structures and numbers of NCCL's interface that this project passes. RCCL's are the same
//! where nothing else is said.

mod config;
mod numbers;

use std::ffi::{c_char, c_void};

pub use config::{CollConfig, Config, UNDEFINED};
pub use numbers::*;

/// `ncclComm_t`: one rank's part of a communicator.
pub type Comm = *mut c_void;
/// `ncclWindow_t`: a registration of memory on all ranks.
pub type Window = *mut c_void;
/// `cudaStream_t` or `hipStream_t`.
pub type Stream = *mut c_void;

/// `ncclUniqueId`: what rank 0 makes and every rank of a communicator is given, by value.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct UniqueId {
    /// What only the library reads.
    pub internal: [c_char; Self::BYTES],
}

impl UniqueId {
    /// `NCCL_UNIQUE_ID_BYTES`.
    pub const BYTES: usize = 128;
    /// To be written by `get_unique_id`.
    pub const ZERO: Self = Self { internal: [0; Self::BYTES] };

    /// As bytes, to be sent to the other ranks.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        self.internal.map(c_char::cast_unsigned)
    }

    /// From the bytes that a rank was sent.
    #[must_use]
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self { internal: bytes.map(|byte| byte as c_char) }
    }
}

// A wrong size would let the library read or write past what it is given.
const _: () = assert!(size_of::<UniqueId>() == UniqueId::BYTES);
