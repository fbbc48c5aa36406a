//! `turnkeep demo`: a store to look around in.

use std::{process::Command, sync::Arc};

use jiff::Timestamp;
use tempfile::TempDir;
use turnkeep_store::{Compression, JsonlOptions, JsonlStore};

use crate::{
    args::DemoArgs,
    commands::serve::{bind, host, serve},
    config::Settings,
    context::Context,
    demo,
    failure::Failure,
};

/// Fills a temporary store with the bundled sessions and serves it. The store goes when the
/// command ends.
pub async fn run(args: DemoArgs, _context: &Context) -> Result<(), Failure> {
    let folder = TempDir::with_prefix("turnkeep-demo-")
        .map_err(|error| Failure::io("cannot make a temporary folder", &error))?;
    let root = folder.path().join("sessions");
    let options = JsonlOptions { compression: Compression::Zstd, ..JsonlOptions::new(root) };
    let store = JsonlStore::open(options).map_err(|error| Failure::new(error.kind(), &error))?;
    // Taking the address first: a demo that cannot be served need not be written.
    let store = Arc::new(store);
    let host = host(Some(store.clone()), &Settings::default())?;
    let listener = bind(&host, &args.listen).await?;
    demo::fill(store.as_ref(), Timestamp::now().as_millisecond()).await?;
    serve(host, listener, |address| {
        println!("turnkeep demo: http://{address}");
        println!("ten sessions in {}; Ctrl-C ends it and removes them", folder.path().display());
        if args.open {
            open_browser(&format!("http://{address}"));
        }
    })
    .await
}

fn open_browser(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    if let Err(error) = Command::new(program).arg(url).spawn() {
        eprintln!("turnkeep: cannot open a browser with {program}: {error}; the address is {url}");
    }
}
