//! Sessions as ZIP archives, over HTTP and as other programs read them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{
    collections::HashSet,
    fs,
    io::{Cursor, Read as _},
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use support::{
    host::{Answer, RunningHost},
    logs::Logs,
    store::{TestStore, golden, header, made, prompt},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use turnkeep_host::{HostOptions, UpstreamOptions, export::Exporter};
use turnkeep_log::{Event, SessionHeader, SessionId};
use turnkeep_store::{
    Access, Cancel, EventRange, Routed, SessionStore,
    attachments::Attachments,
    jsonl::{Compression, JsonlOptions, JsonlStore},
    memory::{Disk, MemoryStore},
    sqlite::{SqliteOptions, SqliteStore},
};
use zip::ZipArchive;

/// A host over a store and a directory of images.
struct Bench {
    test: TestStore,
    images: TempDir,
    host: RunningHost,
}

impl Bench {
    async fn new() -> Self {
        let (test, images) = (TestStore::new(), tempfile::tempdir().unwrap());
        let store: Arc<dyn SessionStore> = Arc::clone(&test.store) as _;
        let host = serve(Some(store), Some(images.path())).await;
        Self { test, images, host }
    }

    async fn export(&self, query: &str) -> Answer {
        self.host.get(&format!("/api/session.export?{query}")).await
    }

    fn add_image(&self, name: &str, content: &[u8]) {
        fs::write(self.images.path().join(name), content).unwrap();
    }
}

async fn serve(store: Option<Arc<dyn SessionStore>>, images: Option<&Path>) -> RunningHost {
    let mut options = HostOptions::default();
    options.store = store;
    options.attachments = images.map(Path::to_owned);
    RunningHost::start(options).await
}

fn id(text: &str) -> SessionId {
    SessionId::new(text).unwrap()
}

fn child(id: &str, of: &str, at: u64) -> SessionHeader {
    let mut header = header(id);
    (header.parent_session, header.created_at) = (Some(of.to_owned()), at);
    header
}

fn image(id: &str, media_type: &str) -> Value {
    let attachment =
        json!({ "attachmentId": id, "mediaType": media_type, "width": 1, "height": 1 });
    json!({ "type": "image", "attachment": attachment })
}

/// A prompt with this content.
fn shown(id: &str, content: &Value) -> (&'static str, Value) {
    let source = json!({ "kind": "user" });
    ("user/message", json!({ "content": content, "source": source, "role": "user", "id": id }))
}

/// The entries in their order: name, content.
fn entries(archive: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut archive = ZipArchive::new(Cursor::new(archive)).unwrap();
    let count = archive.len();
    let entry = |at| {
        let mut entry = archive.by_index(at).unwrap();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        (entry.name().to_owned(), content)
    };
    (0..count).map(entry).collect()
}

fn names(archive: &[u8]) -> Vec<String> {
    entries(archive).into_iter().map(|(name, _)| name).collect()
}

/// Whether programs that know nothing of our code find the archive in order.
fn is_archive_elsewhere(archive: &[u8]) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.zip");
    fs::write(&path, archive).unwrap();
    let python = Command::new("python3").args(["-m", "zipfile", "-t"]).arg(&path).output().unwrap();
    let python = python.status.success() && !python.stdout.windows(6).any(|six| six == b"failed");
    match Command::new("unzip").args(["-tqq"]).arg(&path).status() {
        Ok(unzip) => {
            assert_eq!(unzip.success(), python, "two readers agree");
            python
        }
        Err(_) => python,
    }
}

/// What the log of a session is in an archive.
fn log_text(header: &SessionHeader, events: &[Event]) -> String {
    let events = events.iter().map(|event| event.text().as_str());
    let lines = std::iter::once(header.to_line()).chain(events.map(str::to_owned));
    lines.map(|line| line + "\n").collect()
}

/// Damages a log in a way that no crash does.
fn spoil(log: &Path) {
    let mut bytes = fs::read(log).unwrap();
    let at = bytes.len() - 6;
    bytes[at] ^= 0xff;
    bytes.extend_from_slice(b"(/\xb5/\xfd and more");
    fs::write(log, bytes).unwrap();
}

