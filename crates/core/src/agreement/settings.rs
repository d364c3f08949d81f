//! What ranks' values of a setting come to together.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Agreed, Local, Setup, SetupError, SetupFailure, StepFailed};
use crate::bootstrap::ranks_in_words;
use crate::bytes::size_text;

impl<'g> Setup<'g> {
    /// The least that ranks have of a setting of bytes, such as `host.chunk`. Where they differ and some
    /// rank's is set, rank 0 logs who has what: what nobody set, a backend has chosen.
    ///
    /// # Errors
    ///
    /// The control plane failed.
    pub fn least_bytes(
        &mut self,
        setting: &str,
        mine: Local<u64>,
    ) -> Result<Agreed<'g, u64>, SetupError> {
        let is_set = self.settings.get(setting).is_some();
        let all = self.gather(&format!("agree on {setting}"), Ok((mine.0, is_set)))?;
        let (all, set): (Vec<u64>, Vec<bool>) = all.into_iter().unzip();
        if self.boot.rank() == 0
            && set.contains(&true)
            && let Some(told) = differing(setting, &all)
        {
            tracing::warn!(target: "crossover::form", "{told}");
        }
        Ok(Agreed(all.into_iter().min().unwrap_or(0), PhantomData))
    }

    /// What all ranks have of a setting that has to be the same, such as `host.distance`. Where one has
    /// another value it is wrongly set, as if [`Setup::read`] had refused it.
    ///
    /// # Errors
    ///
    /// Ranks differ, or the control plane failed.
    pub fn same<T>(&mut self, setting: &str, mine: Local<T>) -> Result<Agreed<'g, T>, SetupError>
    where
        T: Serialize + DeserializeOwned + PartialEq,
    {
        let text = self.settings.get(setting).map(str::to_owned);
        let step = format!("agree on {setting}");
        let mut all = self.gather(&step, Ok((mine.0, text)))?;
        let Some(odd) = all.iter().position(|(value, _)| *value != all[0].0) else {
            return Ok(Agreed(all.swap_remove(0).0, PhantomData));
        };
        let has = |text: &Option<String>| match text {
            Some(text) => format!("has `{text}`"),
            None => "has not set it".to_owned(),
        };
        let why = format!(
            "it {} where rank 0 {}; set it to one value on all ranks, or on none",
            has(&all[odd].1),
            has(&all[0].1)
        );
        let failed = StepFailed { rank: odd as u32, step, why };
        Err(SetupError(SetupFailure::Misset(failed)))
    }
}

/// Who has how many bytes of a setting, the least first; `None` where all have as many.
fn differing(setting: &str, all: &[u64]) -> Option<String> {
    let mut ranks: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for (rank, bytes) in (0..).zip(all) {
        ranks.entry(*bytes).or_default().push(rank);
    }
    let (least, _) = ranks.first_key_value().filter(|_| ranks.len() > 1)?;
    let has = |(bytes, ranks): (&u64, &Vec<u32>)| {
        let have = if ranks.len() == 1 { "has" } else { "have" };
        format!("{} {have} {}", ranks_in_words(ranks), size_text(*bytes))
    };
    let have: Vec<String> = ranks.iter().map(has).collect();
    Some(format!(
        "ranks differ in the setting {setting}, of which the least counts, {}: {}; set it to one \
         value on all ranks",
        size_text(*least),
        have.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::differing;

    #[test]
    fn who_has_the_least_is_told_first() {
        assert_eq!(differing("host.ring", &[64, 64]), None);
        assert_eq!(
            differing("host.ring", &[2048, 64, 2048]).as_deref(),
            Some(
                "ranks differ in the setting host.ring, of which the least counts, 64B: rank 1 has \
                 64B, ranks 0 and 2 have 2KiB; set it to one value on all ranks"
            )
        );
    }
}
