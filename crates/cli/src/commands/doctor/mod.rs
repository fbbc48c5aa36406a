//! `turnkeep doctor`: what the machine, the store and the upstream look like, and what to do.
//!
//! Each check makes findings, and only those that call for something to be done make the command
//! end with exit code 1. Nothing is changed: what can only be tried out is tried in a directory
//! beside the sessions that is removed again.
//!
//! | module | looks at |
//! |---|---|
//! | `settings` | the configuration file and what is set |
//! | `place` | the directory: who may get at it, its file system, its room, the clock |
//! | `probe` | what the file system does: links, locks, syncs |
//! | `tree` | files that nobody needs |
//! | `sessions` | the sessions, by state, and the trash |
//! | `upstream` | the OpenCode server |

mod place;
mod probe;
mod report;
mod sessions;
mod settings;
mod tree;
mod upstream;

#[cfg(test)]
mod tests;

use std::path::Path;

use self::report::{Finding, Report};
use crate::{
    args::DoctorArgs,
    context::Context,
    failure::Failure,
    store::{self, Spec},
};

/// Looks at everything and says what it found.
pub(crate) async fn run(args: DoctorArgs, context: &Context) -> Result<(), Failure> {
    let mut settings = context.settings.clone();
    settings.upstream = args.upstream.or(settings.upstream);
    let mut report = Report::default();
    report.add(settings::versions());
    report.add(settings::configuration(&settings, context.config_file.as_deref()));
    match Spec::of(&settings) {
        Err(failure) => {
            let advice = "name a store with --store or TURNKEEP_STORE";
            report.add(Finding::todo("store", failure.message(), advice));
        }
        Ok(Spec::Memory) => {
            let message = "memory: it is empty, and gone with each command";
            report.add(Finding::note("store", message, "name a directory to keep sessions in"));
        }
        Ok(Spec::Directory(root)) => {
            let ours = root.is_dir() && place::is_ours(&root);
            report.add(place::directory(&root, &settings));
            if ours || !root.exists() {
                examine(&mut report, &root, ours);
            }
            if ours {
                report.extend(tree::look(&root));
            }
        }
        Ok(Spec::Sqlite(file)) => {
            report.add(place::database(&file));
            let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
            examine(&mut report, parent.unwrap_or(Path::new(".")), file.exists());
        }
    }
    match store::open(&settings) {
        Ok(store) => report.extend(sessions::look(store.as_ref()).await),
        Err(failure) => report.add(Finding::todo(
            "sessions",
            failure.message(),
            "no command can use the store before that is mended",
        )),
    }
    report.add(upstream::look(&settings).await);
    report.print(&settings, context)
}

/// Looks at the directory that the store is in; tries out what it can do when the store is there.
fn examine(report: &mut Report, dir: &Path, is_there: bool) {
    report.extend(place::file_system(dir));
    report.add(place::clock());
    if is_there {
        report.extend(probe::run(dir));
    }
}
