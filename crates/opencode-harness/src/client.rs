//! The few requests a test makes to get a session into shape.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use crate::{HarnessError, OpenCode, USERNAME};

/// Longer than any scripted turn, shorter than a test's own limit.
const TURN: Duration = Duration::from_secs(120);

/// Between two looks at the status of a session.
const POLL: Duration = Duration::from_millis(20);

/// An answer as it came, whatever its status.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// Header names in lower case, in the order they came.
    pub headers: Vec<(String, String)>,
    /// The body; bytes that are not UTF-8 become U+FFFD.
    pub body: String,
}

impl Reply {
    /// The first header of this name, written in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(have, _)| have == name).map(|(_, value)| value.as_str())
    }
}

pub(crate) struct Client {
    http: reqwest::Client,
    base_url: String,
    password: Option<String>,
}

impl Client {
    pub(crate) fn new(password: Option<String>) -> Result<Self, HarnessError> {
        // No idle connections: one that was open when the server was killed would fail the first
        // request after the restart. No proxy: the server is on loopback.
        let http =
            reqwest::Client::builder().pool_max_idle_per_host(0).no_proxy().build().map_err(
                |source| HarnessError::NoAnswer { request: "anything".to_owned(), source },
            )?;
        Ok(Self { http, base_url: String::new(), password })
    }

    pub(crate) fn set_base_url(&mut self, base_url: &str) {
        base_url.clone_into(&mut self.base_url);
    }

    pub(crate) async fn healthy(&self, within: Duration) -> bool {
        self.send(Method::GET, "/global/health", None, within)
            .await
            .is_ok_and(|reply| reply.status == 200 && reply.body.contains("\"healthy\":true"))
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
        within: Duration,
    ) -> Result<Reply, HarnessError> {
        let name = format!("{method} {path}");
        let no_answer = |source| HarnessError::NoAnswer { request: name.clone(), source };
        let mut request =
            self.http.request(method, format!("{}{path}", self.base_url)).timeout(within);
        if let Some(password) = &self.password {
            request = request.basic_auth(USERNAME, Some(password));
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body);
        }
        let response = request.send().await.map_err(no_answer)?;
        let status = response.status().as_u16();
        let headers = response
            .headers()
            .iter()
            .map(|(name, value)| {
                (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
            })
            .collect();
        let bytes = response.bytes().await.map_err(no_answer)?;
        Ok(Reply { status, headers, body: String::from_utf8_lossy(&bytes).into_owned() })
    }
}

impl OpenCode {
    /// `GET PATH`, with the password when there is one.
    ///
    /// # Errors
    ///
    /// [`HarnessError::NoAnswer`] after two minutes or a lost connection. Any status is an answer.
    pub async fn get(&self, path: &str) -> Result<Reply, HarnessError> {
        self.client()?.send(Method::GET, path, None, TURN).await
    }

    /// `POST PATH` with a JSON text as its body.
    ///
    /// # Errors
    ///
    /// As for [`get`](Self::get).
    pub async fn post(&self, path: &str, body: &str) -> Result<Reply, HarnessError> {
        self.client()?.send(Method::POST, path, Some(body.to_owned()), TURN).await
    }

    /// Makes an empty session and returns its id.
    ///
    /// # Errors
    ///
    /// [`HarnessError::Refused`] when the server does not answer with a session.
    pub async fn create_session(&self) -> Result<String, HarnessError> {
        let body = self.post_ok("/session", "{}").await?;
        match field(&body, "/id") {
            Some(id) => Ok(id),
            None => Err(refused("POST /session", 200, body)),
        }
    }

    /// Sends a prompt, waits for the whole turn, and returns the JSON text of its last message.
    ///
    /// # Errors
    ///
    /// [`HarnessError::Refused`] for a status other than 2xx. A turn that failed or was aborted is
    /// a success here, as it is for the server: look for `info.error`.
    pub async fn prompt(&self, session: &str, text: &str) -> Result<String, HarnessError> {
        self.post_ok(&format!("/session/{session}/message"), &prompt_body(text)).await
    }

