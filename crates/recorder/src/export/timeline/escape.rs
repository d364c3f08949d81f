//! Text of strangers in a page: names of jobs, groups, hosts and places in programs are what
//! somebody wrote.

use std::fmt::{Display, Formatter, Result, Write as _};

/// Shows a text such that XML and HTML read it as text, in an element or in an attribute.
pub(super) fn escaped(text: &str) -> impl Display + '_ {
    Escaped(text)
}

struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' | '\t' => f.write_char(character)?,
                // XML has no way to write these.
                '\u{fffe}' | '\u{ffff}' => f.write_char('\u{fffd}')?,
                _ if character.is_control() => f.write_char('\u{fffd}')?,
                _ => f.write_char(character)?,
            }
        }
        Ok(())
    }
}
