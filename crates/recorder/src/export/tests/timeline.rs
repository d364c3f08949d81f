use std::time::{Duration, Instant};

use roxmltree::{Document, Node, ParsingOptions};

use super::*;
use crate::diagnosis::{Class, Diagnosis, Verdict};
use crate::export::timeline;
use crate::image::DeviceWait;

/// A verdict about one record of a group.
pub(super) fn verdict(group: u64, number: u64, ranks: &[u32], sentence: &str) -> Verdict {
    Verdict {
        class: Class::SizeMismatch,
        branch: None,
        fields: Vec::new(),
        tag: "tp".to_owned(),
        group,
        number: Some(number),
        seq: None,
        step: None,
        ranks: ranks.to_vec(),
        site: None,
        expected: None,
        found: None,
        sentence: sentence.to_owned(),
        evidence: vec!["seen".to_owned()],
        advice: vec!["do".to_owned()],
        age_ms: None,
        effect: None,
    }
}

pub(super) fn diagnosis(verdicts: Vec<Verdict>) -> Diagnosis {
    Diagnosis { job: "made".to_owned(), verdicts, groups: Vec::new(), notes: Vec::new() }
}

/// Every page is XML, whatever is in it.
fn parsed<R>(page: &str, look: impl FnOnce(&Document) -> R) -> R {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    look(&Document::parse_with_options(page, options).expect("well-formed"))
}

fn of_class<'a, 'd>(
    document: &'a Document<'d>,
    tag: &'a str,
    class: &'a str,
) -> impl Iterator<Item = Node<'a, 'd>> {
    let has = move |node: &Node| {
        let classes = node.attribute("class").unwrap_or_default();
        node.has_tag_name(tag) && classes.split(' ').any(|c| c == class)
    };
    document.descendants().filter(has)
}

fn number(node: &Node, name: &str) -> u64 {
    node.attribute(name).and_then(|text| text.parse().ok()).expect("a number")
}

fn title(node: &Node) -> String {
    let own = node.children().chain(node.parent().into_iter().flat_map(|p| p.children()));
    let mut titles = own.filter(|child| child.has_tag_name("title"));
    titles.next().and_then(|title| title.text()).expect("a title").to_owned()
}

#[test]
fn the_record_of_a_verdict_is_framed_on_the_ranks_that_it_names() {
    let mut images = group("tp", 7, 4);
    calls(&mut images, 9);
    for (rank, image) in images.iter_mut().enumerate() {
        let count = if rank == 2 { 64 } else { 4096 };
        record(image, What::Call(Op::AllGather), count, "model.rs:90");
        hangs(image);
    }
    let page = timeline(&images, &diagnosis(vec![verdict(7, 10, &[2], "rank 2 is odd")]));
    parsed(&page, |page| {
        let frames: Vec<Node> = of_class(page, "rect", "first").collect();
        let waiting: Vec<Node> = of_class(page, "rect", "wait").collect();
        let [frame] = frames.as_slice() else { panic!("one frame") };
        assert_eq!(waiting.len(), 4);
        // The frame is around the cell of rank 2.
        assert_eq!(number(frame, "x") + 1, number(&waiting[2], "x"));
        assert_eq!(number(frame, "y") + 1, number(&waiting[2], "y"));
        let told = title(&waiting[2]);
        assert!(told.contains("rank 2, record 10"), "{told}");
        assert!(
            told.contains("call 10 (step 2): all_gather of 64 x f32 (256B) by host/one_shot"),
            "{told}"
        );
        assert!(told.contains("at model.rs:90"), "{told}");
        assert!(told.contains("22:13:20.010002 UTC, 59.989998 s before"), "{told}");
        assert_eq!(of_class(page, "text", "odd").count(), 1);
        assert_eq!(of_class(page, "rect", "all_reduce").count(), 36);
        let sentences =
            page.descendants().filter(|n| n.has_tag_name("b") && n.text() == Some("rank 2 is odd"));
        assert_eq!(sentences.count(), 1);
    });
}

#[test]
fn what_is_not_there_is_seen_not_to_be_there() {
    let mut images = group("tp", 7, 4);
    calls(&mut images, 9);
    record(&mut images[0], What::State, 5, "");
    images[1].records.remove(&4);
    images.remove(3);
    let page = timeline(&images, &diagnosis(vec![]));
    parsed(&page, |page| {
        let ahead: Vec<String> = of_class(page, "rect", "ahead").map(|n| title(&n)).collect();
        assert_eq!(ahead, ["rank 1: not come to record 10", "rank 2: not come to record 10"]);
        // One record, and the lane of a rank.
        assert_eq!(of_class(page, "rect", "lost").count(), 2);
        let unseen = of_class(page, "text", "unseen").next().expect("told");
        assert_eq!(unseen.text(), Some("not seen"));
        assert!(of_class(page, "p", "well").next().is_some());
    });
}

