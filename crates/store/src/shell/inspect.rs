//! Verifying sessions, and reading out what can be saved of them.

use std::{io, sync::Arc};

use turnkeep_log::SessionId;

use super::{failure::LogFailure, on_pool, registry::Standing, store::Core};
use crate::{
    error::{IoFailure, NotFound, SalvageError, VerifyError},
    recover::{self, Branch, Feed, Salvage},
    seam::Cancel,
    verify::{Progress, Verification},
};

/// What a backend does to say what is wrong with a session, as blocking code.
pub(crate) trait Inspect: Core {
    /// Checks what the sessions have in common.
    fn verify_storage(&self) -> Result<Verification, LogFailure> {
        Ok(Verification::default())
    }

    /// Verifies a stored session; `None` when there is nothing of it.
    fn verify(
        &self,
        id: &SessionId,
        progress: &Progress,
        cancel: &Cancel,
    ) -> Result<Option<Verification>, LogFailure>;

    /// Reads out what can be saved of a stored session.
    fn salvage(
        &self,
        id: &SessionId,
        branch: Option<Branch>,
        progress: &Progress,
        cancel: &Cancel,
        feed: &mut Feed,
    ) -> Result<(), SalvageError>;
}

/// [`SessionStore::verify_storage`](crate::SessionStore::verify_storage).
pub(crate) async fn verify_storage<C: Inspect>(
    core: &Arc<C>,
    cancel: &Cancel,
) -> Result<Verification, VerifyError> {
    super::check(cancel, "verify")?;
    let core = Arc::clone(core);
    on_pool("verify a store", move || core.verify_storage().map_err(as_verify)).await?
}

/// [`SessionStore::verify`](crate::SessionStore::verify).
pub(crate) async fn verify<C: Inspect>(
    core: &Arc<C>,
    id: &SessionId,
    progress: &Progress,
    cancel: &Cancel,
) -> Result<Verification, VerifyError> {
    super::check(cancel, "verify")?;
    let (core, id) = (Arc::clone(core), id.clone());
    let (progress, cancel) = (progress.clone(), cancel.clone());
    on_pool("verify a session", move || {
        if is_pending(&core, &id) {
            let pending = Verification { pending: true, ..Verification::of(&id) };
            return Ok(Verification { writer_active: true, ..pending });
        }
        let found = core.verify(&id, &progress, &cancel).map_err(as_verify)?;
        found.ok_or_else(|| NotFound { id }.into())
    })
    .await?
}

/// [`SessionStore::salvage`](crate::SessionStore::salvage).
pub(crate) async fn salvage<C: Inspect>(
    core: &Arc<C>,
    id: &SessionId,
    branch: Option<Branch>,
    progress: &Progress,
    cancel: &Cancel,
) -> Result<Salvage, SalvageError> {
    recover::check(cancel)?;
    let (core, id) = (Arc::clone(core), id.clone());
    let (progress, cancel) = (progress.clone(), cancel.clone());
    let (mut feed, salvage) = recover::start();
    // Not waited for: it reads on while what it has read is stored.
    drop(tokio::spawn(on_pool("read a session", move || {
        let outcome = if is_pending(&core, &id) {
            Err(NotFound { id }.into())
        } else {
            core.salvage(&id, branch, &progress, &cancel, &mut feed)
        };
        if let Err(error) = outcome {
            feed.fail(error);
        }
    })));
    salvage.await.unwrap_or_else(|| {
        let source = io::Error::other("the runtime ended before it was done");
        Err(IoFailure { context: "cannot read a session".to_owned(), source }.into())
    })
}

fn is_pending<C: Inspect>(core: &Arc<C>, id: &SessionId) -> bool {
    let standing = core.registry().owner(id).map(|owner| owner.standing());
    matches!(standing, Some(Standing::Pending { .. }))
}

/// Looking for a session fails only where the system does not let one look.
fn as_verify(failure: LogFailure) -> VerifyError {
    match failure {
        LogFailure::Io(failure) => failure.into(),
        LogFailure::Cancelled(cancelled) => cancelled.into(),
        LogFailure::FormatUnsupported(failure) => other(failure),
        LogFailure::Corrupt(failure) => other(failure),
    }
}

fn other(failure: impl std::error::Error + Send + Sync + 'static) -> VerifyError {
    let source = io::Error::other(failure);
    IoFailure { context: "cannot verify".to_owned(), source }.into()
}
