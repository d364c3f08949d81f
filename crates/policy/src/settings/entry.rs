//! One setting from one place. Each is a figment provider of its own, because figment remembers
//! who set a value per provider: so a message can name the variable, the option or the line.

use std::ffi::OsString;
use std::path::PathBuf;

use crossover_core::policy::{Layer, Origin};
use crossover_core::registry::Registry;
use figment::value::{Dict, Map, Value};
use figment::{Figment, Metadata, Profile, Provider, Source as Place};
use toml::de::{DeTable, DeValue};

use super::{Override, SettingsError, Stated};
use crate::diagnostic::Source;
use crate::suggest;

const PREFIX: &str = "CROSSOVER_";
/// Names the settings file. Only a variable can.
pub(super) const CONFIG: &str = "config";
const KEYS: [&str; 22] = [
    "policy",
    "site",
    "use",
    "disable",
    "enable",
    "accept",
    "determinism",
    "strict",
    "explain",
    "on_divergence",
    "device",
    "allow_shared_device",
    "node_id",
    "form_timeout",
    "call_timeout",
    "check",
    "record_dir",
    "dump_dir",
    "on_hang",
    "hang_warning",
    "hang_timeout",
    "shm_dir",
];

/// Not settings: by all but the last a launcher tells a process its place, which the bootstrap
/// reads; the last is the command line's log filter.
const READ_ELSEWHERE: [&str; 8] =
    ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "JOB", "ATTEMPT", "RENDEZVOUS", "LOG"];

pub(super) struct Entry {
    pub(super) key: String,
    pub(super) value: String,
    origin: Origin,
    layer: Layer,
}

impl Provider for Entry {
    fn metadata(&self) -> Metadata {
        let Origin { file, line } = &self.origin;
        Metadata::named(file.clone()).source(Place::Custom(format!("{} {line}", self.layer)))
    }

    fn data(&self) -> figment::error::Result<Map<Profile, Dict>> {
        let nested = figment::util::nest(&self.key, Value::from(self.value.as_str()));
        Ok(Map::from([(Profile::Default, nested.into_dict().unwrap_or_default())]))
    }
}

/// The setting's value and who set it.
pub(super) fn find(figment: &Figment, key: &str) -> Option<Stated<String>> {
    let value = figment.find_value(key).ok()?.into_string()?;
    let metadata = figment.find_metadata(key)?;
    let (layer, line) = metadata.source.as_ref()?.custom()?.split_once(' ')?;
    let origin = Origin { file: metadata.name.to_string(), line: line.parse().ok()? };
    Some(Stated { value, origin, layer: layer.parse().ok()? })
}

/// The names of the settings of a backend.
pub(super) fn names_within(figment: &Figment, backend: &str) -> Vec<String> {
    let table = figment.find_value(backend).ok().and_then(Value::into_dict);
    table.map(|table| table.into_keys().collect()).unwrap_or_default()
}

pub(super) fn of_variables(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    registry: &Registry,
) -> Result<Vec<Entry>, SettingsError> {
    let mut entries = Vec::new();
    for (name, value) in variables {
        let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else { continue };
        let bare = &name[PREFIX.len()..];
        if READ_ELSEWHERE.contains(&bare) {
            continue;
        }
        let key = bare.to_ascii_lowercase().replacen("__", ".", 1);
        if variable(&key) != name || !(key == CONFIG || is_setting(&key, registry)) {
            let known = of_backends(registry);
            let known = KEYS.into_iter().chain([CONFIG]).chain(known.iter().map(String::as_str));
            let help = suggest::help_as(&key, known, variable);
            return Err(SettingsError::Unknown { origin: name.to_owned(), key, help });
        }
        let Ok(value) = value.into_string() else {
            return Err(SettingsError::NotText { name: name.to_owned() });
        };
        let origin = Origin { file: name.to_owned(), line: 0 };
        entries.push(Entry { key, value, origin, layer: Layer::Env });
    }
    Ok(entries)
}

