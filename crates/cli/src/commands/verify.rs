//! `turnkeep verify`: whether sessions are intact, and if not, what is lost.

use std::{collections::HashSet, process::ExitCode};

use turnkeep_log::SessionId;
use turnkeep_store::{
    Cancel, ListQuery, SessionEntry, SessionStore,
    error::VerifyError,
    verify::{Finding, FindingKind, Severity, Verification},
};

use crate::{
    args::VerifyArgs, context::Context, failure::Failure, output::Output, progress::Bar, store,
    verification,
};

/// The exit code of a negative answer.
const NOT_INTACT: u8 = 1;

/// Verifies sessions one by one, and answers whether all of them are intact.
pub(crate) async fn run(args: VerifyArgs, context: &Context) -> Result<ExitCode, Failure> {
    let ids = args.ids.iter().map(|id| store::session_id(id)).collect::<Result<Vec<_>, _>>()?;
    let mut out = Output::stdout();
    let mut intact = true;
    let bar = Bar::start();
    let store = match store::open(&context.settings) {
        Err(failure) if is_damaged_database(&failure) => {
            let mut storage = Verification::default();
            let message = failure.message().to_owned();
            let finding = Finding::new(FindingKind::BadDatabase, Severity::Damaged, message);
            storage.findings.push(finding);
            tell(&storage, context, &mut out, &bar)?;
            bar.end();
            return Ok(ExitCode::from(NOT_INTACT));
        }
        opened => opened?,
    };

    let mut storage = store.verify_storage(&Cancel::never()).await?;
    if !storage.is_intact() {
        intact = false;
        once(&mut storage.findings);
        tell(&storage, context, &mut out, &bar)?;
    }
    let targets = if args.all {
        match listed(store.as_ref(), context).await {
            // What is wrong has been told.
            Err(failure) if !intact && is_damaged_database(&failure) => {
                eprintln!(
                    "turnkeep: the sessions cannot be listed; name one to have it verified by itself"
                );
                Vec::new()
            }
            listed => listed?,
        }
    } else {
        asked(ids)
    };
    let mut missing = None;
    for (at, target) in targets.iter().enumerate() {
        bar.begin(target.id.as_str(), at + 1, targets.len());
        let verified = store.verify(&target.id, &bar.progress(), &Cancel::never()).await;
        let found = match (verified, &target.entry) {
            (Ok(found), _) => found,
            (Err(VerifyError::NotFound(_)), Some(entry)) if entry.reason.is_some() => {
                Verification::unreachable(entry)
            }
            // Gone since it was listed.
            (Err(VerifyError::NotFound(_)), Some(_)) => continue,
            (Err(error @ VerifyError::NotFound(_)), None) => {
                missing.get_or_insert(Failure::from(error).of(&target.id));
                continue;
            }
            (Err(error), _) => return Err(Failure::from(error).of(&target.id)),
        };
        intact &= found.is_intact();
        tell(&found, context, &mut out, &bar)?;
    }
    bar.end();
    match missing {
        Some(failure) => Err(failure),
        None if intact => Ok(ExitCode::SUCCESS),
        None => Ok(ExitCode::from(NOT_INTACT)),
    }
}

/// Whether SQLite finds that the file is not what it wrote.
fn is_damaged_database(failure: &Failure) -> bool {
    ["database disk image is malformed", "file is not a database"]
        .iter()
        .any(|told| failure.message().ends_with(told))
}

/// Leaves out what was found before: each of the checks comes upon the same damage.
fn once(findings: &mut Vec<Finding>) {
    let mut seen = HashSet::new();
    findings.retain(|finding| seen.insert(finding.message.clone()));
}

/// A session to be verified, and how it is listed.
struct Target {
    id: SessionId,
    entry: Option<SessionEntry>,
}

fn asked(ids: Vec<SessionId>) -> Vec<Target> {
    let mut seen = HashSet::new();
    let ids = ids.into_iter().filter(|id| seen.insert(id.clone()));
    ids.map(|id| Target { id, entry: None }).collect()
}

async fn listed(store: &dyn SessionStore, context: &Context) -> Result<Vec<Target>, Failure> {
    let list = store.list(&ListQuery::default(), &Cancel::never()).await?;
    if list.entries.is_empty() {
        eprintln!("no sessions in {}", store::described(&context.settings));
    }
    let target = |entry: SessionEntry| Target { id: entry.id.clone(), entry: Some(entry) };
    Ok(list.entries.into_iter().map(target).collect())
}

fn tell(
    found: &Verification,
    context: &Context,
    out: &mut Output,
    bar: &Bar,
) -> Result<(), Failure> {
    bar.aside(|| {
        if context.json {
            out.line(&verification::to_json(found).to_string())?;
        } else {
            for line in verification::lines(found) {
                out.line(&line)?;
            }
        }
        out.flush()
    })
}
