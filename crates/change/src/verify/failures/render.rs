//! The failures of a run as a text of bounded size, for whoever is to mend them.

use std::fmt::Write as _;

use super::{
    TestFailure,
    clip::{cut, first_bytes, last_bytes},
};
use crate::verify::TestRun;

/// How long the text is at most. In bytes.
pub const REPORT_LIMIT: usize = 12 << 10;
/// For the beginning and the end of the output, beside failures.
const ENDS: (usize, usize) = (600, 1_400);
/// For them where nothing was recognised.
const ENDS_ALONE: (usize, usize) = (3_000, 8_000);
/// The part of the room that names may take.
const NAMES: usize = REPORT_LIMIT / 2;
const WORTH_READING: usize = 280;

/// One failure and the room its message gets.
struct Entry<'a> {
    failure: &'a TestFailure,
    is_new: bool,
    room: usize,
}

impl Entry<'_> {
    fn title(&self) -> String {
        let about = if self.is_new {
            ""
        } else {
            " (failed before the change, too)"
        };
        format!("### {}{about}\n", self.failure.name)
    }
}

/// Says which tests failed, with what the runner says of each, and shows both ends of the output.
/// Every failure is named as long as the names fit; messages share the room that is left, those
/// of failures that `before` does not have first.
pub fn report(run: &TestRun, before: &TestRun) -> String {
    let mut entries: Vec<Entry<'_>> = run
        .failures
        .iter()
        .map(|failure| Entry {
            failure,
            is_new: !before.has_failure(&failure.name),
            room: 0,
        })
        .collect();
    // New ones first; the order of each kind stays.
    entries.sort_by_key(|entry| !entry.is_new);
    let mut names = 0;
    let named = entries
        .iter()
        .take_while(|entry| {
            names += entry.title().len();
            names <= NAMES
        })
        .count();
    let unnamed = entries.len() - named;
    entries.truncate(named);
    let (head, tail) = if entries.is_empty() { ENDS_ALONE } else { ENDS };
    let taken = names.min(NAMES) + head + tail + 200;
    share(&mut entries, REPORT_LIMIT.saturating_sub(taken));
    let mut out = String::new();
    write(&mut out, &entries, unnamed).unwrap_or_default();
    add_end(
        &mut out,
        "The output begins with:",
        first_bytes(&run.head, head),
    );
    add_end(
        &mut out,
        "The output ends with:",
        whole_lines(&run.tail, tail),
    );
    first_bytes(&out, REPORT_LIMIT).to_owned()
}

fn write(out: &mut String, entries: &[Entry<'_>], unnamed: usize) -> std::fmt::Result {
    for entry in entries {
        out.push_str(&entry.title());
        let message = cut(&entry.failure.message, entry.room);
        if !message.is_empty() {
            writeln!(out, "{message}\n")?;
        }
    }
    if unnamed > 0 {
        writeln!(out, "\n… and {unnamed} more failures")?;
    }
    Ok(())
}

fn add_end(out: &mut String, title: &str, text: &str) {
    if !text.trim().is_empty() {
        let _ = write!(out, "\n{title}\n{text}\n");
    }
}

fn whole_lines(text: &str, most: usize) -> &str {
    let rest = last_bytes(text, most);
    if rest.len() == text.len() {
        return rest;
    }
    rest.split_once('\n').map_or(rest, |(_, rest)| rest)
}

/// Gives each message its room: all that it needs, or an equal part of what there is. Messages of
/// new failures come first, but leave a quarter for the others.
fn share(entries: &mut [Entry<'_>], room: usize) {
    let new = entries.iter().filter(|entry| entry.is_new).count();
    let (new, old) = entries.split_at_mut(new);
    let for_new = if old.is_empty() { room } else { room * 3 / 4 };
    let taken = share_equally(new, for_new);
    share_equally(old, room - taken);
}

/// Returns how much was given away. Where there is not enough for all, the first get what makes a
/// message worth reading, and the others none.
fn share_equally(entries: &mut [Entry<'_>], room: usize) -> usize {
    let mut least = 0;
    let served = entries
        .iter()
        .take_while(|entry| {
            least += (entry.failure.message.len() + 2).min(WORTH_READING);
            least <= room
        })
        .count();
    let entries = &mut entries[..served];
    let mut order: Vec<usize> = (0..entries.len()).collect();
    // What short ones do not need is left for the long ones.
    order.sort_by_key(|index| entries[*index].failure.message.len());
    let (mut left, mut waiting) = (room, entries.len());
    for index in order {
        let entry = &mut entries[index];
        let given = (entry.failure.message.len() + 2).min(left / waiting);
        entry.room = given.saturating_sub(2);
        left -= given;
        waiting -= 1;
    }
    room - left
}
