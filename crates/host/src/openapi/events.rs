//! The event channels.

use utoipa::openapi::HttpMethod;

use super::draft::{Draft, Paths, directory, in_head, in_query, include_reasoning, text};

const TAG: &str = "events";

pub(super) fn describe(paths: &mut Paths) {
    paths.add(
        HttpMethod::Get,
        "/api/global/event",
        stream("events", "The events of all directories"),
    );
    paths.add(
        HttpMethod::Get,
        "/api/event",
        stream("events_of_directory", "The events of one directory").takes(directory()),
    );
    paths.add(
        HttpMethod::Get,
        "/api/global/event/ws",
        socket("event_socket", "The events of all directories, over a web socket"),
    );
    paths.add(
        HttpMethod::Get,
        "/api/event/ws",
        socket("event_socket_of_directory", "The events of one directory, over a web socket")
            .takes(directory()),
    );
}

fn stream(operation: &str, summary: &str) -> Draft {
    let about = "Server-sent events of the upstream and of stored sessions, each with an `id`. A \
                 client that comes back names the last one it has and is sent what came since; \
                 when that is too long ago it is told to start over.";
    Draft::new(operation, TAG, summary, about)
        .takes(in_head("Last-Event-ID", "The last event that the client has."))
        .takes(in_query("lastEventId", "The same; the header comes first.", text(None)))
        .takes(include_reasoning())
        .gives_other("The stream. It does not end by itself.", "text/event-stream")
        .fails(&["usage", "no_route", "service_unavailable", "upstream_timed_out"])
}

fn socket(operation: &str, summary: &str) -> Draft {
    let about = "The same as frames of JSON text: `Frame`. What a client missed comes first, then a \
                 `ready` frame, then what happens.";
    Draft::new(operation, TAG, summary, about)
        .takes(in_query("lastEventId", "The last event that the client has.", text(None)))
        .takes(include_reasoning())
        .gives_nothing(101, "The connection is a web socket from here on.")
        .fails(&["usage", "no_route", "upgrade_required"])
}
