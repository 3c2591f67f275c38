//! What single bytes and whole escape sequences mean. `None` is a sequence that we do not know.
//!
//! | protocol | example |
//! |---|---|
//! | control characters | Ctrl-A is byte 1 |
//! | xterm and VT | `CSI A`, `CSI 1;5 C`, `CSI 3 ~`, `SS3 P` |
//! | rxvt | `CSI 3 ^`, `CSI a`, `SS3 a` |
//! | Linux console | `CSI [ A` |
//! | modifyOtherKeys of xterm | `CSI 27;5;13 ~` |
//! | kitty | `CSI 97;5 u`, with sub-parameters after colons |
//!
//! All are understood at any time: which of them a terminal speaks is not asked, and some mix them.
//! The same key gives the same `Key` in each.

use super::{Input, Key, KeyCode, Modifiers, TerminalReply};

/// A byte below 0x80 other than ESC, which a sequence may begin with.
pub(super) fn ascii(byte: u8) -> Key {
    match byte {
        0x00 => Key::ctrl(' '),
        b'\t' => Key::plain(KeyCode::Tab),
        b'\r' => Key::plain(KeyCode::Enter),
        0x1b => Key::plain(KeyCode::Esc),
        0x01..=0x1a => Key::ctrl(char::from(byte - 1 + b'a')),
        0x1c..=0x1f => Key::ctrl(char::from(byte + 0x40)),
        0x7f => Key::plain(KeyCode::Backspace),
        _ => Key::char(char::from(byte)),
    }
}

/// `CSI params final`.
pub(super) fn csi(params: &[u8], end: u8) -> Option<Input> {
    let params = std::str::from_utf8(params).ok()?;
    if let Some(private) = params.strip_prefix('?') {
        return private_reply(private, end).map(Input::Reply);
    }
    if params == "[" {
        let number = end.checked_sub(b'A').filter(|number| *number < 5)?;
        return Some(Input::Key(Key::plain(KeyCode::F(number + 1))));
    }
    match (params, end) {
        ("", b'I') => return Some(Input::FocusGained),
        ("", b'O') => return Some(Input::FocusLost),
        _ => {}
    }
    let params = Params::of(params)?;
    // F3 with modifiers looks the same in some terminals; a position is what we ask for.
    if end == b'R' && params.0.len() == 2 {
        let row = u16::try_from(params.number(0)?).ok()?;
        let column = u16::try_from(params.number(1)?).ok()?;
        return Some(Input::Reply(TerminalReply::CursorPosition { row, column }));
    }
    if end == b't' && params.number(0) == Some(8) {
        let rows = u16::try_from(params.number(1)?).ok()?;
        let columns = u16::try_from(params.number(2)?).ok()?;
        return Some(Input::Reply(TerminalReply::Size { rows, columns }));
    }
    if params.is_release() {
        return None;
    }
    let key = match end {
        b'~' => tilde(&params)?,
        b'u' => kitty(&params)?,
        // rxvt: ctrl, and ctrl with shift.
        b'^' => Key::new(numbered(params.number(0)?)?, Modifiers::CTRL),
        b'@' => Key::new(
            numbered(params.number(0)?)?,
            Modifiers::CTRL | Modifiers::SHIFT,
        ),
        b'Z' => Key::new(KeyCode::Tab, params.modifiers() | Modifiers::SHIFT),
        // rxvt: shift.
        b'a'..=b'd' => Key::new(lettered(end.to_ascii_uppercase())?, Modifiers::SHIFT),
        _ => Key::new(lettered(end)?, params.modifiers()),
    };
    Some(Input::Key(key))
}

