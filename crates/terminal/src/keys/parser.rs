//! The state machine that takes bytes one by one, so that it does not matter how they were read.

use super::{Input, Key, KeyCode, Modifiers, sequences};
use crate::newlines::with_newlines;

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
const PASTE_END: &[u8] = b"\x1b[201~";

/// Sequences longer than this are no reply that we know; they are still swallowed whole.
const LONGEST_KEPT: usize = 1024;

/// Turns bytes into [`Input`]s.
///
/// Three rules decide what is not certain:
/// - a sequence that could also be a key with Alt (`ESC [`) is held until the next byte or
///   [`flush`](Self::flush);
/// - a sequence that has begun beyond doubt is held until it ends, however slow the line is: its
///   rest must never be typed as text. A control character ends it, so Ctrl-C always arrives;
/// - a sequence that is not known is dropped whole.
#[derive(Debug, Default)]
pub struct KeyParser {
    state: State,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Ground,
    /// The beginning of a character, after ESC with Alt.
    Utf8(Modifiers, Vec<u8>),
    /// After ESC; with another ESC before it: Alt with a key that is a sequence, or two keys.
    Escape(Prefix),
    Csi(Prefix, Vec<u8>),
    /// After `ESC O`, with digits.
    Ss3(Prefix, Vec<u8>),
    Text(StringSequence),
    /// The rest of a mouse report of the oldest kind: so many bytes of any value.
    Mouse(u8),
    /// Everything up to the end mark, control characters included: a paste must not be able to
    /// press keys.
    Paste(Vec<u8>),
}

/// Whether there was an ESC before a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prefix {
    None,
    Escape,
}

/// OSC, DCS or APC: ended by ST, OSC also by BEL.
#[derive(Debug)]
struct StringSequence {
    introducer: u8,
    content: Vec<u8>,
    after_escape: bool,
}

impl KeyParser {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Input> {
        let mut inputs = Vec::new();
        for byte in bytes {
            self.take(*byte, &mut inputs);
        }
        inputs
    }

    /// Whether [`flush`](Self::flush) would give something. False within a sequence that can only
    /// go on, so that nobody has to wake up for it.
    pub fn is_waiting(&self) -> bool {
        match &self.state {
            State::Escape(_) => true,
            State::Csi(_, params) | State::Ss3(_, params) => params.is_empty(),
            State::Text(text) => text.content.is_empty() && !text.after_escape,
            _ => false,
        }
    }

    /// Whether a paste has begun and not ended.
    pub fn is_pasting(&self) -> bool {
        matches!(self.state, State::Paste(_))
    }

    /// No byte came for some time (about 30 ms): a lone ESC was the key Esc, `ESC [` was Alt-[.
    pub fn flush(&mut self) -> Vec<Input> {
        let mut inputs = Vec::new();
        if !self.is_waiting() {
            return inputs;
        }
        match std::mem::take(&mut self.state) {
            State::Escape(prefix) => {
                prefix.emit(&mut inputs);
                inputs.push(Input::Key(Key::plain(KeyCode::Esc)));
            }
            State::Csi(prefix, _) => prefix.emit_alt(b'[', &mut inputs),
            State::Ss3(prefix, _) => prefix.emit_alt(b'O', &mut inputs),
            State::Text(text) => Prefix::None.emit_alt(text.introducer, &mut inputs),
            _ => {}
        }
        inputs
    }

    fn take(&mut self, byte: u8, inputs: &mut Vec<Input>) {
        self.state = match std::mem::take(&mut self.state) {
            State::Ground => ground(byte, inputs),
            State::Utf8(modifiers, bytes) => utf8(modifiers, bytes, byte, inputs),
            State::Escape(prefix) => escape(prefix, byte, inputs),
            State::Csi(prefix, params) => csi(prefix, params, byte, inputs),
            State::Ss3(prefix, params) => ss3(prefix, params, byte, inputs),
            State::Text(text) => text.take(byte, inputs),
            State::Mouse(0 | 1) => State::Ground,
            State::Mouse(left) => State::Mouse(left - 1),
            State::Paste(bytes) => paste(bytes, byte, inputs),
        };
    }
}

impl Prefix {
    /// The ESC was a key of its own.
    fn emit(self, inputs: &mut Vec<Input>) {
        if self == Self::Escape {
            inputs.push(Input::Key(Key::plain(KeyCode::Esc)));
        }
    }

    fn emit_alt(self, byte: u8, inputs: &mut Vec<Input>) {
        self.emit(inputs);
        inputs.push(Input::Key(Key::alt(char::from(byte))));
    }

    /// ESC before a key is Alt; before anything else it was a key of its own.
    fn emit_with(self, input: Option<Input>, inputs: &mut Vec<Input>) {
        match (self, input) {
            (Self::Escape, Some(Input::Key(key))) => inputs.push(Input::Key(Key::new(
                key.code,
                key.modifiers | Modifiers::ALT,
            ))),
            (prefix, input) => {
                prefix.emit(inputs);
                inputs.extend(input);
            }
        }
    }
}

fn ground(byte: u8, inputs: &mut Vec<Input>) -> State {
    match byte {
        ESC => State::Escape(Prefix::None),
        0x80.. => utf8(Modifiers::NONE, Vec::with_capacity(4), byte, inputs),
        _ => {
            inputs.push(Input::Key(sequences::ascii(byte)));
            State::Ground
        }
    }
}

