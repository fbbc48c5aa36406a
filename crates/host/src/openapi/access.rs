//! Logging in and out.

use serde_json::json;
use utoipa::openapi::HttpMethod;

use super::draft::{Draft, Paths};

/// The cookie of a login over plain HTTP. Over HTTPS its name begins with `__Host-`.
pub(super) const COOKIE: &str = "turnkeep";

const TAG: &str = "access";

pub(super) fn describe(paths: &mut Paths) {
    paths.add(HttpMethod::Post, "/auth/login", login());
    paths.add(HttpMethod::Post, "/auth/logout", logout());
    paths.add(HttpMethod::Get, "/auth/status", status());
}

fn login() -> Draft {
    let about = "Sets a cookie that scripts cannot read and that ends with the browser. After ten \
                 failures within five minutes an address has to wait, as `Retry-After` says. A \
                 token does for a password.";
    Draft::new("auth_login", TAG, "Log in", about)
        .takes_json("Login", "The password.")
        .gives_json("Logged in.", "LoggedIn", json!({"authenticated": true, "scope": "admin"}))
        .with_header("set-cookie", "The login.")
        .fails(&["usage", "wrong_password", "locked_out", "busy", "too_large"])
        .open()
}

fn logout() -> Draft {
    Draft::new("auth_logout", TAG, "Log out", "Nothing is amiss when nobody was logged in.")
        .gives_json("Logged out.", "LoggedOut", json!({"authenticated": false}))
        .with_header("set-cookie", "The end of the login.")
        .open()
}

fn status() -> Draft {
    let about = "Whether a request like this one is let in, and what it may do: `read`, `write` or \
                 `admin`. `via` is `open` where nothing is asked for, `login` or `token`.";
    let example =
        json!({"authenticated": true, "passwordRequired": true, "scope": "admin", "via": "login"});
    Draft::new("auth_status", TAG, "Whether a login is needed", about)
        .gives_json("How it is.", "LoginStatus", example)
        .fails(&["locked_out"])
        .open()
}
