//! Where a turn starts.

use turnkeep_log::json::{Json, JsonStr, Kind, Walk};

use crate::row::Row;

/// Ids with this prefix name rows that a client made up to divide what an assistant said.
const DIVIDER: &str = "oc_asst_session_divider:";

/// Whether a record starts a turn: a person wrote it.
///
/// A record of role `user` does, unless it was put there on a person's behalf: it carries a
/// `subtask` or `compaction` part, or all its parts are synthetic. `clientRole`, what a client took
/// the role to be, outranks `role` when it is a string. A record of OpenCode's v2 list, which has a
/// `type` in place of an `info`, starts a turn when that is `user`.
#[must_use]
pub fn is_boundary(record: Json<'_>) -> bool {
    Row::read(&mut Walk::over(record)).starts_turn()
}

impl Row<'_> {
    pub(crate) fn starts_turn(&self) -> bool {
        let id = self.id.and_then(Json::as_str).map(JsonStr::decode_lossy);
        if id.is_some_and(|id| id.starts_with(DIVIDER)) {
            return false;
        }
        match (self.info, self.record_type) {
            (None, Some(record_type)) if record_type.kind() == Kind::String => {
                is_text(record_type, "user")
            }
            _ => self.is_user() && !self.is_injected(),
        }
    }

    /// Whether the record is of role `user`, in the client's eyes where it has any.
    pub(crate) fn is_user(&self) -> bool {
        let role = self.client_role.filter(|role| role.kind() == Kind::String).or(self.role);
        role.is_some_and(|role| is_text(role, "user"))
    }

    /// Whether the parts show that no person wrote the record.
    fn is_injected(&self) -> bool {
        let Some(parts) = self.parts.and_then(Json::elements) else { return false };
        let (mut any, mut all_synthetic) = (false, true);
        for part in parts {
            let (mut part_type, mut synthetic) = (None, None);
            for member in part.members().into_iter().flatten() {
                if member.key == "type" {
                    part_type = Some(member.value);
                } else if member.key == "synthetic" {
                    synthetic = Some(member.value);
                }
            }
            let stands_for_another =
                |value| is_text(value, "subtask") || is_text(value, "compaction");
            if part_type.is_some_and(stands_for_another) {
                return true;
            }
            any = true;
            all_synthetic &= synthetic.is_some_and(Json::is_truthy);
        }
        any && all_synthetic
    }
}

fn is_text(value: Json<'_>, text: &str) -> bool {
    value.as_str().is_some_and(|value| value == *text)
}

#[cfg(test)]
#[path = "boundary_tests.rs"]
mod tests;
