//! How much work may go into making a chunk small, and by which means?

use crate::codec;

/// What an encoder may do. The bytes say what it did: readers need none of this.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encoding {
    pub effort: Effort,
    pub codecs: CodecSet,
    pub compression: Compression,
}

/// How long the encoder may look for a smaller form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// One look at the data names the one or two codecs that are tried: for sealing while records come in.
    #[default]
    Fast,
    /// Several candidates are written and the smallest is kept: for merges, which are rare and in the background.
    Thorough,
}

/// Byte compression over what a codec of numbers or strings yields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Zstandard where the data looks as if it paid.
    #[default]
    Auto,
    None,
    /// LZ4 blocks: little smaller, fast to read.
    Lz4,
    /// Zstandard, RFC 8878.
    Zstd,
    /// RFC 1952: for comparison with other stores.
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

    /// The inverse of [`Self::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|compression| compression.name() == name)
    }
}

/// Codecs of numbers that may be used. `plain` always may: some columns can be written in no other way.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CodecSet {
    /// One bit for each tag.
    tags: u32,
}

impl CodecSet {
    pub const ALL: Self = Self { tags: u32::MAX };

    /// Names of all codecs of numbers, in the order of the format's table.
    pub fn names() -> impl Iterator<Item = &'static str> {
        codec::names()
    }

    /// Only these codecs, and plain. `None` when a name is unknown.
    pub fn only<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        names.into_iter().try_fold(Self { tags: 1 }, |set, name| set.with(codec::tag(name)?))
    }

    /// Names of those that may be chosen, in the order of the format's table.
    pub fn chosen(self) -> impl Iterator<Item = &'static str> {
        codec::names().filter(move |name| codec::tag(name).is_some_and(|tag| self.has(tag)))
    }

    fn with(self, tag: u8) -> Option<Self> {
        Some(Self { tags: self.tags | 1u32.checked_shl(tag.into())? })
    }

    pub(crate) fn has(self, tag: u8) -> bool {
        self.with(tag) == Some(self)
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
    /// As small as it gets, for chunks that are written once and read for years.
    pub const fn thorough() -> Self {
        Self { effort: Effort::Thorough, codecs: CodecSet::ALL, compression: Compression::Auto }
    }
}
