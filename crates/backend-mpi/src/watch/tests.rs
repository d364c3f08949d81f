use std::ffi::c_int;
use std::time::{Duration, Instant};

use crossover_core::verdict::Verdict;

use super::{News, Watch};
use crate::connect::{Party, connect, listen};

#[test]
fn last_words_arrive_everywhere_and_stay() {
    let all = group(3);
    assert!(all.iter().all(|watch| watch.look().is_none()));
    all[1].end(Verdict::aborted(1, "the operator said so"));
    all[1].end(Verdict::aborted(1, "only the first counts"));
    for watch in &all {
        for _ in 0..2 {
            let Some(News::Ended(verdict)) = until_news(watch) else { panic!("nothing ended") };
            assert_eq!(verdict, Verdict::aborted(1, "the operator said so"));
        }
    }
}

#[test]
fn a_forked_child_drops_what_it_inherits_and_its_parent_goes_on() {
    unsafe extern "C" {
        /// Of the C library.
        fn fork() -> c_int;
        /// Of the C library.
        fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
        /// Of the C library.
        fn _exit(status: c_int) -> !;
    }
    let mut all = group(2);
    // SAFETY: the child makes system calls alone, and never returns.
    let child = unsafe { fork() };
    if child == 0 {
        for watch in &all {
            watch.hang_up();
        }
        // SAFETY: it may be called at any time.
        unsafe { _exit(0) };
    }
    let mut status = -1;
    // SAFETY: a place for the answer.
    let ended = unsafe { waitpid(child, &raw mut status, 0) };
    assert_eq!((ended, status), (child, 0));
    std::thread::sleep(Duration::from_millis(20));
    assert!(all.iter().all(|watch| watch.look().is_none()), "the child ended its parent's group");
    all[1].hang_up();
    assert!(matches!(until_news(&all.remove(0)), Some(News::Gone { rank: 1, .. })));
}

#[test]
fn who_left_in_peace_ends_nothing_afterwards() {
    let all = group(2);
    all[0].say_goodbye();
    assert!(!all[0].end(Verdict::aborted(0, "an engine stops everything it knows")));
    std::thread::sleep(Duration::from_millis(20));
    assert!(all[1].look().is_none(), "a group that was closed was ended");
    assert!(all[1].end(Verdict::aborted(1, "first")));
    assert!(!all[1].end(Verdict::aborted(1, "second")), "it had ended");
}

#[test]
fn who_hangs_up_without_a_goodbye_is_gone() {
    let all = group(3);
    all[2].say_goodbye();
    all[2].hang_up();
    std::thread::sleep(Duration::from_millis(20));
    assert!(all[0].look().is_none(), "it left in peace");
    all[1].hang_up();
    let Some(News::Gone { rank, .. }) = until_news(&all[0]) else { panic!("nobody is gone") };
    assert_eq!(rank, 1);
}

fn group(world: u32) -> Vec<Watch> {
    let (listeners, addresses): (Vec<_>, Vec<_>) =
        (0..world).map(|_| listen().expect("a port")).unzip();
    std::thread::scope(|scope| {
        let join = |(rank, listener)| {
            let party = Party {
                rank,
                addresses: addresses.clone(),
                nonces: (0..world).map(|rank| 77 + u64::from(rank)).collect(),
                deadline: Duration::from_secs(20),
            };
            scope.spawn(move || connect(listener, &party).expect("all come"))
        };
        let ranks: Vec<_> = (0..).zip(&listeners).map(join).collect();
        ranks.into_iter().map(|rank| rank.join().expect("no panic")).collect()
    })
}

fn until_news(watch: &Watch) -> Option<News> {
    let until = Instant::now() + Duration::from_secs(5);
    while Instant::now() < until {
        if let Some(news) = watch.look() {
            return Some(news);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    None
}
