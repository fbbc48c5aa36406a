//! `serve` as a service manager meets it: ready, asked to stop, gone.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on says where"
)]

mod support;

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::net::UnixDatagram,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread::{self, JoinHandle},
};

use serde_json::Value;
use support::{Bench, PATIENCE, eventually, get, signal, turn};

/// A server that logs JSON, and what it has logged.
struct Serving {
    child: Child,
    address: String,
    log: JoinHandle<Vec<Value>>,
}

impl Serving {
    fn start(mut command: Command) -> Self {
        let command = command.args(["--listen", "127.0.0.1:0"]).env("TURNKEEP_LOG_FORMAT", "json");
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (found, address) = mpsc::channel();
        let log = thread::spawn(move || {
            let mut lines = Vec::new();
            for line in stderr.lines() {
                let line = line.unwrap();
                let json: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
                if json["fields"]["message"] == "serving" {
                    let address = json["fields"]["address"].as_str().unwrap().to_owned();
                    found.send(address).unwrap();
                }
                lines.push(json);
            }
            lines
        });
        let address = address.recv_timeout(PATIENCE).expect("it says where it serves");
        Self { child, address, log }
    }

    /// Waits for the end; the exit code, and every line.
    fn end(mut self) -> (Option<i32>, Vec<Value>) {
        let status = self.child.wait().unwrap();
        (status.code(), self.log.join().unwrap())
    }
}

/// An upstream that is asked for messages, and answers only when it is told to.
struct HeldUpstream {
    url: String,
    asked: mpsc::Receiver<()>,
    answer: mpsc::Sender<()>,
}

impl HeldUpstream {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (tell, asked) = mpsc::channel();
        let (answer, told) = mpsc::channel::<()>();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.unwrap());
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    if stream.read_line(&mut head).unwrap_or(0) == 0 {
                        break;
                    }
                }
                let body = if head.contains("/session/ses_1/message") {
                    tell.send(()).unwrap();
                    if told.recv().is_err() {
                        return;
                    }
                    let user = r#""id":"msg_1","sessionID":"ses_1","role":"user""#;
                    format!(r#"[{{"info":{{{user},"time":{{"created":1}}}},"parts":[]}}]"#)
                } else if head.contains("/global/health") {
                    r#"{"healthy":true}"#.to_owned()
                } else {
                    "{}".to_owned()
                };
                let status = if head.contains("/global/event") || head.contains("/event") {
                    "503 Service Unavailable"
                } else {
                    "200 OK"
                };
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n\
                     content-length: {length}\r\nconnection: close\r\n\r\n"
                );
                let _ = stream.get_mut().write_all((head + &body).as_bytes());
            }
        });
        Self { url, asked, answer }
    }
}

const PAGE: &str = "/api/openchamber/sessions/ses_1/messages";

