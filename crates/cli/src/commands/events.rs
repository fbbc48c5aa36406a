//! `turnkeep events`: the logical events of a session, one a line.

use std::time::Duration;

use turnkeep_store::{Access, Cancel, EventRange, SessionHandle};

use crate::{
    args::EventsArgs,
    context::Context,
    failure::Failure,
    output::{Output, until_interrupted},
    store,
};

/// How many events are held at a time, at first and at most. A batch is unpacked as a whole for
/// each part of it that is read, so the parts grow.
const CHUNKS: std::ops::RangeInclusive<u64> = 4096..=262_144;

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
    let mut next = args.offset;
    let mut left = args.length;
    let mut chunk = *CHUNKS.start();
    loop {
        let length = left.map_or(chunk, |left| left.min(chunk));
        let range = EventRange { offset: next, length: Some(length) };
        let events = handle.read(range, &Cancel::never()).await?;
        for event in &events {
            out.line(event.text())?;
        }
        let count = events.len() as u64;
        next += count;
        left = left.map(|left| left - count);
        if count == length && left != Some(0) {
            chunk = (chunk * 2).min(*CHUNKS.end());
            continue;
        }
        out.flush()?;
        if !args.follow {
            return Ok(());
        }
        tokio::time::sleep(FOLLOW_EVERY).await;
    }
}
