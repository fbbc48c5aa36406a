//! Random sessions.

use proptest::prelude::*;

use super::{Model, record};

/// One message: its kind, how long after the one before, how its id sorts among equals, and
/// whether it claims a time of its own.
pub(crate) type Draft = (prop::sample::Index, u64, u8, Option<u64>);

/// Sessions of up to forty messages.
pub(crate) fn drafts() -> impl Strategy<Value = Vec<Draft>> {
    let claim = prop_oneof![9 => Just(None), 1 => (0_u64..120).prop_map(Some)];
    prop::collection::vec((any::<prop::sample::Index>(), 0_u64..3, any::<u8>(), claim), 0..40)
}

/// What a message is, by the first letter of its id.
pub(crate) fn kind(index: prop::sample::Index) -> char {
    *index.get(&['u', 'u', 'a', 'a', 'a', 's', 't', 'c', 'd'])
}

/// A session in which every message's own time is the one it is ordered by.
pub(crate) fn truthful(drafts: &[Draft]) -> Model {
    let mut model = Model::default();
    let mut time = 10;
    for (index, (which, later, rank, _)) in drafts.iter().enumerate() {
        time += later;
        model.add(&format!("{}{rank:03}_{index}", kind(*which)), time, time);
    }
    model
}

/// A session in which some messages claim another time, never two neighbours: a message whose id
/// was used again elsewhere is an accident, not a habit.
pub(crate) fn with_claims(drafts: &[Draft]) -> Model {
    let mut model = truthful(drafts);
    let mut claimed_before = false;
    for (message, (.., claim)) in model.messages.iter_mut().zip(drafts) {
        let claim = claim.filter(|_| !claimed_before);
        claimed_before = claim.is_some();
        if let Some(time) = claim {
            message.record = record(&message.place.id, Some(time));
        }
    }
    model
}
