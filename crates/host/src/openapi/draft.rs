//! Operations, put together from what many of them share.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use utoipa::openapi::{
    ContentBuilder, Header, HttpMethod, ObjectBuilder, PathItem, Ref, RefOr, Required, Response,
    ResponseBuilder, Schema, Type,
    example::ExampleBuilder,
    path::{Operation, OperationBuilder, Parameter, ParameterBuilder, ParameterIn},
    request_body::RequestBodyBuilder,
    security::SecurityRequirement,
};

use crate::kinds;

/// What every route but the open ones may refuse a request with.
const GUARDED: &[&str] = &["usage", "unauthenticated", "insufficient_scope", "locked_out"];

/// What any route may fail with.
const ANYWHERE: &[&str] = &["forbidden_host", "forbidden_origin", "internal"];

/// Ids are not longer than this, in UTF-16 units.
pub(super) const MAX_ID: usize = 512;

/// The paths so far, in the order in which they were described.
#[derive(Default)]
pub(super) struct Paths(Vec<(&'static str, PathItem)>);

impl Paths {
    /// Adds an operation.
    pub(super) fn add(&mut self, method: HttpMethod, path: &'static str, draft: Draft) {
        let item = PathItem::new(method, draft.finish());
        match self.0.iter_mut().find(|(known, _)| *known == path) {
            Some((_, known)) => known.merge_operations(item),
            None => self.0.push((path, item)),
        }
    }

    pub(super) fn into_items(self) -> Vec<(&'static str, PathItem)> {
        self.0
    }
}

/// An operation that is being described.
pub(super) struct Draft {
    operation: OperationBuilder,
    good: Vec<(u16, Response)>,
    kinds: Vec<&'static str>,
    guarded: bool,
    passes_on: bool,
}

impl Draft {
    /// An operation of this id, which begins with the fixed name of its route.
    pub(super) fn new(id: &str, tag: &str, summary: &str, about: &str) -> Self {
        let operation = OperationBuilder::new()
            .operation_id(Some(id))
            .tag(tag)
            .summary(Some(summary))
            .description(Some(about));
        Self { operation, good: Vec::new(), kinds: Vec::new(), guarded: true, passes_on: false }
    }

    /// Takes a parameter.
    pub(super) fn takes(mut self, parameter: impl Into<Parameter>) -> Self {
        self.operation = self.operation.parameter(parameter);
        self
    }

    /// Takes a JSON body of this schema.
    pub(super) fn takes_json(mut self, schema: &str, about: &str) -> Self {
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(schema))).build();
        let body = RequestBodyBuilder::new()
            .description(Some(about))
            .required(Some(Required::True))
            .content("application/json", content);
        self.operation = self.operation.request_body(Some(body.build()));
        self
    }

    /// Answers with JSON of this schema, such as `example`.
    pub(super) fn gives_json(self, about: &str, schema: &str, example: Value) -> Self {
        let content = ContentBuilder::new()
            .schema(Some(Ref::from_schema_name(schema)))
            .example(Some(example));
        self.gives(
            200,
            ResponseBuilder::new().description(about).content("application/json", content.build()),
        )
    }

    /// Answers with a body of another type.
    pub(super) fn gives_other(self, about: &str, media_type: &str) -> Self {
        let schema = ObjectBuilder::new().schema_type(Type::String).build();
        let content = ContentBuilder::new().schema(Some(schema)).build();
        self.gives(200, ResponseBuilder::new().description(about).content(media_type, content))
    }

    /// Answers without a body.
    pub(super) fn gives_nothing(self, status: u16, about: &str) -> Self {
        self.gives(status, ResponseBuilder::new().description(about))
    }

    /// Lets clients keep the answer, and say that they have it.
    pub(super) fn can_be_held(mut self) -> Self {
        let about =
            "The answer that the client has: 304 without a body says that it is still good.";
        let held = header_parameter("If-None-Match", about);
        self.operation = self.operation.parameter(held);
        for (_, response) in &mut self.good {
            response
                .headers
                .insert("ETag".into(), header("Names this answer, for `If-None-Match`."));
        }
        self.gives_nothing(304, "The client has it already.")
    }

    /// Sends this header along.
    pub(super) fn with_header(mut self, name: &str, about: &str) -> Self {
        for (status, response) in &mut self.good {
            if *status == 200 {
                response.headers.insert(name.into(), header(about));
            }
        }
        self
    }

    fn gives(mut self, status: u16, response: ResponseBuilder) -> Self {
        let id = header("The random id of the request, as in the host's log.");
        self.good.push((status, response.header("x-request-id", id).build()));
        self
    }

    /// May fail for these reasons.
    pub(super) fn fails(mut self, kinds: &[&'static str]) -> Self {
        self.kinds.extend(kinds);
        self
    }

    /// Needs no login.
    pub(super) fn open(mut self) -> Self {
        self.guarded = false;
        self
    }

    /// Hands on whatever else the upstream answers.
    pub(super) fn passes_on(mut self) -> Self {
        self.passes_on = true;
        self
    }

    fn finish(self) -> Operation {
        let Self { mut operation, good, kinds, guarded, passes_on } = self;
        operation = if guarded {
            let none: [&str; 0] = [];
            operation
                .security(SecurityRequirement::new("token", none))
                .security(SecurityRequirement::new("session", none))
                // What a host without a password asks for.
                .security(SecurityRequirement::default())
        } else {
            operation.securities(Some([SecurityRequirement::default()]))
        };
        let mut failures: BTreeMap<u16, Vec<&'static kinds::Kind>> = BTreeMap::new();
        let guarded = if guarded { GUARDED } else { &[] };
        for kind in kinds.into_iter().chain(guarded.iter().copied()).chain(ANYWHERE.iter().copied())
        {
            let row = kinds::of(kind);
            debug_assert_eq!(row.kind, kind, "a kind of the table");
            let rows = failures.entry(row.status).or_default();
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
        for (status, response) in good {
            operation = operation.response(status.to_string(), response);
        }
        for (status, rows) in failures {
            operation = operation.response(status.to_string(), failure(&rows));
        }
        if passes_on {
            let other = ResponseBuilder::new().description("What the upstream answered, as it is.");
            operation = operation.response("default", other);
        }
        operation.build()
    }
}

/// The answer that tells of any of these failures.
fn failure(rows: &[&kinds::Kind]) -> Response {
    let texts: Vec<_> = rows.iter().map(|row| format!("`{}`", row.text)).collect();
    let examples = rows.iter().map(|row| {
        let example = ExampleBuilder::new().value(Some(json!({ "error": row.text })));
        (row.kind, RefOr::T(example.build()))
    });
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name("Error")))
        .examples_from_iter(examples)
        .build();
    let id = header("The random id of the request, as in the host's log.");
    ResponseBuilder::new()
        .description(texts.join(", "))
        .content("application/json", content)
        .header("x-request-id", id)
        .build()
}

