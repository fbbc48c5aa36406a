//! `turnkeep append`: events from standard input, into a session.

use std::{env, time::Duration};

use jiff::Timestamp;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Stdin},
    time::{Instant, sleep_until},
};
use turnkeep_log::{
    CompleteError, Event, EventDraft, Seq, SessionHeader, SessionId, Text, Vocabulary,
    gate::{self, GateError},
};
use turnkeep_store::{Access, Cancel, SessionHandle, SessionStore, error::OpenError};

use crate::{
    args::AppendArgs,
    context::Context,
    failure::Failure,
    output::{Output, interrupted},
    store,
};

/// What comes within this time of a batch's first event is stored with it.
const WINDOW: Duration = Duration::from_millis(200);

/// Appends every line of standard input and prints the seq that comes next.
///
/// Whatever ends the input (its end, a bad line, a signal), the events before that are stored.
pub(crate) async fn run(args: AppendArgs, context: &Context) -> Result<(), Failure> {
    let id = store::session_id(&args.id)?;
    let store = store::open(&context.settings)?;
    let named = |failure: Failure| failure.of(&id);
    let handle = owned(store.as_ref(), &id, &args).await.map_err(named)?;
    // An empty batch changes nothing and says where the log ends.
    let next = handle.append(Vec::new(), &Cancel::never()).await;
    let mut appender = Appender {
        handle: handle.as_ref(),
        id: &id,
        known: store::vocabulary(&context.settings),
        allow_unknown: args.allow_unknown,
        limit: args.batch.map_or(usize::MAX, |limit| limit as usize),
        next: next.map_err(|error| named(error.into()))?,
        batch: Vec::new(),
        line: 0,
    };
    let fed = appender.feed(BufReader::with_capacity(1 << 16, tokio::io::stdin())).await;
    let stored = appender.store().await;
    let next = appender.stored_through();
    let flushed = if args.create { handle.flush(&Cancel::never()).await } else { Ok(()) };
    let closed = handle.close().await;
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
    let cwd = match &args.cwd {
        Some(cwd) => std::path::absolute(cwd),
        None => env::current_dir(),
    };
    let cwd = cwd.map_err(|error| Failure::io("cannot tell the working directory", &error))?;
    let now = Timestamp::now().as_millisecond();
    let mut header = SessionHeader::new(id.clone(), u64::try_from(now).unwrap_or_default());
    header.cwd = Some(cwd.into_os_string().into_string().map_err(|cwd| {
        Failure::usage(format!(
            "the directory {} is not UTF-8; name another with --cwd",
            cwd.display()
        ))
    })?);
    Ok(store.create(header, &Cancel::never()).await?)
}

/// Takes lines in, and stores them batch by batch.
struct Appender<'a> {
    handle: &'a dyn SessionHandle,
    id: &'a SessionId,
    /// The types that readers will know.
    known: Vocabulary,
    /// Whether events of other types are stored too.
    allow_unknown: bool,
    /// How many events make a batch full.
    limit: usize,
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
        let mut window = Instant::now();
        let mut stop = std::pin::pin!(interrupted());
        loop {
            // A read that is called off keeps what it got so far in `line`.
            tokio::select! {
                read = input.read_until(b'\n', &mut line) => {
                    let read = read.map_err(|error| Failure::io("cannot read standard input", &error))?;
                    if read == 0 && line.is_empty() {
                        return Ok(());
                    }
                    if self.batch.is_empty() {
                        window = Instant::now() + WINDOW;
                    }
                    self.take(&line)?;
                    line.clear();
                    if self.batch.len() >= self.limit {
                        self.store().await?;
                    }
                }
                () = sleep_until(window), if !self.batch.is_empty() && self.limit == usize::MAX => {
                    self.store().await?;
                }
                stopped = &mut stop => return stopped,
            }
        }
    }

    /// Makes an event of a line and puts it in the batch. Blank lines are passed over.
    fn take(&mut self, line: &[u8]) -> Result<(), Failure> {
        self.line += 1;
        let number = self.line;
        let refused = |kind, problem: &dyn std::fmt::Display| {
            Failure::new(
                kind,
                format!("line {number} was not stored, and nothing after it: {problem}"),
            )
        };
        let text = std::str::from_utf8(line).map_err(|error| refused("usage", &error))?;
        if text.trim().is_empty() {
            return Ok(());
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
        self.next = event.seq().plus(1);
        self.batch.push(event);
        Ok(())
    }

    /// Stores the batch.
    async fn store(&mut self) -> Result<(), Failure> {
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

    /// The seq that the next event must carry, by what is stored.
    fn stored_through(&self) -> Seq {
        self.batch.first().map_or(self.next, Event::seq)
    }
}
