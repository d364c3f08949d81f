//! Presets are looked up when all files are laid, so that the strongest layer's counts everywhere.

use std::collections::BTreeMap;

use crossover_core::policy::{Candidate, Origin};

use super::placed::Placed;
use crate::diagnostic::{Code, Diagnostic};
use crate::file::Item;
use crate::loading::Laid;
use crate::provenance::{Place, Preset};
use crate::suggest;

/// By name, as the strongest file has them.
pub(super) fn in_force(documents: &[Laid]) -> BTreeMap<String, Preset> {
    let mut presets = BTreeMap::new();
    for laid in documents {
        for stated in &laid.document.presets {
            let preset = Preset {
                id: stated.name.text.clone(),
                layer: laid.standing.layer,
                origin: Origin { file: laid.source.name.clone(), line: stated.name.line },
                chain: stated.chain.clone(),
            };
            presets.insert(preset.id.clone(), preset);
        }
    }
    presets
}

/// A rule's chain, and where each candidate is written: where the rule names a preset, there.
pub(super) fn expanded(
    placed: &Placed<'_>,
    presets: &BTreeMap<String, Preset>,
    documents: &[Laid],
    problems: &mut Vec<Diagnostic>,
) -> Vec<(Candidate, Place)> {
    let document = placed.chain_document;
    let mut chain = Vec::new();
    for item in placed.chain {
        let place = Place { document, span: item.span.clone() };
        match &item.what {
            Item::Candidate(candidate) => chain.push((candidate.clone(), place)),
            Item::Preset(name) => match presets.get(name) {
                Some(preset) => {
                    chain.extend(preset.chain.iter().map(|c| (c.clone(), place.clone())));
                }
                None => {
                    let help = suggest::help(name, presets.keys().map(String::as_str));
                    let message = format!("no file has a preset `{name}`");
                    let source = &documents[document].source;
                    let span = item.span.clone();
                    problems.push(source.diagnostic(Code::Unknown, span, message, Some(help)));
                }
            },
        }
    }
    chain
}
