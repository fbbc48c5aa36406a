//! Reading a header line.

use super::{FORMAT_VERSION, Origin, SessionHeader};
use crate::{
    id::SessionId,
    json::{Json, JsonError, write_number},
};

/// Why a first line is not the header of a log that this build reads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The log is of another format version. Nothing else in the header was looked at.
    #[error(
        "session \"{session}\" uses log format v{version}, but this build reads only \
         v{FORMAT_VERSION}: {}",
        advice(*.newer)
    )]
    Unsupported {
        /// What the header calls the session; its JSON text where that is no string.
        session: String,
        /// The version, as JavaScript prints it; as it is spelled where it is past the doubles.
        version: String,
        /// Whether it comes after ours.
        newer: bool,
    },
    /// The line is not the header of the session. The text says what is wrong with the line only:
    /// whoever asked for the session knows which it is, and the line may not say.
    #[error("{problem}")]
    Corrupt {
        /// What is wrong with it.
        problem: HeaderProblem,
    },
}

/// What is wrong with a header line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderProblem {
    /// It is not JSON. A byte order mark makes it so.
    #[error("session header is not JSON: {0}")]
    NotJson(#[source] JsonError),
    /// It is JSON, but no object.
    #[error("session header is not a JSON object")]
    NotAnObject,
    /// A member is missing or of the wrong kind.
    #[error("session header member `{member}` {problem}")]
    Member {
        /// The name of the member.
        member: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// It has a member in which early builds kept a policy, `sandboxMode` or `approvalPolicy`.
    /// What such a session may do cannot be told any more.
    #[error("session header uses retired policy baseline fields (`{member}`)")]
    Retired {
        /// The name of the member.
        member: &'static str,
    },
    /// It is the header of another session than the one asked for.
    #[error("requested id \"{requested}\" does not match header id \"{found}\"")]
    OtherSession {
        /// The session asked for.
        requested: SessionId,
        /// The session it is.
        found: SessionId,
    },
}

fn advice(newer: bool) -> &'static str {
    if newer {
        "the log was written by a newer harness — upgrade the harness to open it"
    } else {
        "this build ships no upgrade path for it"
    }
}

impl HeaderError {
    /// The stable word for this failure: `format_unsupported` or `corrupt`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unsupported { .. } => "format_unsupported",
            Self::Corrupt { .. } => "corrupt",
        }
    }
}

impl From<HeaderProblem> for HeaderError {
    fn from(problem: HeaderProblem) -> Self {
        Self::Corrupt { problem }
    }
}

impl SessionHeader {
    /// Reads the first line of a log, which should be that of the session `requested`.
    ///
    /// The version is looked at before anything else: only a build that writes a version knows
    /// what its header looks like.
    ///
    /// # Errors
    ///
    /// [`HeaderError::Unsupported`] for another version; [`HeaderError::Corrupt`] for a line that
    /// is no header, one with retired members, or the header of another session.
    pub fn parse(line: &str, requested: Option<&SessionId>) -> Result<Self, HeaderError> {
        let json = Json::parse(line).map_err(HeaderProblem::NotJson)?;
        if json.members().is_none() {
            return Err(HeaderProblem::NotAnObject.into());
        }
        check_version(json)?;
        let header = Self::read(json)?;
        match requested.filter(|requested| **requested != header.id) {
            Some(requested) => {
                Err(HeaderProblem::OtherSession { requested: requested.clone(), found: header.id }
                    .into())
            }
            None => Ok(header),
        }
    }

    fn read(json: Json<'_>) -> Result<Self, HeaderProblem> {
        let bad = |member, problem| HeaderProblem::Member { member, problem };
        if json.get("type").and_then(Json::as_str).is_none_or(|name| name != "session") {
            return Err(bad("type", "is not \"session\""));
        }
        for member in ["sandboxMode", "approvalPolicy"] {
            if json.get(member).is_some() {
                return Err(HeaderProblem::Retired { member });
            }
        }
        let text = |member| {
            let Some(value) = json.get(member) else { return Ok(None) };
            let value = value.as_str().ok_or(bad(member, "is not a string"))?;
            let value = value.decode().ok_or(bad(member, "holds a lone surrogate"))?;
            Ok(Some(value.into_owned()))
        };
        let number = |member| {
            let Some(value) = json.get(member) else { return Ok(None) };
            value.as_natural().map(Some).ok_or(bad(member, "is not a non-negative safe integer"))
        };
        let id = text("id")?.ok_or(bad("id", "is missing"))?;
        let origin = match text("origin")?.as_deref() {
            None => None,
            Some("subagent") => Some(Origin::Subagent),
            Some(_) => return Err(bad("origin", "is not \"subagent\"")),
        };
        Ok(Self {
            version: FORMAT_VERSION,
            id: SessionId::new(&id).ok_or(bad("id", "is empty"))?,
            created_at: number("createdAt")?.ok_or(bad("createdAt", "is missing"))?,
            cwd: text("cwd")?,
            parent_session: text("parentSession")?,
            seed_length: number("seedLength")?,
            origin,
            delegation_depth: number("delegationDepth")?
                .ok_or(bad("delegationDepth", "is missing"))?,
            agent_preset: text("agentPreset")?,
        })
    }
}

/// Lets only our own version pass.
fn check_version(json: Json<'_>) -> Result<(), HeaderError> {
    let version = json.get("version");
    let number = version
        .and_then(Json::as_f64)
        .ok_or(HeaderProblem::Member { member: "version", problem: "is not a number" })?;
    let whole = version.and_then(Json::as_safe_integer);
    if whole.and_then(|version| u64::try_from(version).ok()) == Some(FORMAT_VERSION) {
        return Ok(());
    }
    let mut printed = String::new();
    if number.is_finite() {
        write_number(&mut printed, number);
    } else {
        printed.push_str(version.map_or("", Json::text));
    }
    let id = json.get("id");
    let session = match id.and_then(Json::as_str) {
        Some(id) => id.decode_lossy().into_owned(),
        None => id.map_or("undefined", Json::text).to_owned(),
    };
    #[expect(clippy::cast_precision_loss, reason = "format versions are small numbers")]
    let newer = number > FORMAT_VERSION as f64;
    Err(HeaderError::Unsupported { session, version: printed, newer })
}
