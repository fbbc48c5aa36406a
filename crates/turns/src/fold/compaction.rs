//! Compactions: where the model's view of the conversation was cut down to a summary.

use turnkeep_log::{
    Event, Text,
    json::{Json, JsonStr},
};

use super::{
    Fold,
    assistant::{spent, times},
    record::{Around, Body, PartNumber, Record},
    render::{Writer, string},
    turn::named,
};

/// A compaction as the fold follows it. The numbers are places in the list of records.
pub(super) struct Compaction {
    marker: usize,
    summary: Option<usize>,
    /// Whether it has changed what the model sees.
    done: bool,
}

/// The record that stands where a compaction began.
pub(super) struct Marker {
    /// Whether nobody asked for it.
    automatic: bool,
}

/// The record that says what the model has been told instead.
pub(super) struct Summary {
    event: Event,
    /// The inside of the literal that spells the marker's id.
    parent: Text,
    completed: Option<i64>,
}

impl Marker {
    pub(super) fn parts(&self, record: &Record, around: &Around<'_>, out: &mut Writer) {
        out.key("parts").open_array();
        record.open_part(around, PartNumber(0), "compaction", out);
        out.key("auto").raw(if self.automatic { "true" } else { "false" });
        out.close();
        out.close_array();
    }
}

impl Summary {
    pub(super) fn size(&self) -> usize {
        self.event.text().len()
    }

    pub(super) fn info(&self, record: &Record, out: &mut Writer) {
        let data = self.event.data();
        let literal = |key| string(data, key).map_or("", JsonStr::raw);
        out.key("role").literal("assistant");
        times(record.created, self.completed, out);
        out.key("parentID").literal(&self.parent);
        out.key("modelID").literal(literal("model"));
        out.key("providerID").literal(literal("provider"));
        out.key("mode").literal("compaction");
        out.key("agent").literal("compaction");
        out.key("summary").raw("true");
        spent(data.get("usage"), out);
        if self.completed.is_some() {
            out.key("finish").literal("stop");
        }
    }

    pub(super) fn parts(&self, record: &Record, around: &Around<'_>, out: &mut Writer) {
        out.key("parts").open_array();
        let blocks = self.event.data().get("summary").and_then(Json::elements);
        for (index, block) in blocks.into_iter().flatten().enumerate() {
            let is_text = string(block, "type").is_some_and(|kind| kind == "text");
            if let Some(text) = string(block, "text").filter(|_| is_text) {
                record.open_part(around, PartNumber(index), "text", out);
                out.key("text").literal(text.raw());
                out.close();
            }
        }
        out.close_array();
    }
}

impl Fold {
    pub(super) fn compaction_start(&mut self, event: &Event) {
        let data = event.data();
        let Some((id, key)) = named(data, "compactionId") else { return };
        let automatic = string(data, "sourceCommandId").is_none();
        let marker = self.add(
            event,
            Text::from(format!("compaction:{}", id.raw())),
            format!("compaction:{key}"),
            false,
            Body::Marker(Marker { automatic }),
        );
        self.compactions.insert(key, Compaction { marker, summary: None, done: false });
    }

    pub(super) fn compaction_summary(&mut self, event: &Event) {
        let Some((id, key)) = named(event.data(), "compactionId") else { return };
        let Some(compaction) = self.compactions.get(&key) else { return };
        let Some(marker) = self.records.get(compaction.marker) else { return };
        let parent = marker.id.clone();
        let done = compaction.done;
        let summary = self.add(
            event,
            Text::from(format!("compaction:{}:summary", id.raw())),
            format!("compaction:{key}:summary"),
            done,
            Body::Summary(Summary { event: event.clone(), parent, completed: None }),
        );
        if let Some(compaction) = self.compactions.get_mut(&key) {
            compaction.summary = Some(summary);
        }
    }

    /// Whether the message is what a compaction tells the model, which its summary shows already.
    /// With it the compaction has taken effect, even when the log ends before it does.
    pub(super) fn is_checkpoint(&mut self, event: &Event) -> bool {
        let Some(source) = event.data().get("source") else { return false };
        let Some((_, key)) = named(source, "compactionId") else { return false };
        let Some(compaction) = self.compactions.get_mut(&key) else { return false };
        compaction.done = true;
        let records = [Some(compaction.marker), compaction.summary];
        records.into_iter().flatten().for_each(|at| self.show(at));
        true
    }

    pub(super) fn compaction_end(&mut self, event: &Event) {
        let data = event.data();
        let Some((_, key)) = named(data, "compactionId") else { return };
        let Some(compaction) = self.compactions.get_mut(&key) else { return };
        compaction.done = data.get("error").is_none_or(Json::is_null);
        let done = compaction.done;
        for at in [Some(compaction.marker), compaction.summary].into_iter().flatten() {
            if done {
                self.show(at);
            } else {
                self.hide(at);
            }
            if let Some(Record { body: Body::Summary(summary), .. }) = self.records.get_mut(at) {
                summary.completed.get_or_insert(event.time());
            }
            self.touch(at);
        }
    }
}
