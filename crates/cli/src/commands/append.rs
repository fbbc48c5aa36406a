//! `turnkeep append`: events from standard input, into a session.

use std::{path::Path, time::Duration};

use jiff::Timestamp;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Stdin},
    time::timeout,
};
use turnkeep_log::{
    CompleteError, Event, EventDraft, Seq, SessionHeader, SessionId, Text, Vocabulary,
    gate::{self, GateError},
};
use turnkeep_store::{
    Access, Cancel, Routed, SessionHandle, SessionStore,
    error::{HandleClosed, OpenError},
};

use crate::{
    args::AppendArgs,
    context::Context,
    failure::Failure,
    output::{Output, interrupted},
    store,
};

/// How long a command that is asked to end waits for a read that is on its way.
const ON_ITS_WAY: Duration = Duration::from_millis(50);

/// Appends every line of standard input and prints the seq that comes next.
///
/// Whatever ends the input (its end, a bad line, a signal), the events before that are stored: on
/// a signal, every line that was read whole by then.
pub(crate) async fn run(args: AppendArgs, context: &Context) -> Result<(), Failure> {
    let id = store::session_id(&args.id)?;
    let store = store::open(&context.settings)?;
    let named = |failure: Failure| failure.of(&id);
    let handle = owned(store.as_ref(), &id, &args).await.map_err(named)?;
    // An empty batch changes nothing and says where the log ends.
    let next = handle.append(Vec::new(), &Cancel::never()).await;
    let next = next.map_err(|error| named(error.into()))?;
    let mut appender = Appender {
        store: store.as_ref(),
        handle: handle.as_ref(),
        id: &id,
        known: store::vocabulary(&context.settings),
        allow_unknown: args.allow_unknown,
        limit: args.batch.map(|limit| limit as usize),
        found: next,
        next,
        batch: Vec::new(),
        line: 0,
    };
    let fed = appender.feed(BufReader::with_capacity(1 << 16, tokio::io::stdin())).await;
    let stored = appender.store_rest().await;
    // Without any input a session is made all the same; for a line that is refused it is not.
    let makes = args.create && fed.is_ok();
    let flushed = if makes { handle.flush(&Cancel::never()).await } else { Ok(()) };
    let closed = handle.close().await;
    let unstored = closed.as_ref().err().and_then(|error| error.unstored);
    let next = unstored.map_or(appender.stored_through(), |lost| Seq(lost.offset));
    let outcome = fed
        .and(stored)
        .and(flushed.map_err(Failure::from))
        .and(closed.map_err(Failure::from))
        .map_err(named);
    // Whether anyone reads the seq or not, what became of the events is told.
    let line = if context.json { format!("{{\"next\":{next}}}") } else { next.to_string() };
    let printed = Output::print_if_read(&line);
    outcome.and(printed)
}

/// Opens the session to write, or creates it where that was asked for.
async fn owned(
    store: &dyn SessionStore,
    id: &SessionId,
    args: &AppendArgs,
) -> Result<Box<dyn SessionHandle>, Failure> {
    match store.open(id, Access::Write, &Cancel::never()).await {
        Err(OpenError::NotFound(_)) if args.create => {}
        Err(OpenError::NotFound(missing)) => {
            return Err(Failure::new("not_found", format!("{missing}; --create makes it")));
        }
        other => return other.map_err(Failure::from),
    }
    let cwd = store::session_cwd(args.cwd.as_deref().unwrap_or(Path::new(".")))?;
    let now = Timestamp::now().as_millisecond();
    let mut header = SessionHeader::new(id.clone(), u64::try_from(now).unwrap_or_default());
    header.cwd = Some(cwd);
    Ok(store.create(header, &Cancel::never()).await?)
}

/// Takes lines in, and has them stored: window by window, or batch by batch.
struct Appender<'a> {
    store: &'a dyn SessionStore,
    handle: &'a dyn SessionHandle,
    id: &'a SessionId,
    /// The types that readers will know.
    known: Vocabulary,
    /// Whether events of other types are stored too.
    allow_unknown: bool,
    /// How many events make a batch; the store's windows do when absent.
    limit: Option<usize>,
    /// The seq that came next at first.
    found: Seq,
    /// The seq of the next event to come in.
    next: Seq,
    batch: Vec<Event>,
    /// How many lines have come in.
    line: u64,
}