pub(super) fn of_program(
    overrides: &[Override],
    registry: &Registry,
) -> Result<Vec<Entry>, SettingsError> {
    let entry = |o: &Override| {
        if !is_setting(&o.key, registry) {
            return Err(unknown(o.origin.clone(), &o.key, registry));
        }
        let origin = Origin { file: o.origin.clone(), line: 0 };
        Ok(Entry { key: o.key.clone(), value: o.value.clone(), origin, layer: Layer::Program })
    };
    overrides.iter().map(entry).collect()
}

/// The settings in the file that `config` names. The path is taken as it is: no search through
/// parent folders, by which two ranks could find different files.
pub(super) fn of_file(config: &Entry, registry: &Registry) -> Result<Vec<Entry>, SettingsError> {
    if config.value.is_empty() {
        return Ok(Vec::new());
    }
    let path = PathBuf::from(&config.value);
    let text = std::fs::read_to_string(&path)
        .map_err(|error| SettingsError::Unreadable { path, error })?;
    let source = Source { name: config.value.clone(), text };
    let at = |byte| Origin { file: source.name.clone(), line: source.line(byte) };
    let root = DeTable::parse(&source.text).map_err(|e| SettingsError::Syntax {
        origin: at(e.span().map_or(0, |span| span.start)).to_string(),
        what: e.message().to_owned(),
    })?;

    let mut entries = Vec::new();
    for (key, value) in root.get_ref() {
        let name = key.get_ref().as_ref();
        let settings = match value.get_ref() {
            DeValue::Table(table) => table
                .iter()
                .map(|(inner, value)| (format!("{name}.{}", inner.get_ref()), inner.span(), value))
                .collect(),
            _ => vec![(name.to_owned(), key.span(), value)],
        };
        for (key, span, value) in settings {
            let origin = at(span.start);
            if !is_setting(&key, registry) {
                return Err(unknown(origin.to_string(), &key, registry));
            }
            let Some(value) = as_variable(&key, value.get_ref()) else {
                return Err(SettingsError::Value {
                    origin: origin.to_string(),
                    key,
                    value: value.get_ref().type_str().to_owned(),
                    want: "write a string, a number, true or false, or a list of strings"
                        .to_owned(),
                });
            };
            entries.push(Entry { key, value, origin, layer: Layer::Env });
        }
    }
    Ok(entries)
}

/// A value as a variable would hold it.
fn as_variable(key: &str, value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Float(number) => Some(number.to_string()),
        DeValue::Boolean(yes) => Some(yes.to_string()),
        DeValue::Array(array) => {
            let words: Option<Vec<&str>> = array.iter().map(|w| w.get_ref().as_str()).collect();
            Some(words?.join(if key == "policy" { ":" } else { "," }))
        }
        DeValue::Datetime(_) | DeValue::Table(_) => None,
    }
}

/// A key of ours, or `backend.name` as a registered backend states it.
fn is_setting(key: &str, registry: &Registry) -> bool {
    match key.split_once('.') {
        Some((backend, name)) => {
            registry.find(backend).is_some_and(|descriptor| descriptor.settings.contains(&name))
        }
        None => KEYS.contains(&key),
    }
}

fn unknown(origin: String, key: &str, registry: &Registry) -> SettingsError {
    let known = of_backends(registry);
    let help = suggest::help(key, KEYS.into_iter().chain(known.iter().map(String::as_str)));
    SettingsError::Unknown { origin, key: key.to_owned(), help }
}

/// The variable of a setting.
fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.to_ascii_uppercase().replacen('.', "__", 1))
}

/// The settings that backends have.
fn of_backends(registry: &Registry) -> Vec<String> {
    let each = registry.descriptors().into_iter();
    let each = each.flat_map(|d| d.settings.iter().map(move |name| format!("{}.{name}", d.id)));
    each.collect()
}
