use std::collections::BTreeSet;

use serde_json::Value;

use super::text;
use crate::{
    http::route::{Channel, Route},
    kinds::KINDS,
};

fn document() -> Value {
    serde_json::from_str(text()).unwrap()
}

/// Every operation: its path, its method, itself.
fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            operations.push((path.clone(), method.clone(), operation.clone()));
        }
    }
    operations
}

/// The path with every parameter filled in.
fn filled(path: &str) -> String {
    let segments = path.split('/');
    let filled = segments.map(|segment| if segment.starts_with('{') { "x" } else { segment });
    filled.collect::<Vec<_>>().join("/")
}

/// One of each kind of route; the compiler asks for a new one here.
fn routes() -> Vec<Route> {
    let x = || "x".to_owned();
    let all = vec![
        Route::Asset(String::new()),
        Route::Health,
        Route::Sessions,
        Route::Session(x()),
        Route::TurnPage(x()),
        Route::Reconcile(x()),
        Route::Changes(x()),
        Route::Message { session: x(), message: x() },
        Route::Messages(x()),
        Route::Events(Channel::Global),
        Route::Events(Channel::Directory),
        Route::EventSocket(Channel::Global),
        Route::EventSocket(Channel::Directory),
        Route::SessionEvents(x()),
        Route::SessionEventStream(x()),
        Route::TranscriptCache("session".into()),
        Route::TranscriptCache("message".into()),
        Route::TranscriptCache("generation".into()),
        Route::TranscriptCache("all".into()),
        Route::TranscriptCache("evict".into()),
        Route::Export,
        Route::Auth("login".into()),
        Route::Auth("logout".into()),
        Route::Auth("status".into()),
        Route::Metrics,
        Route::OpenApi,
    ];
    for route in &all {
        match route {
            Route::Asset(_)
            | Route::Health
            | Route::Sessions
            | Route::Session(_)
            | Route::TurnPage(_)
            | Route::Reconcile(_)
            | Route::Changes(_)
            | Route::Message { .. }
            | Route::Messages(_)
            | Route::Events(_)
            | Route::EventSocket(_)
            | Route::SessionEvents(_)
            | Route::SessionEventStream(_)
            | Route::TranscriptCache(_)
            | Route::Export
            | Route::Auth(_)
            | Route::Metrics
            | Route::OpenApi
            // Described by the upstream.
            | Route::Api => {}
        }
    }
    all
}

#[test]
fn every_route_is_described_and_every_path_leads_to_its_route() {
    let document = document();
    let mut described = Vec::new();
    for (path, _, operation) in operations(&document) {
        let route = Route::parse(&filled(&path)).unwrap();
        let id = operation["operationId"].as_str().unwrap();
        let label = route.label();
        let rest = id.strip_prefix(label).unwrap_or_else(|| panic!("{id} of {path} is a {label}"));
        assert!(rest.is_empty() || rest.starts_with('_'), "{id} of {path} is a {label}");
        described.push(route);
    }
    for route in routes() {
        assert!(described.contains(&route), "{route:?} is not described");
    }
    for route in described {
        assert!(routes().contains(&route), "{route:?} is described and is no route");
    }
}

#[test]
fn every_operation_is_whole() {
    let document = document();
    let mut ids = BTreeSet::new();
    let tags = document["tags"].as_array().unwrap();
    let tags: Vec<_> = tags.iter().map(|tag| tag["name"].as_str().unwrap()).collect();
    for (path, method, operation) in operations(&document) {
        let id = operation["operationId"].as_str().unwrap().to_owned();
        assert!(ids.insert(id.clone()), "{id} twice");
        assert!(tags.contains(&operation["tags"][0].as_str().unwrap()), "{id}");
        assert!(operation["security"].is_array(), "{id}");
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        let named = |place: &str| -> BTreeSet<String> {
            let here = parameters.iter().filter(|parameter| parameter["in"] == place);
            here.map(|parameter| parameter["name"].as_str().unwrap().to_owned()).collect()
        };
        let segments = path.split('/').filter_map(|segment| segment.strip_prefix('{'));
        let segments: BTreeSet<_> =
            segments.map(|segment| segment.trim_end_matches('}').to_owned()).collect();
        assert_eq!(named("path"), segments, "{method} {path}");
        let responses = operation["responses"].as_object().unwrap();
        let good = responses.keys().any(|status| status.as_str() < "400");
        assert!(good && responses.contains_key("500"), "{id} {:?}", responses.keys());
    }
}

#[test]
fn every_reference_leads_somewhere() {
    fn walk(json: &Value, found: &mut Vec<String>) {
        match json {
            Value::Object(object) => {
                for (key, value) in object {
                    if key == "$ref" {
                        found.push(value.as_str().unwrap().to_owned());
                    }
                    walk(value, found);
                }
            }
            Value::Array(array) => array.iter().for_each(|value| walk(value, found)),
            _ => {}
        }
    }
    let document = document();
    let mut found = Vec::new();
    walk(&document, &mut found);
    for reference in &found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    for name in document["components"]["schemas"].as_object().unwrap().keys() {
        let reference = format!("#/components/schemas/{name}");
        let about = ["Frame", "LogEvent"];
        assert!(found.contains(&reference) || about.contains(&name.as_str()), "{name} is unused");
    }
}

/// A word that is not in the table of kinds would be described as an internal error.
#[test]
fn every_kind_that_is_named_exists() {
    let document = document();
    for (path, _, operation) in operations(&document) {
        for (status, response) in operation["responses"].as_object().unwrap() {
            let examples = &response["content"]["application/json"]["examples"];
            for (kind, example) in examples.as_object().into_iter().flatten() {
                let row = KINDS.iter().find(|row| row.kind == kind).unwrap();
                assert_eq!(row.status.to_string(), *status, "{path}");
                assert_eq!(example["value"]["error"], row.text, "{path}");
            }
        }
    }
}
