//! Answers, held against the description of the routes that `docs/openapi.json` is.
//!
//! As much of JSON Schema is understood as that document uses; a word that is not known here is a
//! failure, so that none of it goes unchecked.

use std::sync::LazyLock;

use serde_json::Value;

use super::contract::{Asked, Told};

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../../docs/openapi.json")).expect("it is JSON")
});

/// Checks status, media type and body of an answer against its operation. What no operation is
/// about, such as a path of the upstream or a method that is refused, is passed over.
#[track_caller]
pub fn check(asked: Asked<'_>, told: Told<'_>) {
    let Some(operation) = operation(asked) else { return };
    let about = format!("{} {}", asked.method, asked.target);
    let status = told.status.to_string();
    let response = &operation["responses"][&status];
    if !response.is_object() && operation["responses"]["default"].is_object() {
        return;
    }
    assert!(response.is_object(), "{about}: {status} is not described");
    if asked.method == "HEAD" || told.body.is_empty() {
        return;
    }
    let media_type = told.headers.get("content-type").map(|value| value.to_str().unwrap());
    let media_type = media_type.unwrap_or_default().split(';').next().unwrap_or_default();
    let content = response["content"].as_object().unwrap_or_else(|| panic!("{about}: no content"));
    let content = content.get(media_type);
    let content = content.unwrap_or_else(|| panic!("{about}: {media_type} is not described"));
    if media_type == "application/json" {
        let body: Value = serde_json::from_slice(told.body).expect("JSON is JSON");
        if let Err(problem) = fits(&content["schema"], &body) {
            panic!("{about}: {problem} in {body}");
        }
    }
}

/// Checks that every example in the document is what it is an example of.
pub fn check_examples() -> usize {
    let mut checked = 0;
    for item in DOCUMENT["paths"].as_object().unwrap().values() {
        for operation in item.as_object().unwrap().values() {
            for response in operation["responses"].as_object().unwrap().values() {
                let content = &response["content"]["application/json"];
                let one = content.get("example").cloned();
                let several = content["examples"].as_object().into_iter().flatten();
                let several = several.map(|(_, example)| example["value"].clone());
                for example in several.chain(one) {
                    let id = &operation["operationId"];
                    fits(&content["schema"], &example)
                        .unwrap_or_else(|problem| panic!("{id}: {problem} in {example}"));
                    checked += 1;
                }
            }
        }
    }
    checked
}

fn operation(asked: Asked<'_>) -> Option<&'static Value> {
    let path = asked.target.split('?').next().unwrap_or_default();
    let path = path.strip_suffix('/').filter(|rest| !rest.is_empty()).unwrap_or(path);
    let segments: Vec<_> = path.split('/').collect();
    let leads_to = |template: &str| {
        let template: Vec<_> = template.split('/').collect();
        template.len() == segments.len()
            && template.iter().zip(&segments).all(|(wanted, segment)| {
                if wanted.starts_with('{') {
                    !segment.is_empty()
                } else {
                    wanted.eq_ignore_ascii_case(segment)
                }
            })
    };
    let mut items = DOCUMENT["paths"].as_object().unwrap().iter();
    let (_, item) = items.find(|(template, _)| leads_to(template))?;
    let method = asked.method.to_ascii_lowercase();
    let read = (method == "head").then(|| item.get("get")).flatten();
    item.get(&method).or(read)
}

/// Whether the value is what the schema says.
fn fits(schema: &Value, value: &Value) -> Result<(), String> {
    for (word, wanted) in schema.as_object().expect("a schema is an object") {
        let fits_it = match word.as_str() {
            "$ref" => {
                let pointer = wanted.as_str().unwrap().trim_start_matches('#');
                fits(DOCUMENT.pointer(pointer).expect("a reference leads somewhere"), value)?;
                true
            }
            "oneOf" => {
                let fitting = wanted.as_array().unwrap().iter();
                fitting.filter(|schema| fits(schema, value).is_ok()).count() == 1
            }
            "type" => match wanted {
                Value::Array(types) => types.iter().any(|wanted| is_a(wanted, value)),
                wanted => is_a(wanted, value),
            },
            "enum" => wanted.as_array().unwrap().contains(value),
            "required" => {
                let names = wanted.as_array().unwrap().iter();
                names.map(|name| name.as_str().unwrap()).all(|name| value.get(name).is_some())
            }
            "properties" => {
                for (name, schema) in wanted.as_object().unwrap() {
                    if let Some(value) = value.get(name) {
                        fits(schema, value).map_err(|problem| format!("{name}: {problem}"))?;
                    }
                }
                true
            }
            "items" => {
                for value in value.as_array().into_iter().flatten() {
                    fits(wanted, value)?;
                }
                true
            }
            "minimum" => value.as_f64().is_none_or(|number| number >= wanted.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|number| number <= wanted.as_f64().unwrap()),
            "minLength" => value
                .as_str()
                .is_none_or(|text| text.encode_utf16().count() as u64 >= wanted.as_u64().unwrap()),
            "maxLength" => value
                .as_str()
                .is_none_or(|text| text.encode_utf16().count() as u64 <= wanted.as_u64().unwrap()),
            "description" | "default" => true,
            unknown => panic!("nobody checks `{unknown}` of a schema"),
        };
        if !fits_it {
            return Err(format!("{word} is not {wanted}"));
        }
    }
    Ok(())
}

fn is_a(wanted: &Value, value: &Value) -> bool {
    match wanted.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("{other} is not a type"),
    }
}
