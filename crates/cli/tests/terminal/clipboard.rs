//! Pictures from the clipboard, by programs that stand in for those of a desktop.

use std::{fs, os::unix::fs::PermissionsExt};

use codespar_testkit::{Script, Turn};

use crate::{common::Bench, harness::Terminal};

/// A session with a program of this name, which runs `script`.
fn session(bench: &Bench, program: &str, script: &str, variables: &str) -> Terminal {
    let dir = bench.room.home().join("desktop");
    fs::create_dir(&dir).unwrap();
    let path = dir.join(program);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let dir = dir.display();
    Terminal::start_with(bench, &format!("PATH={dir}:$PATH {variables}"))
}

fn bench() -> Bench {
    Bench::new(Script::new().turn(Turn::text("a picture of a cat")))
}

/// Of a picture; its first bytes in base64 are `iVBORw0KGgo`.
const PICTURE: &str = r"printf '\211PNG\r\n\032\n and the rest'";

fn is_sent_with_a_picture(bench: &Bench, mut terminal: Terminal) {
    terminal.types("what is this?\x16");
    terminal.shows("[clipboard-");
    terminal.types("\r");
    terminal.shows("a picture of a cat");
    let request = bench.server.last_request().unwrap();
    let last = request.last_message().to_string();
    assert!(last.contains("what is this? "), "{last}");
    assert!(last.contains("image/png"), "{last}");
    assert!(last.contains("iVBORw0KGgo"), "{last}");
}

#[test]
fn the_picture_on_the_clipboard_of_wayland_goes_with_the_message() {
    let bench = bench();
    let script = format!(r#"[ "$*" = "--no-newline --type image/png" ] && {PICTURE}"#);
    let terminal = session(&bench, "wl-paste", &script, "WAYLAND_DISPLAY=w DISPLAY=:9");
    is_sent_with_a_picture(&bench, terminal);
}

#[test]
fn the_picture_on_the_clipboard_of_x11_goes_with_the_message() {
    let bench = bench();
    let script =
        format!(r#"[ "$*" = "-selection clipboard -target image/png -out" ] && {PICTURE}"#);
    let terminal = session(&bench, "xclip", &script, "DISPLAY=:9");
    is_sent_with_a_picture(&bench, terminal);
}

#[test]
fn what_is_no_picture_is_not_attached() {
    let cases = [
        ("echo rm -rf /", "there is no picture on the clipboard"),
        ("exit 1", "there is no picture on the clipboard"),
        (
            r"printf '\211PNG\r\n\032\n'; head -c 5000000 /dev/zero",
            "the picture has more than 3.93 MB",
        ),
        ("sleep 1000", "`xclip` did not answer within 5 s"),
    ];
    for (script, says) in cases {
        let bench = bench();
        let mut terminal = session(&bench, "xclip", script, "DISPLAY=:9");
        terminal.types("half a thought\x16");
        terminal.shows(says);
        terminal.shows("› half a thought");
    }
}

#[test]
fn where_there_is_no_clipboard_the_session_says_what_to_do() {
    let cases = [
        (
            "A=b",
            "there is no clipboard here; name the picture by its path",
        ),
        (
            "SSH_CONNECTION=1.2.3.4",
            "there is no clipboard on this side of ssh; copy the picture here",
        ),
        (
            "WAYLAND_DISPLAY=w",
            "the clipboard needs `wl-paste`; install it",
        ),
    ];
    for (variables, says) in cases {
        let bench = bench();
        let mut terminal = session(&bench, "xclip", PICTURE, variables);
        terminal.types("\x16");
        terminal.shows(says);
    }
}
