//! `[contract]`: what the policy demands of results, and which deviations it lets pass.

use crossover_core::contract::{Deviation, Deviations};
use toml::Spanned;
use toml::de::DeValue;

use super::StatedContract;
use super::reader::{Reader, in_order};

const KEYS: [&str; 2] = ["determinism", "accept"];

pub(super) fn read(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) -> StatedContract {
    let mut contract = StatedContract::default();
    let Some(table) = reader.table("contract", value) else { return contract };
    for (key, value) in in_order(table) {
        match key.get_ref().as_ref() {
            "determinism" => {
                let word = reader.word("determinism", value);
                contract.determinism = reader.said(key, word);
            }
            "accept" => {
                let words = reader.any_words::<Deviation, Deviations>("accept", value);
                contract.accept = reader.said(key, Some(words));
            }
            _ => reader.unknown_key(key, "`[contract]`", &KEYS),
        }
    }
    contract
}
