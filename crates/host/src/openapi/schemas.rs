//! What bodies look like.

use serde_json::json;
use utoipa::openapi::{
    ArrayBuilder, ComponentsBuilder, ObjectBuilder, OneOfBuilder, Ref, RefOr, Schema, Type,
    schema::SchemaType,
};

/// One property: its name, its schema, whether it is always there.
type Property = (&'static str, RefOr<Schema>, bool);

/// Every schema that operations refer to.
pub(super) fn all() -> ComponentsBuilder {
    let schemas: Vec<(&str, RefOr<Schema>)> =
        [transcripts(), sessions(), events(), cache(), rest()].concat();
    let all = schemas.into_iter();
    all.fold(ComponentsBuilder::new(), |all, (name, schema)| all.schema(name, schema))
}

fn transcripts() -> Vec<(&'static str, RefOr<Schema>)> {
    let info = object(
        "What is known of a message. Only the id is sure to be there; OpenCode's own fields are \
         passed on.",
        vec![
            ("id", text(), true),
            ("sessionID", text(), false),
            ("role", text(), false),
            (
                "summary",
                any(
                    "Of a user's message: `diffs` without their patches, with `diffCount` and `hasDiffs`.",
                ),
                false,
            ),
        ],
    );
    let part = object(
        "A piece of a message. On a turn page what makes a part large is left out, and the part \
         says `slim: true`.",
        vec![("type", text(), false), ("slim", boolean(), false)],
    );
    let record = object(
        "A message and its parts.",
        vec![("info", named("MessageInfo"), true), ("parts", array(named("Part")), false)],
    );
    let page = object(
        "The last few turns of a session, or the few before a cursor.",
        vec![
            ("records", array(named("Record")), true),
            ("turnCount", natural(), true),
            ("cursor", nullable(&Type::String), true),
            ("complete", boolean(), true),
            ("partsProjection", one_of(&["slim-v1"]), true),
        ],
    );
    let round = object(
        "A piece of what happened since the anchor.",
        vec![
            ("records", array(named("Record")), true),
            ("anchorFound", boolean(), true),
            ("capturedHeadMessageID", nullable(&Type::String), true),
            ("latestHeadMessageID", nullable(&Type::String), true),
            ("continuation", nullable(&Type::String), true),
            ("complete", boolean(), true),
            ("resetRequired", boolean(), true),
            ("scannedRecords", natural(), true),
            ("responseBytes", natural(), true),
        ],
    );
    let file = object(
        "A file that a message changed.",
        vec![
            ("file", text(), true),
            ("status", text(), false),
            ("additions", number(), true),
            ("deletions", number(), true),
        ],
    );
    let files = object(
        "The files that a message changed.",
        vec![("files", array(named("ChangedFile")), true)],
    );
    let diff = object(
        "How a message changed one file.",
        vec![(
            "diff",
            object(
                "The diff, as the upstream has it.",
                vec![("file", text(), true), ("patch", text(), false)],
            ),
            true,
        )],
    );
    let changes = OneOfBuilder::new().item(named("ChangedFiles")).item(named("FileDiff"));
    vec![
        ("MessageInfo", info),
        ("Part", part),
        ("Record", record),
        ("TurnPage", page),
        ("ReconcilePage", round),
        ("ChangedFile", file),
        ("ChangedFiles", files),
        ("FileDiff", diff),
        ("Changes", changes.into()),
        (
            "Message",
            any(
                "One message whole: `info` and `parts`, as the source has them, but for the patches in the summary.",
            ),
        ),
        ("Messages", any("OpenCode's own list of messages.")),
    ]
}

fn sessions() -> Vec<(&'static str, RefOr<Schema>)> {
    let session = object(
        "What is known of a session. Times are milliseconds since the epoch.",
        vec![
            ("id", text(), true),
            ("source", one_of(&["store", "upstream"]), true),
            ("title", nullable(&Type::String), true),
            ("cwd", nullable(&Type::String), true),
            ("createdAt", nullable(&Type::Integer), true),
            ("updatedAt", nullable(&Type::Integer), true),
            ("updatedAtEstimated", boolean(), false),
            ("lastPromptAt", nullable(&Type::Integer), true),
            ("blank", boolean(), true),
            ("eventCount", natural(), false),
            ("sizeBytes", natural(), false),
            ("revision", nullable(&Type::String), true),
            ("state", one_of(&["ok", "damaged", "newer", "foreign"]), true),
            ("reason", text(), false),
            ("parentID", text(), false),
        ],
    );
    let list = object(
        "A page of sessions, the newest first. Without a cursor it is the last one.",
        vec![
            ("sessions", array(named("Session")), true),
            ("cursor", nullable(&Type::String), true),
        ],
    );
    let event = object(
        "One logical event of a log.",
        vec![
            ("type", text(), true),
            ("seq", natural(), true),
            ("time", integer(), true),
            ("data", any("What the event says; its type tells what is in it."), false),
        ],
    );
    vec![("Session", session), ("SessionList", list), ("LogEvent", event)]
}

fn events() -> Vec<(&'static str, RefOr<Schema>)> {
    let event = object(
        "An event, as a frame of a web socket.",
        vec![
            ("type", one_of(&["event"]), true),
            ("payload", any("The event."), true),
            ("eventId", text(), false),
            ("directory", text(), false),
        ],
    );
    let ready = object(
        "The client has everything up to here, and live events follow.",
        vec![("type", one_of(&["ready"]), true), ("scope", one_of(&["global", "directory"]), true)],
    );
    let failed = object(
        "The channel ends.",
        vec![("type", one_of(&["error"]), true), ("message", text(), true)],
    );
    let slow = object(
        "The client is about to be dropped as too slow.",
        vec![
            ("type", one_of(&["backpressure"]), true),
            ("bufferedBytes", natural(), true),
            ("maxBytes", natural(), true),
        ],
    );
    let frames = ["EventFrame", "ReadyFrame", "ErrorFrame", "BackpressureFrame"];
    let frame = frames.into_iter().fold(OneOfBuilder::new(), |all, name| all.item(named(name)));
    vec![
        ("EventFrame", event),
        ("ReadyFrame", ready),
        ("ErrorFrame", failed),
        ("BackpressureFrame", slow),
        ("Frame", frame.into()),
    ]
}

fn rest() -> Vec<(&'static str, RefOr<Schema>)> {
    let error = object(
        "A failure.",
        vec![
            ("error", text(), true),
            ("code", text(), false),
            ("session", text(), false),
            ("restarting", boolean(), false),
            ("locked", boolean(), false),
        ],
    );
    let health = object("The process answers.", vec![("status", one_of(&["ok"]), true)]);
    let login = object("A login.", vec![("password", text(), true)]);
    let logged_in = object(
        "A login that was taken.",
        vec![("authenticated", boolean(), true), ("scope", scope_word(), true)],
    );
    let logged_out = object("Nobody is logged in.", vec![("authenticated", boolean(), true)]);
    let status = object(
        "Whether a request is let in.",
        vec![
            ("authenticated", boolean(), true),
            ("passwordRequired", boolean(), true),
            ("scope", nullable(&Type::String), true),
            ("via", nullable(&Type::String), true),
        ],
    );
    let document = object("An OpenAPI document.", vec![("openapi", text(), true)]);
    vec![
        ("Error", error),
        ("Document", document),
        ("Health", health),
        ("Login", login),
        ("LoggedIn", logged_in),
        ("LoggedOut", logged_out),
        ("LoginStatus", status),
    ]
}

fn cache() -> Vec<(&'static str, RefOr<Schema>)> {
    let scope: Vec<Property> = vec![
        ("transport", text(), true),
        ("generation", any("An integer, or its digits."), true),
        ("directory", text(), true),
        ("sessionID", text(), true),
    ];
    let scope = object("Whose transcript: all four tell one from another.", scope);
    let write = object(
        "A message to keep.",
        vec![
            ("scope", named("CacheScope"), true),
            ("info", object("The message.", vec![("id", text(), true)]), true),
            ("parts", array(object("A part of it.", vec![])), true),
        ],
    );
    let cached = object(
        "A message that is kept.",
        vec![
            ("scope", named("CacheScope"), true),
            ("messageID", text(), true),
            ("info", object("The message.", vec![]), true),
            ("parts", array(any("A part of it.")), true),
            ("partCompleteness", array(one_of(&["slim", "full"])), true),
            ("completeness", one_of(&["slim", "full"]), true),
            ("contentHash", text(), true),
            ("byteSize", natural(), true),
            ("lastAccessedAt", number(), true),
            (
                "sortKey",
                object(
                    "Where it stands in its session.",
                    vec![("created", number(), true), ("messageID", text(), true)],
                ),
                true,
            ),
        ],
    );
    let session = object(
        "The kept messages of one session.",
        vec![
            ("available", boolean(), true),
            ("scope", named("CacheScope"), true),
            ("records", array(named("CachedMessage")), true),
            ("byteSize", natural(), true),
        ],
    );
    let message = object(
        "One kept message.",
        vec![("available", boolean(), true), ("record", named("CachedMessage"), true)],
    );
    let written = object(
        "What became of a message that was to be kept.",
        vec![
            ("status", one_of(&["written", "skipped"]), true),
            ("reason", one_of(&["not-settled", "slim-downgrade", "unchanged"]), false),
            ("record", named("CachedMessage"), false),
        ],
    );
    let budget = object(
        "How much may stay.",
        vec![("maxBytes", number(), true), ("protect", array(named("CacheScope")), false)],
    );
    let evicted = object(
        "What went, and what stays.",
        vec![
            ("evicted", natural(), true),
            ("freedBytes", natural(), true),
            ("remainingBytes", natural(), true),
        ],
    );
    let of_message = object(
        "One message.",
        vec![("scope", named("CacheScope"), true), ("messageID", text(), true)],
    );
    let of_session = object("One session.", vec![("scope", named("CacheScope"), true)]);
    let of_generation = object(
        "One generation of a transport.",
        vec![("transport", text(), true), ("generation", any("An integer, or its digits."), true)],
    );
    vec![
        ("CacheScope", scope),
        ("CacheWrite", write),
        ("CachedMessage", cached),
        ("CachedSession", session),
        ("CachedMessageAnswer", message),
        ("CacheOutcome", written),
        ("CacheBudget", budget),
        ("CacheEvicted", evicted),
        ("CacheMessageKey", of_message),
        ("CacheSessionKey", of_session),
        ("CacheGenerationKey", of_generation),
    ]
}

/// What somebody may do.
fn scope_word() -> RefOr<Schema> {
    one_of(&["read", "write", "admin"])
}

/// An object that may have more in it.
fn object(about: &str, properties: Vec<Property>) -> RefOr<Schema> {
    let object = ObjectBuilder::new().schema_type(Type::Object).description(Some(about));
    let object = properties.into_iter().fold(object, |object, (name, schema, always)| {
        let object = object.property(name, schema);
        if always { object.required(name) } else { object }
    });
    object.into()
}

fn named(name: &str) -> RefOr<Schema> {
    Ref::from_schema_name(name).into()
}

fn array(of: impl Into<RefOr<Schema>>) -> RefOr<Schema> {
    ArrayBuilder::new().items(of.into()).into()
}

fn of_type(schema_type: Type) -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(schema_type).into()
}

fn text() -> RefOr<Schema> {
    of_type(Type::String)
}

fn boolean() -> RefOr<Schema> {
    of_type(Type::Boolean)
}

fn integer() -> RefOr<Schema> {
    of_type(Type::Integer)
}

fn number() -> RefOr<Schema> {
    of_type(Type::Number)
}

fn natural() -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)).into()
}

fn nullable(schema_type: &Type) -> RefOr<Schema> {
    let types = SchemaType::Array(vec![schema_type.clone(), Type::Null]);
    ObjectBuilder::new().schema_type(types).into()
}

fn one_of(words: &[&str]) -> RefOr<Schema> {
    let words = words.iter().map(|word| json!(word));
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).into()
}

fn any(about: &str) -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(SchemaType::AnyValue).description(Some(about)).into()
}
