//! Every rank gives a tensor, every rank receives the reduction.

mod one_shot;
mod two_shot;

pub(super) use self::one_shot::run as one_shot;
pub(super) use self::two_shot::run as two_shot;
