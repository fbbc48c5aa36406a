//! Commands that a person ran.

use turnkeep_log::{Event, Text, json::JsonStr};

use super::{
    Fold,
    record::{Around, Body, PartNumber, Record},
    render::{Writer, cut, string},
    turn::named,
    user::{is_authored, opening},
};

/// A `command/run` of a person, and what came of it. The texts are insides of literals.
pub(super) struct Command {
    name: Text,
    arguments: Text,
    done: Option<Text>,
}

impl Command {
    pub(super) fn size(&self) -> usize {
        self.name.len() + self.arguments.len() + self.done.as_ref().map_or(0, |done| done.len())
    }

    pub(super) fn parts(&self, record: &Record, around: &Around<'_>, out: &mut Writer) {
        out.key("parts").open_array();
        record.open_part(around, PartNumber(0), "text", out);
        out.key("text").literals(&["/", &self.name, &self.arguments]);
        out.close();
        if let Some(done) = &self.done {
            record.open_part(around, PartNumber(1), "text", out);
            out.key("text").literal(done);
            out.key("synthetic").raw("true");
            out.close();
        }
        out.close_array();
    }
}

impl Fold {
    pub(super) fn command_run(&mut self, event: &Event) {
        let data = event.data();
        let Some((name, _)) = named(data, "name").filter(|_| is_authored(data)) else { return };
        let arguments = string(data, "args");
        if self.first_prompt.is_none() {
            self.first_prompt = arguments.and_then(opening);
        }
        let arguments = arguments.map_or("", JsonStr::raw);
        let command =
            Command { name: cut(event, name.raw()), arguments: cut(event, arguments), done: None };
        let Some((id, key)) = named(data, "commandId") else {
            let id = format!("command:{}", event.seq());
            self.add(event, Text::from(&*id), id, true, Body::Command(command));
            return;
        };
        let at = self.add(
            event,
            Text::from(format!("command:{}", id.raw())),
            format!("command:{key}"),
            true,
            Body::Command(command),
        );
        self.commands.insert(key, at);
    }

    pub(super) fn command_done(&mut self, event: &Event) {
        let data = event.data();
        let Some((_, key)) = named(data, "commandId") else { return };
        let Some(at) = self.commands.remove(&key) else { return };
        let Some(record) = self.records.get_mut(at) else { return };
        if let Body::Command(command) = &mut record.body {
            command.done = string(data, "text").map(|text| cut(event, text.raw()));
        }
        self.touch(at);
    }
}
