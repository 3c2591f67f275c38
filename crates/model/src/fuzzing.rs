//! Entry points for fuzz targets. Each checks what must hold for any bytes.

use std::collections::VecDeque;

use bytes::Bytes;
use futures::{FutureExt, StreamExt, stream};

use crate::{
    ModelError,
    endpoint::decode,
    wire::{Accumulator, anthropic::AnthropicAnswer, openai::OpenAiAnswer},
};

/// The formats of providers.
#[derive(Debug, Clone, Copy)]
pub enum Format {
    /// Messages.
    Anthropic,
    /// Chat completions.
    OpenAi,
}

/// Reads a stream. However it is cut, it comes to the same answer or to none.
pub fn stream(format: Format, bytes: &[u8], size: usize) {
    let whole = answer(format, vec![Bytes::copy_from_slice(bytes)]);
    let pieces = bytes.chunks(size.max(1)).map(Bytes::copy_from_slice);
    let in_pieces = answer(format, pieces.collect());
    // In one piece, a stream that breaks is known to be broken before its first event is read.
    let is_broken = |said: &[String]| {
        said.last()
            .is_some_and(|last| !last.starts_with("Finished"))
    };
    assert!(whole == in_pieces || (is_broken(&whole) && is_broken(&in_pieces)));
}

/// All that came out of it, as text.
fn answer(format: Format, chunks: Vec<Bytes>) -> Vec<String> {
    let mut reader: Box<dyn Accumulator> = match format {
        Format::Anthropic => Box::new(AnthropicAnswer::new("model".to_owned(), Vec::new())),
        Format::OpenAi => Box::new(OpenAiAnswer::new("model".to_owned(), Vec::new())),
    };
    let mut events = decode("provider", stream::iter(chunks.into_iter().map(Ok))).boxed();
    let mut out = VecDeque::new();
    let mut said = Vec::new();
    let mut read = || -> Result<(), ModelError> {
        // Bytes in memory are there at once.
        while let Some(event) = events.next().now_or_never().flatten() {
            let event = event?;
            let data = event.data.as_deref().unwrap_or_default();
            let before = reader.counted();
            reader.accept(event.event.as_deref(), data, &mut out)?;
            let after = reader.counted();
            assert!(after.output_tokens >= before.output_tokens || data.contains("usage"));
            said.extend(out.drain(..).map(|event| format!("{event:?}")));
            // The rest is not read.
            if said.last().is_some_and(|last| last.starts_with("Finished")) {
                return Ok(());
            }
        }
        said.push(format!("{:?}", reader.end()?));
        Ok(())
    };
    if let Err(error) = read() {
        said.push(format!("{error:?}"));
    }
    said
}
