//! Why a program failed, in one line of what it said.

/// The first line that begins with `error`; else the last that is not empty. A launcher's mark of
/// the rank, such as `[1] `, is not what a line begins with.
pub(super) fn complaint(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_error = |line: &&str| {
        let said = line.strip_prefix('[').and_then(|line| line.split_once("] "));
        let said = said.map_or(*line, |(_, said)| said);
        said.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("error"))
    };
    lines().find(is_error).or(lines().next_back()).unwrap_or("no message").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_is_told_and_else_the_last_line() {
        let said = |text: &str| complaint(text.as_bytes());
        let usage = "starting\nerror: unexpected argument\n\nFor more information, try '--help'.\n";
        assert_eq!(said(usage), "error: unexpected argument");
        assert_eq!(said("[1] Error: no page\n[0] Error: later\nstopped\n"), "[1] Error: no page");
        assert_eq!(said("no errors here\n  it was killed\n\n"), "it was killed");
        assert_eq!(said(" \n"), "no message");
    }
}
