//! Whether a terminal shows what a recording should have made it show.

use codespar_terminal::{painter::Reflow, width};

use crate::{
    emulators::{Emulator, Screen},
    script::{Event, Recording, is_live},
};

/// How many characters of the live region may be left among the committed lines: those that the
/// terminal itself moved into its scrollback by a resize, or that it moved to where they cannot be
/// found, are not erased.
type Debris = Option<usize>;

pub(crate) fn play(recording: &Recording, emulator: &mut dyn Emulator, reflow: Reflow) -> Debris {
    let mut debris = None;
    let mut last = recording.first;
    // Since the last draw: how often, and whether the width was another in between.
    let (mut resizes, mut is_width_new) = (0, false);
    for event in &recording.events {
        match event {
            Event::Write(bytes) => {
                (resizes, is_width_new) = (0, false);
                emulator.write(bytes);
            }
            Event::Resize(resized) => {
                let size = resized.size;
                resizes += 1;
                is_width_new |= size.width != last.width;
                // Only one can be followed.
                let mut is_lost = resizes > 1 && is_width_new;
                // Then it cannot be known how many rows below the cursor it dropped.
                let is_smaller = size.height < last.height && size.width < last.width;
                is_lost |= reflow == Reflow::XtermJs && is_smaller;
                last = size;
                emulator.resize(size);
                let mut screen = emulator.screen();
                screen.rows.truncate(screen.history);
                is_lost |= match reflow {
                    Reflow::No => screen.history > resized.rows,
                    _ => logical(&screen).0.len() > resized.lines,
                };
                if is_lost {
                    debris = Some(debris.unwrap_or(0) + resized.live);
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
    if let Some(most) = debris {
        let y = recording.cursor.map_or(0, |(_, y)| usize::from(y));
        let first = match reflow {
            Reflow::XtermJs if recording.cursor.is_none() => {
                cursor + 1 - recording.region.len().max(1)
            }
            _ => cursor - y,
        };
        let mut live = actual.split_off(first);
        let region = recording.region.iter().map(|row| row.replace(lost, ""));
        let region: Vec<String> = region.collect();
        // The terminal may have joined the first row with one that it kept.
        let row = region.first().map_or("", String::as_str);
        if let Some(kept) = live[0].trim_end().strip_suffix(row) {
            let kept = kept.to_owned();
            live[0].drain(..kept.len());
            actual.push(kept);
        }
        same(&trimmed(region), &trimmed(live))?;
        return same_except_debris(&expected, &actual, most);
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

/// Every committed line, in a line of its own but for rows of the live region that the terminal
/// joined with it, and not more of those than there were.
fn same_except_debris(expected: &[String], actual: &[String], most: usize) -> Result<(), String> {
    count_debris(actual, most)?;
    let committed = |lines: &[String]| {
        let lines = lines.iter().map(|line| line.replace(is_live, ""));
        let lines = lines.map(|line| line.trim().to_owned());
        lines.filter(|line| !line.is_empty()).collect::<Vec<_>>()
    };
    same(&committed(expected), &committed(actual))
}

fn count_debris(lines: &[String], most: usize) -> Result<(), String> {
    let left: usize = lines.iter().map(|line| line.matches(is_live).count()).sum();
    match left <= most {
        true => Ok(()),
        false => Err(format!(
            "{left} characters left of at most {most}: {lines:#?}"
        )),
    }
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

/// A row that was committed, and the narrowest that the terminal has been since.
type Cut = (String, u16);

/// The same on a terminal that cuts rows: of a committed one at least what fitted since stays.
pub(crate) fn check_cutting(
    recording: &Recording,
    emulator: &mut dyn Emulator,
) -> Result<(), String> {
    let debris = play(recording, emulator, Reflow::No);
    let screen = emulator.screen();
    let (x, y) = recording.cursor.unwrap_or((0, 0));
    if screen.cursor.1 != usize::from(x) {
        return Err(format!(
            "cursor: expected column {x}, is {:?}",
            screen.cursor
        ));
    }
    let mut actual: Vec<String> = screen.rows.iter().map(|row| row.text.clone()).collect();
    let live = actual.split_off(screen.cursor.0 - usize::from(y));
    same(&trimmed(recording.region.clone()), &trimmed(live))?;
    let committed = recording.committed.iter().flat_map(|line| {
        let rows = line.rows.iter();
        rows.map(|row| (row.trim_end().to_owned(), line.narrowest))
    });
    let expected: Vec<Cut> = committed.collect();
    if let Some(most) = debris {
        count_debris(&actual, most)?;
        actual.retain(|row| !row.is_empty() && !row.contains(is_live));
    }
    let mut rest = actual.iter().peekable();
    for row in &expected {
        let is_there = rest.next_if(|actual| is_cut_from(actual, row)).is_some();
        // Blank rows cannot be told from what a terminal left.
        let may_be_blank = debris.is_some() && is_cut_from("", row);
        if !is_there && !may_be_blank {
            let at = rest.peek();
            return Err(format!("expected {row:?}, is {at:?} in {actual:#?}"));
        }
    }
    match rest.next() {
        None => Ok(()),
        Some(row) => Err(format!("{row:?} is too much in {actual:#?}")),
    }
}

fn is_cut_from(actual: &str, (expected, narrowest): &Cut) -> bool {
    let least = width::prefix(expected, usize::from(*narrowest) - 1);
    expected.starts_with(actual) && actual.starts_with(least.trim_end())
}