/// What can't become a character is a replacement character, as often as the standard library has
/// it for the same bytes.
fn utf8(modifiers: Modifiers, mut bytes: Vec<u8>, byte: u8, inputs: &mut Vec<Input>) -> State {
    bytes.push(byte);
    match std::str::from_utf8(&bytes) {
        Ok(text) => {
            let typed = text.chars().filter(|c| !c.is_control());
            inputs.extend(typed.map(|c| Input::Key(Key::new(KeyCode::Char(c), modifiers))));
            State::Ground
        }
        Err(error) if error.error_len().is_none() => State::Utf8(modifiers, bytes),
        Err(_) => {
            inputs.push(Input::Key(Key::char(char::REPLACEMENT_CHARACTER)));
            // All bytes before this one were a good beginning, so only this one is left over.
            match bytes.len() {
                1 => State::Ground,
                _ => ground(byte, inputs),
            }
        }
    }
}

/// `ESC ESC [ A` is Alt with an arrow on some terminals, `ESC ESC` twice Esc.
fn escape(prefix: Prefix, byte: u8, inputs: &mut Vec<Input>) -> State {
    match byte {
        ESC => {
            prefix.emit(inputs);
            State::Escape(Prefix::Escape)
        }
        b'[' => State::Csi(prefix, Vec::new()),
        b'O' => State::Ss3(prefix, Vec::new()),
        b']' | b'P' | b'_' => {
            prefix.emit(inputs);
            State::Text(StringSequence {
                introducer: byte,
                content: Vec::new(),
                after_escape: false,
            })
        }
        0x80.. => {
            prefix.emit(inputs);
            utf8(Modifiers::ALT, Vec::with_capacity(4), byte, inputs)
        }
        _ => {
            prefix.emit(inputs);
            let key = sequences::ascii(byte);
            let key = Key::new(key.code, key.modifiers | Modifiers::ALT);
            inputs.push(Input::Key(key));
            State::Ground
        }
    }
}

/// A control character within the sequence ends it and counts by itself. If nothing but `ESC [`
/// came before it, that was Alt with a bracket.
fn csi(prefix: Prefix, mut params: Vec<u8>, byte: u8, inputs: &mut Vec<Input>) -> State {
    match byte {
        // Function keys of the Linux console: `CSI [ A`.
        b'[' if params.is_empty() => {
            params.push(byte);
            State::Csi(prefix, params)
        }
        0x20..=0x3f => {
            if params.len() < LONGEST_KEPT {
                params.push(byte);
            }
            State::Csi(prefix, params)
        }
        b'M' if params.is_empty() => {
            prefix.emit(inputs);
            State::Mouse(3)
        }
        b'~' if params == b"200" => {
            prefix.emit(inputs);
            State::Paste(Vec::new())
        }
        0x40..=0x7e => {
            prefix.emit_with(sequences::csi(&params, byte), inputs);
            State::Ground
        }
        _ => {
            if params.is_empty() {
                prefix.emit_alt(b'[', inputs);
            }
            ground(byte, inputs)
        }
    }
}

fn ss3(prefix: Prefix, mut params: Vec<u8>, byte: u8, inputs: &mut Vec<Input>) -> State {
    match byte {
        b'0'..=b'9' | b';' => {
            if params.len() < LONGEST_KEPT {
                params.push(byte);
            }
            State::Ss3(prefix, params)
        }
        0x20..=0x7e => {
            prefix.emit_with(sequences::ss3(&params, byte), inputs);
            State::Ground
        }
        _ => {
            if params.is_empty() {
                prefix.emit_alt(b'O', inputs);
            }
            ground(byte, inputs)
        }
    }
}

impl StringSequence {
    fn take(mut self, byte: u8, inputs: &mut Vec<Input>) -> State {
        if self.after_escape {
            if byte == b'\\' {
                inputs.extend(sequences::string(self.introducer, &self.content));
                return State::Ground;
            }
            // Not the end of the string: it was cut off, and another sequence begins.
            return escape(Prefix::None, byte, inputs);
        }
        if self.content.is_empty() && !self.may_begin_with(byte) {
            Prefix::None.emit_alt(self.introducer, inputs);
            return ground(byte, inputs);
        }
        match byte {
            ESC => self.after_escape = true,
            BEL if self.introducer == b']' => {
                inputs.extend(sequences::string(self.introducer, &self.content));
                return State::Ground;
            }
            0x00..=0x1f => return ground(byte, inputs),
            _ if self.content.len() < LONGEST_KEPT => self.content.push(byte),
            _ => {}
        }
        State::Text(self)
    }

    /// What terminals send begins in few ways; anything else was typed after Alt with the
    /// introducer.
    fn may_begin_with(&self, byte: u8) -> bool {
        match self.introducer {
            b']' => byte.is_ascii_digit() || matches!(byte, b'l' | b'L'),
            b'P' => (0x20..=0x3f).contains(&byte),
            _ => byte == b'G',
        }
    }
}

/// Bytes that are not UTF-8 are replaced. There is no limit on the length.
fn paste(mut bytes: Vec<u8>, byte: u8, inputs: &mut Vec<Input>) -> State {
    bytes.push(byte);
    if byte == b'~' && bytes.ends_with(PASTE_END) {
        bytes.truncate(bytes.len() - PASTE_END.len());
        let text = String::from_utf8_lossy(&bytes);
        inputs.push(Input::Paste(with_newlines(&text).into_owned()));
        return State::Ground;
    }
    State::Paste(bytes)
}
