//! A turn page as a person reads it in a terminal.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use jiff::{Timestamp, tz::TimeZone};
use serde_json::Value;

use crate::commands::ls::human_size;

/// Draws records, with colours or without.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transcript {
    colours: bool,
}

const PERSON: Style = Style::new().bold().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Cyan)));
const MODEL: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const BAD: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Red)));

impl Transcript {
    /// A transcript for an output that takes colours, or does not.
    pub(crate) fn new(colours: bool) -> Self {
        Self { colours }
    }

    fn paint(self, style: Style, text: &str) -> String {
        if self.colours { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// A hint that is no part of the transcript.
    pub(crate) fn hint(self, text: &str) -> String {
        self.paint(DIM, text)
    }

    /// The lines of one record; none for a record that has nothing to show yet.
    pub(crate) fn record(self, record: &Value) -> Vec<String> {
        let info = record.get("info").unwrap_or(&Value::Null);
        let parts = record.get("parts").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let mut lines: Vec<_> = parts.iter().flat_map(|part| self.part(part)).collect();
        if let Some(error) = info.get("error").filter(|error| error.is_object()) {
            lines.push(self.paint(BAD, &format!("✗ {}", error_text(error))));
        }
        if lines.is_empty() {
            return lines;
        }
        let person = word(info, "role") == "user";
        let unspoken = |part: &Value| {
            part.get("synthetic") == Some(&Value::Bool(true)) || word(part, "type") == "compaction"
        };
        let synthetic = !parts.is_empty() && parts.iter().all(unspoken);
        let who = match (person, synthetic) {
            (true, false) => self.paint(PERSON, "you"),
            (true, true) => self.paint(DIM, "harness"),
            (false, _) => self.paint(MODEL, "assistant"),
        };
        let created = info.pointer("/time/created").and_then(Value::as_i64);
        let when = created.and_then(|time| Timestamp::from_millisecond(time).ok()).map(|time| {
            time.to_zoned_datetime(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
        });
        let when = self.paint(DIM, &when.unwrap_or_default());
        let mut drawn = vec![format!("{who}  {when}").trim_end().to_owned()];
        drawn.extend(lines.into_iter().map(|line| format!("  {line}").trim_end().to_owned()));
        drawn.push(String::new());
        drawn
    }

    fn part(self, part: &Value) -> Vec<String> {
        match word(part, "type") {
            "text" => printable(word(part, "text")).lines().map(str::to_owned).collect(),
            "reasoning" => vec![self.paint(DIM, "… thought")],
            "tool" => vec![self.tool(part)],
            "file" => vec![file(part)],
            "compaction" => vec![self.paint(DIM, "— the model's context was compacted here —")],
            "subtask" => vec![format!("▹ {}", printable(word(part, "description")))],
            "agent" => vec![format!("@{}", printable(word(part, "name")))],
            _ => Vec::new(),
        }
    }

    fn tool(self, part: &Value) -> String {
        let state = part.get("state").unwrap_or(&Value::Null);
        let input = state.get("input").unwrap_or(&Value::Null);
        let told = ["command", "filePath", "path", "pattern", "query", "description", "name"]
            .iter()
            .map(|key| word(input, key))
            .chain([word(state, "title")])
            .find(|told| !told.is_empty())
            .unwrap_or_default();
        let line =
            format!("{} {}", printable(word(part, "tool")), printable(told).replace('\n', " "));
        let line = line.trim_end();
        match word(state, "status") {
            "completed" => self.paint(DIM, &format!("▸ {line}")),
            "error" => self.paint(BAD, &format!("✗ {line}")),
            status => format!("▹ {line} ({status})"),
        }
    }
}

fn file(part: &Value) -> String {
    let number = |key| part.get(key).and_then(Value::as_u64);
    let mut line = format!("▣ {}", printable(word(part, "filename")));
    let mime = word(part, "mime");
    if !mime.is_empty() {
        let _ = write!(line, "  {}", printable(mime));
    }
    if let (Some(width), Some(height)) = (number("width"), number("height")) {
        let _ = write!(line, "  {width}×{height}");
    }
    if let Some(size) = number("byteSize").or_else(|| number("size")) {
        let _ = write!(line, "  {}", human_size(size));
    }
    line
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn error_text(error: &Value) -> String {
    let told = error.pointer("/data/message").and_then(Value::as_str).unwrap_or_default();
    let name = match word(error, "name") {
        "MessageAbortedError" => "interrupted",
        name => name,
    };
    let says_more = !told.is_empty() && !told.eq_ignore_ascii_case(name);
    let text = if says_more { format!("{name}: {told}") } else { name.to_owned() };
    printable(&text)
}

/// Text that cannot steer the terminal: control characters other than line feeds and tabs are
/// shown as pictures.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|char| match char {
            '\n' | '\t' => char,
            '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(char)).unwrap_or('\u{fffd}'),
            '\u{7f}' => '\u{2421}',
            '\u{80}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
            other => other,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Transcript;

    #[test]
    fn a_record_is_drawn_line_by_line() {
        let record = json!({
            "info": {"role": "assistant", "error": {"name": "MessageAbortedError"}},
            "parts": [
                {"type": "text", "text": "one\ntwo"},
                {"type": "reasoning"},
                {"type": "tool", "tool": "bash", "state": {"status": "error", "input": {"command": "ls\n-l"}}},
                {"type": "file", "filename": "a.png", "mime": "image/png", "width": 2, "height": 3, "byteSize": 1500},
                {"type": "step-start"},
            ],
        });
        let drawn = Transcript::new(false).record(&record);
        let expected = [
            "assistant",
            "  one",
            "  two",
            "  … thought",
            "  ✗ bash ls -l",
            "  ▣ a.png  image/png  2×3  1.5 kB",
            "  ✗ interrupted",
            "",
        ];
        assert_eq!(drawn, expected);
    }

    #[test]
    fn a_text_cannot_steer_the_terminal() {
        let record = json!({
            "info": {"role": "user"}, "parts": [{"type": "text", "text": "a\u{1b}[31m\u{9b}2J\u{202e}b"}],
        });
        assert_eq!(Transcript::new(false).record(&record)[1], "  a␛[31m\u{fffd}2J\u{fffd}b");
    }

    #[test]
    fn odd_records_draw_nothing() {
        for record in [json!(null), json!({"parts": 1}), json!({"info": 3, "parts": [null, 7]})] {
            assert!(Transcript::new(true).record(&record).is_empty());
        }
    }
}
