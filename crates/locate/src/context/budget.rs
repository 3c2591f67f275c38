//! How a budget of bytes is spent on files.

use crate::{Excerpt, Ranked, regions};

/// A file of up to so many lines is shown whole where the budget allows it.
const WHOLE_LINES: usize = 400;
/// and so many bytes.
const WHOLE_BYTES: usize = 24 * 1024;
/// With less than that of a file, a model sees too little to change it.
const LEAST: usize = 6 * 1024;
/// A ranked file with less than this part of the best score is hardly it.
const SHARE_OF_BEST: f32 = 0.62;
/// Nor is one behind a sharp drop: less than this part of the score before it.
const SHARE_OF_PREVIOUS: f32 = 0.8;
/// More files than that are never shown for their rank alone.
const MOST_RANKED: usize = 8;

/// How much may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextBudget {
    /// Of all files together.
    pub bytes: usize,
    /// Of one file, if there is a limit.
    pub max_file_bytes: Option<usize>,
}

/// Spends a budget on files, given as path and text, the best first. Short files come whole, long
/// ones share what is left evenly and are cut to what the instruction is about. `None` for those
/// that the budget does not reach.
pub fn spend(
    files: &[(&str, &str)],
    instruction: &str,
    budget: ContextBudget,
) -> Vec<Option<Excerpt>> {
    let limit = budget.max_file_bytes.unwrap_or(usize::MAX);
    let sizes: Vec<usize> = files
        .iter()
        .map(|(_, text)| text.len().min(limit))
        .collect();
    let is_short: Vec<bool> = files
        .iter()
        .map(|(_, text)| text.len() <= WHOLE_BYTES && text.lines().count() <= WHOLE_LINES)
        .collect();
    let shares = shares(&sizes, &is_short, budget.bytes);
    let cut = |((path, text), share): (&(&str, &str), Option<usize>)| {
        share.map(|share| regions(path, text, instruction, share))
    };
    files.iter().zip(shares).map(cut).collect()
}

/// The bytes that each file gets.
fn shares(sizes: &[usize], is_short: &[bool], bytes: usize) -> Vec<Option<usize>> {
    // As many as can have at least a little.
    let mut needed = 0;
    let kept = sizes
        .iter()
        .take_while(|size| {
            needed += LEAST.min(**size);
            needed <= bytes
        })
        .count();
    // A single file has all there is, however little that is.
    let kept = kept.max(usize::from(!sizes.is_empty()));
    let mut reserved: usize = sizes[..kept].iter().map(|size| LEAST.min(*size)).sum();
    let mut left = bytes;
    let mut shares: Vec<Option<usize>> = vec![None; sizes.len()];
    for file in 0..kept {
        let least = LEAST.min(sizes[file]);
        if is_short[file] && sizes[file] + reserved.saturating_sub(least) <= left {
            shares[file] = Some(sizes[file]);
            left -= sizes[file];
            reserved = reserved.saturating_sub(least);
        }
    }
    let mut long: Vec<usize> = (0..kept).filter(|file| shares[*file].is_none()).collect();
    // The shortest first: what it does not need goes to the others.
    long.sort_by_key(|file| sizes[*file]);
    for (done, file) in long.iter().enumerate() {
        let share = sizes[*file].min(left / (long.len() - done));
        shares[*file] = Some(share);
        left -= share;
    }
    shares
}

/// How many of the ranked files are worth showing: up to a sharp drop in their scores.
pub fn worth_showing(ranked: &[Ranked]) -> usize {
    let best = ranked.first().map_or(0.0, |first| first.score);
    let mut previous = best;
    let is_worth = |file: &&Ranked| {
        let is_near =
            file.score >= best * SHARE_OF_BEST && file.score >= previous * SHARE_OF_PREVIOUS;
        previous = file.score;
        is_near
    };
    ranked.iter().take(MOST_RANKED).take_while(is_worth).count()
}
