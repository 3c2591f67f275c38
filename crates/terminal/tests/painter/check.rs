//! Whether a terminal shows what a recording should have made it show.

use codespar_terminal::{painter::Reflow, width};

use crate::{
    emulators::{Emulator, Screen},
    script::{Event, Recording, is_live},
};

/// Whether rows of the live region may be left among the committed lines: those that the terminal
/// itself moved into its scrollback by a resize cannot be erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Debris {
    None,
    Unavoidable,
}

pub(crate) fn play(recording: &Recording, emulator: &mut dyn Emulator, reflow: Reflow) -> Debris {
    let mut debris = Debris::None;
    let mut last = recording.first;
    let mut is_resized = false;
    for event in &recording.events {
        match event {
            Event::Write(bytes) => {
                is_resized = false;
                emulator.write(bytes);
            }
            Event::Resize(size, lines, rows) => {
                // Only one resize can be followed.
                if is_resized {
                    debris = Debris::Unavoidable;
                }
                is_resized = true;
                // Then it cannot be known how many rows below the cursor it dropped.
                let is_smaller = size.height < last.height && size.width < last.width;
                if reflow == Reflow::XtermJs && is_smaller {
                    debris = Debris::Unavoidable;
                }
                last = *size;
                emulator.resize(*size);
                let mut screen = emulator.screen();
                screen.rows.truncate(screen.history);
                let is_more = match reflow {
                    Reflow::No => screen.history > *rows,
                    _ => logical(&screen).0.len() > *lines,
                };
                if is_more {
                    debris = Debris::Unavoidable;
                }
            }
        }
    }
    debris
}

/// Lines without the breaks that the terminal made, and the line of the cursor.
fn logical(screen: &Screen) -> (Vec<String>, usize) {
    let mut lines = Vec::new();
    let mut cursor = 0;
    let mut is_open = false;
    for (index, row) in screen.rows.iter().enumerate() {
        if !is_open {
            lines.push(String::new());
        }
        lines.last_mut().unwrap().push_str(&row.text);
        is_open = row.is_wrapped;
        if index == screen.cursor.0 {
            cursor = lines.len() - 1;
        }
    }
    (lines, cursor)
}

fn trimmed(mut lines: Vec<String>) -> Vec<String> {
    for line in &mut lines {
        line.truncate(line.trim_end().len());
    }
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// Every committed line once and in order, then the live region, and nothing else.
pub(crate) fn check_reflowing(
    recording: &Recording,
    emulator: &mut dyn Emulator,
) -> Result<(), String> {
    check_except(recording, emulator, Reflow::Yes, &[])
}

/// The same, but the terminal may lose these characters.
pub(crate) fn check_except(
    recording: &Recording,
    emulator: &mut dyn Emulator,
    reflow: Reflow,
    lost: &[char],
) -> Result<(), String> {
    let debris = play(recording, emulator, reflow);
    let screen = emulator.screen();
    let (mut actual, cursor) = logical(&screen);
    let committed = recording.committed.iter();
    let mut expected: Vec<String> = committed.flat_map(|line| line.logical.clone()).collect();
    let start = expected.len();
    for line in expected.iter_mut().chain(&mut actual) {
        line.retain(|c| !lost.contains(&c));
    }
    if debris == Debris::Unavoidable {
        // The terminal may have joined such a row with a line after it.
        let text = |lines: Vec<String>| lines.concat().replace(|c| c == ' ' || is_live(c), "");
        return same(&[text(expected)], &[text(actual)]);
    }
    let region = recording.region.iter();
    expected.extend(region.map(|row| row.replace(lost, "")));
    same(&trimmed(expected), &trimmed(actual))?;
    let Some((x, y)) = recording.cursor else {
        return Ok(());
    };
    let at = (start + usize::from(y), usize::from(x));
    if at != (cursor, screen.cursor.1) {
        let actual = (cursor, screen.cursor.1);
        return Err(format!("cursor: expected {at:?}, is {actual:?}"));
    }
    Ok(())
}

/// Names the first difference.
fn same(expected: &[String], actual: &[String]) -> Result<(), String> {
    let most = expected.len().max(actual.len());
    let Some(at) = (0..most).find(|at| expected.get(*at) != actual.get(*at)) else {
        return Ok(());
    };
    let around = |lines: &[String]| {
        let lines = lines.iter().skip(at.saturating_sub(2)).take(8);
        lines.cloned().collect::<Vec<_>>()
    };
    let (expected, actual) = (around(expected), around(actual));
    Err(format!(
        "line {at}: expected {expected:#?}\nactual {actual:#?}"
    ))
}

/// The same on a terminal that cuts rows: of a committed one at least what fitted since stays.
pub(crate) fn check_cutting(
    recording: &Recording,
    emulator: &mut dyn Emulator,
) -> Result<(), String> {
    let debris = play(recording, emulator, Reflow::No);
    let screen = emulator.screen();
    let actual: Vec<String> = screen.rows.iter().map(|row| row.text.clone()).collect();
    let mut actual = trimmed(actual);
    let mut expected = Vec::new();
    for line in &recording.committed {
        let rows = line.rows.iter();
        expected.extend(rows.map(|row| (row.trim_end().to_owned(), line.narrowest)));
    }
    let start = expected.len();
    if debris == Debris::Unavoidable {
        let is_committed = |line: &str| !line.is_empty() && !line.contains(is_live);
        actual.retain(|line| is_committed(line));
        expected.retain(|(line, _)| is_committed(line));
    } else {
        let region = recording.region.iter().cloned();
        expected.extend(region.map(|row| (row, u16::MAX)));
        let (x, y) = recording.cursor.unwrap_or((0, 0));
        let at = (start + usize::from(y), usize::from(x));
        if at != screen.cursor {
            return Err(format!(
                "cursor: expected {at:?}, is {:?}\n{actual:#?}",
                screen.cursor
            ));
        }
    }
    while expected.last().is_some_and(|(row, _)| row.is_empty()) {
        expected.pop();
    }
    let agrees = |actual: &str, (expected, narrowest): &(String, u16)| {
        let least = width::prefix(expected, usize::from(*narrowest) - 1);
        expected.starts_with(actual) && actual.starts_with(least.trim_end())
    };
    let is_same = actual.len() == expected.len()
        && actual
            .iter()
            .zip(&expected)
            .all(|(one, other)| agrees(one, other));
    match is_same {
        true => Ok(()),
        false => Err(format!("expected {expected:#?}\nactual {actual:#?}")),
    }
}