#[test]
fn what_is_under_way_is_answered_and_nothing_new_is_taken() {
    let bench = Bench::new();
    let upstream = HeldUpstream::start();
    let server = Serving::start(bench.command(&["serve", "--upstream", &upstream.url]));
    let address = server.address.clone();
    let client = thread::spawn(move || get(&address, PAGE));
    upstream.asked.recv_timeout(PATIENCE).unwrap();
    signal(&server.child, "-TERM");
    eventually("nobody listens", || TcpStream::connect(&server.address).is_err());
    assert!(!client.is_finished());
    upstream.answer.send(()).unwrap();
    let (status, _, body) = client.join().unwrap();
    assert_eq!(status, 200, "{body}");
    assert!(body.contains("msg_1"), "{body}");
    let (code, log) = server.end();
    assert_eq!(code, Some(0));
    let told: Vec<_> = log.iter().filter_map(|line| line["fields"]["message"].as_str()).collect();
    assert_eq!(told.last(), Some(&"stopped"), "{told:?}");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let bench = Bench::new();
    let upstream = HeldUpstream::start();
    let server = Serving::start(bench.command(&["serve", "--upstream", &upstream.url]));
    let address = server.address.clone();
    let client = thread::spawn(move || {
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(stream, "GET {PAGE} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    });
    upstream.asked.recv_timeout(PATIENCE).unwrap();
    signal(&server.child, "-TERM");
    eventually("nobody listens", || TcpStream::connect(&server.address).is_err());
    // The second one may come before it is listened for; it is asked for until it is heard.
    let mut child = server.child;
    eventually("it ends", || {
        signal(&child, "-INT");
        child.try_wait().unwrap().is_some()
    });
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(client.join().unwrap(), b"", "what was under way is broken off");
    drop(upstream.answer);
}

#[test]
fn a_service_manager_is_told() {
    let bench = Bench::new();
    let path = bench.root().with_file_name("notify");
    let mut sockets = vec![(path.display().to_string(), UnixDatagram::bind(&path).unwrap())];
    #[cfg(target_os = "linux")]
    {
        use std::os::{linux::net::SocketAddrExt as _, unix::net::SocketAddr};
        let name = format!("turnkeep-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        sockets.push((format!("@{name}"), UnixDatagram::bind_addr(&address).unwrap()));
    }
    for (name, socket) in sockets {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let heard = || {
            let mut bytes = [0; 64];
            let length = socket.recv(&mut bytes).unwrap();
            String::from_utf8(bytes.get(..length).unwrap().to_vec()).unwrap()
        };
        let mut command = bench.command(&["serve"]);
        command.env("NOTIFY_SOCKET", &name);
        let server = Serving::start(command);
        assert_eq!(heard(), "READY=1");
        assert_eq!(get(&server.address, "/health").0, 200);
        signal(&server.child, "-TERM");
        assert_eq!(heard(), "STOPPING=1");
        assert_eq!(server.end().0, Some(0));
    }
    // One that is not there does not keep anybody from serving.
    let mut command = bench.command(&["serve"]);
    command.env("NOTIFY_SOCKET", bench.root().with_file_name("nobody"));
    let server = Serving::start(command);
    signal(&server.child, "-INT");
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn every_line_of_the_log_is_json_and_names_the_request() {
    let bench = Bench::new();
    bench.run_with_input(&["append", "kept", "--create"], turn(1, "q", "a").as_bytes());
    let server = Serving::start(bench.command(&["serve"]));
    let page = "/api/openchamber/sessions/kept/messages";
    let (status, head, _) = get(&server.address, page);
    assert_eq!(status, 200);
    let id = head.lines().find_map(|line| line.strip_prefix("x-request-id: ")).unwrap().to_owned();
    assert!(id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    assert_eq!(get(&server.address, &format!("{page}?before=canary-4711")).0, 400);
    assert_eq!(get(&server.address, "/canary-4711").0, 404);
    assert_eq!(get(&server.address, "/health").0, 200);
    signal(&server.child, "-TERM");
    let (code, log) = server.end();
    assert_eq!(code, Some(0));

    for line in &log {
        assert!(line["timestamp"].is_string() && line["level"].is_string(), "{line}");
        assert!(!line.to_string().contains("canary-4711"), "{line}");
        assert!(!line.to_string().contains(bench.root().to_str().unwrap()), "{line}");
    }
    let of = |message: &str| -> Vec<&Value> {
        let lines = log.iter().filter(|line| line["fields"]["message"] == message);
        lines.map(|line| &line["fields"]).collect()
    };
    let serving = of("serving");
    assert_eq!(serving.len(), 1);
    assert_eq!(serving[0]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(serving[0]["store"], "directory");
    assert_eq!((of("stopped").len(), &of("stopped")[0]["flushed"]), (1, &Value::Bool(true)));
    let requests = of("request");
    // The two of the session and the stray path; a check of health is a detail, and so are assets.
    assert_eq!(requests.len(), 2, "{requests:#?}");
    assert_eq!(requests[0]["request"], id.as_str());
    assert_eq!(requests[0]["status"], 200);
    assert_eq!(requests[0]["route"], "turn_page");
    assert_eq!(requests[0]["source"], "store");
    assert_eq!(
        (&requests[1]["status"], &requests[1]["kind"]),
        (&400.into(), &"invalid_cursor".into())
    );
}
