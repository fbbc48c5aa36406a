use super::{Channel, MalformedPath, Route};

fn turn_page(id: &str) -> Route {
    Route::TurnPage(id.to_owned())
}

#[test]
fn finds_turn_pages_whatever_the_case_and_with_one_trailing_slash() {
    assert_eq!(Route::parse("/api/openchamber/sessions/ses_1/messages"), Ok(turn_page("ses_1")));
    assert_eq!(Route::parse("/API/OpenChamber/Sessions/Ses_1/MESSAGES/"), Ok(turn_page("Ses_1")));
    assert_eq!(Route::parse("/api/openchamber/sessions/ses_1/messages//"), Ok(Route::Api));
}

#[test]
fn decodes_ids_by_themselves() {
    assert_eq!(
        Route::parse("/api/openchamber/sessions/a%2Fb%20+c/messages"),
        Ok(turn_page("a/b +c"))
    );
    assert_eq!(Route::parse("/api/turnkeep/sessions/%C3%A9"), Ok(Route::Session("é".to_owned())));
    for malformed in ["%", "%4", "%zz", "%ff"] {
        let path = format!("/api/openchamber/sessions/{malformed}/messages");
        assert_eq!(Route::parse(&path), Err(MalformedPath), "{malformed}");
    }
}

#[test]
fn finds_messages() {
    let message = |session: &str, message: &str| {
        Ok(Route::Message { session: session.to_owned(), message: message.to_owned() })
    };
    assert_eq!(Route::parse("/api/session/ses_1/message/msg_1"), message("ses_1", "msg_1"));
    assert_eq!(Route::parse("/API/Session/Ses_1/MESSAGE/a%3Ab%2fC/"), message("Ses_1", "a:b/C"));
    for malformed in ["/api/session/%zz/message/m", "/api/session/s/message/%4"] {
        assert_eq!(Route::parse(malformed), Err(MalformedPath), "{malformed}");
    }
    for other in
        ["/api/session//message/", "/api/session//message/m", "/api/session/s/message/m/part/p"]
    {
        assert_eq!(Route::parse(other), Ok(Route::Api), "{other}");
    }
    assert_eq!(Route::parse("/api/session/s/message/"), Ok(Route::Messages("s".to_owned())));
}

#[test]
fn an_empty_id_is_no_session() {
    assert_eq!(Route::parse("/api/openchamber/sessions//messages"), Ok(Route::Api));
    assert_eq!(Route::parse("/api/turnkeep/sessions/"), Ok(Route::Sessions));
    assert_eq!(Route::parse("/api/turnkeep/sessions//"), Ok(Route::Api));
}

#[test]
fn tells_the_rest_apart() {
    assert_eq!(Route::parse("/"), Ok(Route::Asset(String::new())));
    assert_eq!(Route::parse("/reader.css"), Ok(Route::Asset("reader.css".to_owned())));
    assert_eq!(Route::parse("/health"), Ok(Route::Health));
    assert_eq!(Route::parse("/api/turnkeep/sessions"), Ok(Route::Sessions));
    assert_eq!(Route::parse("/api"), Ok(Route::Api));
    assert_eq!(Route::parse("/api/session.export"), Ok(Route::Export));
    assert_eq!(Route::parse("/api/Event"), Ok(Route::Events(Channel::Directory)));
    assert_eq!(Route::parse("/api/global/event/"), Ok(Route::Events(Channel::Global)));
    assert_eq!(Route::parse("/api/event/ws"), Ok(Route::EventSocket(Channel::Directory)));
    assert_eq!(Route::parse("/auth/Login"), Ok(Route::Auth("login".to_owned())));
    assert_eq!(Route::parse("/apiary"), Ok(Route::Asset("apiary".to_owned())));
}

#[test]
fn finds_rounds_and_changes() {
    let base = "/api/openchamber/sessions/a%2Fb";
    let id = "a/b".to_owned();
    for (path, route) in [
        ("/messages/reconcile", Route::Reconcile(id.clone())),
        ("/Messages/RECONCILE/", Route::Reconcile(id.clone())),
        ("/changes", Route::Changes(id.clone())),
        ("/Changes/", Route::Changes(id)),
        ("/messages/reconcile/x", Route::Api),
        ("/messages/other", Route::Api),
        ("/changes/x", Route::Api),
    ] {
        assert_eq!(Route::parse(&format!("{base}{path}")), Ok(route), "{path}");
    }
    assert_eq!(Route::parse("/api/openchamber/sessions//changes"), Ok(Route::Api));
    for path in ["/messages/reconcile", "/changes"] {
        let path = format!("/api/openchamber/sessions/%zz{path}");
        assert_eq!(Route::parse(&path), Err(MalformedPath));
    }
}
