//! What a process has one of, and a child that it forks must not have from it: the child has one thread, and
//! nobody there gives back a lock that another thread of its parent held.

use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

/// A value of each process's own, made when it is first asked for. It lives as long as the process; that of
/// its parent stays where it is, and is not looked at.
pub(crate) struct PerProcess<T: 'static> {
    made: AtomicPtr<(u32, T)>,
    make: fn() -> T,
}

impl<T: Sync> PerProcess<T> {
    pub(crate) const fn new(make: fn() -> T) -> PerProcess<T> {
        PerProcess { made: AtomicPtr::new(std::ptr::null_mut()), make }
    }

    /// This process's.
    pub(crate) fn get(&'static self) -> &'static T {
        let process = std::process::id();
        let there = self.made.load(Acquire);
        // SAFETY: null, or what was made below, which is never freed.
        if let Some((of, value)) = unsafe { there.as_ref() }
            && *of == process
        {
            return value;
        }
        let new = Box::into_raw(Box::new((process, (self.make)())));
        let kept = match self.made.compare_exchange(there, new, AcqRel, Acquire) {
            Ok(_) => new,
            Err(of_another_thread) => {
                // SAFETY: it was made here, and nobody else has seen it.
                drop(unsafe { Box::from_raw(new) });
                of_another_thread
            }
        };
        // SAFETY: made above, by this process, and never freed.
        unsafe { &(*kept).1 }
    }
}
