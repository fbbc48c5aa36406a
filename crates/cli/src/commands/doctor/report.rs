//! What was found, and how it is told.

use serde_json::json;

use super::settings;
use crate::{
    config::Settings,
    context::Context,
    failure::Failure,
    output::{Output, with_store},
    transcript::printable,
};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// It is as it should be.
    Ok,
    /// It is good to know.
    Note,
    /// It needs doing.
    Todo,
}

impl Status {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Todo => "todo",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// What was looked at, in one word.
    pub(super) check: &'static str,
    /// How much it matters.
    pub(super) status: Status,
    /// What was found.
    pub(super) message: String,
    /// What to do about it.
    pub(super) advice: Option<String>,
}

impl Finding {
    pub(super) fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self { check, status: Status::Ok, message: message.into(), advice: None }
    }

    pub(super) fn note(
        check: &'static str,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        let advice = Some(advice.into());
        Self { check, status: Status::Note, message: message.into(), advice }
    }

    pub(super) fn todo(
        check: &'static str,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { status: Status::Todo, ..Self::note(check, message, advice) }
    }
}

/// Everything that was found.
#[derive(Debug, Default)]
pub(super) struct Report(Vec<Finding>);

impl Report {
    pub(super) fn add(&mut self, finding: Finding) {
        self.0.push(finding);
    }

    pub(super) fn extend(&mut self, findings: impl IntoIterator<Item = Finding>) {
        self.0.extend(findings);
    }

    /// Tells it. A failure without words when something needs doing.
    pub(super) fn print(&self, settings: &Settings, context: &Context) -> Result<(), Failure> {
        let needed = self.0.iter().filter(|finding| finding.status == Status::Todo).count();
        let mut out = Output::stdout();
        if context.json {
            let findings = self.0.iter().map(|finding| {
                json!({
                    "check": finding.check,
                    "status": finding.status.as_str(),
                    "message": with_store(&finding.message),
                    "advice": finding.advice.as_deref().map(with_store),
                })
            });
            let report = json!({
                "ok": needed == 0,
                "findings": findings.collect::<Vec<_>>(),
                "configFile": context.config_file,
                "settings": settings::shown(settings),
            });
            out.line(&report.to_string())?;
        } else {
            for finding in &self.0 {
                let Finding { check, status, message, .. } = finding;
                out.line(&one_line(&format!("{:<5} {check:<11} {message}", status.as_str())))?;
                if let Some(advice) = &finding.advice {
                    out.line(&one_line(&format!("{:18}→ {advice}", "")))?;
                }
            }
            out.line(&with_store(&match needed {
                0 => "nothing needs doing, as far as first lines tell; `turnkeep verify --all` reads \
                      everything"
                    .to_owned(),
                1 => "1 thing needs doing".to_owned(),
                more => format!("{more} things need doing"),
            }))?;
        }
        out.flush()?;
        if needed == 0 { Ok(()) } else { Err(Failure::told(1)) }
    }
}

fn one_line(text: &str) -> String {
    printable(&with_store(text)).replace('\n', "␊")
}
