//! What a session is called: the first line of what the user first wrote.
//!
//! A title is set once, by the first entry that has one, and never changes. It is kept in the
//! session's row so that lists need not read transcripts.

use codespar_protocol::EntryBody;

/// In characters, the ellipsis of a shortened title included: one line of a terminal.
const LONGEST: usize = 80;

/// The title this entry would give; `None` when it is not a prompt of the user (an answer, a
/// result, a text that was put in on the user's side) or holds nothing but white space.
pub(crate) fn title_of(body: &EntryBody) -> Option<String> {
    let EntryBody::User {
        message,
        synthetic: false,
    } = body
    else {
        return None;
    };
    let text = message.text();
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(shorten(line))
}

fn shorten(line: &str) -> String {
    if line.chars().nth(LONGEST).is_none() {
        return line.to_owned();
    }
    let mut short: String = line.chars().take(LONGEST - 1).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use codespar_protocol::Message;

    use super::*;

    fn title(text: &str) -> Option<String> {
        title_of(&EntryBody::User {
            message: Message::user(text),
            synthetic: false,
        })
    }

    #[test]
    fn eighty_characters_stay_and_the_eighty_first_becomes_an_ellipsis() {
        let eighty = "é".repeat(80);
        assert_eq!(title(&eighty), Some(eighty.clone()));
        assert_eq!(
            title(&format!("{eighty}é")),
            Some(format!("{}…", "é".repeat(79)))
        );
    }

    #[test]
    fn the_first_line_with_words_in_it_is_taken() {
        assert_eq!(
            title("\n  \n  fix the parser \r\nand more"),
            Some("fix the parser".to_owned())
        );
        assert_eq!(title(" \n "), None);
    }

    #[test]
    fn words_put_in_on_the_users_side_are_no_title() {
        let body = EntryBody::User {
            message: Message::user("go on"),
            synthetic: true,
        };
        assert_eq!(title_of(&body), None);
    }
}
