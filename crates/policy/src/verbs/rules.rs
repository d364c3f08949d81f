//! `rule:<id>` in `enable` and `disable`: a rule or a table is switched on or off.

use std::ops::Range;

use crossover_core::policy::{Layer, Origin};

use super::{Mistake, each_word_at};
use crate::diagnostic::{Code, Diagnostic, Source};
use crate::settings::Stated;
use crate::suggest;

const PREFIX: &str = "rule:";

/// A rule or a table that somebody switches on or off. Whether there is one so called shows when
/// all files are laid.
#[derive(Clone, Debug)]
pub(crate) struct NamedRule {
    /// Its id.
    pub(crate) id: String,
    /// By which variable or option.
    pub(crate) origin: Origin,
    /// The program, or its environment.
    pub(crate) layer: Layer,
    value: String,
    span: Range<usize>,
}

impl NamedRule {
    /// The mistake of naming a rule that is none of `known`.
    pub(crate) fn unknown<'k>(&self, known: impl IntoIterator<Item = &'k str>) -> Diagnostic {
        let message = format!("no policy in force has a rule or a table `{}`", self.id);
        self.mistake(message, suggest::help(&self.id, known))
    }

    /// The mistake of switching one rule on and off.
    pub(crate) fn conflict(&self) -> Diagnostic {
        let message = format!("the rule `{}` is enabled, and disabled as well", self.id);
        self.mistake(message, "take it out of `enable` or out of `disable`".to_owned())
    }

    fn mistake(&self, message: String, help: String) -> Diagnostic {
        let source = Source { name: self.origin.to_string(), text: self.value.clone() };
        source.diagnostic(Code::Unknown, self.span.clone(), message, Some(help))
    }
}

/// Is this word of `disable` a rule's name, rather than a target's?
pub(super) fn names_rule(word: &str) -> bool {
    word.starts_with(PREFIX)
}

/// The rules among what `disable` names; [`parse_disabled`](super::parse_disabled) reads the rest.
pub(crate) fn parse_disabled_rules(
    stated: &Stated<String>,
) -> Result<Vec<NamedRule>, Vec<Diagnostic>> {
    let rules = each_word_at(stated, |word, span| {
        names_rule(word).then(|| named(stated, word, span)).transpose()
    })?;
    Ok(rules.into_iter().flatten().collect())
}

/// Reads `rule:small-all-gather,rule:other`.
pub(crate) fn parse_enabled(stated: &Stated<String>) -> Result<Vec<NamedRule>, Vec<Diagnostic>> {
    each_word_at(stated, |word, span| match names_rule(word) {
        true => named(stated, word, span),
        false => Err(Mistake {
            code: Code::Unknown,
            message: format!("`enable` takes rules and tables, not `{word}`"),
            help: format!(
                "write `{PREFIX}{word}` if a rule is so called; backends are on unless `disable` \
                 names them"
            ),
        }),
    })
}

fn named(stated: &Stated<String>, word: &str, span: Range<usize>) -> Result<NamedRule, Mistake> {
    let id = word[PREFIX.len()..].trim();
    if id.is_empty() {
        return Err(Mistake {
            code: Code::Unknown,
            message: format!("`{word}` names no rule"),
            help: format!("write `{PREFIX}` and the rule's id"),
        });
    }
    Ok(NamedRule {
        id: id.to_owned(),
        origin: stated.origin.clone(),
        layer: stated.layer,
        value: stated.value.clone(),
        span,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stated(value: &str) -> Stated<String> {
        let origin = Origin { file: "CROSSOVER_X".to_owned(), line: 0 };
        Stated { value: value.to_owned(), origin, layer: Layer::Env }
    }

    #[test]
    fn rules_are_told_from_targets() {
        let ids = |rules: Vec<NamedRule>| rules.into_iter().map(|r| r.id).collect::<Vec<_>>();
        let disabled = parse_disabled_rules(&stated("ipc, rule:a ,host/one_shot,rule: t@8"));
        assert_eq!(ids(disabled.expect("words that can be read")), ["a", "t@8"]);
        assert_eq!(ids(parse_enabled(&stated("rule:a,rule:b")).expect("rules")), ["a", "b"]);
    }

    #[test]
    fn mistakes_point_at_the_word() {
        let rules = parse_enabled(&stated("rule:b,rule:smal")).expect("rules");
        let told = rules[1].unknown(["small", "floor"]).to_string();
        assert_eq!(
            told,
            "error[E001]: no policy in force has a rule or a table `smal`\n \
             --> CROSSOVER_X:1:8\n  |\n\
             1 | rule:b,rule:smal\n  |        ^^^^^^^^^\n  \
             = help: did you mean `small`? known: small, floor"
        );
        let told = rules[0].conflict().to_string();
        assert!(told.starts_with("error[E001]: the rule `b` is enabled, and disabled as well\n"));
        let told = parse_enabled(&stated("ipc")).expect_err("no rule")[0].to_string();
        assert!(told.starts_with("error[E001]: `enable` takes rules and tables, not `ipc`"));
        let told = parse_disabled_rules(&stated("rule:")).expect_err("no id")[0].to_string();
        assert!(told.starts_with("error[E001]: `rule:` names no rule"), "{told}");
    }
}
