//! Tells the user that something needs attention, in the way of the terminal.

/// By terminal: OSC 99 (kitty), OSC 777 (rxvt, VTE), OSC 9 (iTerm2, WezTerm, ghostty and others),
/// else the bell. Within tmux it is passed through. Control characters and semicolons are taken out
/// of the text: they would end or extend the sequence.
pub(super) fn sequence(term: &str, program: Option<&str>, text: &str) -> String {
    let text: String = text
        .chars()
        .filter(|c| !c.is_control() && *c != ';')
        .collect();
    let program = program.unwrap_or_default();
    let plain = match program {
        _ if term.contains("kitty") => format!("\x1b]99;;{text}\x1b\\"),
        _ if term.starts_with("rxvt") || program == "vte" => {
            format!("\x1b]777;notify;CodeSpar;{text}\x1b\\")
        }
        "iTerm.app" | "WezTerm" | "ghostty" => format!("\x1b]9;{text}\x1b\\"),
        _ => "\x07".to_owned(),
    };
    let is_tmux = term.starts_with("tmux") || program == "tmux";
    match is_tmux && plain != "\x07" {
        true => format!("\x1bPtmux;{}\x1b\\", plain.replace('\x1b', "\x1b\x1b")),
        false => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_terminal_gets_the_sequence_it_knows() {
        assert_eq!(sequence("xterm-256color", None, "done"), "\x07");
        assert_eq!(sequence("xterm-kitty", None, "done"), "\x1b]99;;done\x1b\\");
        let wezterm = sequence("xterm-256color", Some("WezTerm"), "a;\x1b]0;x\x07b");
        assert_eq!(wezterm, "\x1b]9;a]0xb\x1b\\");
    }
}
