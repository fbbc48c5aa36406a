//! `turnkeep rm`: sessions to the trash.

use serde_json::json;
use turnkeep_store::{Cancel, SessionStore};

use crate::{
    args::RmArgs,
    context::Context,
    failure::Failure,
    output::{Output, argument, named, program},
    store,
};

/// Deletes one session after the other. One that cannot be deleted does not keep the others.
pub(crate) async fn run(args: RmArgs, context: &Context) -> Result<(), Failure> {
    let store = store::open(&context.settings)?;
    let mut out = Output::stdout();
    let mut failed = None;
    for id in &args.ids {
        match delete(store.as_ref(), id, context).await {
            Ok(line) => out.line(&line)?,
            Err(failure) => {
                // In the order of what happened.
                out.flush()?;
                failure.report(context.json);
                failed.get_or_insert(failure.exit_code());
            }
        }
    }
    out.flush()?;
    failed.map_or(Ok(()), |exit_code| Err(Failure::told(exit_code)))
}

async fn delete(store: &dyn SessionStore, id: &str, context: &Context) -> Result<String, Failure> {
    let id = store::session_id(id)?;
    let deleted = store.delete(&id, &Cancel::never()).await;
    let deleted = deleted.map_err(|error| Failure::from(error).of(&id))?;
    if context.json {
        return Ok(json!({"id": id.as_str(), "deletedAt": deleted.deleted_at}).to_string());
    }
    Ok(format!(
        "moved session {} to the trash; to undo it: {} trash --restore {}",
        named(&id),
        program(),
        argument(&id)
    ))
}
