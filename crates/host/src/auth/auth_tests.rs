use std::{
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    os::unix::fs::PermissionsExt as _,
    sync::Arc,
};

use axum::http::{HeaderMap, HeaderValue, header};
use tempfile::TempDir;

use super::{Auth, Denial, LoginError, Pass, Scope, Secret, TokenFile, Via};
use crate::{
    http::guard::Door,
    options::{AuthOptions, HostError},
    serve::Peer,
};

const PEER: Peer = Peer { address: IpAddr::V4(Ipv4Addr::new(203, 0, 113, 1)), secure: false };
const OTHER: Peer = Peer { address: IpAddr::V4(Ipv4Addr::new(203, 0, 113, 2)), ..PEER };

struct Bench {
    folder: TempDir,
    options: AuthOptions,
}

impl Bench {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let token_file = Some(folder.path().join("tokens.json"));
        let options = AuthOptions { token_file, ..AuthOptions::default() };
        Self { folder, options }
    }

    fn tokens(&self) -> TokenFile {
        TokenFile::new(self.options.token_file.clone().unwrap())
    }

    fn with_password(mut self) -> Self {
        let path = self.folder.path().join("password");
        fs::write(&path, "hunter2\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        self.options.password_file = Some(path);
        self
    }

    fn load(&self, listen: &str) -> Result<Arc<Auth>, HostError> {
        Auth::load(&self.options, listen.parse::<SocketAddr>().unwrap()).map(Arc::new)
    }
}

fn bearer(text: &str) -> HeaderMap {
    let value = HeaderValue::try_from(text).unwrap();
    HeaderMap::from_iter([(header::AUTHORIZATION, value)])
}

fn cookie(set: &HeaderValue) -> HeaderMap {
    let pair = set.to_str().unwrap().split(';').next().unwrap();
    HeaderMap::from_iter([(header::COOKIE, HeaderValue::try_from(pair).unwrap())])
}

fn secret(text: &str) -> Secret {
    Secret::new(text.to_owned())
}

fn scope(checked: Result<Pass, Denial>) -> Result<Scope, Denial> {
    checked.map(|pass| pass.scope())
}

#[test]
fn loopback_is_open_unless_something_is_asked_for() {
    let mut bench = Bench::new();
    let auth = bench.load("127.0.0.1:0").unwrap();
    assert_eq!(auth.door(), Door::Open);
    let pass = auth.check(&bearer("Bearer nonsense"), PEER).unwrap();
    assert!(matches!(pass.via(), Via::Nothing) && pass.still_good());
    bench.options.tokens_required = true;
    let auth = bench.load("[::1]:0").unwrap();
    assert_eq!(auth.door(), Door::Locked);
    assert_eq!(scope(auth.check(&HeaderMap::new(), PEER)), Err(Denial::Unknown));
    assert_eq!(Bench::new().with_password().load("127.0.0.1:0").unwrap().door(), Door::Locked);
}

#[test]
fn other_addresses_need_a_password_or_a_live_token() {
    let bench = Bench::new();
    let refused =
        |bench: &Bench| matches!(bench.load("0.0.0.0:0"), Err(HostError::Unprotected { .. }));
    assert!(refused(&bench));
    bench.tokens().create("expired", Scope::Read, Some(1)).unwrap();
    assert!(refused(&bench));
    bench.tokens().create("live", Scope::Read, None).unwrap();
    assert_eq!(bench.load("0.0.0.0:0").unwrap().door(), Door::Locked);
    bench.tokens().revoke("live").unwrap();
    assert!(refused(&bench));
    assert!(Bench::new().with_password().load("0.0.0.0:0").is_ok());
}

#[test]
fn a_token_allows_its_scope_until_it_ends() {
    let bench = Bench::new().with_password();
    let token = bench.tokens().create("ci", Scope::Write, None).unwrap();
    let auth = bench.load("127.0.0.1:0").unwrap();
    let text = token.reveal();
    for spelled in [format!("Bearer {text}"), format!("bearer  {text} "), format!("BEARER {text}")]
    {
        assert_eq!(scope(auth.check(&bearer(&spelled), PEER)), Ok(Scope::Write), "{spelled}");
    }
    for spelled in [text.to_owned(), format!("Basic {text}"), format!("Bearer{text}")] {
        assert_eq!(scope(auth.check(&bearer(&spelled), PEER)), Err(Denial::Unknown), "{spelled}");
    }
    let mut twice = bearer(&format!("Bearer {text}"));
    twice.append(header::AUTHORIZATION, HeaderValue::from_static("Bearer x"));
    assert_eq!(scope(auth.check(&twice, PEER)), Err(Denial::Unknown));

    let good = bearer(&format!("Bearer {text}"));
    let pass = auth.check(&good, PEER).unwrap();
    assert!(pass.still_good());
    bench.tokens().revoke("ci").unwrap();
    assert!(!pass.still_good());
    for _ in 0..20 {
        assert_eq!(scope(auth.check(&good, PEER)), Err(Denial::Unknown), "it is no guess");
    }
}

