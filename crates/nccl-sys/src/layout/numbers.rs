//! Enumerations and flags. They are whole numbers of their own type and not Rust enumerations: a
//! library may answer with one that this project does not know.

use std::ffi::c_int;

/// `ncclResult_t`: what a call returns.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Status(pub c_int);

impl Status {
    /// It is done, or was put into a stream.
    pub const SUCCESS: Self = Self(0);
    /// A call of CUDA or HIP failed.
    pub const UNHANDLED_CUDA_ERROR: Self = Self(1);
    /// A call of the operating system failed.
    pub const SYSTEM_ERROR: Self = Self(2);
    /// A mistake of the library's own.
    pub const INTERNAL_ERROR: Self = Self(3);
    /// An argument has no meaning.
    pub const INVALID_ARGUMENT: Self = Self(4);
    /// The call is not allowed now, or ranks do not fit together.
    pub const INVALID_USAGE: Self = Self(5);
    /// A peer has ended, or the network failed.
    pub const REMOTE_ERROR: Self = Self(6);
    /// Not done yet, which is no error: communicators that do not block answer so.
    pub const IN_PROGRESS: Self = Self(7);
    /// A wait inside the library was over. Since 2.30; before, no call returned 8.
    pub const TIMEOUT: Self = Self(8);

    /// Is it done?
    #[must_use]
    pub const fn is_success(self) -> bool {
        self.0 == Self::SUCCESS.0
    }
}

/// `ncclDataType_t`.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DataType(pub c_int);

impl DataType {
    /// Signed, 8 bits.
    pub const I8: Self = Self(0);
    /// Unsigned, 8 bits.
    pub const U8: Self = Self(1);
    /// Signed, 32 bits.
    pub const I32: Self = Self(2);
    /// Unsigned, 32 bits.
    pub const U32: Self = Self(3);
    /// Signed, 64 bits.
    pub const I64: Self = Self(4);
    /// Unsigned, 64 bits.
    pub const U64: Self = Self(5);
    /// IEEE half precision.
    pub const F16: Self = Self(6);
    /// IEEE single precision.
    pub const F32: Self = Self(7);
    /// IEEE double precision.
    pub const F64: Self = Self(8);
    /// bfloat16.
    pub const BF16: Self = Self(9);
    /// Four bits of exponent. Only where [`Library::float8`](crate::Library::float8) says so: others
    /// answer with an invalid argument.
    pub const F8E4M3: Self = Self(10);
    /// Five bits of exponent. As [`F8E4M3`](Self::F8E4M3).
    pub const F8E5M2: Self = Self(11);
}

/// `ncclRedOp_t`: the built-in ones.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RedOp(pub c_int);

impl RedOp {
    /// Sum.
    pub const SUM: Self = Self(0);
    /// Product.
    pub const PROD: Self = Self(1);
    /// Maximum.
    pub const MAX: Self = Self(2);
    /// Minimum.
    pub const MIN: Self = Self(3);
    /// Sum over the number of ranks. Since 2.10.
    pub const AVG: Self = Self(4);
}

/// `NCCL_WIN_DEFAULT`: a window for the library's own choice.
pub const WINDOW_DEFAULT: c_int = 0x00;
/// `NCCL_WIN_COLL_SYMMETRIC`: what ranks pass to a collective is at the same offset of their
/// windows, so that symmetric kernels may run. Ranks that break it corrupt memory.
pub const WINDOW_COLLECTIVE_SYMMETRIC: c_int = 0x01;
/// `NCCL_WIN_REQUIRED_ALIGNMENT`: bytes that a window's start is a multiple of.
pub const WINDOW_ALIGNMENT: usize = 4096; // size: the library's demand on addresses

/// `NCCL_CTA_POLICY_DEFAULT`: the fastest.
pub const CTA_POLICY_DEFAULT: c_int = 0x00;
/// `NCCL_CTA_POLICY_EFFICIENCY`: fewer blocks where that costs little.
pub const CTA_POLICY_EFFICIENCY: c_int = 0x01;
/// `NCCL_CTA_POLICY_ZERO`: copy engines instead of blocks where that can be.
pub const CTA_POLICY_ZERO: c_int = 0x02;

/// `ncclNvlsHostModeDisable`: no use of the switch's multicast.
pub const NVLS_DISABLE: c_int = c_int::MAX;

/// `NCCL_SPLIT_NOCOLOR`: the rank joins no communicator of a split.
pub const SPLIT_NO_COLOR: c_int = -1;
