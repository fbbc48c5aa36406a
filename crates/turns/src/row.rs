//! The few facts of a record that paging needs.

use turnkeep_log::json::{Json, Kind, Walk};

/// One record, looked into once.
///
/// `info` is taken as absent when it is `null`, as is every other member: that is how the format's
/// other readers treat them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Row<'a> {
    /// `info.id`, else the record's own `id`.
    pub(crate) id: Option<Json<'a>>,
    pub(crate) info: Option<Json<'a>>,
    pub(crate) role: Option<Json<'a>>,
    pub(crate) client_role: Option<Json<'a>>,
    pub(crate) parent: Option<Json<'a>>,
    /// `time.created` of `info`, else of the record itself.
    pub(crate) created: Option<Json<'a>>,
    pub(crate) record_type: Option<Json<'a>>,
    pub(crate) parts: Option<Json<'a>>,
}

impl<'a> Row<'a> {
    /// Reads the record that is next and steps over it. Where a key repeats, the last one counts.
    pub(crate) fn read(walk: &mut Walk<'a>) -> Self {
        let mut row = Self::default();
        if walk.kind() != Kind::Object {
            walk.value();
            return row;
        }
        let (mut own_id, mut own_time) = (None, None);
        walk.enter();
        while let Some(key) = walk.next_key() {
            let value = walk.value();
            let value = (!value.is_null()).then_some(value);
            match key.decode().as_deref() {
                Some("info") => row.info = value,
                Some("id") => own_id = value,
                Some("type") => row.record_type = value,
                Some("parts") => row.parts = value,
                Some("time") => own_time = value,
                _ => {}
            }
        }
        let mut time = None;
        for member in row.info.and_then(Json::members).into_iter().flatten() {
            let value = (!member.value.is_null()).then_some(member.value);
            match member.key.decode().as_deref() {
                Some("id") => row.id = value,
                Some("role") => row.role = value,
                Some("clientRole") => row.client_role = value,
                Some("parentID") => row.parent = value,
                Some("time") => time = value,
                _ => {}
            }
        }
        row.id = row.id.or(own_id);
        row.created = time.or(own_time).and_then(|time| time.get("created"));
        row
    }

    /// The record's id, when it is a string with something in it.
    pub(crate) fn id_text(&self) -> Option<String> {
        let id = self.id?.as_str()?.decode_lossy();
        (!id.is_empty()).then(|| id.into_owned())
    }

    /// When the record was made, in milliseconds since the epoch.
    pub(crate) fn created_ms(&self) -> Option<u64> {
        self.created.and_then(Json::as_natural)
    }
}
