//! `turnkeep recover`: what is left of a damaged session, as a new one.

use serde_json::json;
use turnkeep_log::SessionId;
use turnkeep_store::{
    Cancel,
    recover::{Branch, RecoverOptions, Recovery, recover},
};

use crate::{
    args::RecoverArgs,
    context::Context,
    failure::Failure,
    output::{Output, counted},
    progress::Bar,
    store, verification,
};

/// Saves what can be saved, and says what that is.
pub(crate) async fn run(args: RecoverArgs, context: &Context) -> Result<(), Failure> {
    let id = store::session_id(&args.id)?;
    let options = RecoverOptions {
        into: store::session_id(&args.into)?,
        branch: args.branch.as_deref().map(branch).transpose()?,
        cwd: args.cwd.as_ref().map(|cwd| store::session_cwd(cwd)).transpose()?,
    };
    let store = store::open(&context.settings)?;
    let bar = Bar::start();
    bar.begin(id.as_str(), 1, 1);
    let recovered = recover(store.as_ref(), &id, &options, &bar.progress(), &Cancel::never()).await;
    bar.end();
    let recovery = recovered.map_err(|error| Failure::from(error).of(&id))?;
    let mut out = Output::stdout();
    if context.json {
        out.line(&to_json(&id, &recovery))?;
    } else {
        for line in lines(&id, &recovery) {
            out.line(&line)?;
        }
    }
    out.flush()
}

fn branch(name: &str) -> Result<Branch, Failure> {
    match name {
        "first" => Ok(Branch::First),
        "last" => Ok(Branch::Last),
        other => Err(Failure::usage(format!("a branch is first or last, not `{other}`"))),
    }
}

fn lines(id: &SessionId, recovery: &Recovery) -> Vec<String> {
    let Recovery { into, kept, salvaged, left, stopped, .. } = recovery;
    let events = counted(*kept, "event", "events");
    let mut lines = vec![match salvaged {
        0 => format!("kept {events} of {id} in {into}"),
        more => format!("kept {events} of {id} in {into}, {more} that readers do not get to"),
    }];
    let behind = counted(*left, "readable event", "readable events");
    lines.push(match (left, stopped) {
        (0, None) => "left nothing behind".to_owned(),
        (_, Some(reason)) => format!("left {behind} behind: {reason}"),
        (_, None) => format!("left {behind} behind"),
    });
    if recovery.header_lost {
        lines.push("the header was lost: only the directory and the first time are known".into());
    }
    if !recovery.verification.is_intact() {
        lines.push("what is wrong with the log, which is as it was:".to_owned());
        lines.extend(verification::findings_lines(&recovery.verification));
    }
    lines.iter().map(|line| crate::transcript::printable(line)).collect()
}

fn to_json(id: &SessionId, recovery: &Recovery) -> String {
    json!({
        "id": id.as_str(),
        "into": recovery.into.as_str(),
        "kept": recovery.kept,
        "salvaged": recovery.salvaged,
        "left": recovery.left,
        "stopped": recovery.stopped,
        "headerLost": recovery.header_lost,
        "findings": verification::findings_json(&recovery.verification),
    })
    .to_string()
}
