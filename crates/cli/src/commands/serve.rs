//! `turnkeep serve`: the host, until it is told to stop.

use std::{fs, path::Path, sync::Arc};

use tokio::net::TcpListener;
use turnkeep_host::{Host, HostOptions, UpstreamOptions};
use turnkeep_store::SessionStore;

use crate::{
    args::ServeArgs, config::Settings, context::Context, failure::Failure, output::interrupted,
    store,
};

/// Where the host listens when nothing is said.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:7420";

/// Serves the store, and the upstream behind it.
pub async fn run(args: ServeArgs, context: &Context) -> Result<(), Failure> {
    let mut settings = context.settings.clone();
    settings.listen = args.listen.or(settings.listen);
    settings.upstream = args.upstream.or(settings.upstream);
    settings.allow_origin.get_or_insert_default().extend(args.allow_origin);
    let store = store::open(&settings)?;
    let host = host(Some(store), &settings)?;
    let listen = settings.listen.as_deref().unwrap_or(DEFAULT_LISTEN);
    let listener = bind(&host, listen).await?;
    serve(host, listener, |address| eprintln!("turnkeep: serving at http://{address}")).await
}

/// A host with these settings.
pub fn host(
    store: Option<Arc<dyn SessionStore>>,
    settings: &Settings,
) -> Result<Host, Failure> {
    let upstream = settings.upstream.as_deref().map(|url| upstream(url, settings)).transpose()?;
    let options = HostOptions {
        store,
        upstream,
        scan_limit: settings.scan_limit.map(usize::from),
        allow_origin: settings.allow_origin.clone().unwrap_or_default(),
    };
    Host::new(options).map_err(Failure::usage)
}

fn upstream(url: &str, settings: &Settings) -> Result<UpstreamOptions, Failure> {
    let from_environment = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let password = match &settings.upstream_password_file {
        Some(path) => Some(first_line(path)?),
        None => from_environment("OPENCODE_SERVER_PASSWORD"),
    };
    let username = settings
        .upstream_username
        .clone()
        .or_else(|| from_environment("OPENCODE_SERVER_USERNAME"));
    Ok(UpstreamOptions { url: url.to_owned(), username, password })
}

fn first_line(path: &Path) -> Result<String, Failure> {
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(line.to_owned()),
        _ => Err(Failure::usage(format!("{} has no password in its first line", path.display()))),
    }
}

/// Takes the address, once the host agrees to be served there.
pub async fn bind(host: &Host, listen: &str) -> Result<TcpListener, Failure> {
    host.check_listen(listen).map_err(Failure::usage)?;
    TcpListener::bind(listen).await.map_err(|error| {
        Failure::io(
            format!("cannot listen on {listen}; is another host running there? (--listen ADDR takes another address)"),
            &error,
        )
    })
}

/// Serves until the process is told to stop.
pub async fn serve(
    host: Host,
    listener: TcpListener,
    ready: impl FnOnce(std::net::SocketAddr),
) -> Result<(), Failure> {
    let address = listener
        .local_addr()
        .map_err(|error| Failure::io("cannot tell the address", &error))?;
    ready(address);
    let stop = async {
        if let Err(failure) = interrupted().await {
            tracing::error!(kind = failure.kind(), "signals cannot be waited for; stopping");
        }
    };
    host.serve(listener, stop).await.map_err(|error| Failure::io("the host stopped", &error))
}