impl Appender<'_> {
    /// Reads lines to the end of the input, or until the process is asked to end.
    async fn feed(&mut self, mut input: BufReader<Stdin>) -> Result<(), Failure> {
        let mut line = Vec::new();
        let mut stop = std::pin::pin!(interrupted());
        loop {
            // A read that is called off keeps what it got so far in `line`.
            tokio::select! {
                read = input.read_until(b'\n', &mut line) => {
                    let read = read.map_err(|error| Failure::io("cannot read standard input", &error))?;
                    if read == 0 && line.is_empty() {
                        return Ok(());
                    }
                    self.take(&line).await?;
                    line.clear();
                }
                stopped = &mut stop => {
                    self.take_what_was_read(&mut input, line).await?;
                    return stopped;
                }
            }
        }
    }

    /// Takes the lines that were read whole before the process was asked to end.
    async fn take_what_was_read(
        &mut self,
        input: &mut BufReader<Stdin>,
        mut line: Vec<u8>,
    ) -> Result<(), Failure> {
        let mut ended = false;
        if input.buffer().is_empty()
            && let Ok(read) = timeout(ON_ITS_WAY, input.fill_buf()).await
        {
            let read = read.map_err(|error| Failure::io("cannot read standard input", &error))?;
            ended = read.is_empty();
        }
        while let Some(end) = input.buffer().iter().position(|byte| *byte == b'\n') {
            line.extend(input.buffer().iter().take(end + 1));
            input.consume(end + 1);
            self.take(&line).await?;
            line.clear();
        }
        if ended && !line.is_empty() {
            self.take(&line).await?;
        }
        Ok(())
    }

    /// Makes an event of a line and has it stored. Blank lines are passed over.
    async fn take(&mut self, line: &[u8]) -> Result<(), Failure> {
        self.line += 1;
        let Some(event) = self.event(line)? else { return Ok(()) };
        let next = event.seq().plus(1);
        match self.limit {
            None => self.publish(event).await?,
            Some(limit) => {
                self.batch.push(event);
                if self.batch.len() >= limit {
                    self.next = next;
                    return self.store_rest().await;
                }
            }
        }
        self.next = next;
        Ok(())
    }

    /// Makes an event of a line; nothing of a blank one.
    fn event(&self, line: &[u8]) -> Result<Option<Event>, Failure> {
        let number = self.line;
        let refused = |kind, problem: &dyn std::fmt::Display| {
            Failure::new(
                kind,
                format!("line {number} was not stored, and nothing after it: {problem}"),
            )
        };
        let text = std::str::from_utf8(line).map_err(|error| refused("usage", &error))?;
        if text.trim().is_empty() {
            return Ok(None);
        }
        let draft =
            EventDraft::parse(&Text::from(text)).map_err(|error| refused("usage", &error))?;
        let event =
            draft.complete(self.next, Timestamp::now().as_millisecond()).map_err(|error| {
                match error {
                    CompleteError::Seq { .. } => refused("seq_mismatch", &error),
                    CompleteError::Event(_) => refused("usage", &error),
                }
            })?;
        match gate::check_event(self.id, &event, &self.known) {
            Err(GateError::Unsupported { .. }) if self.allow_unknown => {}
            Err(GateError::Unsupported { .. }) => {
                let advice = format_args!(
                    "its type `{}` is unknown; mark it \"ignorable\":true, or name the type in the \
                     `vocabulary` setting of everyone who reads the session",
                    event.event_type()
                );
                return Err(refused("format_unsupported", &advice));
            }
            checked => checked.map_err(|error| refused("usage", &error))?,
        }
        Ok(Some(event))
    }

    /// Hands an event to the store, which stores it with what comes soon after.
    async fn publish(&self, event: Event) -> Result<(), Failure> {
        let published = self.store.publish(self.id, event).await;
        match published.map_err(|error| Failure::new(error.kind(), &error))? {
            Routed::ToWriter => Ok(()),
            Routed::NoWriter => {
                let closed = HandleClosed { id: self.id.clone(), operation: "publish" };
                Err(Failure::new("handle_closed", closed))
            }
        }
    }

    /// Stores what has come in and is not stored.
    async fn store_rest(&mut self) -> Result<(), Failure> {
        if self.limit.is_none() {
            // A flush would make a session that got no event.
            if self.next == self.found {
                return Ok(());
            }
            let _routed = self.store.flush_session(self.id, &Cancel::never()).await?;
            return Ok(());
        }
        let batch = std::mem::take(&mut self.batch);
        let first = batch.first().map(Event::seq);
        match self.handle.append(batch, &Cancel::never()).await {
            Ok(_) => Ok(()),
            Err(error) => {
                self.next = first.unwrap_or(self.next);
                Err(error.into())
            }
        }
    }

    /// The seq that the next event must carry, when everything was stored.
    fn stored_through(&self) -> Seq {
        self.batch.first().map_or(self.next, Event::seq)
    }
}
