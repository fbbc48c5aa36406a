//! `turnkeep serve`: the host, until it is told to stop.

use std::{
    fs,
    net::{IpAddr, SocketAddr, ToSocketAddrs as _},
    path::Path,
    sync::Arc,
    time::Instant,
};

use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::net::TcpListener;
use turnkeep_host::{Host, HostError, HostOptions, IpNet, KeyRing, TlsOptions, UpstreamOptions};
use turnkeep_store::{Cancel, SessionStore};

use crate::{
    args::ServeArgs,
    config::{Settings, default_token_file},
    context::Context,
    failure::Failure,
    notify,
    output::interrupted,
    store,
};

/// What a shell says of a program that Ctrl-C ended.
const ENDED_AT_ONCE: i32 = 130;

/// Serves the store, and the upstream behind it.
pub(crate) async fn run(args: ServeArgs, context: &Context) -> Result<(), Failure> {
    let mut settings = context.settings.clone();
    settings.listen = args.listen.or(settings.listen);
    settings.upstream = args.upstream.or(settings.upstream);
    settings.continuation_key_file = args.continuation_key_file.or(settings.continuation_key_file);
    settings.allow_origin.get_or_insert_default().extend(args.allow_origin);
    settings.password_file = args.password_file.or(settings.password_file);
    settings.tls_cert = args.tls_cert.or(settings.tls_cert);
    settings.tls_key = args.tls_key.or(settings.tls_key);
    settings.trusted_proxy.get_or_insert_default().extend(args.trusted_proxy);
    allow_connections();
    let is_new = store::is_new(&settings);
    let store = store::open(&settings)?;
    let host = listening(Arc::clone(&store), &settings)?;
    let listener = host.bind().await?;
    let scheme = if settings.tls_cert.is_some() { "https" } else { "http" };
    tell_what_is_open(&host, &settings, listener.local_addr().ok());
    if is_new {
        // Where it is stays out of the log, as in all other lines.
        tracing::info!(
            "there is no such store yet: it is empty, and is made with its first session"
        );
    }
    let told_as_json = settings.log_format.as_deref() == Some("json");
    let ready = |address| {
        // Who reads the log as JSON reads all of it as JSON; the line that was logged says the same.
        if !told_as_json {
            eprintln!("turnkeep: serving at {scheme}://{address}");
        }
    };
    let started = Instant::now();
    let served = serve(host, listener, &settings, ready).await;
    // Whatever ended it: what was accepted is to be on disk.
    let flushed = store.flush(&Cancel::never()).await.map_err(Failure::from);
    tracing::info!(seconds = started.elapsed().as_secs(), flushed = flushed.is_ok(), "stopped");
    served.and(flushed)
}

/// Takes as many open files as the system gives: every client that follows events holds one.
fn allow_connections() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // The host makes do with what there is.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Says at the start what is open to whom.
fn tell_what_is_open(host: &Host, settings: &Settings, listen: Option<SocketAddr>) {
    let is_local = listen.is_none_or(|address| address.ip().to_canonical().is_loopback());
    if host.is_open() && settings.upstream.is_some() {
        tracing::info!(
            "no password is set: every program of this machine can read the sessions, and run \
             commands through the upstream"
        );
    } else if host.is_open() {
        tracing::info!("no password is set: every program of this machine can read the sessions");
    } else if settings.password_file.is_none() {
        tracing::info!("no password is set: only API tokens let anyone in");
    }
    let is_behind_proxy = settings.trusted_proxy.as_ref().is_some_and(|it| !it.is_empty());
    if !is_local && settings.tls_cert.is_none() && !is_behind_proxy {
        tracing::warn!(
            "passwords, tokens and transcripts cross the network unencrypted: set tls_cert and \
             tls_key, or serve behind a proxy that speaks HTTPS"
        );
    }
}

/// A host over this store with these settings, to be served at the address they name.
pub(crate) fn listening(
    store: Arc<dyn SessionStore>,
    settings: &Settings,
) -> Result<Arc<Host>, Failure> {
    let mut options = options(store, settings)?;
    options.continuation_keys = settings.continuation_key_file.as_deref().map(keys).transpose()?;
    if let Some(listen) = &settings.listen {
        options.listen = address(listen)?;
    }
    protect(&mut options, settings)?;
    Ok(Arc::new(Host::new(options)?))
}

/// Says who may use a host that is served.
fn protect(options: &mut HostOptions, settings: &Settings) -> Result<(), Failure> {
    options.auth.password_file.clone_from(&settings.password_file);
    options.auth.token_file = settings.token_file.clone().or_else(default_token_file);
    options.auth.tokens_required = settings.token_file.is_some();
    options.auth.trusted_proxies = networks(settings)?;
    options.tls = match (&settings.tls_cert, &settings.tls_key) {
        (Some(certificate), Some(key)) => {
            Some(TlsOptions { certificate: certificate.clone(), key: key.clone() })
        }
        (None, None) => None,
        _ => return Err(Failure::usage("tls_cert and tls_key go together; set both or neither")),
    };
    Ok(())
}

