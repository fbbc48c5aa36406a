//! What of an event has to be looked into, whoever looks.

use std::borrow::Cow;

use turnkeep_log::json::{Json, JsonStr, Kind, Walk};

use crate::splice::{rewritten, set_once};

/// The two names that events have for what they are about.
pub(super) const BODIES: [&str; 2] = ["properties", "data"];

/// The name of an event's member that holds a durable event for the second time.
pub(super) const SYNC: &str = "syncEvent";

/// The members of an event that say what it is and what it is about. Where a key repeats, the last
/// one counts, as it does for clients.
#[derive(Clone, Copy, Debug)]
pub(super) struct Envelope<'a> {
    kind: JsonStr<'a>,
    properties: Option<Json<'a>>,
    data: Option<Json<'a>>,
    sync: Option<Json<'a>>,
}

impl<'a> Envelope<'a> {
    /// Checks that a text is an event, an object with a string as its `type`, and looks into it.
    pub(super) fn parse(text: &'a str) -> Option<(Self, Json<'a>)> {
        let mut found = Found::default();
        let event =
            Json::parse_members(text, |member| found.note(member.key, member.value)).ok()?;
        Some((found.envelope()?, event))
    }

    /// Looks into the event that a `sync` event holds.
    pub(super) fn synced(&self) -> Option<Self> {
        if self.kind != "sync" {
            return None;
        }
        let mut found = Found::default();
        for member in self.sync?.members()? {
            found.note(member.key, member.value);
        }
        found.envelope()
    }

    /// The type as it was sent.
    pub(super) fn name(&self) -> Cow<'a, str> {
        self.kind.decode_lossy()
    }

    /// The type without the version at its end: `message.updated` for `message.updated.1`.
    pub(super) fn base_name(&self) -> Cow<'a, str> {
        match self.name() {
            Cow::Borrowed(name) => Cow::Borrowed(without_version(name)),
            Cow::Owned(name) => Cow::Owned(without_version(&name).to_owned()),
        }
    }

    /// What the event is about: its `properties` if they are an object, else its `data`.
    pub(super) fn body(&self) -> Option<Json<'a>> {
        [self.properties, self.data].into_iter().flatten().find(|body| body.kind() == Kind::Object)
    }
}

fn without_version(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((base, version))
            if !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            base
        }
        _ => name,
    }
}

#[derive(Default)]
struct Found<'a> {
    kind: Option<Json<'a>>,
    properties: Option<Json<'a>>,
    data: Option<Json<'a>>,
    sync: Option<Json<'a>>,
}

impl<'a> Found<'a> {
    fn note(&mut self, key: JsonStr<'a>, value: Json<'a>) {
        let slot = match &*key.decode_lossy() {
            "type" => &mut self.kind,
            "properties" => &mut self.properties,
            "data" => &mut self.data,
            SYNC => &mut self.sync,
            _ => return,
        };
        *slot = Some(value);
    }

    fn envelope(self) -> Option<Envelope<'a>> {
        let Self { kind, properties, data, sync } = self;
        Some(Envelope { kind: kind?.as_str()?, properties, data, sync })
    }
}

/// The id that a value is: a string with something in it.
pub(super) fn id(value: Option<Json<'_>>) -> Option<Cow<'_, str>> {
    value?.as_str().filter(|id| !id.is_empty()).map(JsonStr::decode_lossy)
}

/// Rewrites those members of an object that have one of `keys`, every other byte as it was.
///
/// `rewrite` is given the value and appends what is to stand for it, or says no. When nothing is to
/// be rewritten, or this is no object, nothing is appended and the answer is `false`.
pub(super) fn rewrite_members<const N: usize>(
    object: Json<'_>,
    keys: [&str; N],
    out: &mut String,
    rewrite: impl Fn(Json<'_>, &mut String) -> bool,
) -> bool {
    rewritten(object, out, |object, splice| {
        let mut walk = Walk::over(object);
        if walk.kind() != Kind::Object {
            return Ok(());
        }
        let mut seen = [None; N];
        walk.enter();
        while let Some(key) = walk.next_key() {
            let start = walk.offset();
            let value = walk.value();
            let Some((_, seen)) = keys.iter().zip(&mut seen).find(|(name, _)| key == **name) else {
                continue;
            };
            set_once(seen, ())?;
            let mut text = String::new();
            if rewrite(value, &mut text) {
                splice.replace(start, walk.offset()).push_str(&text);
            }
        }
        Ok(())
    })
}