/// Everything that waits is over soon, or something is wrong.
async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn a_real_session_is_exported_as_it_was_written() {
    let bench = Bench::new().await;
    let all = [
        "compaction-recovery",
        "error-finish",
        "packed-chunks",
        "parallel-tool-calls",
        "subagent-fork-child",
        "todo-write",
        "web-goal-multi-turn",
    ];
    for name in all {
        let session = bench.test.add_golden(name).await;
        let answer = bench.export(&format!("sessionId={session}")).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert!(is_archive_elsewhere(&answer.bytes));
        let found = entries(&answer.bytes);
        assert_eq!(found.len(), 1, "{name}");
        assert_eq!(found[0].0, "session.jsonl");
        let (header, events) = golden(name);
        assert_eq!(String::from_utf8_lossy(&found[0].1), log_text(&header, &events), "{name}");
        let line: Value =
            serde_json::from_slice(found[0].1.split(|b| *b == b'\n').next().unwrap()).unwrap();
        assert!(line["delegationDepth"].is_u64(), "always there: {line}");
        assert_eq!(line.get("seedLength").is_some(), name == "subagent-fork-child", "{line}");
    }
}

#[tokio::test]
async fn what_is_asked_for_wrongly_is_a_400() {
    let bench = Bench::new().await;
    bench.test.add_made("s", &[prompt("p", "hi")]).await;
    let long = format!("sessionId={}", "x".repeat(513));
    for (query, error) in [
        ("", "sessionId is required"),
        ("sessionId=", "sessionId is required"),
        ("sessionid=s", "sessionId is required"),
        ("sessionId=s&sessionId=s", "sessionId is required"),
        (long.as_str(), "sessionId is required"),
        ("sessionId=s&includeDescendants=", "includeDescendants must be true or false"),
        ("sessionId=s&includeDescendants=1", "includeDescendants must be true or false"),
        ("sessionId=s&includeDescendants=TRUE", "includeDescendants must be true or false"),
        (
            "sessionId=s&includeDescendants=true&includeDescendants=true",
            "includeDescendants must be true or false",
        ),
    ] {
        let answer = bench.export(query).await;
        assert_eq!((answer.status, answer.json()["error"].as_str()), (400, Some(error)), "{query}");
        let target = format!("/api/session.export?{query}");
        let head = bench.host.request("HEAD", &target).send().await.unwrap();
        assert_eq!(head.status, 400, "{query}");
    }
    for query in ["sessionId=s", "sessionId=s&includeDescendants=false", "sessionId=s&other=1"] {
        assert_eq!(bench.export(query).await.status, 200, "{query}");
    }
    let post = bench.host.request("POST", "/api/session.export?sessionId=s").send().await.unwrap();
    assert_eq!(post.status, 405);
}

#[tokio::test]
async fn a_head_has_the_status_and_headers_of_the_get() {
    let bench = Bench::new().await;
    bench.test.add_made("a b.ü", &[shown("p", &json!([image("i", "image/png")]))]).await;
    let target = "/api/session.export?sessionId=a%20b.%C3%BC";
    let pair = async || {
        let get = bench.host.get(target).await;
        let head = bench.host.request("HEAD", target).send().await.unwrap();
        assert_eq!(head.status, get.status);
        for name in ["content-type", "content-disposition", "cache-control"] {
            assert_eq!(head.header(name), get.header(name), "{name}");
        }
        (get, head)
    };
    let (get, _) = pair().await;
    assert_eq!(get.status, 500, "an image is missing");
    bench.add_image("i.png", b"png");
    let (get, head) = pair().await;
    assert_eq!(get.status, 200);
    assert_eq!(head.header("content-length"), None, "it is not known yet");
    let name = "attachment; filename=\"dsh-session-a_b__.zip\"";
    assert_eq!(get.header("content-disposition"), Some(name));
    // Even for a client that takes compressed bodies, which the contract's check sees to.
    let packed = bench.host.request("GET", target).header("accept-encoding", "gzip, br");
    assert_eq!(packed.send().await.unwrap().status, 200);
}

