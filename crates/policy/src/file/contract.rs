//! `[contract]`: what the policy demands of results, and which deviations it lets pass.

use crossover_core::contract::Deviation;
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
            "determinism" => contract.determinism = reader.word("determinism", value),
            "accept" => {
                // Unlike a match key, an empty list means something here: accept nothing.
                let list = match value.get_ref().as_array() {
                    Some(array) => &array[..],
                    None => std::slice::from_ref(value),
                };
                let words = list.iter().filter_map(|item| reader.word::<Deviation>("accept", item));
                contract.accept = Some(words.collect());
            }
            _ => reader.unknown_key(key, "`[contract]`", &KEYS),
        }
    }
    contract
}
