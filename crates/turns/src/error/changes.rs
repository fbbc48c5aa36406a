use super::{Answer, MessageError, body};

/// Why there is no list of changed files, or no diff of one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ChangesError {
    /// The file is longer than 4096 UTF-16 units, holds control characters, or is given twice.
    #[error("`file` is no path of a changed file; ask with one as the list of changes has it")]
    BadFile,
    /// The message did not change the file. A message that does not exist changed none.
    #[error("the message did not change this file; list the changes again")]
    FileNotFound,
    /// The message that made the changes cannot be had.
    #[error(transparent)]
    Message(#[from] MessageError),
}

impl ChangesError {
    /// The stable name of the error.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::BadFile => "invalid_file",
            Self::FileNotFound => "change_not_found",
            Self::Message(error) => error.kind(),
        }
    }

    /// The HTTP status of the answer.
    #[must_use]
    pub fn status(self) -> u16 {
        self.answer().0
    }

    /// The exact JSON body of the answer.
    #[must_use]
    pub fn body(self) -> String {
        let (_, error, code) = self.answer();
        body(error, code)
    }

    fn answer(self) -> Answer {
        match self {
            Self::BadFile => (400, "file is invalid", Some(self.kind())),
            Self::FileNotFound => (404, "change file not found", Some(self.kind())),
            Self::Message(error) => error.answer(),
        }
    }
}
