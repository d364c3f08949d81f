//! "Did you mean".

/// A help text for a word that is none of `known`: the nearest, and all of them.
pub(crate) fn help<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let all = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    match nearest(word, &known) {
        Some(near) => format!("did you mean `{near}`? known: {all}"),
        None => format!("known: {all}"),
    }
}

/// The known word that a person may have meant: one that begins so, or has at most a third of its
/// letters wrong, and one in any case.
fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let word = word.to_lowercase();
    let edits = |k: &str| strsim::damerau_levenshtein(&word, &k.to_lowercase());
    let begins_so = |k: &&&str| word.len() >= 3 && k.starts_with(&word);
    known.iter().find(begins_so).copied().or_else(|| {
        let close = known.iter().filter(|k| edits(k) <= (k.chars().count() / 3).max(1));
        close.min_by_key(|k| edits(k)).copied()
    })
}
