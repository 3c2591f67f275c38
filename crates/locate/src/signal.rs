//! The kinds of evidence for a file, and how much each weighs.

use std::ops::{Index, IndexMut};

use crate::{kind::FileKind, rank::Reason};

/// A kind of evidence. Each is between zero and one for a file once it is on a common scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// The terms in the text.
    Body,
    /// The terms of the first line in the text.
    Title,
    /// The terms in the best window of about 60 lines: where everything stands together.
    Window,
    /// The parts of names that are defined.
    Symbols,
    /// Whole names that are defined: surer than their parts.
    Defines,
    /// The terms in the directories of the path.
    Directory,
    /// The terms in the base name.
    Base,
    /// The part of the project that the first line begins with: `fileserver: …`, `fix(parser): …`.
    Scope,
    /// It is named on purpose.
    Written,
    /// It is named in an example, which may just have a file of that name.
    Coded,
    /// Its module is named, `package.module.Name`.
    Module,
    /// It is in a stack trace, or named as a file elsewhere.
    Traced,
    /// Commits that were described alike changed it.
    Similar,
    /// It changes often.
    Busy,
    /// It changed lately.
    Recent,
    /// Its tests have the terms in their text.
    Tested,
    /// The best files mention it.
    Mentioned,
    /// It was changed together with the best files.
    Together,
    /// The best files are in its directory.
    Siblings,
}

impl Signal {
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 19] = [
        Self::Body,
        Self::Title,
        Self::Window,
        Self::Symbols,
        Self::Defines,
        Self::Directory,
        Self::Base,
        Self::Scope,
        Self::Written,
        Self::Coded,
        Self::Module,
        Self::Traced,
        Self::Similar,
        Self::Busy,
        Self::Recent,
        Self::Tested,
        Self::Mentioned,
        Self::Together,
        Self::Siblings,
    ];

    /// The reason that it counts for; some only order files for which others speak.
    pub(crate) const fn reason(self) -> Option<Reason> {
        Some(match self {
            Self::Written | Self::Coded => Reason::Named,
            Self::Symbols | Self::Defines => Reason::Symbol,
            Self::Directory | Self::Base | Self::Scope | Self::Module | Self::Traced => {
                Reason::Path
            }
            Self::Body | Self::Title | Self::Window | Self::Tested => Reason::Content,
            Self::Similar | Self::Together => Reason::History,
            Self::Busy | Self::Recent | Self::Mentioned | Self::Siblings => return None,
        })
    }
}

/// What speaks for a file, a number for each [`Signal`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct FileEvidence([f32; Signal::COUNT]);

/// The kinds of evidence that have a reason.
const TELLING: [bool; Signal::COUNT] = {
    let mut telling = [false; Signal::COUNT];
    let mut number = 0;
    while number < Signal::COUNT {
        telling[number] = Signal::ALL[number].reason().is_some();
        number += 1;
    }
    telling
};

impl FileEvidence {
    /// The same of each kind.
    pub(crate) fn even(much: f32) -> Self {
        Self([much; Signal::COUNT])
    }

    /// Makes all of it weaker or stronger.
    pub(crate) fn scale(&mut self, factor: f32) {
        self.0.iter_mut().for_each(|one| *one *= factor);
    }

    /// Makes each kind as much weaker or stronger as its factor says.
    pub(crate) fn multiply(&mut self, factors: &Self) {
        let both = self.0.iter_mut().zip(&factors.0);
        both.for_each(|(one, factor)| *one *= factor);
    }

    /// Takes of each kind the larger one.
    pub(crate) fn raise_to(&mut self, other: &Self) {
        let both = self.0.iter_mut().zip(&other.0);
        both.for_each(|(one, other)| *one = one.max(*other));
    }

    /// Whether there is anything that makes the file a candidate.
    pub(crate) fn speaks(&self) -> bool {
        let mut telling = self.0.iter().zip(TELLING);
        telling.any(|(much, is_telling)| is_telling && *much > 0.0)
    }
}

impl Index<Signal> for FileEvidence {
    type Output = f32;

    fn index(&self, signal: Signal) -> &f32 {
        &self.0[signal as usize]
    }
}

impl IndexMut<Signal> for FileEvidence {
    fn index_mut(&mut self, signal: Signal) -> &mut f32 {
        &mut self.0[signal as usize]
    }
}

/// How much each kind of evidence and each kind of file weighs.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    signals: [f32; Signal::COUNT],
    kinds: [f32; FileKind::ALL.len()],
}

impl Default for Weights {
    fn default() -> Self {
        let mut weights = Self {
            signals: [0.0; Signal::COUNT],
            kinds: [1.0; FileKind::ALL.len()],
        };
        for (signal, weight) in SIGNALS {
            weights[signal] = weight;
        }
        for (kind, weight) in KINDS {
            weights.kinds[kind as usize] = weight;
        }
        weights
    }
}

