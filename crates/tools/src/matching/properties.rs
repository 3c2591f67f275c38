//! What holds for every edit.

use proptest::prelude::*;

use super::*;

/// Lines that are easily confused with each other.
fn line() -> impl Strategy<Value = String> {
    "[ \t]{0,4}[ab{}'’\"\u{a0}-]{0,4}[ \t]{0,2}"
}

fn end() -> impl Strategy<Value = &'static str> {
    prop_oneof!["\n".prop_map(|_| "\n"), Just("\r\n")]
}

fn file() -> impl Strategy<Value = String> {
    let lines = prop::collection::vec((line(), end()), 0..14);
    (lines, any::<bool>(), any::<bool>()).prop_map(|(lines, bom, cut)| {
        let mut text: String = lines
            .iter()
            .flat_map(|(line, end)| [line.as_str(), end])
            .collect();
        if cut && text.ends_with('\n') {
            text.truncate(text.trim_end_matches(['\r', '\n']).len());
        }
        if bom { format!("\u{feff}{text}") } else { text }
    })
}

fn lines_of(text: &str) -> Vec<&str> {
    text.strip_prefix('\u{feff}')
        .unwrap_or(text)
        .split_inclusive('\n')
        .collect()
}

fn bare(line: &str) -> &str {
    line.trim_end_matches(['\r', '\n'])
}

