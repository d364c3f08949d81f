//! "Did you mean".

/// More words than this are not all told.
const TOLD: usize = 12;
/// So many of them are, the most alike.
const EXCERPT: usize = 8;

/// Of a longer word, what is compared: no known word is so long, and the time goes with the length.
const COMPARED: usize = 100;

/// What others call a word.
const ALIASES: [(&str, &str); 7] = [
    ("bfloat16", "bf16"),
    ("float16", "f16"),
    ("half", "f16"),
    ("fp16", "f16"),
    ("float32", "f32"),
    ("fp32", "f32"),
    ("float64", "f64"),
];

/// A help text for a word that is none of `known`: the nearest, and all of them, or of many some.
pub(crate) fn help<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    help_as(word, known, str::to_owned)
}

/// [`help`], where words are told otherwise than they are compared.
pub(crate) fn help_as<'k>(
    word: &str,
    known: impl IntoIterator<Item = &'k str>,
    told: fn(&str) -> String,
) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let list =
        |words: &[&str]| words.iter().map(|word| told(word)).collect::<Vec<String>>().join(", ");
    let all = match known.len() {
        0 => "none".to_owned(),
        1..=TOLD => list(&known),
        many => {
            let lower = compared(word);
            let mut alike = known.clone();
            alike.sort_by_key(|k| edits(&lower, k));
            alike.truncate(EXCERPT);
            format!("{}, and {} more", list(&alike), many - EXCERPT)
        }
    };
    match nearest(word, &known) {
        Some(near) => format!("did you mean `{}`? known: {all}", told(near)),
        None => format!("known: {all}"),
    }
}

/// The known word that a person may have meant: what others call so, one that begins so, or has at
/// most a third of its letters wrong, and one in any case.
fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let word = compared(word);
    let alias = ALIASES.iter().find(|(others, _)| *others == word);
    let called_so = |k: &&&str| alias.is_some_and(|(_, ours)| *ours == **k);
    let begins_so = |k: &&&str| word.len() >= 3 && k.starts_with(&word);
    let exact = known.iter().find(called_so).or_else(|| known.iter().find(begins_so));
    exact.copied().or_else(|| {
        let close = known.iter().filter(|k| edits(&word, k) <= (k.chars().count() / 3).max(1));
        close.min_by_key(|k| edits(&word, k)).copied()
    })
}

fn compared(word: &str) -> String {
    word.chars().take(COMPARED).collect::<String>().to_lowercase()
}

/// How many letters a lower-case word has wrong.
fn edits(word: &str, known: &str) -> usize {
    strsim::damerau_levenshtein(word, &known.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_words_the_most_alike_are_told() {
        let words: Vec<String> = (10..90).map(|n| format!("rule-{n}")).collect();
        let told = help("rule-4", words.iter().map(String::as_str));
        let start = "did you mean `rule-40`? known: rule-";
        assert!(told.starts_with(start) && told.ends_with(", and 72 more"), "{told}");
        assert_eq!(told.matches("rule-").count(), 9, "{told}");
        assert!(help("zzzzzzzzzzzz", words.iter().map(String::as_str)).starts_with("known: rule-"));
        let twelve = &words[..12];
        assert!(help("rule-4", twelve.iter().map(String::as_str)).ends_with("rule-20, rule-21"));
    }

    #[test]
    fn words_of_others_are_understood() {
        assert_eq!(help("bfloat16", ["f16", "bf16"]), "did you mean `bf16`? known: f16, bf16");
        assert_eq!(help("BFloat16", ["x", "y"]), "known: x, y");
    }
}
