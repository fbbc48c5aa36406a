//! Who is let in, and what they may do.
//!
//! A host either is *open*, which it is on loopback when nothing else was asked for, or it wants to
//! see something: the password, by way of a login whose cookie a browser keeps, or an API token.
//!
//! | | |
//! |---|---|
//! | [`password`] | the password's file, and looking at guesses |
//! | [`token_file`], [`tokens`] | the file of tokens, and how requests meet it |
//! | [`sessions`], [`cookie`] | logins of browsers |
//! | [`lockout`] | who has failed too often waits |
//! | [`pass`], [`stream`] | what somebody who was let in may do, and for how long |

mod cookie;
mod file;
mod lockout;
mod pass;
mod password;
mod scope;
mod secret;
mod sessions;
mod stream;
mod token_file;
mod tokens;

use std::{net::SocketAddr, sync::Arc, time::Instant};

use axum::http::{HeaderMap, HeaderValue, header};

use self::{
    lockout::Lockout,
    password::{Busy, Password},
    secret::Digest,
    sessions::{LoginBy, Sessions},
    tokens::{Found, Tokens},
};
pub(crate) use self::{
    lockout::Wait,
    pass::{Pass, Via},
    stream::{Ending, Watched},
};
pub use self::{
    password::PasswordError,
    scope::{Scope, UnknownScope},
    secret::Secret,
    token_file::{ApiToken, TokenFile, TokenFileError, TokenState},
};
use crate::{
    http::guard::{self, Door},
    options::{AuthOptions, HostError},
    serve::Peer,
};

/// Who is let in.
#[derive(Debug)]
pub(crate) struct Auth {
    door: Door,
    password: Option<Password>,
    tokens: Option<Tokens>,
    sessions: Sessions,
    lockout: Lockout,
}

/// Why a request is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denial {
    /// It shows nothing that is good.
    Unknown,
    /// It guesses, and is not the first to.
    LockedOut(Wait),
}

/// Why there is no login.
#[derive(Debug)]
pub(crate) enum LoginError {
    /// That was neither the password nor a token.
    Wrong,
    /// There were too many that were not.
    LockedOut(Wait),
    /// Too many want to log in.
    Busy,
    /// There is nothing to make a cookie of.
    NoRandom,
}

/// What a request shows.
enum Shown {
    Nothing,
    Token(Secret),
    /// A header that no token can be taken from.
    Unreadable,
}

impl Auth {
    /// Reads the files.
    pub(crate) fn load(options: &AuthOptions, listen: SocketAddr) -> Result<Self, HostError> {
        let is_local = guard::is_loopback(listen.ip());
        let password = options.password_file.as_deref().map(Password::read).transpose()?;
        let is_open = is_local && password.is_none() && !options.tokens_required;
        let tokens = options.token_file.as_ref().map(|path| Tokens::new(TokenFile::new(path)));
        if !is_open {
            let any_live = tokens.as_ref().map_or(Ok(false), Tokens::any_live)?;
            if !is_local && password.is_none() && !any_live {
                return Err(HostError::Unprotected { address: listen });
            }
        }
        Ok(Self {
            door: if is_open { Door::Open } else { Door::Locked },
            password,
            tokens: tokens.filter(|_| !is_open),
            sessions: Sessions::default(),
            lockout: Lockout::default(),
        })
    }

    pub(crate) fn door(&self) -> Door {
        self.door
    }

    pub(crate) fn has_password(&self) -> bool {
        self.password.is_some()
    }

    /// Decides on a request. A header counts before a cookie, and when it is no good, instead of it.
    ///
    /// Guessing tokens counts as failing to log in. Having a good one helps even from an address
    /// that is locked out: it is no guess.
    pub(crate) fn check(self: &Arc<Self>, headers: &HeaderMap, peer: Peer) -> Result<Pass, Denial> {
        if self.door == Door::Open {
            return Ok(Pass::new(Arc::clone(self), Scope::Admin, Via::Nothing));
        }
        let token = match shown(headers) {
            Shown::Nothing => return self.check_cookie(headers, peer).ok_or(Denial::Unknown),
            Shown::Unreadable => return Err(Denial::Unknown),
            Shown::Token(token) => token.digest(),
        };
        match self.find_token(&token) {
            Found::Live(scope) => Ok(Pass::new(Arc::clone(self), scope, Via::Token(token))),
            Found::Ended => Err(Denial::Unknown),
            Found::Unknown => {
                let now = Instant::now();
                self.lockout.failed(peer.network(), now);
                Err(self
                    .lockout
                    .wait(peer.network(), now)
                    .map_or(Denial::Unknown, Denial::LockedOut))
            }
        }
    }

