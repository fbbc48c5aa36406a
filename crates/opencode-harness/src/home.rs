//! The folders and the environment a server runs in: nothing of the person's own shows through.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::{NamedTempFile, TempDir};

use crate::HarnessError;

const CONFIG: &str = include_str!("../../../tests/opencode/opencode.json");

/// Where a server keeps everything: its database, its configuration, the project it works on.
#[derive(Debug)]
pub(crate) struct Home {
    root: PathBuf,
    binary: PathBuf,
    /// Removes the folder in the end, when it is not the caller's.
    _temporary: Option<TempDir>,
}

impl Home {
    /// Lays the folders out in `data`, or in a temporary folder. What is there stays.
    pub(crate) fn prepare(data: Option<PathBuf>) -> Result<Self, HarnessError> {
        let binary = opencode_binary()?;
        require("node")?;
        require("git")?;
        require("rg")?; // without it the search tools try to download one

        let (root, temporary) = if let Some(root) = data {
            (root, None)
        } else {
            let temporary = tempfile::Builder::new()
                .prefix("turnkeep-opencode-")
                .tempdir()
                .map_err(HarnessError::io("make a temporary folder"))?;
            (temporary.path().to_owned(), Some(temporary))
        };
        for folder in ["home", "share", "config/opencode", "cache", "state", "tmp", "log"] {
            create_folder(&root.join(folder))?;
        }
        // Absolute and without symbolic links, as the server itself will see it.
        let root = fs::canonicalize(&root)
            .map_err(HarnessError::io(format!("resolve {}", root.display())))?;
        if root.to_str().is_none() {
            return Err(HarnessError::PathNotUtf8(root));
        }
        let home = Self { root, binary, _temporary: temporary };
        home.prepare_project()?;
        Ok(home)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The folder the sessions work on, a git repository.
    pub(crate) fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.root.join("log").join(name)
    }

    /// A file that is removed when it is dropped.
    pub(crate) fn scratch_file(&self) -> Result<NamedTempFile, HarnessError> {
        NamedTempFile::new_in(self.root.join("tmp"))
            .map_err(HarnessError::io("make a scratch file"))
    }

    /// Points the server's configuration to the model.
    pub(crate) fn configure(&self, model_url: &str) -> Result<(), HarnessError> {
        let file = self.root.join("config/opencode/opencode.json");
        fs::write(&file, CONFIG.replace("@MODEL_URL@", model_url))
            .map_err(HarnessError::io(format!("write {}", file.display())))
    }

    /// The scripted model, not started yet.
    pub(crate) fn model(&self) -> Command {
        let mut command = self.command("node");
        command.arg(repository().join("tests/opencode/model.mjs")).env("PROJECT", self.project());
        command
    }

    /// The OpenCode binary, not started yet.
    pub(crate) fn opencode(&self) -> Command {
        self.command(&self.binary)
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.project()).env_clear();
        command.env("PATH", env::var_os("PATH").unwrap_or_default());
        command.env("LANG", "C.UTF-8");
        for (name, folder) in [
            ("HOME", "home"),
            ("XDG_DATA_HOME", "share"),
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_CACHE_HOME", "cache"),
            ("XDG_STATE_HOME", "state"),
            ("TMPDIR", "tmp"), // a killed server leaves its unpacked libraries there
        ] {
            command.env(name, self.root.join(folder));
        }
        for switch in [
            "AUTOUPDATE",
            "CLAUDE_CODE",
            "DEFAULT_PLUGINS",
            "EXTERNAL_SKILLS",
            "LSP_DOWNLOAD",
            "MODELS_FETCH",
            "PROJECT_CONFIG",
            "SHARE",
        ] {
            command.env(format!("OPENCODE_DISABLE_{switch}"), "1");
        }
        command.env("OPENCODE_PURE", "1");
        // The server installs its plugin package in the background and has no switch for it: a
        // registry nobody listens on keeps it offline.
        command.env("npm_config_registry", "http://127.0.0.1:9/");
        command.env("npm_config_offline", "true");
        command.env("npm_config_fetch_retries", "0");
        command
    }

    fn prepare_project(&self) -> Result<(), HarnessError> {
        let project = self.project();
        if project.join(".git").exists() {
            return Ok(());
        }
        create_folder(&project.join("notes"))?;
        fs::write(project.join("README.md"), "# Notes\n\nA project for scripted turns.\n")
            .map_err(HarnessError::io("write the project's readme"))?;
        self.git(&["init", "--quiet", "--initial-branch=main"])?;
        self.git(&["add", "--all"])?;
        let author = ["-c", "user.name=Test", "-c", "user.email=test@example.com"];
        self.git(&[&author[..], &["commit", "--quiet", "--message=Start"]].concat())
    }

    fn git(&self, arguments: &[&str]) -> Result<(), HarnessError> {
        let output = self
            .command("git")
            .args(arguments)
            .output()
            .map_err(HarnessError::io("run git in the project folder"))?;
        if output.status.success() {
            return Ok(());
        }
        Err(HarnessError::Failed {
            program: "git",
            problem: format!("ended with {}", output.status),
            log: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }
}

fn create_folder(folder: &Path) -> Result<(), HarnessError> {
    fs::create_dir_all(folder).map_err(HarnessError::io(format!("make {}", folder.display())))
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// `$TURNKEEP_OPENCODE`, else the one that the setup script puts into the repository.
fn opencode_binary() -> Result<PathBuf, HarnessError> {
    let binary = env::var_os("TURNKEEP_OPENCODE")
        .map_or_else(|| repository().join(".tools/opencode"), PathBuf::from);
    fs::canonicalize(&binary).map_err(|_| HarnessError::NotInstalled {
        program: format!("the OpenCode binary {}", binary.display()),
    })
}

fn require(program: &str) -> Result<(), HarnessError> {
    let path = env::var_os("PATH").unwrap_or_default();
    if env::split_paths(&path).any(|folder| folder.join(program).is_file()) {
        return Ok(());
    }
    Err(HarnessError::NotInstalled { program: program.to_owned() })
}
