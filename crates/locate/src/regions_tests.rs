use proptest::prelude::*;

use super::*;

fn long(marked: &[usize]) -> String {
    (1..=400)
        .map(|number| match marked.contains(&number) {
            true => format!("    expire_session(user, {number})\n"),
            false => format!("    other work of line {number}\n"),
        })
        .collect()
}

/// Functions of ten lines, one of which has the text.
fn functions(count: usize, marked: usize) -> String {
    let mut text = String::from("import os\nfrom time import sleep\n\nclass Store(Base):\n");
    for number in 0..count {
        let inner = if number == marked {
            "expire the session"
        } else {
            "work"
        };
        text.push_str(&format!("    def part_{number}(self):\n"));
        text.extend((0..8).map(|line| format!("        {inner}({line})\n")));
        text.push('\n');
    }
    text
}

#[test]
fn a_text_that_fits_stays_whole() {
    let excerpt = regions("a", "a\r\nb", "anything", 4);
    let whole = Excerpt {
        text: "a\r\nb".into(),
        partial: false,
        shown: vec![(1, 2)],
    };
    assert_eq!(excerpt, whole);
}

#[test]
fn the_whole_function_is_kept_with_the_header_of_its_class_and_the_imports() {
    let text = functions(60, 40);
    let excerpt = regions("store.py", &text, "sessions expire too fast", 1500);
    assert!(excerpt.partial && excerpt.text.len() <= 1500);
    for line in [
        "import os\n",
        "from time import sleep\n",
        "class Store(Base):\n",
        "    def part_40(self):\n",
    ] {
        assert!(excerpt.text.contains(line), "{line} in {}", excerpt.text);
    }
    assert_eq!(excerpt.text.matches("expire the session").count(), 8);
    let first = 5 + 40 * 10;
    assert!(
        (first..first + 9).all(|line| excerpt.has_line(line)),
        "{:?}",
        excerpt.shown
    );
    assert!(!excerpt.has_line(300), "{:?}", excerpt.shown);
}

#[test]
fn a_long_text_without_blocks_keeps_its_head_and_the_regions_that_matter() {
    let excerpt = regions(
        "a.txt",
        &long(&[200, 330]),
        "sessions expire too fast",
        4000,
    );
    assert!(excerpt.partial && excerpt.text.len() <= 4000);
    assert!(excerpt.text.starts_with("    other work of line 1\n"));
    for line in ["session(user, 200)", "session(user, 330)"] {
        assert!(excerpt.text.contains(line), "{line} in {}", excerpt.text);
    }
}

#[test]
fn a_marker_says_which_lines_are_missing_and_what_they_define() {
    let text = functions(60, 40);
    let excerpt = regions("store.py", &text, "sessions expire too fast", 1500);
    let marker = excerpt
        .text
        .lines()
        .rfind(|line| line.starts_with('['))
        .unwrap();
    assert!(marker.ends_with("–604 left out: part_41, part_42, part_43, part_44, part_45, part_46, part_47, part_48, … …]"), "{marker}");
    let shown: usize = excerpt
        .shown
        .iter()
        .map(|(first, last)| last + 1 - first)
        .sum();
    let markers = excerpt
        .text
        .lines()
        .filter(|line| line.starts_with('['))
        .count();
    assert_eq!(excerpt.text.lines().count(), shown + markers);
}

#[test]
fn the_head_of_a_text_is_whole_lines_and_a_marker() {
    let excerpt = head(&long(&[]), 300);
    assert!(excerpt.text.len() <= 300);
    let last = excerpt.shown[0].1;
    let end = format!("line {last}\n[… lines {}–400 left out …]\n", last + 1);
    assert!(excerpt.text.ends_with(&end), "{}", excerpt.text);
}

#[test]
fn a_line_without_end_is_cut_on_a_character() {
    let excerpt = regions("a", &"é".repeat(100), "é", 11);
    let cut = Excerpt {
        text: "é".repeat(5),
        partial: true,
        shown: Vec::new(),
    };
    assert_eq!(excerpt, cut);
}

#[test]
fn a_head_with_a_short_rest_is_no_longer_than_asked() {
    let text = format!("a\n{}", format!("{}\n", "b".repeat(80)).repeat(3));
    let excerpt = head(&text, 212);
    assert!(excerpt.text.len() <= 212 && excerpt.partial, "{excerpt:?}");
}

proptest! {
    #[test]
    fn an_excerpt_is_never_longer_than_asked_and_has_the_lines_that_it_says(
        text in "(\\PC{0,40}\n){0,60}", words in "\\PC{0,60}", most in 0usize..800,
        extension in "(py|rs|txt)",
    ) {
        let excerpt = regions(&format!("a.{extension}"), &text, &words, most);
        prop_assert!(excerpt.text.len() <= most);
        prop_assert_eq!(excerpt.partial, text.len() > most);
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        for (first, last) in excerpt.shown {
            for line in first..=last {
                prop_assert!(excerpt.text.contains(lines[line - 1]));
            }
        }
    }
}
