//! What the backends' stores are to their users: the operations of the shell, by their names.

/// Makes a type with a `shared` [`Core`](super::Core) a [`SessionStore`](crate::SessionStore).
macro_rules! session_store {
    ($store:ty) => {
        const _: () = {
            use turnkeep_log::{Event, SessionHeader, SessionId};

            use crate::{
                Access, Cancel, Deleted, Emptied, Emptying, ListQuery, Routed, SessionHandle,
                SessionList, SessionStat, SessionStore, Trashed,
                error::{
                    CloseError, CreateError, DeleteError, FlushError, FlushStoreError, ListError,
                    OpenError, PublishError, RestoreError, SalvageError, StatError, TrashError,
                    VerifyError,
                },
                recover::{Branch, Salvage},
                verify::{Progress, Verification},
            };

            #[async_trait::async_trait]
            impl SessionStore for $store {
                async fn create(
                    &self,
                    header: SessionHeader,
                    cancel: &Cancel,
                ) -> Result<Box<dyn SessionHandle>, CreateError> {
                    crate::shell::create(&self.shared, header, cancel).await
                }

                async fn open(
                    &self,
                    id: &SessionId,
                    access: Access,
                    cancel: &Cancel,
                ) -> Result<Box<dyn SessionHandle>, OpenError> {
                    crate::shell::open(&self.shared, id, access, cancel).await
                }

                async fn stat(
                    &self,
                    id: &SessionId,
                    cancel: &Cancel,
                ) -> Result<Option<SessionStat>, StatError> {
                    crate::shell::stat(&self.shared, id, cancel).await
                }

                async fn list(
                    &self,
                    query: &ListQuery,
                    cancel: &Cancel,
                ) -> Result<SessionList, ListError> {
                    crate::shell::list(&self.shared, query, cancel).await
                }

                async fn flush(&self, cancel: &Cancel) -> Result<(), FlushStoreError> {
                    crate::shell::flush(&self.shared, cancel).await
                }

                async fn delete(
                    &self,
                    id: &SessionId,
                    cancel: &Cancel,
                ) -> Result<Deleted, DeleteError> {
                    crate::shell::delete(&self.shared, id, cancel).await
                }

                async fn trash(&self, cancel: &Cancel) -> Result<Vec<Trashed>, TrashError> {
                    crate::shell::trash(&self.shared, cancel).await
                }

                async fn restore(
                    &self,
                    id: &SessionId,
                    deleted_at: Option<i64>,
                    cancel: &Cancel,
                ) -> Result<Deleted, RestoreError> {
                    crate::shell::restore(&self.shared, id, deleted_at, cancel).await
                }

                async fn empty_trash(
                    &self,
                    which: Emptying,
                    cancel: &Cancel,
                ) -> Result<Emptied, TrashError> {
                    crate::shell::empty_trash(&self.shared, which, cancel).await
                }

                async fn publish(
                    &self,
                    id: &SessionId,
                    event: Event,
                ) -> Result<Routed, PublishError> {
                    crate::shell::publish(&self.shared, id, event).await
                }

                async fn flush_session(
                    &self,
                    id: &SessionId,
                    cancel: &Cancel,
                ) -> Result<Routed, FlushError> {
                    crate::shell::flush_session(&self.shared, id, cancel).await
                }

                async fn dispose(&self, id: &SessionId) -> Result<Routed, CloseError> {
                    crate::shell::dispose(&self.shared, id).await
                }

                fn owns(&self, id: &SessionId) -> bool {
                    self.shared.registry.owner(id).is_some()
                }

                async fn verify_storage(
                    &self,
                    cancel: &Cancel,
                ) -> Result<Verification, VerifyError> {
                    crate::shell::verify_storage(&self.shared, cancel).await
                }

                async fn verify(
                    &self,
                    id: &SessionId,
                    progress: &Progress,
                    cancel: &Cancel,
                ) -> Result<Verification, VerifyError> {
                    crate::shell::verify(&self.shared, id, progress, cancel).await
                }

                async fn salvage(
                    &self,
                    id: &SessionId,
                    branch: Option<Branch>,
                    progress: &Progress,
                    cancel: &Cancel,
                ) -> Result<Salvage, SalvageError> {
                    crate::shell::salvage(&self.shared, id, branch, progress, cancel).await
                }
            }
        };
    };
}

pub(crate) use session_store;
