//! `turnkeep resume`: closes an interrupted turn.

use turnkeep_log::Event;
use turnkeep_store::Cancel;

use crate::{
    context::Context,
    failure::Failure,
    output::{Output, named},
    store,
};

/// Appends what closes the turn that the session was left in, and prints that.
pub(crate) async fn run(id: &str, context: &Context) -> Result<(), Failure> {
    let id = store::session_id(id)?;
    let store = store::open(&context.settings)?;
    let appended = turnkeep_store::resume(store.as_ref(), &id, &Cancel::never())
        .await
        .map_err(|error| Failure::from(error).of(&id))?;
    if !context.json {
        let session = named(&id);
        match (appended.first(), appended.last()) {
            (Some(first), Some(last)) => eprintln!(
                "closed the interrupted turn of session {session}: appended {} ({} to {})",
                counted(appended.len()),
                first.seq(),
                last.seq()
            ),
            _ => eprintln!("session {session} has no open turn; nothing was appended"),
        }
    }
    let mut out = Output::stdout();
    for event in &appended {
        out.line(Event::text(event))?;
    }
    out.flush()
}

fn counted(events: usize) -> String {
    if events == 1 { "1 event".to_owned() } else { format!("{events} events") }
}
