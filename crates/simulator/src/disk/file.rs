//! The bytes of one file: those that programs see, and those that are on the medium.

use std::collections::BTreeSet;
use std::io;

use tacho_model::Random;

use super::fault::{self, Harm};

/// The disk writes whole sectors.
pub const SECTOR_BYTES: u64 = 512;

#[derive(Debug, Default)]
pub struct File {
    /// The bytes that programs see.
    seen: Vec<u8>,
    /// The bytes on the medium.
    stable: Vec<u8>,
    /// Sectors in which `seen` may differ from `stable`, and which the next sync writes.
    dirty: BTreeSet<u64>,
    /// Sectors that a failed sync has marked as clean: no later sync writes them, unless a program writes to them again.
    dropped: BTreeSet<u64>,
    /// Sectors that cannot be read.
    bad: BTreeSet<u64>,
}

impl File {
    pub fn length(&self) -> u64 {
        self.seen.len() as u64
    }

    pub fn content(&self) -> &[u8] {
        &self.seen
    }

    pub fn write(&mut self, at: u64, bytes: &[u8]) {
        let end = at as usize + bytes.len();
        self.seen.resize(self.seen.len().max(end), 0);
        self.seen[at as usize..end].copy_from_slice(bytes);
        if !bytes.is_empty() {
            self.touch(at, end as u64);
        }
    }

    pub fn cut(&mut self, length: u64) {
        let before = self.length();
        self.seen.resize(length as usize, 0);
        self.touch(length.min(before), length.max(before).max(self.stable.len() as u64));
    }

    fn touch(&mut self, from: u64, to: u64) {
        for sector in from / SECTOR_BYTES..to.div_ceil(SECTOR_BYTES) {
            self.dirty.insert(sector);
            self.dropped.remove(&sector);
            self.bad.remove(&sector);
        }
    }

    /// Writes all dirty sectors and the length. Dropped sectors inside of this length have their old bytes, or zeros.
    pub fn sync(&mut self) {
        self.stable.resize(self.seen.len(), 0);
        for sector in std::mem::take(&mut self.dirty) {
            self.keep(sector);
        }
    }

    /// Writes some dirty sectors, and perhaps the new length, although no program requests it.
    pub fn write_back(&mut self, random: &mut Random) {
        if random.one_in(2) {
            self.stable.resize(self.seen.len(), 0);
        }
        let length = self.stable.len() as u64;
        for sector in std::mem::take(&mut self.dirty) {
            let is_written = random.one_in(2);
            if is_written {
                self.keep(sector);
            }
            // A sector that extends beyond the length on the medium is written only in part, so it stays dirty.
            if !is_written || (sector + 1) * SECTOR_BYTES > length {
                self.dirty.insert(sector);
            }
        }
    }

    /// A sync that reports a failure: some dirty sectors are on the medium. Either all others stay dirty, or no later sync
    /// writes them.
    pub fn fail_sync(&mut self, random: &mut Random) {
        let drops = random.one_in(2);
        for sector in std::mem::take(&mut self.dirty) {
            match random.below(3) {
                0 if (sector + 1) * SECTOR_BYTES <= self.stable.len() as u64 => self.keep(sector),
                _ if drops => drop(self.dropped.insert(sector)),
                _ => drop(self.dirty.insert(sector)),
            }
        }
    }

    /// Copies a sector to the medium, up to the shorter of the lengths of `seen` and `stable`.
    fn keep(&mut self, sector: u64) {
        let from = (sector * SECTOR_BYTES) as usize;
        let to = (from + SECTOR_BYTES as usize).min(self.seen.len()).min(self.stable.len());
        if from < to {
            self.stable[from..to].copy_from_slice(&self.seen[from..to]);
        }
    }

