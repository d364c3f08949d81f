use std::time::{Duration, Instant};

use crossover_core::verdict::Verdict;

use super::{News, Party, Watch, connect, listen};

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

#[test]
fn a_stranger_is_not_taken_for_a_rank() {
    let (listener, addresses) = listen().expect("a port");
    let there = *addresses.last().expect("loopback is always there");
    let party = |rank| Party {
        rank,
        addresses: vec![vec![there], Vec::new()],
        nonces: vec![11, 22],
        deadline: Duration::from_secs(10),
    };
    let strange = Party { nonces: vec![33, 22], ..party(1) };
    std::thread::scope(|scope| {
        let host = scope.spawn(|| connect(&listener, &party(0)));
        let (other, _) = listen().expect("a port");
        let refused = connect(&other, &strange).err().expect("it is turned away");
        assert!(refused.0.contains("rank 0 is not reached by TCP"), "{refused}");
        assert!(connect(&other, &party(1)).is_ok());
        assert!(host.join().expect("no panic").is_ok());
    });
}

#[test]
fn who_does_not_come_is_named() {
    let (listener, addresses) = listen().expect("a port");
    let party = Party {
        rank: 0,
        addresses: vec![addresses, Vec::new(), Vec::new()],
        nonces: vec![1, 2, 3],
        deadline: Duration::from_millis(50),
    };
    let why = connect(&listener, &party).err().expect("nobody comes");
    assert_eq!(why.0, "ranks 1 and 2 did not connect by TCP within 50.0ms");
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
