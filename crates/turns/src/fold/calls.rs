//! Which tool part an event speaks of.

use std::collections::HashMap;

use turnkeep_log::json::Json;

/// The turn and the step an event says it belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    turn: Option<i64>,
    step: Option<i64>,
}

impl Place {
    pub(super) fn of(data: Json<'_>) -> Self {
        let number = |key| data.get(key).and_then(Json::as_safe_integer);
        Self { turn: number("turn"), step: number("step") }
    }

    pub(super) fn at(turn: Option<Json<'_>>, step: Option<Json<'_>>) -> Self {
        Self {
            turn: turn.and_then(Json::as_safe_integer),
            step: step.and_then(Json::as_safe_integer),
        }
    }
}

/// The part that shows a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) record: usize,
    pub(super) tool: usize,
}

/// The calls without an answer yet, by their id.
///
/// Some providers count their call ids from the start in every step. So an event takes the oldest
/// call with its id in its own turn and step, and only where there is none the newest with that id:
/// a result may come when its step is long over, and a writer may not say where it belongs.
#[derive(Default)]
pub(super) struct Calls {
    open: HashMap<String, Vec<Call>>,
}

struct Call {
    shown: Shown,
    place: Place,
    called: bool,
}

impl Calls {
    pub(super) fn ask(&mut self, id: String, shown: Shown, place: Place) {
        self.open.entry(id).or_default().push(Call { shown, place, called: false });
    }

    /// The call that begins to run.
    pub(super) fn start(&mut self, id: &str, place: Place) -> Option<Shown> {
        let calls = self.open.get_mut(id)?;
        let at = pick(calls, place, |call| !call.called)?;
        let call = calls.get_mut(at)?;
        call.called = true;
        Some(call.shown)
    }

    /// The call that is answered. It is not looked up again: an answer is never overwritten.
    pub(super) fn answer(&mut self, id: &str, place: Place) -> Option<Shown> {
        let calls = self.open.get_mut(id)?;
        let at = pick(calls, place, |_| true)?;
        let call = calls.remove(at);
        if calls.is_empty() {
            self.open.remove(id);
        }
        Some(call.shown)
    }
}

fn pick(calls: &[Call], place: Place, fits: impl Fn(&Call) -> bool) -> Option<usize> {
    calls
        .iter()
        .position(|call| call.place == place && fits(call))
        .or_else(|| calls.iter().rposition(fits))
}
