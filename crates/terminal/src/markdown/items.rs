//! Items of lists: their numbers, indentation and boxes.
//!
//! Numbers are counted on from the first item of a list, as CommonMark has it, whatever the others
//! say. Bullets are all shown as `-`.

use super::{
    block::{Block, Container},
    blocks::BlockParser,
    lines::{self, Cursor, ListKind, Marker},
};

impl BlockParser {
    /// `matched` is how many containers the line is in; the new item replaces those after it. Up to
    /// four blanks after the marker belong to it, with more of them the text is indented code.
    pub(super) fn start_item(
        &mut self,
        cursor: &mut Cursor<'_>,
        marker: Marker,
        matched: usize,
        out: &mut Vec<Block>,
    ) {
        // The item before it in the same list is the container that this line is not in.
        let number = match self.containers.get(matched) {
            Some(Container::Item { kind, number, .. }) if *kind == marker.kind => number + 1,
            _ => marker.number,
        };
        self.close_containers(matched, out);
        self.close_leaf(out);
        let indent = cursor.indent();
        cursor.skip_mark(marker.length);
        let spaces = match cursor.indent() {
            spaces @ 1..=4 if !marker.alone => spaces,
            _ => 1,
        };
        cursor.skip_columns(spaces);
        let shown_marker = match marker.kind {
            ListKind::Bullet(_) => "- ".to_owned(),
            ListKind::Numbered(mark) => format!("{number}{mark} "),
        };
        self.containers.push(Container::Item {
            kind: marker.kind,
            number,
            content: indent + marker.length + spaces,
            marker: shown_marker,
            shown: false,
        });
    }

    /// The box of a task becomes part of its marker. What follows is text.
    pub(super) fn take_task_box(&mut self, cursor: &mut Cursor<'_>) -> bool {
        let Some((ticked, _)) = lines::task_box(cursor.trimmed()) else {
            return false;
        };
        let Some(Container::Item { kind, marker, .. }) = self.containers.last_mut() else {
            return false;
        };
        if cursor.indent() >= 4 {
            return false;
        }
        cursor.skip_mark("[ ] ".len());
        if matches!(kind, ListKind::Bullet(_)) {
            marker.clear();
        }
        marker.push_str(if ticked { "☑ " } else { "☐ " });
        true
    }
}
