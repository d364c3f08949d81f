//! How a job ended, and what must hold of that.

use std::path::Path;

use serde_json::Value;

use super::job::files;

/// How one rank ended.
#[derive(Debug)]
pub(crate) struct End {
    /// Its exit code; `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    /// What it said.
    pub(crate) stderr: String,
}

impl End {
    /// The engine's own last line; what its watchdog logs may come behind it. Of a process that said nothing
    /// of its end, the last of all.
    pub(crate) fn last(&self) -> &str {
        let mut lines = self.stderr.lines();
        let engines = lines.clone().rfind(|line| line.starts_with("engine: "));
        engines.or_else(|| lines.next_back()).unwrap_or_default()
    }
}

/// How a job ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// By rank.
    pub(crate) ends: Vec<End>,
    /// What dumps say, by the group's name.
    pub(crate) dumps: Vec<(String, Value)>,
    pub(super) is_on_device: bool,
}

/// So many words in a row that a line has twice were put into it twice; a list of ranks is shorter.
const RUN: usize = 11;

/// What a line of a rank says twice, if it does.
pub(super) fn repeated(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let runs: Vec<&[&str]> = words.windows(RUN).collect();
    let is_twice = |(at, run): &(usize, &&[&str])| {
        runs.get(at + RUN..).is_some_and(|later| later.contains(run))
    };
    runs.iter().enumerate().find(is_twice).map(|(_, run)| run.join(" "))
}

/// Every dump has all its files, and its verdict is JSON.
pub(super) fn dumps(folder: &Path) -> Vec<(String, Value)> {
    let mut dumps = Vec::new();
    for dump in files(folder) {
        let read = |name: &str| std::fs::read_to_string(dump.join(name)).expect("it is written");
        let verdict = serde_json::from_str(&read("verdict.json")).expect("it is JSON");
        assert!(!read("verdict.txt").is_empty() && read("timeline.html").contains("<svg"));
        let name = dump.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let tag = name.rsplit('.').nth(1).unwrap_or_default().to_owned();
        dumps.push((tag, verdict));
    }
    dumps
}

impl Ended {
    /// Every rank but those excepted ended with this code.
    #[track_caller]
    pub(crate) fn codes(&self, code: i32, except: &[u32]) -> &Ended {
        for (rank, end) in (0..).zip(&self.ends) {
            if !except.contains(&rank) {
                assert_eq!(end.code, Some(code), "rank {rank}: {self:#?}");
            }
        }
        self
    }

    /// All ranks ended well, and nobody wrote a dump.
    #[track_caller]
    pub(crate) fn well(&self) -> &Ended {
        self.codes(0, &[]);
        assert!(self.dumps.is_empty(), "{self:#?}");
        self
    }

    /// Every rank but those excepted says this in its last line.
    #[track_caller]
    pub(crate) fn say(&self, words: &[&str], except: &[u32]) -> &Ended {
        for (rank, end) in (0..).zip(&self.ends) {
            let last = end.last();
            let misses = words.iter().find(|word| !last.contains(**word));
            if !except.contains(&rank)
                && let Some(missed) = misses
            {
                panic!("rank {rank} does not say `{missed}`: {self:#?}");
            }
        }
        self
    }

    /// Every rank but those excepted names one call in its last line, and that once.
    #[track_caller]
    pub(crate) fn name_a_call_once(&self, except: &[u32]) -> &Ended {
        for (rank, end) in (0..).zip(&self.ends) {
            let named = end.last().match_indices(" call ").count();
            assert!(except.contains(&rank) || named == 1, "rank {rank}: {self:#?}");
        }
        self
    }

    /// How many warnings there are in all logs, but for those about the version of a library.
    pub(crate) fn warnings(&self) -> usize {
        let lines = self.ends.iter().flat_map(|end| end.stderr.lines());
        lines.filter(|l| l.contains(" WARN ") && !l.contains(" WARN crossover::nccl")).count()
    }

    /// Nobody wrote a dump.
    #[track_caller]
    pub(crate) fn no_dump(&self) -> &Ended {
        assert!(self.dumps.is_empty(), "{self:#?}");
        self
    }

    /// As [`Ended::verdict`], about a rank that did something else. On a device, whose calls come back
    /// before peers have come, two ranks may end the group before a third can tell who is odd: then both
    /// are named.
    #[track_caller]
    pub(crate) fn odd(&self, class: &str, rank: u32) -> &Value {
        let (_, dump) = self.dumps.first().unwrap_or_else(|| panic!("no dump: {self:#?}"));
        let verdict = &dump["verdicts"][0];
        let named = verdict["ranks"].as_array().map_or(&[][..], Vec::as_slice);
        let sentence = verdict["sentence"].as_str().unwrap_or_default();
        let is_tie = named.len() == 2 && sentence.contains("neither side is a majority");
        if is_tie && named.contains(&rank.into()) && self.is_on_device {
            assert_eq!(verdict["class"], class, "{verdict:#}\n{self:#?}");
            return verdict;
        }
        self.verdict(class, &[rank])
    }

    /// The first verdict of the dump of group `tp`: of this class, and about these ranks.
    #[track_caller]
    pub(crate) fn verdict(&self, class: &str, ranks: &[u32]) -> &Value {
        let dump = self.dumps.iter().find(|(tag, _)| tag == "tp");
        let Some((_, dump)) = dump else { panic!("no dump of `tp`: {self:#?}") };
        let verdict = &dump["verdicts"][0];
        assert_eq!(verdict["class"], class, "{verdict:#}\n{self:#?}");
        assert_eq!(verdict["ranks"], serde_json::json!(ranks), "{verdict:#}\n{self:#?}");
        verdict
    }
}
