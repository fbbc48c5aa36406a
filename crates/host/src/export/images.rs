//! Which images an event shows.

use turnkeep_log::{
    Event,
    json::{Json, Kind},
};
use turnkeep_store::attachments::AttachmentRef;

/// Calls `found` with every image that the event refers to, wherever messages and blocks have a
/// place in an event: its content, the content of its message and of the messages it queues, and a
/// block that a stream has finished. A block's own content, such as a tool's result, counts.
pub(super) fn images_of<E>(
    event: &Event,
    mut found: impl FnMut(AttachmentRef) -> Result<(), E>,
) -> Result<(), E> {
    let data = event.data();
    let queued = data.get("inserted").and_then(Json::elements).into_iter().flatten();
    let lists = [content(data), data.get("message").and_then(content)];
    let lists = lists.into_iter().flatten().chain(queued.filter_map(content));
    let block = data.get("chunk").filter(|chunk| is(*chunk, "block-end"));
    let block = block.and_then(|chunk| chunk.get("block"));
    // What is still to be looked at: blocks, and lists of them.
    let mut left: Vec<_> = lists.chain(block).collect();
    left.reverse();
    while let Some(next) = left.pop() {
        if let Some(blocks) = next.elements() {
            // The last is looked at first, so that what stands first is found first.
            let from = left.len();
            left.extend(blocks);
            if let Some(added) = left.get_mut(from..) {
                added.reverse();
            }
            continue;
        }
        if is(next, "image")
            && let Some(image) = next.get("attachment").and_then(AttachmentRef::parse)
        {
            found(image)?;
        }
        left.extend(content(next));
    }
    Ok(())
}

fn content(of: Json<'_>) -> Option<Json<'_>> {
    of.get("content").filter(|content| content.kind() == Kind::Array)
}

fn is(of: Json<'_>, kind: &str) -> bool {
    of.get("type")
        .and_then(Json::as_str)
        .and_then(|text| text.decode())
        .is_some_and(|it| it == kind)
}

#[cfg(test)]
#[path = "images_tests.rs"]
mod tests;
