//! The names of files: those that programs see, and those that are on the medium.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use tacho_model::Random;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    Directory,
    /// The id of the file.
    File(u64),
}

/// A change of names that is not on the medium yet.
#[derive(Clone, Debug)]
enum Change {
    Set(PathBuf, Node),
    Remove(PathBuf),
    /// A rename within one directory, which is atomic.
    Move(PathBuf, PathBuf, Node),
}

impl Change {
    fn directory(&self) -> Option<&Path> {
        match self {
            Self::Set(path, _) | Self::Remove(path) | Self::Move(path, ..) => path.parent(),
        }
    }

    fn apply(&self, names: &mut BTreeMap<PathBuf, Node>) {
        match self {
            Self::Set(path, node) => drop(names.insert(path.clone(), *node)),
            Self::Remove(path) => drop(names.remove(path)),
            Self::Move(from, to, node) => {
                names.remove(from);
                names.insert(to.clone(), *node);
            }
        }
    }
}

#[derive(Debug, Default)]
pub struct Names {
    seen: BTreeMap<PathBuf, Node>,
    stable: BTreeMap<PathBuf, Node>,
    /// Changes that no sync of their directory has covered, in order.
    pending: Vec<Change>,
}

impl Names {
    pub fn file(&self, path: &Path) -> io::Result<u64> {
        match self.seen.get(path) {
            Some(Node::File(id)) => Ok(*id),
            Some(Node::Directory) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub fn is_directory(&self, path: &Path) -> bool {
        path.parent().is_none() || self.seen.get(path) == Some(&Node::Directory)
    }

    pub fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        if !self.is_directory(directory) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let within = self.seen.keys().filter(|path| path.parent() == Some(directory));
        Ok(within.filter_map(|path| Some(path.file_name()?.to_owned())).collect())
    }

    /// Every file that programs see, with its id.
    pub fn all(&self) -> Vec<(PathBuf, u64)> {
        let file = |(path, node): (&PathBuf, &Node)| match node {
            Node::File(id) => Some((path.clone(), *id)),
            Node::Directory => None,
        };
        self.seen.iter().filter_map(file).collect()
    }

    /// The ids of the files with a name.
    pub fn files(&self) -> BTreeSet<u64> {
        self.all().into_iter().map(|(_, id)| id).collect()
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.seen);
        self.pending.push(change);
    }

    pub fn set(&mut self, path: &Path, node: Node) -> io::Result<()> {
        match path.parent() {
            Some(above) if !self.is_directory(above) => return Err(io::ErrorKind::NotFound.into()),
            _ => {}
        }
        self.change(Change::Set(path.to_owned(), node));
        Ok(())
    }

    pub fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.change(Change::Remove(path.to_owned()));
        Ok(())
    }

    /// A rename to another directory is two changes, because each directory is synced separately.
    pub fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let node = Node::File(self.file(from)?);
        if from.parent() == to.parent() {
            self.change(Change::Move(from.to_owned(), to.to_owned(), node));
            return Ok(());
        }
        self.set(to, node)?;
        self.remove(from)
    }

    /// Makes all changes in a directory durable.
    pub fn sync(&mut self, directory: &Path) -> io::Result<()> {
        let (now, later): (Vec<Change>, Vec<Change>) =
            self.pending.drain(..).partition(|change| change.directory() == Some(directory));
        now.iter().for_each(|change| change.apply(&mut self.stable));
        self.pending = later;
        Ok(())
    }

    /// A power failure. Of the changes that are not synced, the medium has none, all, the first ones, or a random subset.
    pub fn lose_unsynced(&mut self, random: &mut Random) {
        let pending = std::mem::take(&mut self.pending);
        let way = random.below(4);
        let first = random.below(pending.len() as u64 + 1) as usize;
        for (number, change) in pending.iter().enumerate() {
            let is_kept = match way {
                0 => false,
                1 => true,
                2 => number < first,
                _ => random.one_in(2),
            };
            if is_kept {
                change.apply(&mut self.stable);
            }
        }
        // A file is lost with its directory. Paths are in order, so a directory is checked before its files.
        let mut kept = BTreeMap::new();
        for (path, node) in std::mem::take(&mut self.stable) {
            let is_root = |above: &Path| above.parent().is_none();
            if path.parent().is_none_or(|above| is_root(above) || kept.get(above) == Some(&Node::Directory)) {
                kept.insert(path, node);
            }
        }
        self.stable = kept;
        self.seen.clone_from(&self.stable);
    }
}
