//! E015: what a file states of the contract, and the engine does not agree to. What is in force is
//! the narrower of the two in any case; the file says something that is not going to be.

use crossover_core::contract::Contract;

use super::{Options, View};
use crate::diagnostic::{Code, Diagnostic};
use crate::provenance::Statement;

pub(super) fn check(view: &View<'_>, options: &Options) -> Vec<Diagnostic> {
    let Some(engine) = options.contract else { return Vec::new() };
    let stated = view.effective.policy.contract;
    let statements = view.effective.contract_statements().iter();
    let told = statements.filter(|statement| view.tells_layer(statement.layer));
    let finding = |statement: &Statement| {
        let (message, help) = match statement.field {
            "accept" => accepts(stated, engine)?,
            _ => demands(stated, engine)?,
        };
        Some(at_line_of(view, statement, message, help.to_owned()))
    };
    told.filter_map(finding).collect()
}

fn accepts(stated: Contract, engine: Contract) -> Option<(String, &'static str)> {
    let more = stated.accept.without(engine.accept);
    let message = format!(
        "the policy accepts {more}, and the engine's contract does not: it accepts {}",
        engine.accept
    );
    let help = "let the engine accept it, or take it out here; what both accept is in force";
    (!more.is_empty()).then_some((message, help))
}

fn demands(stated: Contract, engine: Contract) -> Option<(String, &'static str)> {
    let message = format!(
        "the policy demands {}, and the engine's contract more: {}",
        stated.determinism, engine.determinism
    );
    let help = "demand as much here, or leave it to the engine; the stricter one is in force";
    (stated.determinism < engine.determinism).then_some((message, help))
}

/// A finding at the line of a statement, whose text is all of the line.
fn at_line_of(view: &View<'_>, statement: &Statement, message: String, help: String) -> Diagnostic {
    let provenance = &view.effective.provenance;
    let file = &statement.origin.file;
    let text = provenance.source(file).map_or("", |s| s.text.as_str());
    let before = text.split_inclusive('\n').take(statement.origin.line as usize - 1);
    let start: usize = before.map(str::len).sum();
    let line = text[start..].lines().next().unwrap_or("");
    let line = line.split('#').next().unwrap_or("");
    let start = start + line.len() - line.trim_start().len();
    let span = start..start + line.trim().len();
    provenance.finding_in(file, span, Code::Contract, message, Some(help))
}