/// A host over this store with these settings, to be asked without serving it.
pub(crate) fn host(store: Arc<dyn SessionStore>, settings: &Settings) -> Result<Host, Failure> {
    Ok(Host::new(options(store, settings)?)?)
}

fn options(store: Arc<dyn SessionStore>, settings: &Settings) -> Result<HostOptions, Failure> {
    let mut options = HostOptions::default();
    // Before the environment, which counts where the setting is blank.
    options.transcript_cache.clone_from(&settings.transcript_cache_path);
    let mut options = options.with_environment(variable);
    options.store = Some(store);
    options.upstream =
        settings.upstream.as_deref().map(|url| upstream(url, settings)).transpose()?;
    options.allow_origins = settings.allow_origin.clone().unwrap_or_default();
    let set = settings.reconcile;
    let budgets = &mut options.reconcile;
    // All within their ranges, as settings are when they have been read.
    for (target, value) in [
        (&mut options.scan_limit, settings.scan_limit.map(usize::from)),
        (&mut budgets.records, set.page_records),
        (&mut budgets.page_bytes, set.page_bytes),
        (&mut budgets.pages, set.total_pages),
        (&mut budgets.total_bytes, set.total_bytes),
    ] {
        *target = value.unwrap_or(*target);
    }
    for (target, value) in [
        (&mut options.replay_buffer_bytes, settings.replay_buffer_bytes),
        (&mut options.client_queue_bytes, settings.client_queue_bytes),
    ] {
        *target = value.unwrap_or(*target);
    }
    options.attachments = store::attachments(settings)?;
    let probe = &mut options.listing_probe;
    probe.max_events = settings.cold_blank_probe_max_events.unwrap_or(probe.max_events);
    probe.max_bytes = settings.cold_blank_probe_max_bytes.unwrap_or(probe.max_bytes);
    Ok(options)
}

/// The networks of trusted reverse proxies. A single address is a network of one.
fn networks(settings: &Settings) -> Result<Vec<IpNet>, Failure> {
    let named = settings.trusted_proxy.iter().flatten();
    let parsed = named.map(|name| {
        let address = name.parse::<IpAddr>().map(IpNet::from);
        address.or_else(|_| name.parse::<IpNet>()).map_err(|_| {
            Failure::usage(format!("`{name}` is no network; one is 10.0.0.0/8, or an address"))
        })
    });
    parsed.collect()
}

/// The keys that continuations are signed with.
fn keys(path: &Path) -> Result<KeyRing, Failure> {
    let name = path.display();
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
    KeyRing::parse(&text).map_err(|error| Failure::usage(format!("{name}: {error}")))
}

fn address(listen: &str) -> Result<SocketAddr, Failure> {
    let known = listen.to_socket_addrs().map_err(|error| error.to_string());
    known.and_then(|mut known| known.next().ok_or("no such address".to_owned())).map_err(
        |problem| {
            Failure::usage(format!(
                "`{listen}` is no address to listen on ({problem}); one is 127.0.0.1:7420"
            ))
        },
    )
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Where an upstream is, and how the settings log in to it.
pub(crate) fn upstream(url: &str, settings: &Settings) -> Result<UpstreamOptions, Failure> {
    let password = match &settings.upstream_password_file {
        Some(path) => Some(first_line(path)?),
        None => variable("OPENCODE_SERVER_PASSWORD"),
    };
    let username =
        settings.upstream_username.clone().or_else(|| variable("OPENCODE_SERVER_USERNAME"));
    let options = UpstreamOptions::new(url).map_err(Failure::usage)?;
    Ok(options.with_username(username).with_password(password))
}

fn first_line(path: &Path) -> Result<String, Failure> {
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(line.to_owned()),
        _ => Err(Failure::usage(format!("{} has no password in its first line", path.display()))),
    }
}

/// Serves until the process is told to stop.
pub(crate) async fn serve(
    host: Arc<Host>,
    listener: TcpListener,
    settings: &Settings,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), Failure> {
    let address =
        listener.local_addr().map_err(|error| Failure::io("cannot tell the address", &error))?;
    let mut stopped = Box::pin(interrupted());
    // Who is told that we serve may send a signal at once, so that is listened for first.
    tokio::select! {
        biased;
        early = &mut stopped => return early,
        () = std::future::ready(()) => {}
    }
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        %address,
        store = store::kind(settings),
        upstream = settings.upstream.as_deref().and_then(authority),
        "serving"
    );
    ready(address);
    notify::tell("READY=1");
    let stop = async {
        match stopped.await {
            Ok(()) => tracing::info!("stopping; another signal ends it at once"),
            Err(failure) => {
                tracing::error!(kind = failure.kind(), "signals cannot be waited for; stopping");
            }
        }
        notify::tell("STOPPING=1");
        tokio::spawn(async {
            if interrupted().await.is_ok() {
                tracing::warn!("ended without waiting for requests");
                std::process::exit(ENDED_AT_ONCE);
            }
        });
    };
    Ok(host.serve(listener, stop).await?)
}

/// The host and port of a URL.
fn authority(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    rest.split(['/', '?', '#']).next()
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        Self::new(error.kind(), &error)
    }
}
