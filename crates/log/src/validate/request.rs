//! What a request to a model says of itself.

use crate::{event::Event, json::Json};

/// The settings that an adapter may have filled in.
const DEFAULTED: [&str; 2] = ["reasoningEffort", "maxTokens"];

/// A session goes on with the model of its last `request/header`, so each must name one.
pub(super) fn check(event: &Event) -> Result<(), &'static str> {
    if event.event_type() != "request/header" {
        return Ok(());
    }
    let header = event.data().get("header").ok_or("is a request without a header")?;
    let config = header.get("config").ok_or("is a request without a config")?;
    for key in ["provider", "model"] {
        config.get(key).filter(is_text).ok_or("is a request without provider or model")?;
    }
    if !config.get("reasoningEffort").as_ref().is_none_or(is_text) {
        return Err("is a request whose reasoning effort is no name");
    }
    let Some(defaults) = header.get("adapterDefaults") else { return Ok(()) };
    for default in defaults.members().ok_or("is a request whose adapter defaults are no object")? {
        let name = DEFAULTED.into_iter().find(|name| default.key == *name);
        let name = name.ok_or("is a request with an adapter default that no adapter has")?;
        if default.value.as_bool() != Some(true) {
            return Err("is a request with an adapter default that is not true");
        }
        config.get(name).ok_or("is a request with an adapter default that it does not use")?;
    }
    Ok(())
}

fn is_text(value: &Json<'_>) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}
