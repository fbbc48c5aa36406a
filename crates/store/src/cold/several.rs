//! Several things, a few at a time.

use std::future::Future;

use tokio::task::JoinSet;

/// Runs futures, at most `limit` of them at a time, and gives their outcomes in their order; none
/// for one that broke off. Those that are running stop when this is dropped.
pub(super) async fn at_a_time<F>(
    limit: usize,
    futures: impl Iterator<Item = F>,
) -> Vec<Option<F::Output>>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let mut waiting = futures.enumerate();
    let mut running = JoinSet::new();
    let mut outcomes = Vec::new();
    loop {
        while running.len() < limit
            && let Some((at, future)) = waiting.next()
        {
            outcomes.push(None);
            running.spawn(async move { (at, future.await) });
        }
        match running.join_next().await {
            Some(Ok((at, outcome))) => {
                if let Some(place) = outcomes.get_mut(at) {
                    *place = Some(outcome);
                }
            }
            Some(Err(_)) => {}
            None => return outcomes,
        }
    }
}
