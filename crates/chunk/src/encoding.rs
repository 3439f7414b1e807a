//! How much effort may an encoder spend, and which codecs and compressions may it use?
//!
//! This file and `codec/`, `text/` use each other: [`codec`] and [`text`] follow an [`Encoding`]. This file asks
//! them for the names and tags of their codecs, so that a new codec needs no line here.

use crate::{codec, text};

/// Permissions of an encoder. Readers need none of them, because the encoded bytes describe themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encoding {
    pub effort: Effort,
    pub codecs: CodecSet,
    pub compression: Compression,
}

/// How long the encoder may search for a smaller form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// Estimates select one codec, or three codecs to try for a short column. Used for sealing while records arrive.
    #[default]
    Fast,
    /// Several candidates encode the column and the smallest output is kept. Used for merges, which are rare and run in
    /// the background.
    Thorough,
}

/// Byte compression over the output of a codec of numbers or strings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Zstandard, for columns that become smaller.
    #[default]
    Auto,
    None,
    /// LZ4 blocks: save less, but are fast to read.
    Lz4,
    /// The same as `Auto`, which uses Zstandard (RFC 8878). Settings of older versions name it.
    Zstd,
    /// Gzip, RFC 1952, for comparison with other stores.
    Gzip,
}

impl Compression {
    pub const ALL: [Self; 5] = [Self::Auto, Self::None, Self::Lz4, Self::Zstd, Self::Gzip];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::None => "none",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|compression| compression.name() == name)
    }
}

/// Permitted codecs and forms. `plain` is always permitted, because it is the only possible form of some columns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CodecSet {
    /// Bit mask by the tag of a codec or the number of a form.
    tags: u64,
}

/// Forms that an encoder may choose in addition to codecs. Their numbers in a [`CodecSet`] are above the tags of codecs.
pub(crate) mod form {
    /// A column of equal values, which takes no bytes in the body.
    pub(crate) const UNIFORM: u8 = 48;
    /// The statistics of a column of floats (minimum, maximum, first and last value), written as decimal numbers.
    pub(crate) const DECIMALS: u8 = 49;
    /// Forms of a slot, a part that varies in the texts of one template (`text/templates/`): numbers with leading zeros,
    /// hexadecimal numbers, UUIDs, repeated words.
    pub(crate) const PADDED: u8 = 50;
    pub(crate) const HEXADECIMAL: u8 = 51;
    pub(crate) const ID: u8 = 52;
    pub(crate) const WORDS: u8 = 53;

    pub(super) const ALL: [(u8, &str); 6] = [
        (UNIFORM, "uniform"),
        (DECIMALS, "decimals"),
        (PADDED, "slot padded"),
        (HEXADECIMAL, "slot hexadecimal"),
        (ID, "slot id"),
        (WORDS, "slot dictionary"),
    ];
}

/// A choice of the encoder. Readers detect the choice from the bytes. See [`CodecSet::choices`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// `number`, `text` or `form`.
    pub of: &'static str,
    pub name: &'static str,
    tag: u8,
}

impl CodecSet {
    pub const ALL: Self = Self { tags: u64::MAX };

    /// All choices of an encoder without a requested compression: codecs of numbers, codecs of byte strings, and forms.
    pub fn choices() -> impl Iterator<Item = Choice> {
        let choice = |of| move |(tag, name)| Choice { of, name, tag };
        let forms = form::ALL.into_iter().map(choice("form"));
        codec::written().map(choice("number")).chain(text::written().map(choice("text"))).chain(forms)
    }

    /// This set without one choice, for measuring the saving of that choice.
    #[must_use]
    pub fn without(self, choice: Choice) -> Self {
        Self { tags: self.tags & !Self::bit(choice.tag) }
    }

    /// Names of all codecs of numbers that an encoder may choose, in the order of the format's table.
    pub fn names() -> impl Iterator<Item = &'static str> {
        codec::names()
    }

    /// Of the codecs of numbers, permits only these and `plain`. Permits all codecs of byte strings and all forms. `None` if
    /// a name is unknown. The name of a codec that is no longer written permits the codec that is written instead.
    pub fn only<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let others = codec::names().filter_map(codec::tag).filter(|tag| *tag != codec::PLAIN);
        let none = others.fold(Self::ALL, |set, tag| Self { tags: set.tags & !Self::bit(tag) });
        names
            .into_iter()
            .try_fold(none, |set, name| Some(Self { tags: set.tags | Self::bit(codec::tag(name)?) }))
    }

    /// Names of the permitted codecs of numbers, in the order of the format's table.
    pub fn chosen(self) -> impl Iterator<Item = &'static str> {
        codec::names().filter(move |name| codec::tag(name).is_some_and(|tag| self.has(tag)))
    }

    fn bit(tag: u8) -> u64 {
        1u64.checked_shl(tag.into()).unwrap_or(0)
    }

    pub(crate) fn has(self, tag: u8) -> bool {
        self.tags & Self::bit(tag) != 0
    }
}

impl Default for CodecSet {
    fn default() -> Self {
        Self::ALL
    }
}

impl std::fmt::Debug for CodecSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.chosen()).finish()
    }
}

impl Encoding {
    /// The encoding with the smallest output, for chunks that are written once and read for years.
    pub const fn thorough() -> Self {
        Self { effort: Effort::Thorough, codecs: CodecSet::ALL, compression: Compression::Auto }
    }
}
