//! A [`FindSeries`] for tests. It knows a list of spellings. The number of a series is the position of its spelling.

use tacho_model::{FindSeries, KnownSeries, Spelling, SpellingKeys};

pub struct List {
    pub keys: SpellingKeys,
    pub known: Vec<Spelling>,
    /// A spelling that is added after this many lookups.
    pub late: Option<(usize, Spelling)>,
    /// Number of releases.
    pub released: usize,
    missed: bool,
    ended: bool,
}

impl List {
    pub fn new(known: impl FnOnce(&SpellingKeys) -> Vec<Spelling>) -> Self {
        let keys = SpellingKeys::new([[7; 16], [8; 16]]);
        let known = known(&keys);
        Self { keys, known, late: None, released: 0, missed: false, ended: false }
    }

    pub fn begin_body(&mut self) {
        (self.missed, self.ended) = (false, false);
    }
}

impl FindSeries for List {
    fn keys(&self) -> &SpellingKeys {
        &self.keys
    }

    fn find(&mut self, spelling: Spelling) -> Option<KnownSeries> {
        match &mut self.late {
            Some((0, late)) => {
                self.known.push(*late);
                self.ended = self.missed;
                self.late = None;
            }
            Some((lookups, _)) => *lookups -= 1,
            None => {}
        }
        let at = self.known.iter().position(|known| *known == spelling).filter(|_| !self.ended);
        self.missed |= at.is_none();
        Some(KnownSeries { number: u32::try_from(at?).unwrap(), note: 0, labels_bytes: 9 })
    }

    fn release(&mut self) {
        self.released += 1;
    }
}
