//! The list of messages that the model sees.

use std::collections::HashMap;

use super::{
    RestoreProblem,
    envelope::{Join, Place},
    same,
};
use crate::{event::Event, id::Seq, json::Json};

/// The nodes in the model's order, as a list linked by seq: a replacement visits what it replaces
/// and nothing else, and each node is replaced once, so a log of any shape takes linear time.
#[derive(Default)]
pub(super) struct Surface {
    nodes: HashMap<u64, Links>,
    first: Option<u64>,
    last: Option<u64>,
}

#[derive(Clone, Copy)]
struct Links {
    before: Option<u64>,
    after: Option<u64>,
}

impl Surface {
    /// Puts `event` where it says it belongs. `events` is the log it is of.
    pub(super) fn take(
        &mut self,
        event: &Event,
        join: &Join,
        events: &[Event],
    ) -> Result<(), RestoreProblem> {
        let node = event.seq().0;
        let Place::Of { start, end } = join.place else {
            self.put(node, Links { before: self.last, after: None });
            return Ok(());
        };
        let shadowed = self.range(start, end)?;
        for seq in &shadowed {
            if join.sources.binary_search(seq).is_err() {
                let problem = "which its `sourceEventSeqs` do not name";
                return Err(RestoreProblem::Replaced { seq: Seq(*seq), problem });
            }
        }
        if event.event_type() == "tool/result" {
            check_pruned(event, &shadowed, events)?;
        }
        let ends = |seq: u64| self.nodes.get(&seq).copied();
        let before = ends(start).and_then(|links| links.before);
        let after = ends(end).and_then(|links| links.after);
        for seq in shadowed {
            self.nodes.remove(&seq);
        }
        self.put(node, Links { before, after });
        Ok(())
    }

    /// The nodes from `start` to `end`.
    fn range(&self, start: u64, end: u64) -> Result<Vec<u64>, RestoreProblem> {
        for seq in [start, end] {
            if !self.nodes.contains_key(&seq) {
                let problem = "which the model does not see at that point";
                return Err(RestoreProblem::Replaced { seq: Seq(seq), problem });
            }
        }
        let mut nodes = vec![start];
        let mut at = start;
        while at != end {
            let Some(next) = self.nodes.get(&at).and_then(|links| links.after) else {
                let problem = "which the model sees before the start of the range";
                return Err(RestoreProblem::Replaced { seq: Seq(end), problem });
            };
            nodes.push(next);
            at = next;
        }
        Ok(nodes)
    }

    fn put(&mut self, node: u64, links: Links) {
        match links.before.and_then(|before| self.nodes.get_mut(&before)) {
            Some(before) => before.after = Some(node),
            None => self.first = Some(node),
        }
        match links.after.and_then(|after| self.nodes.get_mut(&after)) {
            Some(after) => after.before = Some(node),
            None => self.last = Some(node),
        }
        self.nodes.insert(node, links);
    }

    /// The nodes in order.
    pub(super) fn seqs(&self) -> Vec<Seq> {
        let after = |seq: &u64| self.nodes.get(seq).and_then(|links| links.after);
        std::iter::successors(self.first, after).map(Seq).collect()
    }
}

/// A tool result replaces the same result with other content and nothing else: whose result it is
/// and how the call ended are settled.
fn check_pruned(event: &Event, shadowed: &[u64], events: &[Event]) -> Result<(), RestoreProblem> {
    let &[only] = shadowed else {
        return Err(RestoreProblem::Rule("is a tool result that replaces several events"));
    };
    let replaced = usize::try_from(only).ok().and_then(|at| events.get(at));
    let replaced = replaced.filter(|replaced| replaced.event_type() == "tool/result");
    let problem = match replaced {
        None => "which is no tool result, with one",
        Some(old) if !differ_in_content_only(old.data(), event.data()) => {
            "whose tool result differs in more than its content"
        }
        Some(_) => return Ok(()),
    };
    Err(RestoreProblem::Replaced { seq: Seq(only), problem })
}

fn differ_in_content_only(old: Json<'_>, new: Json<'_>) -> bool {
    let inner = |key| Some((old.get(key)?, new.get(key)?));
    let Some((old_message, new_message)) = inner("message") else { return false };
    let (Some(old_block), Some(new_block)) = (only_block(old_message), only_block(new_message))
    else {
        return false;
    };
    same::but(old, new, "message")
        && same::but(old_message, new_message, "content")
        && same::but(old_block, new_block, "content")
}

fn only_block(message: Json<'_>) -> Option<Json<'_>> {
    let mut blocks = message.get("content")?.elements()?;
    let block = blocks.next()?;
    blocks.next().is_none().then_some(block)
}