    /// Sends a prompt and returns once the turn runs, so that a test can look at it, stop it with
    /// [`abort`](Self::abort) or wait with [`wait_until_idle`](Self::wait_until_idle). A turn too
    /// short to be seen running (no `#slow`, no steps) costs five seconds here.
    ///
    /// # Errors
    ///
    /// [`HarnessError::Refused`] for a status other than 2xx.
    pub async fn prompt_async(&self, session: &str, text: &str) -> Result<(), HarnessError> {
        let path = format!("/session/{session}/prompt_async");
        self.post_ok(&path, &prompt_body(text)).await?;
        let deadline = Instant::now() + Duration::from_secs(5);
        while !self.runs(session).await? && Instant::now() < deadline {
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    /// Stops the turn that runs in a session.
    ///
    /// # Errors
    ///
    /// [`HarnessError::Refused`] for a status other than 2xx.
    pub async fn abort(&self, session: &str) -> Result<(), HarnessError> {
        self.post_ok(&format!("/session/{session}/abort"), "{}").await.map(drop)
    }

    /// Waits until the server names no turn of the session as running, two minutes at most.
    ///
    /// # Errors
    ///
    /// [`HarnessError::StillRunning`] when the turn still runs then.
    pub async fn wait_until_idle(&self, session: &str) -> Result<(), HarnessError> {
        let deadline = Instant::now() + TURN;
        while self.runs(session).await? {
            if Instant::now() > deadline {
                return Err(HarnessError::StillRunning { session: session.to_owned() });
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    /// The status list names running sessions only.
    async fn runs(&self, session: &str) -> Result<bool, HarnessError> {
        Ok(self.get_ok("/session/status").await?.contains(session))
    }

    /// All messages of a session: the JSON text `[{info, parts}]`, oldest first.
    ///
    /// # Errors
    ///
    /// [`HarnessError::Refused`] for a status other than 2xx.
    pub async fn full_list(&self, session: &str) -> Result<String, HarnessError> {
        self.get_ok(&format!("/session/{session}/message")).await
    }

    /// Brings a session in through `opencode import` and returns its id. `export` is the JSON text
    /// that `opencode export` writes or [`LongSession`](crate::LongSession) makes. The running
    /// server serves it at once; its event streams say nothing of it.
    ///
    /// # Errors
    ///
    /// [`HarnessError::Failed`] when the command refuses the text.
    pub async fn import(&self, export: &str) -> Result<String, HarnessError> {
        let Some(id) = field(export, "/info/id") else {
            return Err(HarnessError::Failed {
                program: "opencode import",
                problem: "needs an export with an info.id".to_owned(),
                log: export.chars().take(200).collect(),
            });
        };
        let file = self.home().scratch_file()?;
        std::fs::write(file.path(), export).map_err(HarnessError::io("write the export"))?;
        self.run_cli(&["import", &file.path().to_string_lossy()]).await?;
        Ok(id)
    }

    async fn get_ok(&self, path: &str) -> Result<String, HarnessError> {
        accepted("GET", path, self.get(path).await?)
    }

    async fn post_ok(&self, path: &str, body: &str) -> Result<String, HarnessError> {
        accepted("POST", path, self.post(path, body).await?)
    }
}

fn accepted(method: &str, path: &str, reply: Reply) -> Result<String, HarnessError> {
    if (200..300).contains(&reply.status) {
        return Ok(reply.body);
    }
    Err(refused(&format!("{method} {path}"), reply.status, reply.body))
}

fn refused(request: &str, status: u16, body: String) -> HarnessError {
    HarnessError::Refused { request: request.to_owned(), status, body }
}

fn prompt_body(text: &str) -> String {
    json!({ "parts": [{ "type": "text", "text": text }] }).to_string()
}

fn field(json: &str, pointer: &str) -> Option<String> {
    let value: Value = serde_json::from_str(json).ok()?;
    value.pointer(pointer)?.as_str().map(str::to_owned)
}