#[test]
fn a_rank_tells_what_its_device_waits_for() {
    let mut images = group("tp", 7, 3);
    calls(&mut images, 2);
    images[1].progress.device = Some(DeviceWait {
        call: 2,
        awaited: vec![0, 2],
        what: "a flag".to_owned(),
        since: images[1].progress.taken - 1_500_000_000,
    });
    let page = timeline(&images, &diagnosis(vec![]));
    parsed(&page, |page| {
        let told = page.descendants().filter(|n| n.is_text()).filter_map(|n| n.text());
        let told =
            told.filter(|t| t.ends_with("awaits ranks 0 and 2 for 1.5 s: a flag, device call 2"));
        assert_eq!(told.count(), 2, "at its name and at its lane's end");
        let marks: Vec<Node> = of_class(page, "text", "awaits").collect();
        let [mark] = marks.as_slice() else { panic!("one mark") };
        assert_eq!(mark.last_child().and_then(|n| n.text()), Some("← 0 2"));
        let cells = of_class(page, "rect", "all_reduce").map(|cell| number(&cell, "x"));
        assert!(cells.max() < Some(number(mark, "x")), "behind the last record");
    });
}

#[test]
fn names_are_text_wherever_they_come_from() {
    let evil = "<script>alert('&amp;\"')</script>\u{0}\u{1b}]]>";
    let mut images = group(evil, 7, 2);
    for image in &mut images {
        image.about.members = vec![evil.to_owned(); 2];
        image.about.device = evil.to_owned();
        image.source = evil.to_owned();
        image.progress.end = Some(evil.to_owned());
        record(image, What::Call(Op::AllReduce), 1, evil);
        let record = image.records.get_mut(&1).expect("it was made");
        record.target = evil.to_owned();
    }
    let mut found = diagnosis(vec![verdict(7, 1, &[0], evil)]);
    found.verdicts[0].effect = Some(Box::new(verdict(7, 1, &[1], evil)));
    found.verdicts[0].evidence = vec![evil.to_owned()];
    found.job = evil.to_owned();
    found.notes = vec![evil.to_owned()];
    let page = timeline(&images, &found);
    parsed(&page, |page| {
        assert!(!page.descendants().any(|node| node.has_tag_name("script")));
        let shown = page.descendants().filter(|n| n.is_text());
        let shown =
            shown.filter(|n| n.text().is_some_and(|t| t.contains("<script>alert('&amp;\"')")));
        assert!(shown.count() > 12);
    });
    let addresses = ["http:", "https:", "src=", "href="];
    assert!(!addresses.iter().any(|address| page.contains(address)), "it fetches nothing");
}

#[test]
fn a_divergence_long_ago_is_drawn_beside_the_last_records() {
    let mut images = group("tp", 7, 2);
    calls(&mut images, 1000);
    let page = timeline(&images, &diagnosis(vec![verdict(7, 100, &[1], "long ago")]));
    parsed(&page, |page| {
        let drawn = of_class(page, "rect", "all_reduce").count();
        assert_eq!(drawn, 2 * (25 + 72));
        assert!(page.descendants().any(|n| n.text() == Some("…")));
        assert_eq!(of_class(page, "rect", "first").count(), 1);
    });
}

#[test]
fn eight_full_rings_take_no_second() {
    let mut images = group("tp", 7, 8);
    for image in &mut images {
        for number in 1..=4096 {
            record(image, What::State, number, "");
            let last = image.records.get_mut(&number).expect("it was made");
            last.what = What::Call(Op::AllReduce);
            last.seq = number;
        }
    }
    let found = diagnosis(vec![verdict(7, 100, &[1], "long ago")]);
    let start = Instant::now();
    let page = timeline(&images, &found);
    let trace = crate::export::chrome_trace(&images, &found);
    let dumps = crate::export::flight_recorder(&images).expect("written");
    let took = start.elapsed();
    parsed(&page, |_| ());
    assert!(trace.len() > 8 * 4096 * 100 && dumps.len() == 8);
    // It is a tenth of that alone, on the slowest machine that was tried.
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
}

#[test]
fn of_nothing_there_is_a_page_that_says_so() {
    let page = timeline(&[], &diagnosis(vec![]));
    parsed(&page, |page| {
        let told: Vec<&str> = page.descendants().filter_map(|n| n.text()).collect();
        assert!(told.contains(&"No rank's ring was found."));
    });
    // A group that has recorded nothing.
    let page = timeline(&group("tp", 7, 2), &diagnosis(vec![]));
    parsed(&page, |page| assert_eq!(of_class(page, "rect", "ahead").count(), 0));
}
