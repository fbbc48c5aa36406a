//! The build and the settings.

use std::{env::consts, path::Path};

use serde_json::{Map, Value};

use super::report::Finding;
use crate::config::Settings;

/// Which build this is.
pub(super) fn versions() -> Finding {
    let sqlite = turnkeep_store::sqlite::version();
    let (turnkeep, os, arch) = (env!("CARGO_PKG_VERSION"), consts::OS, consts::ARCH);
    Finding::ok("version", format!("turnkeep {turnkeep} with SQLite {sqlite}, for {os} {arch}"))
}

/// Which file is read, and what is set by whichever source.
pub(super) fn configuration(settings: &Settings, file: Option<&Path>) -> Finding {
    let read = match file {
        Some(file) => format!("{} is read", file.display()),
        None => "there is no configuration file".to_owned(),
    };
    let set = shown(settings);
    let set = set.iter().flat_map(|(key, value)| match value {
        Value::Object(members) => {
            members.iter().map(|(member, value)| (format!("{key}.{member}"), value)).collect()
        }
        value => vec![(key.clone(), value)],
    });
    let set: Vec<_> = set.filter(|(_, value)| !value.is_null()).collect();
    if set.is_empty() {
        return Finding::ok("config", format!("{read}; nothing is set"));
    }
    let spelled = set.iter().map(|(key, value)| format!("{key} = {value}"));
    Finding::ok("config", format!("{read}; set: {}", spelled.collect::<Vec<_>>().join(", ")))
}

/// Every setting and its value, `null` where the default applies. Passwords are in files, and an
/// address that carries one is refused elsewhere: here it is shown without.
pub(super) fn shown(settings: &Settings) -> Map<String, Value> {
    let Ok(Value::Object(mut shown)) = serde_json::to_value(settings) else { return Map::new() };
    for value in shown.values_mut() {
        if let Value::String(text) = value
            && let Some((scheme, rest)) = text.split_once("://")
            && let Some((_, host)) = rest.rsplit_once('@')
        {
            *text = format!("{scheme}://…@{host}");
        }
    }
    shown
}
