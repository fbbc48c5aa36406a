//! The live-write suite: what becomes of events that are published by the id of their session.
//!
//! [`live_suite!`](crate::live_suite) makes one `#[test]` of each behaviour, as
//! [`contract_suite!`](crate::contract_suite) does for the rest of the seam; the example
//! [there](super) runs both. These tests stop the clock, so that a window of 200 milliseconds is
//! over when a test says so and not before, and they need storage that [fails](Failing) when told
//! to.

mod ending;
mod failing;
mod routing;
mod warnings;
mod windows;

use std::{
    future::Future,
    time::{Duration, Instant},
};

pub use self::{ending::*, failing::*, routing::*, windows::*};
use super::{
    Backend,
    steps::{event, id, never, read},
};
use crate::{Access, Routed, SessionStore, error::OpenError};

/// How long the first event waits for others.
const WINDOW: Duration = Duration::from_millis(200);

/// The smallest step of the clock.
const TICK: Duration = Duration::from_millis(1);

/// How long to wait, in real time, for what must happen at once.
const PATIENCE: Duration = Duration::from_secs(20);

/// A backend whose storage fails when it is told to.
pub trait Failing: Backend {
    /// From now on every write to the place fails and leaves it as it was, as on a disk that is
    /// full; or writes work again. Reading goes on as before. There is a session stored whenever
    /// this is called.
    fn set_failing(&self, failing: bool);
}

/// Runs one test with the clock stopped: it moves on only while everything waits for it.
///
/// # Panics
///
/// If the contract is broken, and if there is no runtime to be had.
pub fn run(test: impl Future<Output = ()>) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.unwrap().block_on(test);
}

/// Publishes consecutive events to a session that has a writer.
async fn publish(store: &dyn SessionStore, name: &str, first: u64, count: u64) {
    for seq in first..first + count {
        let routed = store.publish(&id(name), event(seq)).await.unwrap();
        assert_eq!(routed, Routed::ToWriter);
    }
}

/// Flushes a session that has a writer.
async fn flush_session(store: &dyn SessionStore, name: &str) {
    let routed = store.flush_session(&id(name), &never()).await.unwrap();
    assert_eq!(routed, Routed::ToWriter);
}

/// How many events of a session are stored, as another process sees it.
async fn stored(backend: &impl Backend, name: &str) -> usize {
    match backend.instance().open(&id(name), Access::Read, &never()).await {
        Ok(reader) => read(&*reader).await.len(),
        Err(OpenError::NotFound(_)) => 0,
        Err(error) => panic!("{error}"),
    }
}

/// Lets everything happen that can happen without the clock moving on.
async fn settle(backend: &impl Backend, name: &str) -> usize {
    for _ in 0..10 {
        tokio::task::yield_now().await;
        stored(backend, name).await;
    }
    stored(backend, name).await
}

/// Waits, while the clock stands still, until this many events are stored.
async fn eventually_stored(backend: &impl Backend, name: &str, count: usize) {
    let (start, clock) = (Instant::now(), tokio::time::Instant::now());
    while stored(backend, name).await != count {
        assert!(start.elapsed() < PATIENCE, "never stored");
        tokio::task::yield_now().await;
    }
    assert_eq!(clock, tokio::time::Instant::now(), "the clock has moved on");
}

/// Makes a module of tests that run a [`Failing`](crate::contract::live::Failing) backend through
/// the live-write suite.
///
/// `live_suite!(name: Type)` makes a module `name`; the type is looked up where the macro is
/// called.
#[macro_export]
macro_rules! live_suite {
    ($module:ident: $backend:ty) => {
        $crate::live_suite! { @tests $module $backend:
            events_are_stored_after_one_window_and_not_a_tick_earlier,
            later_events_do_not_prolong_a_window,
            an_explicit_flush_ends_a_window,
            events_without_a_writer_are_not_stored,
            a_pending_session_is_stored_with_its_first_events,
            a_flush_of_the_handle_stores_what_waits,
            an_append_comes_after_what_was_published_before,
            an_event_out_of_sequence_disturbs_no_other,
            a_full_buffer_is_stored_at_once,
            a_full_buffer_that_cannot_be_stored_takes_no_more,
            flushing_a_session_surfaces_a_retained_failure_and_stores_once,
            flushing_a_store_tries_every_session,
            a_failing_flush_of_a_store_names_every_session,
            a_failed_batch_keeps_its_order_and_silences_the_timer,
            an_append_behind_a_failed_batch_fails_with_it,
            disposing_stores_what_waits_and_closes,
            disposing_without_a_writer_does_nothing,
            a_failing_disposal_is_warned_of,
            closing_stores_what_waits,
            dropping_a_handle_stores_what_waits,
            closing_surfaces_a_failing_batch_and_frees_the_session,
            every_failure_has_a_kind_and_names_the_session,
            a_handle_that_is_being_closed_takes_no_events,
            a_later_writer_receives_later_events,
            a_writer_that_lost_its_session_says_so,
            tearing_everything_down_stores_what_waits,
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
                    $crate::contract::live::run($crate::contract::live::$test(&backend));
                }
            )+
        }
    };
}
