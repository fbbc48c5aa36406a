//! JSON text as `JSON.stringify(JSON.parse(text))` has it.
//!
//! A part that is rewritten copies some of its values, and they leave as JavaScript would print
//! them after parsing: numbers as the shortest digits of their double, strings with the fewest
//! escapes, no white space, a repeated key once (its first place, its last value), and keys that
//! are array indices first, in numeric order.

use turnkeep_log::json::{Json, JsonStr, Kind, Walk, write_number, write_units};

/// Appends `value` as JavaScript would print it after parsing it.
///
/// Linear in the text but for sorting keys, and no nesting is deep enough to exhaust the stack.
pub(crate) fn write(value: Json<'_>, out: &mut String) {
    match value.kind() {
        Kind::Object if is_flat_and_normal(value) => out.push_str(value.text()),
        Kind::Object | Kind::Array => {
            let nodes = nodes_of(value, usize::MAX).unwrap_or_default();
            write_nodes(&nodes, KeyOrder::AsMet, out);
        }
        _ => write_scalar(value, out),
    }
}

/// The same with the keys of every object sorted; nothing and `false` when there are more than
/// `most` values in it.
pub(crate) fn write_sorted(value: Json<'_>, most: usize, out: &mut String) -> bool {
    let nodes = nodes_of(value, most);
    if let Some(nodes) = &nodes {
        write_nodes(nodes, KeyOrder::Sorted, out);
    }
    nodes.is_some()
}

/// In which order the keys of an object come that are no array indices; those come first.
#[derive(Clone, Copy)]
enum KeyOrder {
    /// As they were added.
    AsMet,
    /// By their UTF-16 code units.
    Sorted,
}

fn write_scalar(value: Json<'_>, out: &mut String) {
    if is_normal_scalar(value) {
        out.push_str(value.text());
    } else if let Some(string) = value.as_str() {
        write_units(out, string.units());
    } else {
        write_number(out, value.as_f64().unwrap_or(f64::NAN));
    }
}

/// Whether a scalar is certainly spelled as JavaScript spells it. The check is cheap rather than
/// complete.
fn is_normal_scalar(value: Json<'_>) -> bool {
    /// Every integer of this many digits is a double of its own.
    const EXACT_DIGITS: usize = 15;
    match value.kind() {
        Kind::Null | Kind::Bool => true,
        Kind::Number => {
            let text = value.text();
            text.len() <= EXACT_DIGITS && text.bytes().all(|byte| byte.is_ascii_digit())
        }
        Kind::String => value.as_str().is_some_and(|string| string.plain().is_some()),
        Kind::Array | Kind::Object => false,
    }
}

/// Whether an object is certainly spelled as JavaScript spells it: what nearly every object that
/// is copied looks like, `{"start":1,"end":2}`.
fn is_flat_and_normal(object: Json<'_>) -> bool {
    const MOST: usize = 8;
    let mut keys = [""; MOST];
    let mut length = "{}".len();
    for (count, member) in object.members().into_iter().flatten().enumerate() {
        let (Some(key), Some(slot)) = (member.key.plain(), keys.get_mut(count)) else {
            return false;
        };
        *slot = key;
        let may_be_index = key.as_bytes().first().is_some_and(u8::is_ascii_digit);
        let repeats = keys.iter().take(count).any(|other| *other == key);
        if may_be_index || repeats || !is_normal_scalar(member.value) {
            return false;
        }
        length += usize::from(count > 0) + key.len() + "\"\":".len() + member.value.text().len();
    }
    length == object.text().len()
}

/// One value of a text; those inside it follow it.
struct Node<'a> {
    /// Its key when it is a member.
    key: JsonStr<'a>,
    /// Its text when it is a scalar, else the bracket that opens it.
    text: &'a str,
    /// The index after the last node inside it.
    next: usize,
}