#[tokio::test]
async fn a_session_that_is_not_there_is_a_404() {
    let bench = Bench::new().await;
    let answer = bench.export("sessionId=nope").await;
    assert_eq!(answer.status, 404);
    assert_eq!(answer.body, r#"{"error":"session not found","code":"session_not_found"}"#);

    // What lives behind the upstream is none of the store's, whether or not the upstream is there.
    let mut options = HostOptions::default();
    options.store = Some(Arc::clone(&bench.test.store) as _);
    options.upstream = Some(UpstreamOptions::new("http://127.0.0.1:9").unwrap());
    let host = RunningHost::start(options).await;
    let answer = host.get("/api/session.export?sessionId=ses_1").await;
    assert_eq!(answer.status, 404);
    assert_eq!(answer.body, r#"{"error":"only sessions of the store can be exported"}"#);
}

#[tokio::test]
async fn without_a_store_nothing_is_exported() {
    let host = serve(None, None).await;
    let answer = host.get("/api/session.export?sessionId=s").await;
    assert_eq!((answer.status, answer.json()["code"].as_str()), (500, Some("no_store")));
}

#[tokio::test]
async fn a_session_that_cannot_be_read_is_a_500_that_names_no_cause() {
    let logs = Logs::start();
    let bench = Bench::new().await;
    for (session, kind) in [("cut", "corrupt"), ("new", "format_unsupported")] {
        bench.test.add_made(session, &[prompt("p", "hi"), prompt("q", "secret-canary")]).await;
        let log = bench.test.log(session);
        if kind == "corrupt" {
            spoil(&log);
        } else {
            fs::write(log.with_file_name("session.v1.jsonl.zstd"), b"").unwrap();
        }
        let answer = bench.export(&format!("sessionId={session}")).await;
        let expected =
            json!({ "error": "the session cannot be exported", "code": kind, "session": session });
        assert_eq!((answer.status, answer.json()), (500, expected));
    }
    let folder = bench.test.folder.path().to_str().unwrap().to_owned();
    let text = logs.text();
    assert!(text.contains("corrupt") && !text.contains("canary"), "{text}");
    assert!(!text.contains(&folder), "{text}");
}

#[tokio::test]
async fn descendants_come_depth_first_and_each_once() {
    let bench = Bench::new().await;
    let add = async |header: SessionHeader| {
        bench.test.add(header, made(0, |at| 1000 + at, &[prompt("p", "hi")])).await
    };
    add(child("root", "grandchild", 1)).await;
    add(child("late", "root", 30)).await;
    add(child("b.1", "root", 20)).await;
    add(child("a:1", "root", 20)).await;
    add(child("b_1", "a:1", 5)).await;
    add(child("grandchild", "b_1", 1)).await;
    add(child("self", "self", 1)).await;
    add(header("stranger")).await;
    let alone = bench.export("sessionId=root").await;
    assert_eq!(names(&alone.bytes), ["session.jsonl"]);
    let all = bench.export("sessionId=root&includeDescendants=true").await;
    assert!(is_archive_elsewhere(&all.bytes));
    let expected = [
        "session.jsonl",
        "subagents/a_1/session.jsonl",
        "subagents/b_1/session.jsonl",
        "subagents/grandchild/session.jsonl",
        "subagents/b_1_2/session.jsonl",
        "subagents/late/session.jsonl",
    ];
    assert_eq!(names(&all.bytes), expected);
    let ids = entries(&all.bytes).into_iter().map(|(_, log)| {
        let line = String::from_utf8(log).unwrap().lines().next().unwrap().to_owned();
        SessionHeader::parse(&line, None).unwrap().id.as_str().to_owned()
    });
    let ids: Vec<_> = ids.collect();
    assert_eq!(ids, ["root", "a:1", "b_1", "grandchild", "b.1", "late"]);
    let circle = bench.export("sessionId=self&includeDescendants=true").await;
    assert_eq!(names(&circle.bytes), ["session.jsonl"]);
}

#[tokio::test]
async fn a_descendant_that_cannot_be_read_is_an_error_and_no_short_archive() {
    let bench = Bench::new().await;
    bench.test.add_made("root", &[prompt("p", "hi")]).await;
    bench.test.add(child("gone", "root", 2), made(0, |at| at, &[prompt("q", "hi")])).await;
    spoil(&bench.test.log("gone"));
    let answer = bench.export("sessionId=root&includeDescendants=true").await;
    assert_eq!((answer.status, answer.json()["code"].as_str()), (500, Some("corrupt")));
    assert_eq!(answer.json()["session"], "gone", "which one it is");
    assert_eq!(bench.export("sessionId=root").await.status, 200, "alone it can be");
}

#[tokio::test]
async fn images_follow_the_logs_each_once() {
    let bench = Bench::new().await;
    let nested = json!({ "type": "tool-result", "content": [image("c", "image/webp")] });
    let block = json!({ "type": "block-end", "index": 0, "block": image("d", "image/gif") });
    bench
        .test
        .add_made(
            "root",
            &[
                shown("p", &json!([image("a", "image/png"), image("a", "image/png"), nested])),
                ("assistant/chunk", json!({ "turn": 1, "step": 1, "chunk": block })),
            ],
        )
        .await;
    let content = json!([image("b", "image/jpeg"), image("a", "image/png")]);
    let events = made(0, |at| at, &[shown("q", &content)]);
    bench.test.add(child("child", "root", 2), events).await;
    for (name, content) in [("a.png", "A"), ("b.jpg", "B"), ("c.webp", "C"), ("d", "D")] {
        bench.add_image(name, content.as_bytes());
    }
    let all = bench.export("sessionId=root&includeDescendants=true").await;
    assert!(is_archive_elsewhere(&all.bytes));
    let expected = [
        "session.jsonl",
        "subagents/child/session.jsonl",
        "media/a.png",
        "media/c.webp",
        "media/d.gif",
        "media/b.jpg",
    ];
    assert_eq!(names(&all.bytes), expected);
    let images = entries(&all.bytes).into_iter().skip(2).map(|(_, content)| content);
    assert_eq!(images.collect::<Vec<_>>().concat(), b"ACDB");
    let alone = bench.export("sessionId=root").await;
    assert_eq!(names(&alone.bytes)[1..], ["media/a.png", "media/c.webp", "media/d.gif"]);
}

#[tokio::test]
async fn an_image_that_is_missing_is_an_error_before_the_first_byte() {
    let bench = Bench::new().await;
    fs::write(bench.images.path().parent().unwrap().join("secret.png"), b"").ok();
    for (number, name) in ["i", "../secret", "/etc/passwd", "a/b", ".."].iter().enumerate() {
        let session = format!("s{number}");
        bench.test.add_made(&session, &[shown("p", &json!([image(name, "image/png")]))]).await;
        let answer = bench.export(&format!("sessionId={session}")).await;
        let told = answer.json();
        assert_eq!((answer.status, told["code"].as_str()), (500, Some("attachment_missing")));
        assert!(!answer.body.contains("secret"), "{}", answer.body);
    }
    bench.add_image("i", b"now it is there");
    assert_eq!(bench.export("sessionId=s0").await.status, 200);

    let host = serve(Some(Arc::clone(&bench.test.store) as _), None).await;
    let answer = host.get("/api/session.export?sessionId=s0").await;
    assert_eq!((answer.status, answer.json()["code"].as_str()), (500, Some("no_attachments")));
    bench.test.add_made("plain", &[prompt("p", "hi")]).await;
    let answer = host.get("/api/session.export?sessionId=plain").await;
    assert_eq!(answer.status, 200, "what shows none needs none");
}

#[tokio::test]
async fn an_image_that_turns_out_damaged_breaks_the_archive_off() {
    let logs = Logs::start();
    let bench = Bench::new().await;
    // The digest of something else, which shows only at the end.
    let digest = "0".repeat(64);
    let folder = bench.images.path().join("objects/00");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(&digest), noise(300_000)).unwrap();
    let shows = shown("p", &json!([image(&format!("sha256:{digest}"), "image/png")]));
    bench.test.add_made("s", &[shows]).await;
    let target = "/api/session.export?sessionId=s";
    let broken = bench.host.request("GET", target).send().await;
    assert!(broken.is_err(), "the body ends in the middle");

    let mut stream = TcpStream::connect(&bench.host.origin()["http://".len()..]).await.unwrap();
    let request = format!("GET {target} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all).await;
    assert!(all.starts_with(b"HTTP/1.1 200"));
    assert!(!all.ends_with(b"0\r\n\r\n"), "the last chunk never comes");
    assert!(all.len() > 100_000, "{}", all.len());
    let directory = |four: &[u8]| four == b"PK\x01\x02" || four == b"PK\x05\x06";
    assert!(!all.windows(4).any(directory), "whatever keeps the bytes has no archive");
    assert!(logs.text().contains("export broke off"), "{}", logs.text());
}

#[tokio::test]
async fn what_changes_between_the_check_and_the_archive_breaks_it_off() {
    let bench = Bench::new().await;
    let store: Arc<dyn SessionStore> = Arc::clone(&bench.test.store) as _;
    let exporter = Exporter::new(store, Some(Attachments::at(bench.images.path().to_owned())));
    let export = async |break_it: &dyn Fn()| {
        let plan = exporter.check(&id("root"), true, |_| {}).await.unwrap();
        break_it();
        let mut archive = exporter.archive(plan);
        let mut all = Vec::new();
        loop {
            match archive.next().await {
                Ok(Some(piece)) => {
                    assert!(piece.len() <= 64 << 10);
                    all.extend_from_slice(&piece);
                }
                Ok(None) => return Ok(all),
                Err(error) => {
                    assert!(archive.next().await.is_err(), "there is no more of it");
                    return Err((all, error.kind()));
                }
            }
        }
    };
    bench.test.add_made("root", &[shown("p", &json!([image("i", "image/png")]))]).await;
    bench.test.add(child("child", "root", 2), made(0, |at| at, &[prompt("q", "hi")])).await;
    bench.add_image("i.png", b"png");
    assert!(is_archive_elsewhere(&export(&|| {}).await.unwrap()));

    let failed = export(&|| fs::remove_file(bench.images.path().join("i.png")).unwrap()).await;
    let (all, kind) = failed.unwrap_err();
    assert_eq!(kind, "attachment_missing");
    assert!(!is_archive_elsewhere(&all));
    bench.add_image("i.png", b"png");

    let folder = bench.test.log("child").parent().unwrap().to_owned();
    let (_, kind) = export(&|| fs::remove_dir_all(&folder).unwrap()).await.unwrap_err();
    assert_eq!(kind, "not_found", "a descendant without a log");
}

#[tokio::test]
async fn what_is_appended_after_the_check_is_left_out() {
    let bench = Bench::new().await;
    bench.test.add_made("s", &[prompt("p", "one")]).await;
    let exporter = Exporter::new(Arc::clone(&bench.test.store) as _, None);
    let plan = exporter.check(&id("s"), false, |_| {}).await.unwrap();
    assert_eq!((plan.sessions(), plan.events(), plan.images()), (1, 1, 0));
    bench.test.append("s", made(1, |at| at, &[prompt("q", "two")])).await;
    let mut archive = exporter.archive(plan);
    let mut all = Vec::new();
    while let Some(piece) = archive.next().await.unwrap() {
        all.extend_from_slice(&piece);
    }
    assert_eq!(archive.done(), archive.plan().bytes());
    let log = String::from_utf8(entries(&all)[0].1.clone()).unwrap();
    assert_eq!(log.lines().count(), 2);
}

#[tokio::test]
async fn what_waits_to_be_stored_is_exported() {
    let bench = Bench::new().await;
    let never = Cancel::never();
    let store = &bench.test.store;
    let handle = store.create(header("live"), &never).await.unwrap();
    let event = made(0, |at| at, &[prompt("p", "just said")]).remove(0);
    assert_eq!(store.publish(&id("live"), event).await.unwrap(), Routed::ToWriter);
    let answer = bench.export("sessionId=live").await;
    let log = String::from_utf8(entries(&answer.bytes)[0].1.clone()).unwrap();
    assert!(log.contains("just said"), "{log}");
    handle.close().await.unwrap();
}

/// Bytes that do not get shorter when they are packed.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.take(length / 8).flatten().collect()
}

/// How far this process has read a file that it has open.
#[cfg(target_os = "linux")]
fn read_so_far(path: &Path) -> Option<u64> {
    let open = fs::read_dir("/proc/self/fd").unwrap().filter_map(Result::ok);
    let mut named = open.filter(|fd| fs::read_link(fd.path()).is_ok_and(|to| to == path));
    let fd = named.next()?.file_name();
    let info = fs::read_to_string(PathBuf::from("/proc/self/fdinfo").join(fd)).ok()?;
    info.lines().find_map(|line| line.strip_prefix("pos:"))?.trim().parse().ok()
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_stops_reading_stops_the_export_and_one_that_leaves_ends_it() {
    const LENGTH: usize = 48 << 20;
    let bench = Bench::new().await;
    bench.test.add_made("s", &[shown("p", &json!([image("i", "image/png")]))]).await;
    bench.add_image("i", &noise(LENGTH));
    let path = bench.images.path().join("i").canonicalize().unwrap();
    let mut client = TcpStream::connect(&bench.host.origin()["http://".len()..]).await.unwrap();
    let request = "GET /api/session.export?sessionId=s HTTP/1.1\r\nhost: localhost\r\n\r\n";
    client.write_all(request.as_bytes()).await.unwrap();
    client.read_exact(&mut [0; 1000]).await.unwrap();
    // Until the buffers between us are full.
    let mut before = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(150)).await;
        let now = read_so_far(&path).expect("it waits for the client");
        if now > 0 && now == before {
            break;
        }
        before = now;
    }
    assert!(before < LENGTH as u64, "it does not run ahead: {before}");
    drop(client);
    eventually("the export ends with its client", || read_so_far(&path).is_none()).await;
}

