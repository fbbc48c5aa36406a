//! `turnkeep demo`: a store to look around in.

use std::{process::Command, sync::Arc};

use jiff::Timestamp;
use serde_json::json;
use tempfile::TempDir;
use turnkeep_store::{
    SessionStore,
    jsonl::{JsonlOptions, JsonlStore},
};

use crate::{
    args::DemoArgs,
    commands::serve::{listening, serve},
    config::Settings,
    context::Context,
    demo,
    failure::Failure,
};

/// Fills a temporary store with the bundled sessions and serves it. The store goes when the
/// command ends.
pub(crate) async fn run(args: DemoArgs, context: &Context) -> Result<(), Failure> {
    let folder = TempDir::with_prefix("turnkeep-demo-")
        .map_err(|error| Failure::io("cannot make a temporary folder", &error))?;
    let root = folder.path().join("sessions");
    let attachments = folder.path().join("attachments");
    let store = JsonlStore::open(JsonlOptions::new(&root))?;
    let store: Arc<dyn SessionStore> = Arc::new(store);
    let settings = Settings {
        listen: Some(args.listen),
        store: Some(root.display().to_string()),
        attachments: Some(attachments.clone()),
        ..Settings::default()
    };
    let host = listening(Arc::clone(&store), &settings)?;
    // Taking the address first: a demo that cannot be served need not be written.
    let listener = host.bind().await?;
    let count = demo::fill(store.as_ref(), &attachments, Timestamp::now().as_millisecond()).await?;
    serve(host, listener, &settings, |address| {
        let url = format!("http://{address}");
        if context.json {
            println!("{}", json!({"url": url, "sessions": count, "store": root}));
        } else {
            println!("turnkeep demo: {url}");
            println!("{count} sessions in {}; Ctrl-C ends it and removes them", root.display());
        }
        if args.open {
            open_browser(&url);
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
