//! Sleeping and waking under loom, every execution for a publisher and a waiter or two, and under
//! shuttle with more ranks and steps. Nobody's sleep has an end but being woken: a wake-up that is
//! lost is a deadlock, which both report.
//!
//! What the models cannot show is that a barrier for the compiler on the publisher's side and
//! `membarrier` on the waiter's do what a full fence on each does: that is the kernel's promise.
//! Here both are full fences, and each of them is needed.

#[path = "model_sleep/orders.rs"]
mod orders;
#[path = "model_sleep/schedules.rs"]
mod schedules;
