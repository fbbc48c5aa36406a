//! The server's life: start, kill, restart.

use std::{
    fmt, fs,
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::Stdio,
    sync::atomic::{AtomicU16, Ordering},
    thread,
    time::{Duration, Instant},
};

use tempfile::NamedTempFile;

use crate::{HarnessError, client::Client, home::Home, process::Tethered};

/// How long the model and the server may take to answer, on a machine busy with other tests.
const START: Duration = Duration::from_secs(90);

/// A request taken before the server's HTTP layer is ready is never answered, so each probe gets
/// a time-out of its own and the next one a new connection.
const PROBE: Duration = Duration::from_secs(1);

/// How a server is to be started. The default: no password, data that goes with the server.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Sets HTTP Basic authentication for each route; the user is [`USERNAME`](crate::USERNAME).
    pub password: Option<String>,
    /// A folder to keep the server's data in, made when it is missing. It outlives the server, so
    /// that another one can go on with it. Without one the data is removed in the end.
    pub data: Option<PathBuf>,
}

/// A running OpenCode server and its scripted model. Both end when this is dropped.
pub struct OpenCode {
    // Fields drop in this order: the server first, its folder last.
    server: Option<Tethered>,
    _model: Tethered,
    port: u16,
    base_url: String,
    password: Option<String>,
    client: Client,
    home: Home,
}

impl fmt::Debug for OpenCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenCode")
            .field("base_url", &self.base_url)
            .field("data", &self.home.root())
            .field("running", &self.server.is_some())
            .finish_non_exhaustive()
    }
}

impl OpenCode {
    /// Starts the model and the server and waits until both answer: 2 to 5 seconds.
    ///
    /// # Errors
    ///
    /// [`HarnessError::NotInstalled`] names the program that is missing and the script that
    /// installs it. [`HarnessError::Failed`] carries the end of the log when one of the two ends
    /// at once or does not answer in 90 seconds.
    pub async fn start(options: Options) -> Result<Self, HarnessError> {
        let home = Home::prepare(options.data)?;
        let (model, model_port) = start_model(&home).await?;
        home.configure(&format!("http://127.0.0.1:{model_port}"))?;
        let client = Client::new(options.password.clone())?;
        let mut this = Self {
            server: None,
            _model: model,
            port: 0,
            base_url: String::new(),
            password: options.password,
            client,
            home,
        };
        this.set_port(free_port()?);
        this.run().await?;
        Ok(this)
    }

    /// Where the server listens: `http://127.0.0.1:PORT`, without a slash at the end.
    #[must_use]
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// The password it was started with.
    #[must_use]
    pub fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// The folder that holds everything the server knows.
    #[must_use]
    pub fn data(&self) -> &Path {
        self.home.root()
    }

    /// The project folder its sessions work on.
    #[must_use]
    pub fn project(&self) -> PathBuf {
        self.home.project()
    }

