//! What the files of an archive are called.

use std::collections::HashSet;

use turnkeep_log::SessionId;

/// The longest part of an id that becomes a name: with a number behind it, it is still a file name
/// everywhere.
const LONGEST: usize = 200;

/// The id with `_` for everything that is no ASCII letter, digit, `_` or `-`; two for a character
/// beyond U+FFFF, which is two units where such names come from.
pub(crate) fn sanitised(id: &SessionId) -> String {
    let plain = |char: char| char.is_ascii_alphanumeric() || char == '_' || char == '-';
    let units = id.as_str().encode_utf16().map(|unit| char::from_u32(unit.into()));
    let name = units.map(|unit| unit.filter(|char| plain(*char)).unwrap_or('_'));
    name.take(LONGEST).collect()
}

/// The name to save the archive of this session under.
pub(crate) fn archive_name(root: &SessionId) -> String {
    format!("dsh-session-{}.zip", sanitised(root))
}

/// The folders of the sessions that stem from the root, each with a name of its own: two ids that
/// are the same once sanitised are told apart by a number.
#[derive(Debug, Default)]
pub(super) struct Folders(HashSet<String>);

impl Folders {
    /// The entry that this session's log becomes.
    pub(super) fn entry(&mut self, session: &SessionId) -> String {
        let name = sanitised(session);
        let numbered = (2_u64..).map(|number| format!("{name}_{number}"));
        let mut names = std::iter::once(name.clone()).chain(numbered);
        // Names fold on some file systems.
        let folder =
            names.find(|name| self.0.insert(name.to_ascii_lowercase())).unwrap_or(name.clone());
        format!("subagents/{folder}/session.jsonl")
    }
}

#[cfg(test)]
mod tests {
    use turnkeep_log::SessionId;

    use super::{Folders, LONGEST, archive_name};

    fn id(text: &str) -> SessionId {
        SessionId::new(text).unwrap()
    }

    #[test]
    fn an_id_becomes_a_file_name() {
        assert_eq!(archive_name(&id("Ab-9_x")), "dsh-session-Ab-9_x.zip");
        assert_eq!(archive_name(&id("../a b\"\r\nx.ü🦀")), "dsh-session-___a_b___x____.zip");
        let long = archive_name(&id(&"x".repeat(100_000)));
        assert_eq!(long.len(), "dsh-session-.zip".len() + LONGEST);
    }

    #[test]
    fn no_two_sessions_share_an_entry() {
        let mut folders = Folders::default();
        let entries: Vec<_> =
            ["a.b", "a/b", "a_b_2", "a_b", "A.b"].map(|text| folders.entry(&id(text))).into();
        let folders = ["a_b", "a_b_2", "a_b_2_2", "a_b_3", "A_b_4"];
        assert_eq!(entries, folders.map(|name| format!("subagents/{name}/session.jsonl")));
    }
}