fn blocks() -> impl Strategy<Value = Vec<Block>> {
    let text = || prop::collection::vec(line(), 0..4).prop_map(|lines| lines.join("\n"));
    let block = (text(), text()).prop_map(|(search, replace)| Block { search, replace });
    prop::collection::vec(block, 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_outside_the_matches_stays_byte_for_byte(original in file(), blocks in blocks()) {
        let Ok(applied) = apply_blocks(&original, &blocks) else { return Ok(()) };
        let lines = lines_of(&original);
        let mut ranges: Vec<_> = applied.blocks.iter().map(|block| block.lines.clone()).collect();
        ranges.sort_by_key(|range| range.start);
        prop_assert_eq!(
            applied.text.starts_with('\u{feff}'),
            original.starts_with('\u{feff}')
        );
        let mut rest = applied.text.strip_prefix('\u{feff}').unwrap_or(&applied.text);
        let mut next = 0;
        for range in ranges {
            let kept = lines[next..range.start - 1].concat();
            // New text may lie between two kept stretches, so the stretch is looked for.
            let at = if next == 0 { Some(0) } else { rest.find(&kept) };
            prop_assert!(at.is_some_and(|at| rest[at..].starts_with(&kept)));
            rest = &rest[at.unwrap_or(0) + kept.len()..];
            next = range.end - 1;
        }
        prop_assert!(rest.ends_with(&lines[next..].concat()));
    }

    #[test]
    fn drift_at_line_ends_does_not_move_an_edit(
        original in file(),
        start in any::<prop::sample::Index>(),
        length in 1_usize..4,
        drift in prop::collection::vec("[ \t]{0,2}\r?", 4),
    ) {
        let lines = lines_of(&original);
        prop_assume!(!lines.is_empty());
        let start = start.index(lines.len());
        let end = lines.len().min(start + length);
        let wanted: Vec<&str> = lines[start..end].iter().map(|line| bare(line)).collect();
        let trimmed = |line: &str| line.trim_end_matches([' ', '\t', '\r', '\n']).to_owned();
        let loose: Vec<String> = lines.iter().map(|line| trimmed(line)).collect();
        let places = loose.windows(end - start).filter(|window| *window == &loose[start..end]);
        prop_assume!(places.count() == 1 && wanted.iter().any(|line| !line.trim().is_empty()));
        let drifted: Vec<String> =
            wanted.iter().zip(&drift).map(|(line, drift)| format!("{line}{drift}")).collect();
        let block = Block { search: drifted.join("\n"), replace: "NEW".to_owned() };
        let applied = apply_blocks(&original, &[block]);
        let applied = applied.map_err(|failures| TestCaseError::fail(failures[0].to_string()))?;
        prop_assert_eq!(&applied.blocks[0].lines, &(start + 1..end + 1));
        let ending = &lines[end - 1][bare(lines[end - 1]).len()..];
        let bom = if original.starts_with('\u{feff}') { "\u{feff}" } else { "" };
        let expected =
            format!("{bom}{}NEW{ending}{}", lines[..start].concat(), lines[end..].concat());
        prop_assert_eq!(applied.text, expected);
    }

    #[test]
    fn a_text_in_two_places_is_refused(original in file(), start in any::<prop::sample::Index>()) {
        let lines = lines_of(&original);
        prop_assume!(!lines.is_empty());
        let search = bare(lines[start.index(lines.len())]);
        prop_assume!(!search.is_empty());
        let doubled = format!("{original}\n{search}\nend\n");
        let block = Block { search: search.to_owned(), replace: "NEW".to_owned() };
        let failures = apply_blocks(&doubled, &[block]).unwrap_err();
        let is_ambiguous = matches!(failures[0].reason, MatchFailure::Ambiguous { .. });
        prop_assert!(is_ambiguous, "{}", failures[0]);
        prop_assert!(replace_string(&doubled, search, "NEW", Occurrence::One).is_err());
    }

    #[test]
    fn a_unique_string_is_replaced_where_it_is(before in ".{0,20}", after in "\\PC{0,20}", new in ".{0,10}") {
        prop_assume!(!before.starts_with('\u{feff}') && !new.contains("UNIQUE"));
        let original = format!("{before}UNIQUE{after}");
        let replaced = replace_string(&original, "UNIQUE", &new, Occurrence::One).unwrap();
        prop_assert_eq!(replaced.text, format!("{before}{new}{after}"));
    }

    #[test]
    fn nothing_breaks_it(original in any::<String>(), blocks in blocks(), old in any::<String>(), new in any::<String>()) {
        let _ = apply_blocks(&original, &blocks);
        let wild = Block { search: old.clone(), replace: new.clone() };
        let _ = apply_blocks(&original, &[wild]);
        for occurrence in [Occurrence::One, Occurrence::All] {
            let _ = replace_string(&original, &old, &new, occurrence).map_err(|failure| failure.to_string());
            for block in &blocks {
                let _ = replace_string(&original, &block.search, &block.replace, occurrence);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn nothing_breaks_it_on_confusable_lines(original in file(), blocks in blocks()) {
        for block in &blocks {
            let failure = replace_string(&original, &block.search, &block.replace, Occurrence::One);
            let _ = failure.map_err(|failure| failure.to_string());
        }
        if let Err(failures) = apply_blocks(&original, &blocks) {
            prop_assert!(!failures.is_empty());
            for failure in failures {
                prop_assert!(failure.block < blocks.len(), "{}", failure);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Also for the Edit tool, and with blanks within lines doubled.
    #[test]
    fn a_block_shifted_as_a_whole_is_changed_where_it_is(
        levels in prop::collection::vec(0_usize..4, 3..12),
        unit in prop_oneof![Just("  "), Just("    "), Just("\t")],
        (start, changed) in any::<(prop::sample::Index, prop::sample::Index)>(),
        length in 2_usize..5,
        (shift, deeper) in (0_usize..4, 0_usize..2),
        blanks in prop_oneof![Just(" "), Just("  ")],
    ) {
        let start = start.index(levels.len() - 1);
        let end = levels.len().min(start + length);
        let shift = shift.min(levels[start..end].iter().copied().min().unwrap_or(0));
        let changed = start + changed.index(end - start);
        let line = |level: usize, text: String| format!("{}{text}\n", unit.repeat(level));
        let old = |index: usize, less: usize| line(levels[index] - less, format!("step {index};"));
        let new = |less: usize| {
            let level = levels[changed] - less;
            line(level, "changed one;".to_owned()) + &line(level + deeper, "added one;".to_owned())
        };
        let range = |range: std::ops::Range<usize>, less: usize| -> String {
            range.map(|index| old(index, less)).collect()
        };
        let original = range(0..levels.len(), 0);
        let expected =
            range(0..changed, 0) + &new(0) + &range(changed + 1..levels.len(), 0);
        let search = range(start..end, shift).replace("step ", &format!("step{blanks}"));
        let replace = range(start..changed, shift).replace("step ", &format!("step{blanks}"))
            + &new(shift)
            + &range(changed + 1..end, shift).replace("step ", &format!("step{blanks}"));
        let block = Block {
            search: search.trim_end_matches('\n').to_owned(),
            replace: replace.trim_end_matches('\n').to_owned(),
        };
        let applied = apply_blocks(&original, &[block]);
        let applied = applied.map_err(|failures| TestCaseError::fail(failures[0].to_string()))?;
        prop_assert_eq!(&applied.text, &expected);
        let replaced = replace_string(&original, &search, &replace, Occurrence::One);
        let replaced = replaced.map_err(|failure| TestCaseError::fail(failure.to_string()))?;
        prop_assert_eq!(&replaced.text, &expected);
    }

    #[test]
    fn a_file_keeps_its_line_ends(
        lines in prop::collection::vec("[a-c]{1,3}", 2..8),
        at in any::<prop::sample::Index>(),
        new in prop::collection::vec(("[x-z]{1,3}", end()), 1..4),
        end in end(),
    ) {
        let mut lines = lines;
        let at = at.index(lines.len());
        lines[at] = "UNIQUE".to_owned();
        let original: String = lines.iter().map(|line| format!("{line}{end}")).collect();
        let new: String = new.iter().flat_map(|(line, end)| [line.as_str(), end]).collect();
        let replaced = replace_string(&original, "UNIQUE", &new, Occurrence::One).unwrap();
        let plain = replaced.text.replace(end, "");
        prop_assert!(!plain.contains(['\r', '\n']), "{:?}", replaced.text);
    }
}
