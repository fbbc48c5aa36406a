//! The top-level members of one line of a log.

use crate::{
    event::EventError,
    id::Seq,
    json::{Json, JsonStr},
    packed::Tag,
    provenance::{self, Provenance},
};

/// The members of one JSON object that some record has, as found. Where a key repeats, the last
/// one counts, as `JSON.parse` has it.
#[derive(Default)]
pub(crate) struct Members<'a> {
    pub(crate) event_type: Option<Json<'a>>,
    pub(crate) seq: Option<Json<'a>>,
    pub(crate) time: Option<Json<'a>>,
    pub(crate) data: Option<Json<'a>>,
    pub(crate) ignorable: Option<Json<'a>>,
    pub(crate) surface_op: Option<Json<'a>>,
    pub(crate) source_event_seqs: Option<Json<'a>>,
    pub(crate) seq0: Option<Json<'a>>,
    pub(crate) time0: Option<Json<'a>>,
    /// Whether there are members of any other name.
    pub(crate) others: bool,
}

impl<'a> Members<'a> {
    /// Checks that `line` is one JSON object and finds its members, in one walk.
    pub(crate) fn find(line: &'a str) -> Result<(Json<'a>, Self), EventError> {
        let mut found = Self::default();
        let json = Json::parse_members(line, |member| found.note(member.key, member.value))?;
        if json.members().is_none() {
            return Err(EventError::NotAnObject);
        }
        Ok((json, found))
    }

    fn note(&mut self, key: JsonStr<'a>, value: Json<'a>) {
        let decoded = key.decode();
        let slot = match decoded.as_deref() {
            Some("type") => &mut self.event_type,
            Some("seq") => &mut self.seq,
            Some("time") => &mut self.time,
            Some("data") => &mut self.data,
            Some("ignorable") => &mut self.ignorable,
            Some("surfaceOp") => &mut self.surface_op,
            Some("sourceEventSeqs") => &mut self.source_event_seqs,
            Some("seq0") => &mut self.seq0,
            Some("time0") => &mut self.time0,
            _ => {
                self.others = true;
                return;
            }
        };
        *slot = Some(value);
    }
}

/// What a line says it is.
pub(crate) enum Named<'a> {
    /// An event of this type.
    Event(JsonStr<'a>),
    /// A packed row.
    Row(Tag),
}

impl<'a> Members<'a> {
    pub(crate) fn named(&self) -> Result<Named<'a>, EventError> {
        let name = self.event_type.ok_or(bad("type", "is missing"))?;
        let name = name.as_str().ok_or(bad("type", "is not a string"))?;
        Ok(Tag::of(name).map_or(Named::Event(name), Named::Row))
    }

    /// The type of what can only be an event.
    pub(crate) fn event_type(&self) -> Result<JsonStr<'a>, EventError> {
        match self.named()? {
            Named::Event(event_type) => Ok(event_type),
            Named::Row(_) => Err(bad("type", "is the name of a packed row")),
        }
    }
}

/// A checked event envelope: slices of the line it was read from.
pub(crate) struct Envelope<'a> {
    /// The whole event.
    pub(crate) json: Json<'a>,
    pub(crate) event_type: JsonStr<'a>,
    pub(crate) seq: Seq,
    pub(crate) time: i64,
    pub(crate) data: Json<'a>,
    pub(crate) ignorable: bool,
    pub(crate) surface_op: Option<Json<'a>>,
    pub(crate) provenance: Option<Provenance<'a>>,
}

impl<'a> Envelope<'a> {
    pub(crate) fn read(line: &'a str) -> Result<Self, EventError> {
        let (json, members) = Members::find(line)?;
        Self::check(json, members.event_type()?, &members)
    }

    /// Checks the members of `json`, whose type has been checked already.
    pub(crate) fn check(
        json: Json<'a>,
        event_type: JsonStr<'a>,
        members: &Members<'a>,
    ) -> Result<Self, EventError> {
        let seq = seq(members.seq.ok_or(bad("seq", "is missing"))?)?;
        let provenance = members.source_event_seqs.map(|list| provenance::check(list, seq));
        Ok(Self {
            json,
            event_type,
            seq,
            time: time(members.time.ok_or(bad("time", "is missing"))?)?,
            data: members.data.ok_or(bad("data", "is missing"))?,
            ignorable: members.ignorable.and_then(Json::as_bool) == Some(true),
            surface_op: members.surface_op,
            provenance: provenance
                .transpose()
                .map_err(|problem| bad("sourceEventSeqs", problem))?,
        })
    }

    /// How much longer the event can get when its provenance is written out.
    pub(crate) fn expanded_len(&self) -> usize {
        self.provenance.filter(|list| list.has_ranges).map_or(0, |list| list.expanded_len())
    }
}

pub(crate) fn seq(value: Json<'_>) -> Result<Seq, EventError> {
    value.as_natural().map(Seq).ok_or(bad("seq", "is not a non-negative safe integer"))
}

pub(crate) fn time(value: Json<'_>) -> Result<i64, EventError> {
    value.as_safe_integer().ok_or(bad("time", "is not a safe integer"))
}

pub(crate) fn bad(member: &'static str, problem: &'static str) -> EventError {
    EventError::Member { member, problem }
}
