//! `turnkeep show`: the last turns of a session.

use std::{collections::HashSet, time::Duration};

use serde_json::Value;
use turnkeep_host::{Host, TurnPageRequest};
use turnkeep_log::SessionId;
use turnkeep_store::error::NotFound;
use turnkeep_turns::{
    TurnQuery,
    query::{DEFAULT_WIDTH, Param, parse_turns},
};

use crate::{
    args::ShowArgs,
    commands::serve::host,
    context::Context,
    failure::Failure,
    output::{Output, named, quoted, until_interrupted},
    store,
    transcript::Transcript,
};

/// How often a followed session is asked for.
const FOLLOW_EVERY: Duration = Duration::from_millis(250);

/// Prints the page: as a transcript, or with `--json` exactly as the HTTP route sends it.
pub(crate) async fn run(args: ShowArgs, context: &Context) -> Result<(), Failure> {
    let id = store::session_id(&args.id)?;
    let mut settings = context.settings.clone();
    settings.upstream = args.upstream.or(settings.upstream);
    let host = host(store::open(&settings)?, &settings)?;
    let turns = parse_turns(Param::One(&args.turns)).map_err(Failure::usage)?;
    let width = settings.scan_limit.map_or(DEFAULT_WIDTH, usize::from);
    let request = TurnPageRequest {
        query: TurnQuery { turns, width, before: args.before },
        directory: None,
        include_reasoning: true,
    };
    let source = Source { host: &host, has_upstream: settings.upstream.is_some() };
    let page = source.page(&id, &request).await?;
    let mut out = Output::stdout();
    if context.json {
        out.line(&page)?;
    } else {
        draw(&page, &mut out)?;
    }
    out.flush()?;
    if !context.json && records(&parse(&page)?).next().is_none() && request.query.before.is_none() {
        eprintln!("session {} has no messages yet", named(&id));
    }
    if args.follow {
        let follow = Follow { id: &id, source, request, json: context.json };
        until_interrupted(follow.run(&page, &mut out)).await?;
    }
    Ok(())
}

/// Where the pages come from.
#[derive(Clone, Copy)]
struct Source<'a> {
    host: &'a Host,
    has_upstream: bool,
}

impl Source<'_> {
    async fn page(self, id: &SessionId, request: &TurnPageRequest) -> Result<String, Failure> {
        self.host.turn_page_json(id.as_str(), request).await.map_err(|error| {
            let told = error.to_string();
            let failure = match error.kind() {
                "session_not_found" if self.has_upstream => {
                    let told = "found neither in the store nor at the upstream";
                    Failure::new("not_found", format!("session {} is {told}", named(id)))
                }
                // The store's own word and sentence for it.
                "session_not_found" => NotFound { id: id.clone() }.into(),
                kind if told.starts_with("session \"") => Failure::new(kind, told),
                kind => Failure::new(kind, format!("session \"{id}\": {told}")),
            };
            failure.of(id)
        })
    }
}

fn parse(page: &str) -> Result<Value, Failure> {
    serde_json::from_str(page)
        .map_err(|error| Failure::new("upstream", format!("the page is not JSON: {error}")))
}

fn draw(page: &str, out: &mut Output) -> Result<(), Failure> {
    let page = parse(page)?;
    let transcript = Transcript::new(out.colours());
    if let Some(cursor) = page.get("cursor").and_then(Value::as_str) {
        let again = again_before(std::env::args().skip(1), cursor);
        out.line(&transcript.hint(&format!("older turns: turnkeep {again}")))?;
        out.line("")?;
    }
    for record in records(&page) {
        for line in transcript.record(record) {
            out.line(&line)?;
        }
    }
    Ok(())
}

/// The arguments of this command again, for the page before this cursor, to be pasted to a shell.
fn again_before(arguments: impl Iterator<Item = String>, cursor: &str) -> String {
    let mut again = Vec::new();
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        if argument == "--before" {
            arguments.next();
        } else if !argument.starts_with("--before=") && argument != "--follow" {
            again.push(quoted(&argument));
        }
    }
    again.push(format!("--before {cursor}"));
    again.join(" ")
}

fn records(page: &Value) -> impl Iterator<Item = &Value> {
    page.get("records").and_then(Value::as_array).into_iter().flatten()
}

/// Goes on showing a session.
struct Follow<'a> {
    id: &'a SessionId,
    source: Source<'a>,
    request: TurnPageRequest,
    json: bool,
}

impl Follow<'_> {
    /// Shows each record once, when nothing more is expected of it: a person's at once, an
    /// assistant's when it has ended or a later record stands behind it. With `--json`, a whole
    /// page whenever it has changed.
    async fn run(&self, first: &str, out: &mut Output) -> Result<(), Failure> {
        let transcript = Transcript::new(out.colours());
        // What was shown half done is shown again once it is done.
        let mut shown: HashSet<String> =
            settled(&parse(first)?).into_iter().filter_map(id_of).collect();
        let mut last = first.to_owned();
        loop {
            tokio::time::sleep(FOLLOW_EVERY).await;
            let text = self.source.page(self.id, &self.request).await?;
            if text == last {
                continue;
            }
            if self.json {
                out.line(&text)?;
            } else {
                for record in settled(&parse(&text)?) {
                    if id_of(record).is_some_and(|id| shown.insert(id)) {
                        for line in transcript.record(record) {
                            out.line(&line)?;
                        }
                    }
                }
            }
            out.flush()?;
            last = text;
        }
    }
}

fn id_of(record: &Value) -> Option<String> {
    record.pointer("/info/id").and_then(Value::as_str).map(str::to_owned)
}

/// The records of a page that nothing more is expected of.
fn settled(page: &Value) -> Vec<&Value> {
    let mut all: Vec<_> = records(page).collect();
    if all.last().is_some_and(|last| !is_settled(last)) {
        all.pop();
    }
    all
}

fn is_settled(record: &Value) -> bool {
    let Some(info) = record.get("info") else { return false };
    info.get("role").and_then(Value::as_str) == Some("user")
        || info.pointer("/time/completed").is_some()
        || info.get("error").is_some()
}

#[cfg(test)]
mod tests {
    use super::again_before;

    #[test]
    fn the_hint_repeats_the_command_line() {
        let again = |line: &[&str]| again_before(line.iter().map(|&word| word.to_owned()), "oc1.x");
        assert_eq!(again(&["show", "s"]), "show s --before oc1.x");
        let line = ["--store", "my dir", "show", "it's", "--before", "oc1.a", "--turns", "2"];
        assert_eq!(again(&line), r"--store 'my dir' show 'it'\''s' --turns 2 --before oc1.x");
        assert_eq!(again(&["show", "s", "--before=oc1.a", "--follow"]), "show s --before oc1.x");
    }
}
