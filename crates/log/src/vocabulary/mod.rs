//! The event types that a build knows.

#[cfg(test)]
mod tests;

use std::{borrow::Cow, collections::BTreeSet};

/// The types of format v0, sorted.
const KNOWN: [&str; 51] = [
    "agent-preset/selected",
    "agent/inbox/spliced",
    "approval/asked",
    "approval/decided",
    "approval/policy",
    "assistant/chunk",
    "assistant/message",
    "command/done",
    "command/run",
    "compaction/end",
    "compaction/prune",
    "compaction/start",
    "compaction/summary",
    "feedback/record",
    "goal/change",
    "hook/invoked",
    "hook/result",
    "llm/retry",
    "llm/retry-started",
    "model/selection",
    "permission/preset",
    "plan/mode",
    "request/context",
    "request/header",
    "sandbox/mode",
    "schedule/change",
    "session-log-deepseek/delivery-accepted",
    "session/end-seed",
    "session/title",
    "session/title-llm-request",
    "step/end",
    "step/start",
    "subagent/descriptor",
    "subagent/model-selection-policy",
    "team/member",
    "team/message/delivered",
    "team/message/queued",
    "team/task",
    "todo/write",
    "tool-workflow/agent-end",
    "tool-workflow/agent-start",
    "tool-workflow/run-end",
    "tool-workflow/run-start",
    "tool/call",
    "tool/code-dispatch",
    "tool/code-dispatch-start",
    "tool/result",
    "turn/end",
    "turn/start",
    "user/message",
    "web/deepseek-search-llm-request",
];

/// Types that early builds wrote and no build reads as they are any more.
const RETIRED: [&str; 3] = ["mode/set", "request/header-delta", "steering/message"];

/// Which event types a reader knows.
///
/// A log may hold types of builds to come. A reader may skip one that is marked `ignorable`; in
/// the face of any other it cannot tell what the rest of the log means, and
/// [refuses](crate::gate).
///
/// ```
/// use turnkeep_log::Vocabulary;
///
/// let vocabulary = Vocabulary::v0().with(["acme/telemetry"]);
/// assert!(vocabulary.knows("acme/telemetry") && vocabulary.knows("turn/start"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vocabulary {
    added: BTreeSet<Cow<'static, str>>,
}

impl Vocabulary {
    /// The 51 types of format v0.
    #[must_use]
    pub fn v0() -> Self {
        Self::default()
    }

    /// The same vocabulary with more types, for embedders that write and read their own.
    #[must_use]
    pub fn with<T: Into<Cow<'static, str>>>(mut self, types: impl IntoIterator<Item = T>) -> Self {
        self.added.extend(types.into_iter().map(Into::into));
        self
    }

    /// Whether a reader with this vocabulary knows what the type means.
    #[must_use]
    pub fn knows(&self, event_type: &str) -> bool {
        KNOWN.binary_search(&event_type).is_ok() || self.added.contains(event_type)
    }

    /// Whether the type is one that no build reads any more.
    #[must_use]
    pub fn is_retired(event_type: &str) -> bool {
        RETIRED.contains(&event_type)
    }

    /// All types known, sorted.
    pub fn types(&self) -> impl Iterator<Item = &str> {
        let added = self.added.iter().map(AsRef::as_ref);
        let mut types: Vec<&str> = KNOWN.into_iter().chain(added).collect();
        types.sort_unstable();
        types.dedup();
        types.into_iter()
    }
}