/// `SS3 params final`: cursor keys in application mode, F1 to F4, the keypad.
pub(super) fn ss3(params: &[u8], end: u8) -> Option<Input> {
    let params = Params::of(std::str::from_utf8(params).ok()?)?;
    // `SS3 5 P` as well as `SS3 1;5 P`.
    let modifiers = match params.0.len() {
        1 => modifiers(params.number(0).unwrap_or(1)),
        _ => params.modifiers(),
    };
    let code = match end {
        b'a'..=b'd' => {
            let code = lettered(end.to_ascii_uppercase())?;
            return Some(Input::Key(Key::new(code, Modifiers::CTRL)));
        }
        b'M' => KeyCode::Enter,
        b'I' => KeyCode::Tab,
        b' ' => KeyCode::Char(' '),
        b'X' => KeyCode::Char('='),
        // The keypad, in the order of ASCII from `*` to `9`.
        b'j'..=b'y' => KeyCode::Char(char::from(end - 0x40)),
        _ => lettered(end)?,
    };
    Some(Input::Key(Key::new(code, modifiers)))
}

/// OSC, DCS and APC.
pub(super) fn string(introducer: u8, content: &[u8]) -> Option<Input> {
    let content = String::from_utf8_lossy(content);
    let reply = match introducer {
        b']' => background(content.strip_prefix("11;")?)?,
        b'P' => TerminalReply::Version(content.strip_prefix(">|")?.to_owned()),
        _ => return None,
    };
    Some(Input::Reply(reply))
}

/// Only what we ask for. Other private sequences are dropped.
fn private_reply(params: &str, end: u8) -> Option<TerminalReply> {
    match end {
        b'c' => Some(TerminalReply::DeviceAttributes),
        b'u' => Some(TerminalReply::KittyFlags(params.parse().ok()?)),
        b'R' => {
            let mut numbers = params.split(';').map(str::parse);
            Some(TerminalReply::CursorPosition {
                row: numbers.next()?.ok()?,
                column: numbers.next()?.ok()?,
            })
        }
        _ => None,
    }
}

/// `rgb:rr/gg/bb` with one to four digits each; a fourth part is the opacity.
fn background(colour: &str) -> Option<TerminalReply> {
    let parts = colour
        .strip_prefix("rgb:")
        .or_else(|| colour.strip_prefix("rgba:"))?;
    let mut parts = parts.split('/').map(|part| {
        let most = match part.len() {
            length @ 1..=4 => (1u32 << (4 * length)) - 1,
            _ => return None,
        };
        let value = u32::from_str_radix(part, 16).ok()?;
        u16::try_from(value * u32::from(u16::MAX) / most).ok()
    });
    Some(TerminalReply::Background {
        red: parts.next()??,
        green: parts.next()??,
        blue: parts.next()??,
    })
}

/// Parameters, each with its sub-parameters. A missing number is `None`.
struct Params(Vec<Vec<Option<u32>>>);

impl Params {
    fn of(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self(Vec::new()));
        }
        let number = |part: &str| match part {
            "" => Some(None),
            digits => digits.parse().ok().map(Some),
        };
        let params = text.split(';').map(|param| param.split(':').map(number));
        params
            .map(Iterator::collect)
            .collect::<Option<_>>()
            .map(Self)
    }

    fn sub(&self, param: usize, sub: usize) -> Option<u32> {
        *self.0.get(param)?.get(sub)?
    }

    fn number(&self, param: usize) -> Option<u32> {
        self.sub(param, 0)
    }

    fn modifiers(&self) -> Modifiers {
        modifiers(self.number(1).unwrap_or(1))
    }

    /// Kitty's event type: 1 pressed, 2 repeated, 3 released.
    fn is_release(&self) -> bool {
        self.sub(1, 1) == Some(3)
    }
}

/// As all protocols count them: one more than the sum of the bits. Caps lock and num lock are
/// nothing to us; hyper is taken as super, meta as Alt.
fn modifiers(number: u32) -> Modifiers {
    let bits = number.saturating_sub(1);
    let known = [
        (1, Modifiers::SHIFT),
        (2, Modifiers::ALT),
        (4, Modifiers::CTRL),
        (8 | 16, Modifiers::SUPER),
        (32, Modifiers::ALT),
    ];
    known
        .iter()
        .filter(|(bit, _)| bits & bit != 0)
        .fold(Modifiers::NONE, |all, (_, one)| all | *one)
}

