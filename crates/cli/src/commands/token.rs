//! `turnkeep token`: who may use a host.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;
use turnkeep_host::{ApiToken, Scope, TokenFile};

use super::ls::local_time;
use crate::{
    args::{TokenArgs, TokenCommand},
    config::{Settings, default_token_file},
    context::Context,
    failure::Failure,
    output::Output,
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Makes, lists or revokes tokens.
pub(crate) fn run(args: &TokenArgs, context: &Context) -> Result<(), Failure> {
    let file = file(&context.settings)?;
    match &args.command {
        TokenCommand::Create { name, scope, days } => create(&file, name, scope, *days, context),
        TokenCommand::Ls => list(&file, context),
        TokenCommand::Revoke { name } => {
            file.revoke(name)?;
            let line = if context.json {
                json!({ "name": name, "state": "revoked" }).to_string()
            } else {
                format!("revoked the token `{name}`; what it had open ends within seconds")
            };
            Output::print_if_read(&line)
        }
    }
}

/// The file that the host reads with the same settings.
pub(crate) fn file(settings: &Settings) -> Result<TokenFile, Failure> {
    let path = settings.token_file.clone().or_else(default_token_file);
    path.map(TokenFile::new).ok_or_else(|| {
        Failure::usage("there is no place for tokens: set HOME, or name a file as token_file")
    })
}

fn create(
    file: &TokenFile,
    name: &str,
    scope: &str,
    days: Option<u32>,
    context: &Context,
) -> Result<(), Failure> {
    let scope: Scope = scope.parse().map_err(Failure::usage)?;
    let expires = days.map(|days| now().saturating_add(millis(DAY * days)));
    let token = file.create(name, scope, expires)?;
    let shown = token.reveal();
    let line = if context.json {
        json!({
            "name": name,
            "scope": scope.as_str(),
            "expiresAt": expires,
            "token": shown,
            "file": file.path(),
        })
        .to_string()
    } else {
        shown.to_owned()
    };
    // Nothing else goes to standard output, so that it can be piped to where it belongs.
    Output::print_if_read(&line)?;
    if !context.json {
        let until = expires.map_or("until it is revoked".to_owned(), |expires| {
            format!("until {}", local_time(expires))
        });
        eprintln!("turnkeep: `{name}` allows {scope} {until}; the token is not shown again");
        // Who runs this may not be who runs the host, whose file is then another one.
        eprintln!("turnkeep: hosts that read {} take it", file.path().display());
    }
    Ok(())
}

fn list(file: &TokenFile, context: &Context) -> Result<(), Failure> {
    let tokens = file.list()?;
    let mut out = Output::stdout();
    if tokens.is_empty() && !context.json {
        eprintln!("no tokens; `turnkeep token create NAME` makes one");
    }
    if out.is_terminal() && !context.json && !tokens.is_empty() {
        out.line(&row("NAME", "SCOPE", "CREATED", "EXPIRES", "STATE"))?;
    }
    let now = now();
    for token in &tokens {
        out.line(&if context.json { json_line(token, now) } else { text_line(token, now) })?;
    }
    out.flush()
}

fn text_line(token: &ApiToken, now: i64) -> String {
    row(
        &token.name,
        token.scope.as_str(),
        &local_time(token.created_at),
        &token.expires_at.map_or("-".to_owned(), local_time),
        token.state(now).as_str(),
    )
}

fn row(name: &str, scope: &str, created: &str, expires: &str, state: &str) -> String {
    format!("{name:<24}  {scope:<5}  {created:<16}  {expires:<16}  {state}")
}

fn json_line(token: &ApiToken, now: i64) -> String {
    json!({
        "name": token.name,
        "scope": token.scope.as_str(),
        "createdAt": token.created_at,
        "expiresAt": token.expires_at,
        "revokedAt": token.revoked_at,
        "state": token.state(now).as_str(),
    })
    .to_string()
}

/// Milliseconds since 1970.
fn now() -> i64 {
    millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
