//! The harness against the real thing.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy knows test functions, not the functions they share"
)]

use std::time::Duration;

use serde_json::Value;
use turnkeep_test_opencode::{HarnessError, LongSession, OpenCode, Options, USERNAME};

fn messages(list: &str) -> Vec<Value> {
    serde_json::from_str(list).unwrap()
}

fn tools(list: &str) -> Vec<(String, String)> {
    messages(list)
        .iter()
        .flat_map(|message| message["parts"].as_array().unwrap())
        .filter(|part| part["type"] == "tool")
        .map(|part| {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            (text(&part["tool"]), text(&part["state"]["status"]))
        })
        .collect()
}

#[tokio::test]
async fn a_turn_survives_kill_and_restart() {
    let mut server = OpenCode::start(Options::default()).await.unwrap();
    let session = server.create_session().await.unwrap();
    let answer = server
        .prompt(&session, "Tidy up. #steps=9 #tools=read,write,edit,bash,todo,grep,glob,task,error")
        .await
        .unwrap();
    assert!(answer.contains(r#""finish":"stop""#), "{answer}");

    let before = server.full_list(&session).await.unwrap();
    assert_eq!(messages(&before).len(), 1 + 9 + 1);
    let expected = [
        ("read", "completed"),
        ("write", "completed"),
        ("edit", "completed"),
        ("bash", "completed"),
        ("todowrite", "completed"),
        ("grep", "completed"),
        ("glob", "completed"),
        ("task", "completed"),
        ("edit", "error"),
    ];
    let expected = expected.map(|(tool, status)| (tool.to_owned(), status.to_owned()));
    assert_eq!(tools(&before), expected);

    let address = server.base_url().to_owned();
    server.kill();
    assert!(matches!(server.full_list(&session).await, Err(HarnessError::NotRunning)));
    let refused = reqwest::get(format!("{address}/global/health")).await.unwrap_err();
    assert!(refused.is_connect(), "{refused:?}");

    server.restart().await.unwrap();
    assert_eq!(server.base_url(), address);
    assert_eq!(messages(&server.full_list(&session).await.unwrap()), messages(&before));

    // The next turn of the restarted server, in the same session.
    server
        .prompt(&session, "And again. #steps=1 #parallel=3 #tools=write,edit,bash #reason")
        .await
        .unwrap();
    let after = server.full_list(&session).await.unwrap();
    assert_eq!(messages(&after).len(), 11 + 3);
    assert!(after.contains(r#""type":"reasoning""#));
    assert_eq!(tools(&after).len(), 9 + 3);
}

#[tokio::test]
async fn a_password_guards_every_route_and_data_outlives_the_server() {
    let data = tempfile::tempdir().unwrap();
    let options = Options {
        password: Some("correct horse".to_owned()),
        data: Some(data.path().join("opencode")),
    };
    let server = OpenCode::start(options.clone()).await.unwrap();
    let session = server.create_session().await.unwrap();
    server.prompt(&session, "Say hello. #steps=0").await.unwrap();

    let url = format!("{}/session/{session}/message", server.base_url());
    let http = reqwest::Client::new();
    assert_eq!(http.get(&url).send().await.unwrap().status(), 401);
    let known = http.get(&url).basic_auth(USERNAME, server.password()).send().await.unwrap();
    assert_eq!(known.status(), 200);
    drop(server);

    let server = OpenCode::start(options).await.unwrap();
    assert_eq!(messages(&server.full_list(&session).await.unwrap()).len(), 2);
}

#[tokio::test]
async fn scripts_bend_the_turn() {
    let server = OpenCode::start(Options::default()).await.unwrap();
    let session = server.create_session().await.unwrap();

    // Refused twice, then answered: the server retries by itself.
    let answer = server.prompt(&session, "Try. #fail=2 #steps=0 #chunks=9").await.unwrap();
    assert!(answer.contains(r#""finish":"stop""#), "{answer}");

    let answer = server.prompt(&session, "No. #status=400").await.unwrap();
    let error = serde_json::from_str::<Value>(&answer).unwrap()["info"]["error"].clone();
    assert_eq!((&error["name"], &error["data"]["statusCode"]), (&"APIError".into(), &400.into()));

    let answer = server.prompt(&session, "Go on and on. #steps=0 #cut").await.unwrap();
    assert!(answer.contains(r#""finish":"length""#), "{answer}");

    // A large file in the diffs of the prompt, a large output in the tool part.
    server
        .prompt(&session, "Make. #steps=2 #tools=write,bash #file=20000 #output=300")
        .await
        .unwrap();
    let list = server.full_list(&session).await.unwrap();
    assert!(list.len() > 1_000_000, "{}", list.len());
    assert!(list.contains("line 300 of 300"));

    // Slow enough to be stopped in the middle of its text, and of a tool.
    server.prompt_async(&session, "Slowly. #steps=0 #slow=200 #chunks=500").await.unwrap();
    server.abort(&session).await.unwrap();
    server.wait_until_idle(&session).await.unwrap();
    server.prompt_async(&session, "Wait. #steps=1 #tools=bash #sleep=600").await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    server.abort(&session).await.unwrap();
    server.wait_until_idle(&session).await.unwrap();
    let list = messages(&server.full_list(&session).await.unwrap());
    let aborted = list
        .iter()
        .filter(|message| message["info"]["error"]["name"] == "MessageAbortedError")
        .count();
    assert_eq!(aborted, 2);
}

#[tokio::test]
async fn long_sessions_are_imported_and_paged() {
    let server = OpenCode::start(Options::default()).await.unwrap();
    let long = LongSession::new("a").messages(1000);
    let id = server.import(&long.to_json()).await.unwrap();
    assert_eq!(id, long.id());
    let list = messages(&server.full_list(&id).await.unwrap());
    assert_eq!(list.len(), 1000);
    let built: Value = serde_json::from_str(&long.to_json()).unwrap();
    assert_eq!(Value::Array(list), built["messages"], "what was built is what is served");

    let page = server.get(&format!("/session/{id}/message?limit=100")).await.unwrap();
    assert_eq!(page.status, 200);
    assert!(page.header("x-next-cursor").is_some());
    assert!(server.get("/session").await.unwrap().body.contains(&id), "listed in its project");

    // It goes on like any other session.
    server.prompt(&id, "Go on. #steps=1").await.unwrap();
    assert_eq!(messages(&server.full_list(&id).await.unwrap()).len(), 1003);
}
