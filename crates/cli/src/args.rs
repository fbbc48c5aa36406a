//! The command line.

#![expect(clippy::doc_markdown, reason = "the comments are the help texts, which are not Markdown")]

use std::{num::NonZeroUsize, path::PathBuf};

use clap::{ArgAction, Args, Parser, Subcommand};
use clap_complete::Shell;

/// Keeps a coding agent's session logs, and shows them turn by turn.
#[derive(Debug, Parser)]
#[command(name = "turnkeep", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// What applies to every command.
    #[command(flatten)]
    pub(crate) global: Global,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What applies to every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Where the sessions are: a directory of session logs, sqlite:FILE, or memory:
    /// [default: $TURNKEEP_STORE, else $XDG_DATA_HOME/turnkeep/sessions]
    #[arg(long, global = true, value_name = "STORE")]
    pub(crate) store: Option<String>,
    /// The encoding of a new directory: zstd or none. One that exists keeps the one it has
    #[arg(long, global = true, value_name = "ENCODING", value_parser = ["zstd", "none"])]
    pub(crate) compression: Option<String>,
    /// The configuration file [default: $XDG_CONFIG_HOME/turnkeep/turnkeep.toml, when it exists]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON, errors included
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say more on standard error; twice for still more
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve a temporary store filled with bundled sessions, to look around in
    Demo(DemoArgs),
    /// Serve the store, and an OpenCode server behind it, over HTTP
    Serve(ServeArgs),
    /// List the sessions: id, updated, events, size, state, title
    Ls(LsArgs),
    /// Show the last turns of a session
    Show(ShowArgs),
    /// Print a session's events, one JSON object a line
    Events(EventsArgs),
    /// Append events from standard input, one JSON object a line, and print the next seq
    ///
    /// A line is an event such as {"type":"todo/write","data":{"todos":[]}}. `seq` and `time` are
    /// filled in where they are missing. What stands before a line that is refused is stored.
    Append(AppendArgs),
    /// Close the turn that an interrupted session was left in, and print what that took
    ///
    /// The events are printed one JSON object a line. A session without an open turn stays as it is.
    Resume {
        /// The session
        id: String,
    },
    /// Move sessions to the trash
    ///
    /// Nobody may be writing to them. `turnkeep trash --restore ID` undoes it.
    Rm(RmArgs),
    /// List what is in the trash, put it back, or empty it
    Trash(TrashArgs),
    /// Say what the machine, the store and the upstream look like, and what to do about it
    ///
    /// Ends with exit code 1 when something needs doing. Nothing in the store is changed.
    Doctor(DoctorArgs),
    /// Write a session, and the images it shows, to a ZIP archive
    ///
    /// To the file that is named, else to standard output when that is no terminal. The archive is
    /// complete, or there is none.
    Export(ExportArgs),
    /// Prove sessions intact, or say what is lost of them
    ///
    /// Reads every log to its end, whatever is wrong with it, and changes nothing. Exit code 0 only
    /// when all are intact; 1 when one is not, be it only that its last append never ended.
    Verify(VerifyArgs),
    /// Save what is left of a damaged session into a new one
    ///
    /// The damaged log stays as it is. Saved are the events that follow each other from the first
    /// on, with whole records out of a torn end; never any behind a hole.
    Recover(RecoverArgs),
    /// Make, list and revoke API tokens for the programs that use a host
    ///
    /// A host asks for them when it has a password, listens on an address that other machines can
    /// reach, or was given a token_file. A running one notices every change at once.
    Token(TokenArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// How to run the demo.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// The address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7420")]
    pub(crate) listen: String,
    /// Open a browser
    #[arg(long)]
    pub(crate) open: bool,
}

/// How to serve.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The address to listen on [default: 127.0.0.1:7420]; port 0 takes a free one
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// The OpenCode server to stand in front of, such as http://127.0.0.1:4096
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: Option<String>,
    /// A file of base64 keys, one a line, that continuations are signed with (the first key) and
    /// believed by (any key), so that they outlive this process
    #[arg(long, value_name = "FILE")]
    pub(crate) continuation_key_file: Option<PathBuf>,
    /// A browser origin that may call besides our own; may be repeated
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) allow_origin: Vec<String>,
    /// A file, readable for its owner only, whose first line is the password, or its argon2id hash
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    /// A PEM file with the certificate to serve HTTPS with
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// A PEM file with its private key
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// The network of a reverse proxy whose X-Forwarded-For is believed, such as 10.0.0.0/8; may be
    /// repeated
    #[arg(long, value_name = "CIDR")]
    pub(crate) trusted_proxy: Vec<String>,
}