/// Every value of a text, if they are not too many.
fn nodes_of(value: Json<'_>, most: usize) -> Option<Vec<Node<'_>>> {
    let mut walk = Walk::over(value);
    let mut nodes: Vec<Node<'_>> = Vec::new();
    let mut open = Vec::new();
    let mut key = JsonStr::from_raw("");
    loop {
        let here = nodes.len();
        if here == most {
            return None;
        }
        let text = match walk.kind() {
            Kind::Object => "{",
            Kind::Array => "[",
            _ => walk.value().text(),
        };
        if is_bracket(text) {
            walk.enter();
            open.push(here);
        }
        nodes.push(Node { key, text, next: here + 1 });
        // Now to the next value, out of every container that has ended.
        loop {
            let next = nodes.len();
            let Some(parent) = open.last().and_then(|&parent| nodes.get_mut(parent)) else {
                return Some(nodes);
            };
            let more = if parent.text == "{" {
                walk.next_key().map(|next_key| key = next_key).is_some()
            } else {
                walk.next_element()
            };
            if more {
                break;
            }
            parent.next = next;
            open.pop();
        }
    }
}

fn is_bracket(text: &str) -> bool {
    matches!(text, "{" | "[")
}

/// What is left to be written, the next at the end.
enum Step {
    Value { node: usize, is_first: bool, is_member: bool },
    Close(char),
}

fn write_nodes(nodes: &[Node<'_>], order: KeyOrder, out: &mut String) {
    let mut steps = vec![Step::Value { node: 0, is_first: true, is_member: false }];
    while let Some(step) = steps.pop() {
        let (index, is_first, is_member) = match step {
            Step::Value { node, is_first, is_member } => (node, is_first, is_member),
            Step::Close(bracket) => {
                out.push(bracket);
                continue;
            }
        };
        let Some(node) = nodes.get(index) else { continue };
        if !is_first {
            out.push(',');
        }
        if is_member {
            write_units(out, node.key.units());
            out.push(':');
        }
        if !is_bracket(node.text) {
            if let Ok(scalar) = Json::parse(node.text) {
                write_scalar(scalar, out);
            }
            continue;
        }
        out.push_str(node.text);
        let is_object = node.text == "{";
        steps.push(Step::Close(if is_object { '}' } else { ']' }));
        let children = inside(nodes, index);
        let children = if is_object { in_order(nodes, children, order) } else { children };
        let values = children.into_iter().enumerate().rev();
        steps.extend(values.map(|(place, node)| Step::Value {
            node,
            is_first: place == 0,
            is_member: is_object,
        }));
    }
}

/// The nodes directly inside a container, in the order of the text.
fn inside(nodes: &[Node<'_>], container: usize) -> Vec<usize> {
    let end = nodes.get(container).map_or(0, |node| node.next);
    let mut children = Vec::new();
    let mut at = container + 1;
    while at < end {
        children.push(at);
        at = nodes.get(at).map_or(end, |node| node.next);
    }
    children
}

/// The members of an object as JavaScript enumerates them.
fn in_order(nodes: &[Node<'_>], mut members: Vec<usize>, order: KeyOrder) -> Vec<usize> {
    let key = |index: usize| nodes.get(index).map_or(JsonStr::from_raw(""), |node| node.key);
    // A stable sort: of members that share a key, the first in the text stays the first.
    members.sort_by(|&left, &right| key(left).units().cmp(key(right).units()));
    let mut ranked: Vec<_> = members
        .chunk_by(|&left, &right| key(left) == key(right))
        .enumerate()
        .filter_map(|(sorted, same)| {
            let (&first, &last) = (same.first()?, same.last()?);
            let place = match order {
                KeyOrder::AsMet => first,
                KeyOrder::Sorted => sorted,
            };
            let rank = array_index(key(first)).map_or((1, place as u64), |index| (0, index));
            Some((rank, last))
        })
        .collect();
    ranked.sort_unstable();
    ranked.into_iter().map(|(_, member)| member).collect()
}

/// The number a key spells when JavaScript takes it for an array index.
fn array_index(key: JsonStr<'_>) -> Option<u64> {
    const MAX: u64 = 4_294_967_294;
    let text = key.decode()?;
    let is_canonical = text.bytes().all(|byte| byte.is_ascii_digit())
        && text.len() <= 10
        && (text.len() == 1 || !text.starts_with('0'));
    is_canonical.then(|| text.parse().ok()).flatten().filter(|&index| index <= MAX)
}

#[cfg(test)]
#[path = "normalize_tests.rs"]
mod tests;
