//! Read on real files.

use std::{io::Write as _, os::unix::fs::symlink};

use codespar_protocol::ToolResultContent;
use serde_json::json;

use super::*;
use crate::testing::Bench;

async fn read(bench: &Bench, path: &str) -> String {
    bench.run(&Read, json!({"file_path": path})).await
}

#[tokio::test]
async fn lines_are_numbered_and_crlf_and_the_byte_order_mark_are_not_shown() {
    let bench = Bench::new();
    let text: String = (1..=10).map(|n| format!("line {n}\r\n")).collect();
    bench.write("a.txt", format!("\u{feff}{text}"));
    let shown = read(&bench, "a.txt").await;
    assert!(shown.starts_with(" 1\tline 1\n 2\tline 2\n"), "{shown}");
    assert!(shown.ends_with("\n10\tline 10"), "{shown}");
    bench.write("b.txt", "no end");
    assert_eq!(
        read(&bench, bench.path("b.txt").to_str().unwrap()).await,
        "1\tno end"
    );
    bench.write("empty", "");
    assert_eq!(read(&bench, "empty").await, "(empty is empty)");
}

#[tokio::test]
async fn a_window_says_how_to_go_on() {
    let bench = Bench::new();
    bench.write("a.txt", "a\nb\nc\nd\n");
    let window = |offset: usize, limit: usize| json!({"file_path": "a.txt", "offset": offset, "limit": limit});
    assert_eq!(
        bench.run(&Read, window(2, 2)).await,
        "2\tb\n3\tc\n(4 lines in all; go on with offset 4)"
    );
    assert_eq!(bench.run(&Read, window(3, 9)).await, "3\tc\n4\td");
    assert_eq!(
        bench.run(&Read, window(0, 1)).await,
        "1\ta\n(4 lines in all; go on with offset 2)"
    );
    assert_eq!(
        bench.fail(&Read, window(9, 1)).await,
        "a.txt has 4 lines; offset 9 is past its end"
    );
}

#[tokio::test]
async fn a_long_file_is_cut_at_two_thousand_lines_and_a_wide_one_sooner() {
    let bench = Bench::new();
    let text: String = (1..=2_500).map(|n| format!("l {n}\n")).collect();
    bench.write("long", text);
    let shown = read(&bench, "long").await;
    assert_eq!(shown.lines().count(), 2_001);
    assert_eq!(
        shown.lines().last(),
        Some("(2500 lines in all; go on with offset 2001)")
    );
    bench.write("wide", format!("{}\n", "x".repeat(900)).repeat(100));
    let shown = read(&bench, "wide").await;
    assert!(shown.chars().count() <= 30_000, "{}", shown.len());
    assert_eq!(
        shown.lines().last(),
        Some("(100 lines in all; go on with offset 33)")
    );
}

#[tokio::test]
async fn a_long_line_is_cut_with_a_mark() {
    let bench = Bench::new();
    bench.write("a", format!("{}\nnext", "é".repeat(2_001)));
    let shown = read(&bench, "a").await;
    let expected = format!(
        "1\t{}… [line cut: 4003 bytes in all]\n2\tnext",
        "é".repeat(2_000)
    );
    assert_eq!(shown, expected);
    bench.write("b", "x".repeat(1_000_000));
    let shown = read(&bench, "b").await;
    assert!(
        shown.ends_with("x… [line cut: 1000000 bytes in all]"),
        "{}",
        &shown[1_990..]
    );
    assert!(shown.len() < 2_100);
}

#[tokio::test]
async fn text_in_another_encoding_is_shown_as_far_as_it_goes() {
    let bench = Bench::new();
    bench.write("latin", b"caf\xe9\nok\n");
    assert_eq!(
        read(&bench, "latin").await,
        "1\tcaf\u{fffd}\n2\tok\n(not all of it is UTF-8: such bytes are shown as \u{fffd})"
    );
}

#[tokio::test]
async fn an_image_becomes_an_image_block() {
    let bench = Bench::new();
    let png = b"\x89PNG\r\n\x1a\nrest";
    bench.write("a.dat", png);
    let image = Image::base64("image/png", &STANDARD.encode(png)).unwrap();
    let output = bench.call(&Read, json!({"file_path": "a.dat"})).await;
    assert_eq!(
        output.content,
        ToolResultContent::Blocks(vec![ContentBlock::Image(image)])
    );
    let mut big = png.to_vec();
    big.resize(usize::try_from(MAX_IMAGE_BYTES).unwrap() + 1, 0);
    bench.write("big.png", &big);
    assert_eq!(
        bench.fail(&Read, json!({"file_path": "big.png"})).await,
        "big.png is an image of 3932161 bytes; at most 3932160 can be shown"
    );
}

#[tokio::test]
async fn what_is_not_a_text_file_is_refused_with_its_kind() {
    let bench = Bench::new();
    bench.write("src/main.rs", "");
    bench.write("a.bin", b"\x7fELF\0\0");
    let fail = |path: &'static str| bench.fail(&Read, json!({"file_path": path}));
    assert_eq!(
        fail("src").await,
        "src is a directory, not a file; list it instead"
    );
    assert_eq!(
        fail("a.bin").await,
        "a.bin is an ELF executable of 6 bytes, not text; look at it with a command"
    );
    assert_eq!(
        fail("src/mian.rs").await,
        "src/mian.rs does not exist. Did you mean src/main.rs?"
    );
    assert_eq!(fail("/dev/null").await, "/dev/null is not a regular file");
    assert_eq!(
        bench.fail(&Read, json!({"path": "a"})).await,
        "invalid input: `file_path` is missing"
    );
}

#[tokio::test]
async fn a_huge_file_is_read_only_as_far_as_needed() {
    let bench = Bench::new();
    let path = bench.write(
        "huge",
        "first\n".to_owned() + &"more\n".repeat(SNIFFED_BYTES),
    );
    let mut file = File::options().append(true).open(&path).unwrap();
    file.set_len(HASHED_BYTES + 1).unwrap();
    file.write_all(b"\n").unwrap();
    // The rest is a hole of NULs in one line.
    let shown = bench
        .run(&Read, json!({"file_path": "huge", "limit": 1}))
        .await;
    assert_eq!(shown, "1\tfirst\n(more lines follow; go on with offset 2)");
    assert!(bench.context().ledger().has_read(&path));
}

#[tokio::test]
async fn a_read_file_is_on_the_ledger_under_its_real_path() {
    let bench = Bench::new();
    let path = bench.write("real", "x");
    symlink("real", bench.path("link")).unwrap();
    let intent = bench.inspect(&Read, &json!({"file_path": "link"})).unwrap();
    assert_eq!(
        intent,
        Intent {
            summary: "real".into(),
            access: vec![Access::Read(path.clone())]
        }
    );
    read(&bench, "link").await;
    assert_eq!(bench.context().ledger().paths(), [path]);
}