/// Which sessions to list.
#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    /// Only sessions of this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Only sessions in this state; may be repeated
    #[arg(long, value_name = "STATE", value_parser = ["ok", "damaged", "newer", "foreign"])]
    pub(crate) state: Vec<String>,
    /// At most this many
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<NonZeroUsize>,
}

/// Which turns to show.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The session
    pub(crate) id: String,
    /// How many turns, 1 to 10
    #[arg(long, value_name = "N", default_value = "3")]
    pub(crate) turns: String,
    /// Show the turns before this cursor, which an earlier page ended with
    #[arg(long, value_name = "CURSOR")]
    pub(crate) before: Option<String>,
    /// Go on showing what is added, each message once it is complete
    #[arg(long, conflicts_with = "before")]
    pub(crate) follow: bool,
    /// The OpenCode server to ask for sessions that the store does not hold
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: Option<String>,
}

/// Which events to print.
#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// The session
    pub(crate) id: String,
    /// The first event, by seq
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) offset: u64,
    /// At most this many
    #[arg(long, value_name = "N")]
    pub(crate) length: Option<u64>,
    /// Go on printing what is appended
    #[arg(long, conflicts_with = "length")]
    pub(crate) follow: bool,
}

/// What to export.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The session
    pub(crate) id: String,
    /// The file to make, which must not exist yet
    #[arg(short, long, value_name = "FILE.zip")]
    pub(crate) output: Option<PathBuf>,
    /// With the sessions that were forked from it, those forked from these, and so on
    #[arg(long)]
    pub(crate) descendants: bool,
}

/// What to append to.
#[derive(Debug, Args)]
pub(crate) struct AppendArgs {
    /// The session
    pub(crate) id: String,
    /// Create the session when it does not exist
    #[arg(long)]
    pub(crate) create: bool,
    /// The directory a created session works in [default: the current one]
    #[arg(long, value_name = "DIR", requires = "create")]
    pub(crate) cwd: Option<PathBuf>,
    /// Store events of unknown types too. Readers that do not know them will refuse the session,
    /// this one included: rather mark such events "ignorable":true, or name their types in the
    /// `vocabulary` setting
    #[arg(long)]
    pub(crate) allow_unknown: bool,
    /// Store a batch whenever this many events have come [default: what comes within 200 ms]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) batch: Option<u32>,
}

/// What to delete.
#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    /// The sessions
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
}

/// What to do with the trash.
#[derive(Debug, Args)]
pub(crate) struct TrashArgs {
    /// Remove what is in the trash for good
    #[arg(long, conflicts_with = "restore")]
    pub(crate) empty: bool,
    /// Only what was deleted at least this many days ago
    #[arg(long, value_name = "DAYS", requires = "empty")]
    pub(crate) older_than: Option<u32>,
    /// Put a session back, as it was when it was deleted last
    #[arg(long, value_name = "ID")]
    pub(crate) restore: Option<String>,
    /// As it was when it was deleted at this time, which `--json` lists as deletedAt
    #[arg(long, value_name = "MS", requires = "restore")]
    pub(crate) deleted_at: Option<i64>,
}

/// What to look at.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// The OpenCode server to look at, such as http://127.0.0.1:4096
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: Option<String>,
}

/// What to verify.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The sessions
    #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    pub(crate) ids: Vec<String>,
    /// Every session there is, those that cannot be opened included
    #[arg(long)]
    pub(crate) all: bool,
}

/// What to save, and where to.
#[derive(Debug, Args)]
pub(crate) struct RecoverArgs {
    /// The damaged session
    pub(crate) id: String,
    /// The id of the new session
    #[arg(long, value_name = "NEWID")]
    pub(crate) into: String,
    /// Which writer to keep where two went on from the same event: first or last
    #[arg(long, value_name = "BRANCH", value_parser = ["first", "last"])]
    pub(crate) branch: Option<String>,
    /// The directory the session worked in, when its header is lost
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
}

/// What to do with API tokens.
#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: TokenCommand,
}

/// What to do with API tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token and print it, this once
    Create {
        /// What to call it, to know it again by
        name: String,
        /// What it allows: to read; to write as well; everything, terminals included
        #[arg(long, value_name = "SCOPE", default_value = "read", value_parser = ["read", "write", "admin"])]
        scope: String,
        /// It ends after this many days [default: when it is revoked]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=36500))]
        days: Option<u32>,
    },
    /// List the tokens: name, scope, created, expires, state
    Ls,
    /// End a token; what it has open ends with it
    Revoke {
        /// The token
        name: String,
    },
}
