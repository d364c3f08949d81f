//! `include`: files that are laid beneath this one.

use std::ops::Range;

use toml::Spanned;
use toml::de::DeValue;

use super::reader::Reader;

/// An entry of `include`.
#[derive(Debug)]
pub(crate) struct Include {
    /// As written.
    pub(crate) path: String,
    pub(crate) span: Range<usize>,
}

pub(super) fn read(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) -> Vec<Include> {
    let Some(array) = value.get_ref().as_array() else {
        return reader
            .mistyped("include", "a list of paths such as `[\"other.toml\"]`", value)
            .unwrap_or_default();
    };
    let path = |item: &Spanned<DeValue<'_>>| {
        let path = reader.text("include", item)?.to_owned();
        Some(Include { path, span: item.span() })
    };
    array.iter().filter_map(path).collect()
}
