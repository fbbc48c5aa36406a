//! Runs the test server for a person: `cargo run -p turnkeep-test-opencode`.
//!
//! Prints where it listens and where its data is, and runs until it is interrupted.

use std::{env, error::Error};

use turnkeep_test_opencode::{OpenCode, Options};

const USAGE: &str = "usage: turnkeep-test-opencode [--data FOLDER] [--password PASSWORD]";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut options = Options::default();
    let mut arguments = env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or(USAGE)?;
        match name.as_str() {
            "--data" => options.data = Some(value.into()),
            "--password" => options.password = Some(value),
            _ => return Err(USAGE.into()),
        }
    }
    let server = OpenCode::start(options).await?;
    println!("{}", server.base_url());
    println!("data in {}", server.data().display());
    tokio::signal::ctrl_c().await?;
    Ok(())
}