    /// A power failure. Any dirty sector may be on the medium, and any length between the old and the new length.
    pub fn lose_unsynced(&mut self, random: &mut Random) {
        let dirty = std::mem::take(&mut self.dirty);
        let (old, new) = (self.stable.len(), self.seen.len());
        match random.below(5) {
            // Nothing more was written.
            0 => {}
            // Everything was written.
            1 => {
                self.stable.resize(new, 0);
                dirty.iter().for_each(|sector| self.keep(*sector));
            }
            // A prefix of the new bytes.
            2 if new >= old => {
                let length = old + random.below((new - old + 1) as u64) as usize;
                self.stable.resize(length, 0);
                dirty.iter().for_each(|sector| self.keep(*sector));
            }
            // Any sectors. Missing sectors have their old bytes, or zeros.
            3 => {
                self.stable.resize(new, 0);
                dirty.iter().filter(|_| random.one_in(2)).for_each(|sector| self.keep(*sector));
            }
            // Any sectors and any length.
            _ => {
                let length = old.min(new) + random.below((old.abs_diff(new) + 1) as u64) as usize;
                self.stable.resize(length, 0);
                dirty.iter().filter(|_| random.one_in(2)).for_each(|sector| self.keep(*sector));
            }
        }
        self.dropped.clear();
        self.seen = self.stable.clone();
    }

    /// Damages bytes, on the medium and as programs see them. Returns the position of the damaged byte or sector.
    pub fn harm(&mut self, harm: Harm, donor: &[u8], random: &mut Random) -> u64 {
        let at = random.below(self.length());
        let sector = at / SECTOR_BYTES;
        let from = (sector * SECTOR_BYTES) as usize;
        let to = (from + SECTOR_BYTES as usize).min(self.seen.len());
        match harm {
            Harm::Bit => {
                let bit = 1 << random.below(8);
                self.both(at as usize, at as usize + 1, |bytes| bytes[0] ^= bit);
            }
            Harm::Zeros => self.both(from, to, |bytes| bytes.fill(0)),
            Harm::Unreadable => drop(self.bad.insert(sector)),
            Harm::Misdirected => {
                let source = random.below(donor.len() as u64 / SECTOR_BYTES + 1) * SECTOR_BYTES;
                let bytes = donor.get(source as usize..).unwrap_or_default();
                self.overwrite(sector, bytes);
            }
        }
        if harm == Harm::Bit { at } else { from as u64 }
    }

    /// Changes a range of the bytes that programs see, and of those on the medium.
    fn both(&mut self, from: usize, to: usize, change: impl Fn(&mut [u8])) {
        for bytes in [&mut self.seen, &mut self.stable] {
            let to = to.min(bytes.len());
            if from < to {
                change(&mut bytes[from..to]);
            }
        }
    }

    /// Overwrites the beginning of a sector, as far as the file and the bytes extend.
    pub fn overwrite(&mut self, sector: u64, bytes: &[u8]) {
        let from = (sector * SECTOR_BYTES) as usize;
        self.both(from, from + bytes.len().min(SECTOR_BYTES as usize), |part| {
            part.copy_from_slice(&bytes[..part.len()]);
        });
    }

    /// A sync that does not write one of the dirty sectors. Returns the bytes of this sector, which the caller writes to another
    /// place. If no sector is dirty, writes only the length, and returns `None`.
    pub fn sync_except_one(&mut self, random: &mut Random) -> Option<Vec<u8>> {
        let at = random.below(self.dirty.len() as u64) as usize;
        let Some(lost) = self.dirty.iter().nth(at).copied() else {
            self.sync();
            return None;
        };
        self.dirty.remove(&lost);
        self.sync();
        let from = (lost * SECTOR_BYTES) as usize;
        Some(self.seen.get(from..).unwrap_or_default().iter().take(SECTOR_BYTES as usize).copied().collect())
    }

    pub fn read(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        let end = at as usize + bytes.len();
        let found = self.seen.get(at as usize..end).ok_or(io::ErrorKind::UnexpectedEof)?;
        let sectors = at / SECTOR_BYTES..(end as u64).div_ceil(SECTOR_BYTES);
        if self.bad.range(sectors).next().is_some() {
            return Err(fault::broken());
        }
        bytes.copy_from_slice(found);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misdirected_sync_without_dirty_sectors_writes_the_length() {
        let mut random = Random::new(1);
        let mut file = File::default();
        file.write(0, &[1; 1_024]);
        file.sync();
        file.cut(512);
        // The operating system has written the sectors without the length.
        file.dirty.clear();
        assert_eq!(file.sync_except_one(&mut random), None);
        file.lose_unsynced(&mut random);
        assert_eq!(file.length(), 512);
    }
}
