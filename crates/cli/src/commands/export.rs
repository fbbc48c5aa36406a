//! `turnkeep export`: a session as a ZIP archive.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, IsTerminal as _, Write},
    path::{Path, PathBuf},
};

use serde_json::json;
use tempfile::NamedTempFile;
use turnkeep_host::export::{Archive, ExportError, Exporter, Plan};
use turnkeep_log::SessionId;
use turnkeep_store::{attachments::Attachments, error::NotFound};

use crate::{
    args::ExportArgs,
    context::Context,
    failure::Failure,
    output::{Output, argument, counted, interrupted, named},
    progress::Bar,
    store,
    transcript::printable,
};

/// Exports to the file that is named, else to standard output.
pub(crate) async fn run(args: ExportArgs, context: &Context) -> Result<(), Failure> {
    let id = store::session_id(&args.id)?;
    let target = match args.output {
        Some(path) => Some(Target::of(path)?),
        None if io::stdout().is_terminal() => {
            return Err(Failure::usage(format!(
                "an archive is nothing for a terminal; name a file, such as `turnkeep export {} -o \
                 session.zip`, or pipe it",
                argument(&id)
            )));
        }
        None => None,
    };
    let settings = &context.settings;
    let attachments = store::attachments(settings)?.map(Attachments::at);
    let exporter = Exporter::new(store::open(settings)?, attachments);
    let bar = Bar::start();
    let export = export(&exporter, &id, args.descendants, target, &bar);
    let exported = tokio::select! {
        exported = export => exported,
        stopped = interrupted() => {
            stopped.and(Err(Failure::new("cancelled", "the export was stopped; nothing is left of it")))
        }
    };
    bar.end();
    match exported.map_err(|failure| failure.of(&id))? {
        Some(report) => report.print(&id, context.json),
        None => Ok(()),
    }
}

async fn export(
    exporter: &Exporter,
    id: &SessionId,
    descendants: bool,
    target: Option<Target>,
    bar: &Bar,
) -> Result<Option<Report>, Failure> {
    bar.begin(id.as_str(), 1, 1);
    // The whole is not known before it was looked at.
    let checked = exporter.check(id, descendants, |_| {}).await;
    let plan = checked.map_err(|error| told(id, error))?;
    let mut archive = exporter.archive(plan.clone());
    let Some(target) = target else {
        let mut out = io::stdout().lock();
        write_all(&mut archive, &mut out, bar, id, |error| {
            Failure::io("cannot write to standard output", error)
        })
        .await?;
        return Ok(None);
    };
    let mut file = target.create()?;
    let cannot = |error: &io::Error| target.failed("write", error);
    let bytes = write_all(&mut archive, file.as_file_mut(), bar, id, cannot).await?;
    target.keep(file)?;
    Ok(Some(Report { path: target.path, plan, bytes }))
}

/// Writes the archive, and says how many bytes it has.
async fn write_all(
    archive: &mut Archive,
    out: &mut impl Write,
    bar: &Bar,
    id: &SessionId,
    failed: impl Fn(&io::Error) -> Failure,
) -> Result<u64, Failure> {
    let mut bytes = 0;
    while let Some(piece) = archive.next().await.map_err(|error| told(id, error))? {
        out.write_all(&piece).map_err(|error| failed(&error))?;
        bytes += piece.len() as u64;
        bar.set(archive.done(), archive.plan().bytes());
    }
    out.flush().map_err(|error| failed(&error))?;
    Ok(bytes)
}

fn told(id: &SessionId, error: ExportError) -> Failure {
    if error.is_not_found() {
        return NotFound { id: id.clone() }.into();
    }
    Failure::new(error.kind(), error)
}

/// The file that an archive is to become.
#[derive(Debug)]
struct Target {
    path: PathBuf,
    folder: PathBuf,
}

impl Target {
    /// Checks what can be known before the work.
    fn of(path: PathBuf) -> Result<Self, Failure> {
        if path.file_name().is_none() {
            return Err(Failure::usage(format!("{} is no name for a file", path.display())));
        }
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        let target = Self { path, folder };
        match fs::symlink_metadata(&target.path) {
            Ok(_) => Err(target.exists()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(target),
            Err(error) => Err(target.failed("look at", &error)),
        }
    }

    /// Begins it beside its place, where nobody takes it for the archive.
    fn create(&self) -> Result<NamedTempFile, Failure> {
        let mut prefix = OsString::from(".");
        prefix.push(self.path.file_name().unwrap_or_default());
        let part =
            tempfile::Builder::new().prefix(&prefix).suffix(".part").tempfile_in(&self.folder);
        part.map_err(|error| self.failed("create", &error))
    }

    /// Puts it in its place, complete and on disk, where by now there must still be nothing.
    fn keep(&self, file: NamedTempFile) -> Result<(), Failure> {
        file.as_file().sync_all().map_err(|error| self.failed("write", &error))?;
        file.persist_noclobber(&self.path).map_err(|failed| match failed.error.kind() {
            io::ErrorKind::AlreadyExists => self.exists(),
            _ => self.failed("create", &failed.error),
        })?;
        let synced = File::open(&self.folder).and_then(|folder| folder.sync_all());
        synced.map_err(|error| self.failed("write", &error))
    }

    fn exists(&self) -> Failure {
        let path = self.path.display();
        Failure::usage(format!("{path} exists; name another file, or remove that one first"))
    }

    fn failed(&self, doing: &str, error: &io::Error) -> Failure {
        Failure::io(format!("cannot {doing} {}", self.path.display()), error)
    }
}

/// What was exported.
#[derive(Debug)]
struct Report {
    path: PathBuf,
    plan: Plan,
    bytes: u64,
}

impl Report {
    fn print(&self, id: &SessionId, as_json: bool) -> Result<(), Failure> {
        let Self { path, plan, bytes } = self;
        let line = if as_json {
            json!({
                "id": id.as_str(),
                "path": path.to_string_lossy(),
                "sessions": plan.sessions(),
                "events": plan.events(),
                "images": plan.images(),
                "bytes": bytes,
            })
            .to_string()
        } else {
            let more = match plan.sessions() {
                0 | 1 => String::new(),
                some => format!(" and {}", counted(some as u64 - 1, "descendant", "descendants")),
            };
            let events = counted(plan.events(), "event", "events");
            let images = counted(plan.images() as u64, "image", "images");
            let path = printable(&path.to_string_lossy()).replace('\n', "␊");
            let of = named(id);
            format!("exported session {of}{more} to {path}: {events}, {images}, {bytes} bytes")
        };
        let mut out = Output::stdout();
        out.line(&line)?;
        out.flush()
    }
}