#[tokio::test]
async fn every_backend_exports_the_same_bytes_and_they_are_a_log() {
    let folder = tempfile::tempdir().unwrap();
    let root = |name: &str| folder.path().join(name);
    let jsonl = |name: &str, compression| {
        let options = JsonlOptions { compression, ..JsonlOptions::new(root(name)) };
        Arc::new(JsonlStore::open(options).unwrap()) as Arc<dyn SessionStore>
    };
    let sqlite = SqliteStore::open(SqliteOptions::new(root("db.sqlite"))).unwrap();
    let stores: [Arc<dyn SessionStore>; 4] = [
        jsonl("zstd", Compression::Zstd),
        jsonl("none", Compression::None),
        Arc::new(sqlite),
        Arc::new(MemoryStore::new(&Disk::new())),
    ];
    let never = Cancel::never();
    let mut archives = HashSet::new();
    for store in &stores {
        for name in ["subagent-fork-parent", "subagent-fork-child", "packed-chunks"] {
            let (mut header, events) = golden(name);
            if name == "packed-chunks" {
                header.parent_session = Some(golden("subagent-fork-parent").0.id.as_str().into());
            }
            let handle = store.create(header, &never).await.unwrap();
            handle.append(events, &never).await.unwrap();
            handle.close().await.unwrap();
        }
        let host = serve(Some(Arc::clone(store)), None).await;
        let parent = golden("subagent-fork-parent").0.id;
        let target = format!("/api/session.export?sessionId={parent}&includeDescendants=true");
        let answer = host.get(&target).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        archives.insert(answer.bytes);
    }
    assert_eq!(archives.len(), 1, "byte for byte");
    let archive = archives.into_iter().next().unwrap();
    assert_eq!(entries(&archive).len(), 3, "{:?}", names(&archive));

    // As a log among others.
    let first = entries(&archive).remove(0).1;
    let (header, events) = golden("subagent-fork-parent");
    let again = root("again");
    let project = header.cwd.as_ref().unwrap().trim_start_matches('/').replace('/', "-");
    let place = again.join(format!("--{project}--")).join(header.id.as_str());
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join("session.jsonl"), first).unwrap();
    let options = JsonlOptions { compression: Compression::None, ..JsonlOptions::new(again) };
    let store = JsonlStore::open(options).unwrap();
    let handle = store.open(&header.id, Access::Read, &never).await.unwrap();
    assert_eq!(handle.read(EventRange::ALL, &never).await.unwrap(), events);
    assert_eq!(handle.header(), &header);
}

#[tokio::test]
async fn a_session_without_events_is_its_header() {
    let bench = Bench::new().await;
    let handle = bench.test.store.create(header("empty"), &Cancel::never()).await.unwrap();
    let answer = bench.export("sessionId=empty").await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let expected = log_text(&header("empty"), &[]);
    assert_eq!(entries(&answer.bytes), [("session.jsonl".to_owned(), expected.into_bytes())]);
    handle.close().await.unwrap();
}

#[tokio::test]
async fn a_message_that_is_asked_for_by_itself_carries_its_images() {
    let bench = Bench::new().await;
    let content = json!([image("i", "image/png"), image("missing", "image/png")]);
    bench.test.add_made("s", &[shown("p", &content)]).await;
    bench.add_image("i.png", b"png");
    let message = bench.host.get("/api/session/s/message/p").await.json();
    assert_eq!(message["parts"][0]["url"], "data:image/png;base64,cG5n");
    assert_eq!(message["parts"][1].get("url"), None, "that one is not stored");
    let page = bench.host.page("s", 1, None).await;
    assert_eq!(page["records"][0]["parts"][0].get("url"), None, "pages leave URLs out");
}
