//! How a command ends when it does not end well.

use std::{
    fmt::{Display, Write as _},
    process::ExitCode,
};

use turnkeep_host::{TokenFileError, kinds};
use turnkeep_log::SessionId;
use turnkeep_store::{
    ResumeError,
    error::{
        AppendError, CloseError, CreateError, DeleteError, FlushError, FlushStoreError, ListError,
        NotFound, OpenError, ReadError, RecoverError, RestoreError, StatError, StoreError,
        TrashError, VerifyError,
    },
};

use crate::{
    output::{argument, with_store},
    transcript::printable,
};

/// Why a command did not do what it was asked: one sentence, and what kind of trouble it is.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: &'static str,
    message: String,
    session: Option<String>,
    /// Set when everything has been said: the code to exit with.
    told: Option<u8>,
}

impl Failure {
    /// A failure of this [kind](kinds::KINDS).
    pub(crate) fn new(kind: &'static str, message: impl Display) -> Self {
        Self { kind, message: message.to_string(), session: None, told: None }
    }

    /// A command that has said all there is to say, and ends with this exit code.
    pub(crate) fn told(exit_code: u8) -> Self {
        Self { told: Some(exit_code), ..Self::new("internal", "") }
    }

    /// The command line, the configuration or the input is wrong.
    pub(crate) fn usage(message: impl Display) -> Self {
        Self::new("usage", message)
    }

    /// Reading or writing failed outside of the store.
    pub(crate) fn io(doing: impl Display, error: &std::io::Error) -> Self {
        Self::new("io", format!("{doing}: {error}"))
    }

    /// Names the session that it is about.
    #[must_use]
    pub(crate) fn of(mut self, session: &SessionId) -> Self {
        self.session = Some(session.as_str().to_owned());
        if self.kind == "corrupt" && !self.message.contains("`turnkeep verify ") {
            let _ =
                write!(self.message, "; `turnkeep verify {}` says what is lost", argument(session));
        }
        let is_elsewhere =
            session.as_str().starts_with("ses") && !self.message.contains("upstream");
        if self.kind == "not_found" && is_elsewhere {
            return self.hint(
                "ids that start with `ses` are OpenCode's, and are read through `turnkeep serve \
                 --upstream URL`",
            );
        }
        self
    }

    /// What to do about it, besides.
    #[must_use]
    pub(crate) fn hint(mut self, hint: &str) -> Self {
        let _ = write!(self.message, "; {hint}");
        self
    }

    /// The code that the command exits with.
    pub(crate) fn exit_code(&self) -> u8 {
        self.told.unwrap_or(kinds::of(self.kind).exit_code)
    }

    /// What happened, in one sentence.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// The kind, as in [`kinds::KINDS`].
    pub(crate) fn kind(&self) -> &'static str {
        self.kind
    }

    /// Says it on standard error, and with which code to exit.
    pub(crate) fn report(&self, json: bool) -> ExitCode {
        if let Some(exit_code) = self.told {
            return exit_code.into();
        }
        let message = with_store(&self.message);
        if json {
            let mut error = serde_json::json!({"kind": self.kind, "message": message});
            if let (Some(session), Some(members)) = (&self.session, error.as_object_mut()) {
                members.insert("session".to_owned(), session.clone().into());
            }
            eprintln!("{}", serde_json::json!({ "error": error }));
        } else {
            eprintln!("turnkeep: {}", printable(&message).replace('\n', "␊"));
        }
        self.exit_code().into()
    }
}

/// Takes over an error enum of the store, whose texts are sentences already.
macro_rules! from_store {
    ($($error:ty),+ $(,)?) => {
        $(
            impl From<$error> for Failure {
                fn from(error: $error) -> Self {
                    Self::new(error.kind(), &error)
                }
            }
        )+
    };
}

from_store!(
    CreateError,
    OpenError,
    StatError,
    ListError,
    ReadError,
    AppendError,
    FlushError,
    StoreError,
    DeleteError,
    RecoverError,
    RestoreError,
    TrashError,
    VerifyError,
);

impl From<ResumeError> for Failure {
    fn from(error: ResumeError) -> Self {
        Self::new(error.kind(), &error)
    }
}

impl From<TokenFileError> for Failure {
    fn from(error: TokenFileError) -> Self {
        Self::new(error.kind(), &error)
    }
}

impl From<NotFound> for Failure {
    fn from(error: NotFound) -> Self {
        Self::new("not_found", &error)
    }
}

impl From<FlushStoreError> for Failure {
    /// Of the kind of the first.
    fn from(error: FlushStoreError) -> Self {
        let kind = error.failures.first().map_or("io", |(_, failure)| failure.kind());
        Self::new(kind, &error)
    }
}

impl From<CloseError> for Failure {
    fn from(error: CloseError) -> Self {
        Self::new(error.kind, &error)
    }
}