    fn check_cookie(self: &Arc<Self>, headers: &HeaderMap, peer: Peer) -> Option<Pass> {
        let id = cookie::get(headers, peer)?.digest();
        let scope = self.scope_of(self.sessions.used(&id, Instant::now())?)?;
        Some(Pass::new(Arc::clone(self), scope, Via::Login(id)))
    }

    fn find_token(&self, digest: &Digest) -> Found {
        self.tokens.as_ref().map_or(Found::Unknown, |tokens| tokens.find(digest))
    }

    /// What a login allows, if it still does.
    fn scope_of(&self, login: LoginBy) -> Option<Scope> {
        match login {
            LoginBy::Password => Some(LoginBy::PASSWORD_SCOPE),
            LoginBy::Token(digest) => match self.find_token(&digest) {
                Found::Live(scope) => Some(scope),
                Found::Ended | Found::Unknown => None,
            },
        }
    }

    /// Whether somebody who was let in would be let in again.
    fn is_still_in(&self, via: &Via) -> bool {
        match via {
            Via::Nothing => true,
            Via::Token(digest) => matches!(self.find_token(digest), Found::Live(_)),
            Via::Login(id) => {
                let login = self.sessions.find(id, Instant::now());
                login.is_some_and(|login| self.scope_of(login).is_some())
            }
        }
    }

    /// Logs a browser in with the password, or with an API token, which its login then stands for.
    pub(crate) async fn log_in(
        &self,
        secret: Secret,
        peer: Peer,
    ) -> Result<(HeaderValue, Scope), LoginError> {
        let attempt = self.lockout.attempt(peer.network(), Instant::now());
        let attempt = attempt.map_err(LoginError::LockedOut)?;
        let token = secret.digest();
        let login = match self.find_token(&token) {
            Found::Live(_) => {
                // Nothing was guessed, and what was guessed before is not forgiven for it.
                attempt.void();
                LoginBy::Token(token)
            }
            Found::Ended => {
                attempt.void();
                return Err(LoginError::Wrong);
            }
            Found::Unknown => {
                let right = match &self.password {
                    Some(password) => password.is(secret).await,
                    None => Ok(false),
                };
                match right {
                    Ok(true) => attempt.succeeded(),
                    Ok(false) => {
                        return Err(attempt
                            .failed()
                            .map_or(LoginError::Wrong, LoginError::LockedOut));
                    }
                    Err(Busy) => {
                        attempt.void();
                        return Err(LoginError::Busy);
                    }
                }
                LoginBy::Password
            }
        };
        let scope = self.scope_of(login).ok_or(LoginError::Wrong)?;
        let id = self.sessions.begin(login, Instant::now()).map_err(|_| LoginError::NoRandom)?;
        let cookie = cookie::set(&id, peer).ok_or(LoginError::Wrong)?;
        Ok((cookie, scope))
    }

    /// Ends the login that a request comes with, if it comes with one.
    pub(crate) fn log_out(&self, headers: &HeaderMap, peer: Peer) {
        if let Some(id) = cookie::get(headers, peer) {
            self.sessions.end(&id.digest(), Instant::now());
        }
    }
}

/// What ends a cookie of ours that is good for nothing any more, when a request comes with one.
pub(crate) fn ended_cookie(headers: &HeaderMap, peer: Peer) -> Option<HeaderValue> {
    cookie::get(headers, peer).and_then(|_| cookie::cleared(peer))
}

/// Reads `Authorization: Bearer …`. Another scheme is not meant for us.
fn shown(headers: &HeaderMap) -> Shown {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Shown::Nothing };
    if values.next().is_some() {
        return Shown::Unreadable;
    }
    let Some((scheme, token)) = value.to_str().ok().and_then(|text| text.trim().split_once(' '))
    else {
        return Shown::Unreadable;
    };
    if scheme.eq_ignore_ascii_case("bearer") {
        Shown::Token(Secret::new(token.trim().to_owned()))
    } else {
        Shown::Nothing
    }
}

#[cfg(test)]
#[path = "auth_tests.rs"]
mod tests;
