//! What every store owes its users, as tests that any backend can run.
//!
//! Behind the feature `contract`. A backend, wherever it is made, implements [`Backend`] in one of
//! its test programs and calls [`contract_suite!`](crate::contract_suite), which makes one `#[test]`
//! of each behaviour that is promised by [`SessionStore`] and [`SessionHandle`](crate::SessionHandle).
//! With storage that fails when it is told to, [`live_suite!`](crate::live_suite) does the same for
//! events that are [published](SessionStore::publish):
//!
//! ```
//! use std::sync::Arc;
//!
//! use turnkeep_store::{
//!     SessionStore,
//!     contract::{Backend, live::Failing},
//!     memory::{Disk, MemoryStore},
//! };
//!
//! /// The place, which outlives the stores on it.
//! struct Mine(Disk);
//!
//! impl Backend for Mine {
//!     fn empty() -> Self {
//!         Self(Disk::new())
//!     }
//!
//!     fn instance(&self) -> Arc<dyn SessionStore> {
//!         Arc::new(MemoryStore::new(&self.0))
//!     }
//! }
//!
//! impl Failing for Mine {
//!     fn set_failing(&self, failing: bool) {
//!         self.0.set_full(failing);
//!     }
//! }
//!
//! turnkeep_store::contract_suite!(mine: Mine);
//! turnkeep_store::live_suite!(mine_live: Mine);
//! # fn main() {
//! #     use turnkeep_store::contract::{self, live};
//! #     contract::run(contract::slices_of_a_log(&Mine::empty()));
//! #     live::run(live::closing_surfaces_a_failing_batch_and_frees_the_session(&Mine::empty()));
//! # }
//! ```
//!
//! With `turnkeep-store = { version = "…", features = ["contract"] }` among its `dev-dependencies`
//! it needs nothing else. The tests say what must hold through the seam. What a backend promises
//! about its storage (that a crash leaves a log readable, that a foreign file is left alone) is for
//! tests of its own, which may use the [`steps`].

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "tests: all of them panic where the contract is broken"
)]

mod appending;
mod cancelling;
mod closing;
mod creating;
mod deleting;
mod listing;
pub mod live;
mod owning;
mod reading;
pub mod steps;
mod verifying;

use std::{future::Future, sync::Arc};

pub use self::{
    appending::*, cancelling::*, closing::*, creating::*, deleting::*, listing::*, owning::*,
    reading::*, verifying::*,
};
use crate::SessionStore;

/// A place where sessions are stored, and what the tests do to it that the seam does not offer.
pub trait Backend: Send + Sync + Sized + 'static {
    /// An empty place.
    fn empty() -> Self;

    /// A store on it that knows nothing of the others, as in another process.
    fn instance(&self) -> Arc<dyn SessionStore>;

    /// Leaves behind the last event of a session what an append leaves that was interrupted half
    /// way. No instance is left when this is called. Nothing, for a place that cannot be left so.
    fn tear(&self, session: &str) {
        let _ = session;
    }
}

/// Runs one test of the contract on a runtime of its own.
///
/// # Panics
///
/// If the contract is broken, and if there is no runtime to be had.
pub fn run(test: impl Future<Output = ()>) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.unwrap().block_on(test);
}

/// Makes a module of tests that run a [`Backend`](crate::contract::Backend) through the contract.
///
/// `contract_suite!(name: Type)` makes a module `name`; the type is looked up where the macro is
/// called.
#[macro_export]
macro_rules! contract_suite {
    ($module:ident: $backend:ty) => {
        $crate::contract_suite! { @tests $module $backend:
            slices_of_a_log,
            an_empty_batch_changes_nothing,
            reads_past_the_end_are_empty,
            a_pending_session_cannot_be_created_again,
            concurrent_creates_have_one_winner,
            a_stored_session_cannot_be_created_again,
            an_absent_session_cannot_be_opened,
            a_creator_owns_its_session,
            a_read_handle_changes_nothing,
            a_closed_handle_refuses_everything,
            dropping_a_handle_gives_the_session_back,
            closing_takes_effect_at_the_call,
            a_dropped_append_is_not_undone,
            close_reports_what_nobody_waited_for,
            flushing_the_store_stores_every_pending_session,
            a_closed_handle_counts_as_flushed,
            a_pending_session_is_seen_by_its_store_alone,
            closing_a_pending_session_erases_it,
            readers_of_a_pending_session_see_it_stored,
            flush_stores_a_session_without_events,
            a_session_has_one_writer_among_all_instances,
            of_rival_creators_the_first_to_store_wins,
            reads_are_fresh,
            reads_of_one_handle_follow_the_log,
            a_writer_reads_on_both_sides_of_its_appends,
            another_instance_continues_the_log,
            a_batch_must_continue_the_log,
            concurrent_appends_keep_their_order,
            unknown_types_are_stored_and_not_read,
            unknown_types_count_before_malformed_messages,
            retired_types_are_not_read,
            malformed_messages_are_not_read,
            a_torn_tail_is_never_served_and_cut_by_the_next_append,
            texts_come_back_byte_for_byte,
            deltas_come_back_as_they_were,
            headers_come_back_with_all_their_fields,
            a_header_of_another_version_is_stored_and_not_read,
            a_header_that_no_reader_takes_is_refused,
            revisions_name_states_of_a_log,
            absent_sessions_have_no_stat,
            a_list_is_newest_first_and_pages,
            a_list_can_be_filtered,
            a_cursor_of_another_kind_is_refused,
            what_is_cancelled_before_has_no_effect,
            a_waiting_append_can_be_cancelled,
            flushing_after_an_append_changes_nothing,
            what_is_not_json_is_refused_and_takes_no_seq,
            a_batch_is_what_it_was_at_the_call,
            ignorable_events_are_kept_and_counted,
            the_id_of_an_erased_session_is_free_again,
            closing_again_does_nothing_more,
            a_flush_stores_no_session_that_is_being_closed,
            a_dropped_flush_is_not_undone,
            a_close_that_nobody_waits_for_gives_the_session_back,
            a_dropped_open_or_create_holds_nothing,
            no_range_is_too_large,
            what_was_read_is_the_callers_own,
            a_refused_format_is_not_called_damage,
            no_read_rewrites_what_other_builds_wrote,
            an_open_turn_is_served_as_it_is_stored,
        a_deleted_session_is_in_the_trash_and_can_be_restored, a_deletion_can_be_cancelled, a_deletion_has_no_half_way, a_stored_session_is_intact, an_owned_session_cannot_be_deleted, an_unreadable_session_can_be_deleted, emptying_the_trash_is_for_good, recovering_an_intact_session_copies_it, recovering_keeps_what_readers_take, resuming_closes_an_interrupted_turn_once, rivals_find_a_session_whole, the_id_of_a_deleted_session_is_free, verifying_needs_no_ownership, verifying_tells_every_event_that_readers_refuse,
        }
    };
    (@tests $module:ident $backend:ty: $($test:ident,)+) => {
        mod $module {
            #[allow(unused_imports, reason = "the type may be named by a path")]
            use super::*;

            $(
                #[test]
                fn $test() {
                    let backend = <$backend as $crate::contract::Backend>::empty();
                    $crate::contract::run($crate::contract::$test(&backend));
                }
            )+
        }
    };
}
