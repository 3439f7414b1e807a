//! How much effort may an encoder spend, and which codecs and compression may it use?

use crate::codec;

/// Permissions of an encoder. The encoded bytes are self-describing: readers need none of this.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encoding {
    pub effort: Effort,
    pub codecs: CodecSet,
    pub compression: Compression,
}

/// How long the encoder may search for a smaller form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// Estimates select one or two codecs to try: for sealing while records arrive.
    #[default]
    Fast,
    /// Several candidates encode the column and the smallest output is kept: for merges, which are rare and in the
    /// background.
    Thorough,
}

/// Byte compression over the output of a codec of numbers or strings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Zstandard if an estimate says that it pays off.
    #[default]
    Auto,
    None,
    /// LZ4 blocks: slightly smaller, fast to read.
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

/// Permitted codecs of numbers. `plain` is always permitted: some columns can be encoded in no other way.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CodecSet {
    /// One bit per tag.
    tags: u32,
}

impl CodecSet {
    pub const ALL: Self = Self { tags: u32::MAX };

    /// Names of all codecs of numbers, in the order of the format's table.
    pub fn names() -> impl Iterator<Item = &'static str> {
        codec::names()
    }

    /// Only these codecs, and `plain`. `None` if a name is unknown.
    pub fn only<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        names.into_iter().try_fold(Self { tags: 1 }, |set, name| set.with(codec::tag(name)?))
    }

    /// Names of the permitted codecs, in the order of the format's table.
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
    /// The smallest output, for chunks that are written once and read for years.
    pub const fn thorough() -> Self {
        Self { effort: Effort::Thorough, codecs: CodecSet::ALL, compression: Compression::Auto }
    }
}
