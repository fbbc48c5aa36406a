//! A real OpenCode server for tests: offline, isolated, and gone when the test is.
//!
//! [`OpenCode::start`] runs the pinned `opencode serve` binary and a scripted language model on
//! free loopback ports, in a home folder of their own, and waits until the server answers. From
//! there a test talks to [`OpenCode::base_url`] as any client would, or uses the few calls here:
//! make a session, run a turn, read the whole list, kill the server the hard way and start it
//! again on the same data.
//!
//! What a turn does is written in the prompt, as directives that `tests/opencode/model.mjs` lists:
//! `"Tidy up. #steps=3 #tools=read,bash #reason"`. Sessions too long to be played are built by
//! [`LongSession`] and brought in through `opencode import`.
//!
//! ```no_run
//! # async fn example() -> Result<(), turnkeep_test_opencode::HarnessError> {
//! use turnkeep_test_opencode::{OpenCode, Options};
//!
//! let mut server = OpenCode::start(Options::default()).await?;
//! let session = server.create_session().await?;
//! server.prompt(&session, "Tidy up the notes. #steps=3").await?;
//! server.kill();
//! server.restart().await?;
//! assert!(server.full_list(&session).await?.contains("Tidy up the notes"));
//! # Ok(())
//! # }
//! ```
//!
//! No process outlives the test, however that ends: the children live by a pipe that only the test
//! process holds open.

mod client;
mod error;
mod home;
mod long_session;
mod process;
mod server;

pub use client::Reply;
pub use error::HarnessError;
pub use long_session::LongSession;
pub use server::{OpenCode, Options};

/// The user name OpenCode expects beside a password unless it is told another.
pub const USERNAME: &str = "opencode";
