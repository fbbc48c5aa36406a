//! The description of the HTTP surface, in `OpenAPI` 3.1.
//!
//! One path of the program answers every request, and [`Route::parse`](crate::http::Route) says
//! what it is for, so nothing can be derived from handlers. What is said here is held to them by
//! tests instead: every route has a path here and every path leads to its route; every answer that
//! the tests of the host get is checked against its operation; and a generator of requests goes
//! through all of them. Texts and statuses of failures come from the one table of
//! [`kinds`](crate::kinds).

mod access;
mod cache;
mod draft;
mod events;
mod schemas;
mod service;
mod sessions;
mod transcripts;

use std::sync::LazyLock;

use utoipa::openapi::{
    InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, PathsBuilder, Server,
    security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme},
    tag::TagBuilder,
};

use self::draft::Paths;

/// Groups of operations, and what they are about.
const TAGS: [(&str, &str); 7] = [
    (
        "transcripts",
        "What was said in a session, turn by turn. Sessions of the store and of the upstream are read alike.",
    ),
    ("sessions", "Which sessions there are, and the logs of those in the store."),
    ("events", "What happens, as it happens."),
    ("transcript cache", "What clients keep here of messages that will not change any more."),
    ("access", "Logging in and out."),
    ("service", "The process itself."),
    ("reader", "A page to look at sessions with."),
];

const ABOUT: &str = "\
Everything under `/api` that is not described here is handed on to the OpenCode server behind the \
host, if there is one: a client of OpenCode takes `http://HOST:7420/api` as its base URL. Those \
paths are described by OpenCode.\n\n\
Every `GET` answers `HEAD` as well, with the same head. Fixed segments of a path are read without \
regard to case, one trailing slash is passed over, and each segment is decoded by itself. Unknown \
parameters are ignored. A method that a path does not take is answered with 405, or handed on \
where the upstream has the same path.\n\n\
A failure is an object with `error`, a text for people, and where clients need to tell failures \
apart a `code`. No failure repeats what an upstream, a log or the client said. Every answer carries \
an `x-request-id`, which the log of the host has as well.";

/// The document, as JSON text.
pub(crate) fn text() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let mut text = document().to_pretty_json().unwrap_or_default();
        text.push('\n');
        text
    });
    &TEXT
}

/// Describes every route of this host.
pub(crate) fn document() -> OpenApi {
    let mut paths = Paths::default();
    transcripts::describe(&mut paths);
    sessions::describe(&mut paths);
    events::describe(&mut paths);
    cache::describe(&mut paths);
    access::describe(&mut paths);
    service::describe(&mut paths);
    let all = paths.into_items().into_iter();
    let all = all.fold(PathsBuilder::new(), |all, (path, item)| all.path(path, item));
    let license = LicenseBuilder::new().name("MIT OR Apache-2.0").build();
    let info = InfoBuilder::new()
        .title("turnkeep")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(ABOUT))
        .license(Some(license))
        .build();
    let tags = TAGS
        .iter()
        .map(|(name, about)| TagBuilder::new().name(*name).description(Some(*about)).build());
    OpenApiBuilder::new()
        .info(info)
        // Relative: wherever the document was fetched from.
        .servers(Some([Server::new("/")]))
        .tags(Some(tags.collect::<Vec<_>>()))
        .paths(all)
        .components(Some(
            schemas::all()
                .security_scheme("token", token())
                .security_scheme("session", cookie())
                .build(),
        ))
        .build()
}

fn token() -> SecurityScheme {
    let about = "A token that `turnkeep token create` printed. Its scope, `read`, `write` or \
                 `admin`, says which routes it opens.";
    let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("tk_…");
    SecurityScheme::Http(scheme.description(Some(about)).build())
}

fn cookie() -> SecurityScheme {
    let about = "What `POST /auth/login` sets. A host without a password and without tokens asks \
                 for neither.";
    SecurityScheme::ApiKey(ApiKey::Cookie(ApiKeyValue::with_description(access::COOKIE, about)))
}

#[cfg(test)]
mod tests;