#[test]
fn guessed_tokens_lock_out_and_good_ones_still_work() {
    let bench = Bench::new().with_password();
    let token = bench.tokens().create("ci", Scope::Read, None).unwrap();
    let auth = bench.load("127.0.0.1:0").unwrap();
    let guess = bearer("Bearer tk_guess");
    for _ in 0..9 {
        assert_eq!(scope(auth.check(&guess, PEER)), Err(Denial::Unknown));
    }
    assert!(matches!(scope(auth.check(&guess, PEER)), Err(Denial::LockedOut(_))));
    assert_eq!(scope(auth.check(&guess, OTHER)), Err(Denial::Unknown));
    let good = bearer(&format!("Bearer {}", token.reveal()));
    assert_eq!(scope(auth.check(&good, PEER)), Ok(Scope::Read));
    // Without credentials there is nothing to count.
    assert_eq!(scope(auth.check(&HeaderMap::new(), PEER)), Err(Denial::Unknown));
}

#[tokio::test]
async fn a_login_with_the_password_allows_everything_until_it_ends() {
    let auth = Bench::new().with_password().load("127.0.0.1:0").unwrap();
    let (set, scope_told) = auth.log_in(secret("hunter2"), PEER).await.unwrap();
    assert_eq!(scope_told, Scope::Admin);
    let headers = cookie(&set);
    let pass = auth.check(&headers, PEER).unwrap();
    assert_eq!(pass.scope(), Scope::Admin);
    assert!(pass.still_good());
    // A cookie of plain HTTP is none over HTTPS.
    assert!(auth.check(&headers, Peer { secure: true, ..PEER }).is_err());
    // A header that is no good is not made up for by a cookie.
    let mut both = headers.clone();
    both.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer tk_x"));
    assert!(auth.check(&both, PEER).is_err());
    auth.log_out(&headers, PEER);
    assert!(!pass.still_good() && auth.check(&headers, PEER).is_err());
}

#[tokio::test]
async fn a_login_with_a_token_is_worth_the_token() {
    let bench = Bench::new().with_password();
    let token = bench.tokens().create("phone", Scope::Read, None).unwrap();
    let auth = bench.load("127.0.0.1:0").unwrap();
    let (set, scope_told) = auth.log_in(token.clone(), PEER).await.unwrap();
    assert_eq!(scope_told, Scope::Read);
    let headers = cookie(&set);
    assert_eq!(scope(auth.check(&headers, PEER)), Ok(Scope::Read));
    bench.tokens().revoke("phone").unwrap();
    assert!(auth.check(&headers, PEER).is_err());
    assert!(matches!(auth.log_in(token, PEER).await, Err(LoginError::Wrong)));
}

#[tokio::test]
async fn wrong_passwords_lock_one_address_out() {
    let auth = Bench::new().with_password().load("127.0.0.1:0").unwrap();
    for _ in 0..9 {
        assert!(matches!(auth.log_in(secret("guess"), PEER).await, Err(LoginError::Wrong)));
    }
    assert!(matches!(auth.log_in(secret("guess"), PEER).await, Err(LoginError::LockedOut(_))));
    assert!(matches!(auth.log_in(secret("hunter2"), PEER).await, Err(LoginError::LockedOut(_))));
    assert!(auth.log_in(secret("hunter2"), OTHER).await.is_ok());
}

#[tokio::test]
async fn without_a_password_only_tokens_log_in() {
    let mut bench = Bench::new();
    bench.options.tokens_required = true;
    let auth = bench.load("127.0.0.1:0").unwrap();
    assert!(matches!(auth.log_in(secret(""), PEER).await, Err(LoginError::Wrong)));
    let token = bench.tokens().create("late", Scope::Admin, None).unwrap();
    assert!(auth.log_in(token, PEER).await.is_ok(), "made after the start");
}
