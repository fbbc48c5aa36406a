//! `turnkeep trash`: what was deleted, and what is to become of it.

use jiff::Timestamp;
use serde_json::json;
use turnkeep_store::{Cancel, Emptied, Emptying, SessionStore, Trashed, error::RestoreError};

use super::ls::{human_size, local_time};
use crate::{
    args::TrashArgs,
    context::Context,
    failure::Failure,
    output::{Output, argument, named},
    store,
    transcript::printable,
};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Lists the trash, puts a session back, or removes what is in it.
pub(crate) async fn run(args: TrashArgs, context: &Context) -> Result<(), Failure> {
    let store = store::open(&context.settings)?;
    if let Some(id) = &args.restore {
        return restore(store.as_ref(), id, args.deleted_at, context).await;
    }
    if args.empty {
        let which = match args.older_than {
            None => Emptying::All,
            Some(days) => {
                let age = DAY_MS.saturating_mul(i64::from(days));
                Emptying::DeletedBefore(Timestamp::now().as_millisecond().saturating_sub(age))
            }
        };
        return empty(store.as_ref(), which, context).await;
    }
    list(store.as_ref(), context).await
}

async fn list(store: &dyn SessionStore, context: &Context) -> Result<(), Failure> {
    let trashed = store.trash(&Cancel::never()).await?;
    let mut out = Output::stdout();
    if trashed.is_empty() && !context.json {
        eprintln!("nothing in the trash of {}", store::described(&context.settings));
    }
    if out.is_terminal() && !context.json && !trashed.is_empty() {
        out.line(&row("ID", "DELETED", "SIZE", "DIRECTORY"))?;
    }
    for trashed in &trashed {
        let line = if context.json { json_line(trashed) } else { text_line(trashed) };
        out.line(&line)?;
    }
    out.flush()
}

fn text_line(trashed: &Trashed) -> String {
    row(
        &one_line(trashed.id.as_str()),
        &local_time(trashed.deleted_at),
        &human_size(trashed.size_bytes),
        &one_line(trashed.cwd.as_deref().unwrap_or("-")),
    )
}

fn one_line(text: &str) -> String {
    printable(text).replace('\n', "␊")
}

fn row(id: &str, deleted: &str, size: &str, cwd: &str) -> String {
    format!("{id:<36}  {deleted:<16}  {size:>9}  {cwd}")
}

fn json_line(trashed: &Trashed) -> String {
    let Trashed { id, cwd, deleted_at, size_bytes } = trashed;
    json!({"id": id.as_str(), "cwd": cwd, "deletedAt": deleted_at, "sizeBytes": size_bytes})
        .to_string()
}

async fn restore(
    store: &dyn SessionStore,
    id: &str,
    deleted_at: Option<i64>,
    context: &Context,
) -> Result<(), Failure> {
    let id = store::session_id(id)?;
    let restored = store.restore(&id, deleted_at, &Cancel::never()).await;
    let restored = restored.map_err(|error| {
        let failure = match error {
            RestoreError::AlreadyExists(_) => Failure::from(error).hint(&format!(
                "`turnkeep rm {}` first, which keeps that one in the trash",
                argument(&id)
            )),
            error => error.into(),
        };
        failure.of(&id)
    })?;
    let line = if context.json {
        json!({"id": id.as_str(), "deletedAt": restored.deleted_at}).to_string()
    } else {
        let deleted = local_time(restored.deleted_at);
        format!("put session {} back, as it was deleted at {deleted}", named(&id))
    };
    Output::print_if_read(&line)
}

async fn empty(
    store: &dyn SessionStore,
    which: Emptying,
    context: &Context,
) -> Result<(), Failure> {
    let Emptied { removed, in_use } = store.empty_trash(which, &Cancel::never()).await?;
    let bytes: u64 = removed.iter().map(|trashed| trashed.size_bytes).sum();
    let ids = |trashed: &[Trashed]| -> Vec<String> {
        trashed.iter().map(|trashed| trashed.id.as_str().to_owned()).collect()
    };
    let line = if context.json {
        json!({"removed": ids(&removed), "sizeBytes": bytes, "inUse": ids(&in_use)}).to_string()
    } else {
        match removed.len() {
            0 => "nothing was removed from the trash".to_owned(),
            1 => format!("removed 1 session for good ({})", human_size(bytes)),
            count => format!("removed {count} sessions for good ({})", human_size(bytes)),
        }
    };
    Output::print_if_read(&line)?;
    match in_use.first() {
        None => Ok(()),
        Some(trashed) => Err(Failure::new(
            "already_owned",
            format!(
                "session {} is in use in the trash, and stays; try again once whoever restores or \
                 writes it has ended ({} in all)",
                named(&trashed.id),
                in_use.len()
            ),
        )
        .of(&trashed.id)),
    }
}