/// Chosen by `cargo xtask eval locate --cross-validate` on issues and commit messages of 55
/// repositories with known fixes: on repositories that had no part in the choice, they do about as
/// well as on those that had. The text has the weight to which the others are chosen.
const SIGNALS: [(Signal, f32); Signal::COUNT] = [
    (Signal::Body, 0.6),
    (Signal::Title, 1.0),
    (Signal::Window, 0.4),
    (Signal::Symbols, 0.3),
    (Signal::Defines, 0.2),
    (Signal::Directory, 0.4),
    (Signal::Base, 0.6),
    (Signal::Scope, 0.2),
    (Signal::Written, 2.0),
    (Signal::Coded, 0.3),
    (Signal::Module, 0.6),
    (Signal::Traced, 0.8),
    (Signal::Similar, 0.3),
    (Signal::Busy, 0.15),
    (Signal::Recent, 0.3),
    (Signal::Tested, 0.2),
    (Signal::Mentioned, 0.3),
    (Signal::Together, 0.1),
    (Signal::Siblings, 0.15),
];

/// Most instructions are about source; the rest counts when they speak of it.
const KINDS: [(FileKind, f32); FileKind::ALL.len()] = [
    (FileKind::Source, 1.0),
    (FileKind::Data, 0.65),
    (FileKind::Test, 0.15),
    (FileKind::Docs, 0.2),
    (FileKind::Generated, 0.3),
    (FileKind::Lock, 0.1),
    (FileKind::Binary, 0.02),
];
/// What a kind of file that the instruction speaks of weighs at least.
const SPOKEN_OF: f32 = 0.5;

impl Index<Signal> for Weights {
    type Output = f32;

    fn index(&self, signal: Signal) -> &f32 {
        &self.signals[signal as usize]
    }
}

impl IndexMut<Signal> for Weights {
    fn index_mut(&mut self, signal: Signal) -> &mut f32 {
        &mut self.signals[signal as usize]
    }
}

impl Weights {
    /// The weight of a kind of file.
    pub fn kind_mut(&mut self, kind: FileKind) -> &mut f32 {
        &mut self.kinds[kind as usize]
    }

    /// How far a file comes with this evidence.
    pub fn score(&self, evidence: &FileEvidence, standing: FileStanding) -> f32 {
        let products = self.signals.iter().zip(&evidence.0).map(|(a, b)| a * b);
        products.sum::<f32>() * self.of_standing(standing)
    }

    /// What the kind of a file makes of its evidence.
    pub(crate) fn of_standing(&self, standing: FileStanding) -> f32 {
        let weight = self.kinds[standing.kind as usize];
        match standing.meant {
            Meant::Usual => weight,
            Meant::Kind => weight.max(SPOKEN_OF),
            Meant::File => weight.max(1.0),
        }
    }

    /// The reasons for which at least `share` of the evidence speaks, in their order.
    pub(crate) fn reasons(&self, evidence: &FileEvidence, share: f32) -> Vec<Reason> {
        let mut sums: [(Reason, f32); 5] = Reason::ALL.map(|reason| (reason, 0.0));
        let mut total = 0.0;
        for signal in Signal::ALL {
            let part = self[signal] * evidence[signal];
            total += part;
            if let Some(reason) = signal.reason() {
                sums[reason as usize].1 += part;
            }
        }
        let telling = sums.iter().filter(|(_, sum)| *sum > total * share);
        telling.map(|(reason, _)| *reason).collect()
    }
}

/// What a file is, and whether the instruction speaks of files like it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStanding {
    pub kind: FileKind,
    /// How far the first line means it.
    pub meant: Meant,
}

/// Whether the first line of an instruction means files that are not source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meant {
    /// It does not speak of the kind.
    Usual,
    /// It speaks of the kind: "add a test".
    Kind,
    /// It names the very file.
    File,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_signal_has_its_place_and_its_weight() {
        for (number, signal) in Signal::ALL.into_iter().enumerate() {
            assert_eq!(signal as usize, number);
            let weights = SIGNALS.iter().filter(|(one, _)| *one == signal);
            assert_eq!(weights.count(), 1, "{signal:?}");
        }
    }

    #[test]
    fn a_trace_counts_without_naming_the_file() {
        let mut evidence = FileEvidence::default();
        evidence[Signal::Traced] = 1.0;
        let weights = Weights::default();
        assert_eq!(weights.reasons(&evidence, 0.1), [Reason::Path]);
        let standing = |kind, meant| FileStanding { kind, meant };
        let source = weights.score(&evidence, standing(FileKind::Source, Meant::Usual));
        let test = weights.score(&evidence, standing(FileKind::Test, Meant::Usual));
        let meant = weights.score(&evidence, standing(FileKind::Test, Meant::File));
        assert!(test < source && meant == source && source > 0.0);
    }
}