    /// What the server printed so far, for a test that wants to show it.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.home.log("opencode.log")).unwrap_or_default()
    }

    /// Ends the server and the tools it runs with SIGKILL, as a crash or a power cut would, and
    /// waits until they are gone. Connections to it are refused from then on.
    pub fn kill(&mut self) {
        self.server = None;
        // A tool that was being started just then holds the listening socket a moment longer.
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let deadline = Instant::now() + PROBE * 10;
        while TcpStream::connect_timeout(&address, PROBE).is_ok() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Starts the server again, on the same data and the same port, and waits until it answers.
    /// A server that still runs is killed first.
    ///
    /// # Errors
    ///
    /// [`HarnessError::Failed`] as for [`start`](Self::start), also when another process took the
    /// port meanwhile.
    pub async fn restart(&mut self) -> Result<(), HarnessError> {
        self.kill();
        self.run().await
    }

    /// Runs `opencode ARGUMENTS` beside the server, on its data, and returns what it printed.
    ///
    /// # Errors
    ///
    /// [`HarnessError::Failed`] when the command ends with a failure.
    pub async fn run_cli(&self, arguments: &[&str]) -> Result<String, HarnessError> {
        // Into a file: the command cuts what it writes into a pipe at 128 KiB.
        let printed = self.home.scratch_file()?;
        let errors = self.home.scratch_file()?;
        let writer = |file: &NamedTempFile| {
            file.reopen().map_err(HarnessError::io("open a scratch file for OpenCode's output"))
        };
        let mut command = self.home.opencode();
        command.args(arguments).stdin(Stdio::null());
        command.stdout(writer(&printed)?).stderr(writer(&errors)?);
        let status = tokio::process::Command::from(command)
            .kill_on_drop(true)
            .status()
            .await
            .map_err(HarnessError::io("run the OpenCode command"))?;
        if !status.success() {
            return Err(failed("opencode", format!("ended with {status}"), errors.path()));
        }
        fs::read_to_string(printed.path()).map_err(HarnessError::io("read what OpenCode printed"))
    }

    pub(crate) fn client(&self) -> Result<&Client, HarnessError> {
        self.server.as_ref().map(|_| &self.client).ok_or(HarnessError::NotRunning)
    }

    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    fn set_port(&mut self, port: u16) {
        self.port = port;
        self.base_url = format!("http://127.0.0.1:{port}");
        self.client.set_base_url(&self.base_url);
    }

    async fn run(&mut self) -> Result<(), HarnessError> {
        let mut command = self.home.opencode();
        command.args(["serve", "--hostname", "127.0.0.1", "--port", &self.port.to_string()]);
        if let Some(password) = &self.password {
            command.env("OPENCODE_SERVER_PASSWORD", password);
        }
        let log = self.home.log("opencode.log");
        let printed_before = self.log().len();
        let mut server = Tethered::start_kept(&command, &log)
            .map_err(HarnessError::io("start the OpenCode server"))?;

        let deadline = Instant::now() + START;
        // Its own word first: another process that took the port would be healthy too.
        let listens = || self.log().get(printed_before..).unwrap_or_default().contains("listening");
        while !(listens() && self.client.healthy(PROBE).await) {
            if let Some(status) = server.ended() {
                return Err(failed("opencode serve", format!("ended with {status}"), &log));
            }
            if Instant::now() > deadline {
                return Err(failed("opencode serve", "does not answer".to_owned(), &log));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        self.server = Some(server);
        Ok(())
    }
}

/// The model picks its port itself and prints it.
async fn start_model(home: &Home) -> Result<(Tethered, u16), HarnessError> {
    let log = home.log("model.log");
    let _ = fs::remove_file(&log); // of an earlier server on the same data; absent is as good
    let mut model = Tethered::start(home.model(), &log)
        .map_err(HarnessError::io("start the scripted model"))?;
    let deadline = Instant::now() + START;
    loop {
        if let Some(port) = printed_port(&log) {
            return Ok((model, port));
        }
        if let Some(status) = model.ended() {
            return Err(failed("the scripted model", format!("ended with {status}"), &log));
        }
        if Instant::now() > deadline {
            return Err(failed("the scripted model", "does not listen".to_owned(), &log));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn printed_port(log: &Path) -> Option<u16> {
    let text = fs::read_to_string(log).ok()?;
    let line: serde_json::Value = serde_json::from_str(text.lines().next()?).ok()?;
    line.get("port")?.as_u64()?.try_into().ok()
}

/// A port nobody listens on. Not one of the system's choice: those also go to outgoing
/// connections, which could take it while the server is down.
fn free_port() -> Result<u16, HarnessError> {
    const FIRST: u16 = 20_000;
    const COUNT: u16 = 12_000;
    static TRIED: AtomicU16 = AtomicU16::new(0);
    // Test processes that run side by side start looking at different places.
    let offset = std::process::id().wrapping_mul(7919) % u32::from(COUNT);
    let offset = u16::try_from(offset).unwrap_or(0);
    let mut last = None;
    for _ in 0..COUNT {
        let step = TRIED.fetch_add(1, Ordering::Relaxed);
        let port = FIRST + (offset + step % COUNT) % COUNT;
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(_) => return Ok(port),
            Err(error) => last = Some(error),
        }
    }
    let source = last.unwrap_or_else(|| std::io::ErrorKind::AddrInUse.into());
    Err(HarnessError::Io { action: "find a free port".to_owned(), source })
}

fn failed(program: &'static str, problem: String, log: &Path) -> HarnessError {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let tail = lines.get(lines.len().saturating_sub(20)..).unwrap_or_default();
    HarnessError::Failed { program, problem, log: tail.join("\n") }
}