/// `CSI number ~`, and `CSI 27;modifiers;code ~` of modifyOtherKeys.
fn tilde(params: &Params) -> Option<Key> {
    match params.number(0)? {
        27 => {
            let code = code_point(params.number(2)?)?;
            Some(Key::new(code, params.modifiers()))
        }
        number => Some(Key::new(numbered(number)?, params.modifiers())),
    }
}

/// The keys of the VT220 and its successors.
fn numbered(number: u32) -> Option<KeyCode> {
    Some(match number {
        1 | 7 => KeyCode::Home,
        2 => KeyCode::Insert,
        3 => KeyCode::Delete,
        4 | 8 => KeyCode::End,
        5 => KeyCode::PageUp,
        6 => KeyCode::PageDown,
        // There are gaps where the terminals of the time had other keys.
        11..=15 => function(number - 10)?,
        17..=21 => function(number - 11)?,
        23..=26 => function(number - 12)?,
        28 | 29 => function(number - 13)?,
        31..=34 => function(number - 14)?,
        _ => return None,
    })
}

fn function(number: u32) -> Option<KeyCode> {
    u8::try_from(number).ok().map(KeyCode::F)
}

/// Cursor keys and F1 to F4.
fn lettered(end: u8) -> Option<KeyCode> {
    Some(match end {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'H' => KeyCode::Home,
        b'F' => KeyCode::End,
        b'P'..=b'S' => KeyCode::F(end - b'P' + 1),
        _ => return None,
    })
}

/// `CSI code:shifted:base ; modifiers:event ; text u`. Where the terminal tells the shifted
/// character, that is the key, and shift is in it.
fn kitty(params: &Params) -> Option<Key> {
    let modifiers = params.modifiers();
    let shifted = params
        .sub(0, 1)
        .and_then(char::from_u32)
        .filter(|c| modifiers.contains(Modifiers::SHIFT) && !c.is_control());
    if let Some(c) = shifted {
        let modifiers = modifiers.without(Modifiers::SHIFT);
        return Some(Key::new(KeyCode::Char(c), modifiers));
    }
    Some(Key::new(kitty_code(params.number(0)?)?, modifiers))
}

/// Kitty's own code points for keys without a character, from the private area of Unicode; the keys
/// of the keypad become the usual ones.
fn kitty_code(code: u32) -> Option<KeyCode> {
    let keypad = [
        KeyCode::Left,
        KeyCode::Right,
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::PageUp,
        KeyCode::PageDown,
        KeyCode::Home,
        KeyCode::End,
        KeyCode::Insert,
        KeyCode::Delete,
    ];
    match code {
        57376..=57398 => function(code - 57376 + 13),
        57399..=57408 => char::from_digit(code - 57399, 10).map(KeyCode::Char),
        57409 => Some(KeyCode::Char('.')),
        57410 => Some(KeyCode::Char('/')),
        57411 => Some(KeyCode::Char('*')),
        57412 => Some(KeyCode::Char('-')),
        57413 => Some(KeyCode::Char('+')),
        57414 => Some(KeyCode::Enter),
        57415 => Some(KeyCode::Char('=')),
        57416 => Some(KeyCode::Char(',')),
        57417..=57426 => keypad.get(usize::try_from(code - 57417).ok()?).copied(),
        // Modifiers and media keys by themselves.
        57344..=63743 => None,
        _ => code_point(code),
    }
}

/// Keys that have a control character get their names; other control characters are no keys.
fn code_point(code: u32) -> Option<KeyCode> {
    match code {
        8 | 127 => Some(KeyCode::Backspace),
        9 => Some(KeyCode::Tab),
        13 => Some(KeyCode::Enter),
        27 => Some(KeyCode::Esc),
        _ => char::from_u32(code)
            .filter(|c| !c.is_control())
            .map(KeyCode::Char),
    }
}
