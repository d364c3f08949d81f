//! The soak: ranks that make mixed collectives on several groups at once, delayed at random, for
//! as long as one likes. Everything follows from one seed.

mod call;
mod fleet;
mod shape;
mod values;

pub use self::call::{Fault, check};
pub use self::fleet::{Fleet, soak};
pub use self::shape::Shape;
pub use self::values::{expected, input};
