//! `turnkeep events`: the logical events of a session, one a line.

use std::time::Duration;

use turnkeep_store::{Access, Cancel, EventBatches, EventRange, SessionHandle};

use crate::{
    args::EventsArgs,
    context::Context,
    failure::Failure,
    output::{Output, until_interrupted},
    store,
};

/// How often a followed log is looked at. Looking costs one `stat` while nothing changes.
const FOLLOW_EVERY: Duration = Duration::from_millis(100);

/// Prints the events in the range asked for, and goes on when told to follow.
pub(crate) async fn run(args: EventsArgs, context: &Context) -> Result<(), Failure> {
    let id = store::session_id(&args.id)?;
    let store = store::open(&context.settings)?;
    let handle = store
        .open(&id, Access::Read, &Cancel::never())
        .await
        .map_err(|error| Failure::from(error).of(&id))?;
    let mut out = Output::stdout();
    let printing = print(handle.as_ref(), &args, &mut out);
    let result = if args.follow { until_interrupted(printing).await } else { printing.await };
    result.map_err(|failure| failure.of(&id))
}

async fn print(
    handle: &dyn SessionHandle,
    args: &EventsArgs,
    out: &mut Output,
) -> Result<(), Failure> {
    let range = EventRange { offset: args.offset, length: args.length };
    let mut batches = EventBatches::new(range);
    loop {
        let events = batches.next(handle, &Cancel::never()).await?;
        for event in &events {
            out.line(event.text())?;
        }
        if !events.is_empty() && !batches.is_done() {
            continue;
        }
        out.flush()?;
        if !args.follow {
            return Ok(());
        }
        tokio::time::sleep(FOLLOW_EVERY).await;
    }
}