fn header(about: &str) -> Header {
    let mut header = Header::default();
    header.description = Some(about.to_owned());
    header
}

fn header_parameter(name: &str, about: &str) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .description(Some(about))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .build()
}

/// A text in the head of a request.
pub(super) fn in_head(name: &str, about: &str) -> Parameter {
    header_parameter(name, about)
}

/// An id in a path.
pub(super) fn in_path(name: &str, about: &str) -> Parameter {
    let id =
        ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).max_length(Some(MAX_ID));
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some(about))
        .schema(Some(id))
        .build()
}

/// A parameter of a query that may be left out.
pub(super) fn in_query(name: &str, about: &str, schema: impl Into<RefOr<Schema>>) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Query)
        .required(Required::False)
        .description(Some(about))
        .schema(Some(schema))
        .build()
}

/// One that may not.
pub(super) fn needed_in_query(
    name: &str,
    about: &str,
    schema: impl Into<RefOr<Schema>>,
) -> Parameter {
    let mut parameter = in_query(name, about, schema);
    parameter.required = Required::True;
    parameter
}

/// The project directory.
pub(super) fn directory() -> Parameter {
    let about = "The project directory, handed on to the upstream; of no meaning to the store.";
    in_query("directory", about, text(None))
}

/// Whether reasoning is wanted.
pub(super) fn include_reasoning() -> Parameter {
    let about = "`false` leaves reasoning parts out.";
    let schema = ObjectBuilder::new().schema_type(Type::Boolean).default(Some(json!(true)));
    in_query("includeReasoning", about, schema)
}

/// A text of at most so many UTF-16 units.
pub(super) fn text(max: Option<usize>) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).max_length(max)
}

/// An id: a text that is not empty.
pub(super) fn id() -> ObjectBuilder {
    text(Some(MAX_ID)).min_length(Some(1))
}

/// An integer within bounds.
pub(super) fn integer(min: i64, max: i64, default: Option<i64>) -> ObjectBuilder {
    let number = |value: i64| i32::try_from(value).map_or(f64::MAX, f64::from);
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(number(min)))
        .maximum(Some(number(max)).filter(|_| max < i64::MAX))
        .default(default.map(Value::from))
}
