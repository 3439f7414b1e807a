//! Backups of a directory, without a server: what is copied, what is refused, and what an interruption leaves.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use jiff::{Timestamp, ToSpan};
use tacho_backup::repository::Lock;
use tacho_backup::{
    Created, Hash, Host, Id, Keep, Record, Repository, Source, SourceFile, VERSION, Work, choose, create,
    prune, restore, verify,
};
use tacho_store::{Error, ErrorKind, Result};

struct Place {
    _root: tempfile::TempDir,
    data: PathBuf,
    at: PathBuf,
    out: PathBuf,
}

impl Place {
    /// A directory with some files of a data directory.
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        let place = Self { data: path("data"), at: path("repository"), out: path("out"), _root: root };
        for folder in ["chunks/quarantine", "journal", "snapshots/0"] {
            fs::create_dir_all(place.data.join(folder)).unwrap();
        }
        for (name, content) in [
            ("chunks/00000001.segment", "first".repeat(1_000)),
            ("chunks/00000002.segment", "second".repeat(300_000)),
            ("chunks/MANIFEST", "manifest".into()),
            ("chunks/RESERVE", "excluded".into()),
            ("chunks/LOCK", String::new()),
            ("chunks/quarantine/00000003.segment.torn-9", "torn".into()),
            ("journal/00000000000000000004.journal", "journal".into()),
            ("journal/00000000000000000011.journal", String::new()),
            ("snapshots/0/excluded", "excluded".into()),
            ("tokens", "secret".into()),
            ("LOCK", String::new()),
        ] {
            fs::write(place.data.join(name), content).unwrap();
        }
        place
    }

    fn repository(&self) -> Repository {
        Repository::at(self.at.to_str().unwrap()).unwrap()
    }

    fn create(&self) -> Result<Created> {
        self.create_while(&|| Ok(()))
    }

    fn create_while(&self, check: &dyn Fn() -> Result<()>) -> Result<Created> {
        let source = Source::at_rest(&self.data)?;
        create(&self.repository(), &source, &host(), &mut Work::new(&mut |_, _| {}, check))
    }

    fn restore(&self, record: &Record) -> Result<()> {
        let check = || Ok(());
        let mut progress = |_, _| {};
        restore(&self.repository(), record, &self.out, &mut Work::new(&mut progress, &check))?.commit()
    }

    fn verify(&self) -> Result<Vec<String>> {
        let check = || Ok(());
        let mut progress = |_, _| {};
        let verified = verify(&self.repository(), &[], &mut Work::new(&mut progress, &check))?;
        Ok(verified.faults.iter().map(|fault| fault.reason.to_string()).collect())
    }

    fn prune(&self, keep: Keep) -> Result<Vec<Id>> {
        let check = || Ok(());
        let mut progress = |_, _| {};
        let pruned = prune(&self.repository(), keep, false, &mut Work::new(&mut progress, &check));
        pruned.map(|pruned| pruned.removed)
    }

    fn object(&self, hash: Hash) -> PathBuf {
        let hash = hash.to_string();
        self.at.join("objects").join(&hash[..2]).join(hash)
    }

    /// Replaces a record in the repository by a changed copy with a correct checksum.
    fn forge(&self, record: &Record, change: impl FnOnce(&mut Record)) -> Record {
        let mut forged = record.clone();
        change(&mut forged);
        fs::write(self.at.join("backups").join(record.id.as_str()), forged.encode().unwrap()).unwrap();
        forged
    }
}

fn host() -> Host {
    Host { name: "box".into(), data: "/data".into(), tacho: "0".into() }
}

fn contents(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(directory).unwrap().to_str().unwrap().to_owned();
                all.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    all
}

fn is_copied(name: &str) -> bool {
    !["LOCK", "chunks/LOCK", "chunks/RESERVE", "snapshots/0/excluded"].contains(&name)
}

#[test]
fn a_restored_directory_has_the_same_files_and_only_its_owner_can_read_it() {
    let place = Place::new();
    let Created { record, objects, bytes } = place.create().unwrap();
    assert_eq!((record.generation, record.offset, record.live), (11, 0, false));
    assert_eq!((objects, bytes), (record.files.len() as u64, record.bytes()));
    assert_eq!(place.repository().record(&record.id).unwrap(), record);
    place.restore(&record).unwrap();
    let mut expect = contents(&place.data);
    expect.retain(|name, _| is_copied(name));
    assert_eq!(contents(&place.out), expect);
    for path in [&place.at, &place.out] {
        for name in contents(path).keys() {
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(&path.join(name)), 0o600, "{name}");
            assert_eq!(mode(path.join(name).parent().unwrap()), 0o700, "{name}");
        }
    }
    assert_eq!(place.verify().unwrap(), [""; 0]);
}

#[test]
fn unchanged_segments_are_neither_read_nor_copied_again() {
    let place = Place::new();
    let first = place.create().unwrap();
    let again = place.create().unwrap();
    assert_eq!((again.objects, again.bytes), (0, 0));
    assert_ne!(again.record.id, first.record.id);
    // The content changes, but neither length nor time: only a read would notice.
    let segment = place.data.join("chunks/00000002.segment");
    let time = fs::metadata(&segment).unwrap().modified().unwrap();
    fs::write(&segment, "SECOND".repeat(300_000)).unwrap();
    fs::File::options().write(true).open(&segment).unwrap().set_modified(time).unwrap();
    fs::write(place.data.join("tokens"), "SECRET").unwrap();
    let third = place.create().unwrap();
    assert_eq!((third.objects, third.bytes), (1, 6));
    // An object that is missing is written again.
    let hash = third.record.files.iter().find(|file| file.name == "chunks/00000001.segment").unwrap().sha256;
    fs::remove_file(place.object(hash)).unwrap();
    assert_eq!(place.create().unwrap().objects, 1);
    place.restore(&first.record).unwrap();
    assert_eq!(fs::read(place.out.join("tokens")).unwrap(), b"secret");
}

#[test]
fn a_file_is_copied_up_to_its_stated_length() {
    let place = Place::new();
    let file = |name: &str, bytes| SourceFile { name: name.into(), bytes };
    let files = vec![file("chunks/00000001.segment", 7), file("tokens", 0)];
    let source = Source::snapshot(&place.data, files, (3, 4), Timestamp::UNIX_EPOCH).unwrap();
    let check = || Ok(());
    let mut progress = |_, _| {};
    let mut work = Work::new(&mut progress, &check);
    let record = create(&place.repository(), &source, &host(), &mut work).unwrap().record;
    place.restore(&record).unwrap();
    assert_eq!(fs::read(place.out.join("chunks/00000001.segment")).unwrap(), b"firstfi");
    assert_eq!(fs::read(place.out.join("tokens")).unwrap(), b"");
    let source = |name: &str, bytes| {
        Source::snapshot(&place.data, vec![file(name, bytes)], (0, 0), Timestamp::UNIX_EPOCH)
    };
    let short = source("tokens", 7).unwrap();
    let error = create(&place.repository(), &short, &host(), &mut work).unwrap_err();
    assert!(error.to_string().starts_with("file has 1 bytes less than expected: it was changed"), "{error}");
    let error = source("../data/tokens", 1).err().unwrap();
    assert!(error.to_string().starts_with("server names the file \"../data/tokens\""), "{error}");
}

#[test]
fn an_interrupted_backup_does_not_count_and_its_unfinished_files_are_removed() {
    let place = Place::new();
    let calls = Cell::new(0);
    let interrupt_at = |limit: u32| {
        calls.set(0);
        place.create_while(&|| {
            calls.set(calls.get() + 1);
            if calls.get() > limit { Err(Error::new(ErrorKind::Closed, "stop")) } else { Ok(()) }
        })
    };
    let mut limit = 0;
    let record = loop {
        match interrupt_at(limit) {
            Ok(created) => break created.record,
            Err(error) => assert_eq!(error.to_string(), "stop"),
        }
        assert_eq!(place.repository().ids().unwrap(), []);
        assert!(contents(&place.at).keys().all(|name| !name.starts_with("incoming/")));
        limit += 1;
    };
    assert!(limit >= 8, "{limit}");
    // A killed process leaves its unfinished file.
    fs::write(place.at.join("incoming/rest"), "rest").unwrap();
    place.create().unwrap();
    assert!(!place.at.join("incoming/rest").exists());
    place.restore(&record).unwrap();
}

#[test]
fn an_interrupted_restore_leaves_nothing() {
    let place = Place::new();
    let record = place.create().unwrap().record;
    let calls = Cell::new(0);
    let check = || {
        calls.set(calls.get() + 1);
        if calls.get() > 3 { Err(Error::new(ErrorKind::Closed, "stop")) } else { Ok(()) }
    };
    let mut progress = |_, _| {};
    let mut work = Work::new(&mut progress, &check);
    let error = restore(&place.repository(), &record, &place.out, &mut work).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert!(!place.out.exists() && !place.out.with_extension("restoring").exists());
}

#[test]
fn a_restore_replaces_only_an_empty_directory() {
    let place = Place::new();
    let record = place.create().unwrap().record;
    let refusal = |place: &Place| place.restore(&record).unwrap_err().to_string();
    fs::create_dir(&place.out).unwrap();
    fs::write(place.out.join("mine"), "mine").unwrap();
    assert!(refusal(&place).starts_with("directory is not empty: restore to a new one"));
    assert_eq!(fs::read(place.out.join("mine")).unwrap(), b"mine");
    fs::remove_file(place.out.join("mine")).unwrap();
    fs::create_dir(place.out.with_extension("restoring")).unwrap();
    assert!(refusal(&place).starts_with("another restore writes to this directory, or was interrupted"));
    fs::remove_dir(place.out.with_extension("restoring")).unwrap();
    place.restore(&record).unwrap();
    fs::remove_dir_all(&place.out).unwrap();
    symlink(&place.data, &place.out).unwrap();
    assert!(refusal(&place).starts_with("path is a symbolic link"));
    fs::remove_file(&place.out).unwrap();
    fs::write(&place.out, "").unwrap();
    assert!(refusal(&place).starts_with("path exists and is not a directory"));
}

#[test]
fn damaged_objects_are_named_and_never_restored() {
    let place = Place::new();
    let record = place.create().unwrap().record;
    let file = record.files.iter().find(|file| file.name == "chunks/00000002.segment").unwrap();
    let path = place.object(file.sha256);
    let intact = fs::read(&path).unwrap();
    let secret = place.data.join("tokens");
    let damage: [(&str, &dyn Fn()); 7] = [
        ("object has other bytes: their hash is", &|| {
            let mut changed = intact.clone();
            changed[1_234_567] ^= 4;
            fs::write(&path, changed).unwrap();
        }),
        ("object has 1799999 bytes instead of 1800000", &|| fs::write(&path, &intact[1..]).unwrap()),
        ("object has 1800001 bytes instead of 1800000", &|| {
            fs::write(&path, [&intact[..], b"x"].concat()).unwrap();
        }),
        ("object is missing", &|| {}),
        ("cannot open", &|| symlink(&secret, &path).unwrap()),
        ("cannot open", &|| fs::create_dir(&path).unwrap()),
        ("cannot open", &|| {
            // The test does not start the program `mkfifo`. Between fork and exec, the child process would hold the locks of
            // tests that run at the same time.
            let mode = rustix::fs::Mode::RUSR;
            rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        }),
    ];
    for (expect, make) in damage {
        let _ = fs::remove_file(&path);
        make();
        let error = place.restore(&record).unwrap_err().to_string();
        assert!(error.starts_with(expect) && error.contains("file chunks/00000002.segment"), "{error}");
        assert!(!place.out.exists());
        let faults = place.verify().unwrap();
        assert!(faults.len() == 1 && faults[0].starts_with(expect), "{faults:?}");
        let _ = fs::remove_dir(&path);
    }
    let folder = path.parent().unwrap();
    fs::remove_dir_all(folder).unwrap();
    symlink(&place.data, folder).unwrap();
    let error = place.restore(&record).unwrap_err().to_string();
    assert!(error.starts_with("not a directory: the backup repository was changed"), "{error}");
    place.create().unwrap_err();
    assert_eq!(fs::read(&secret).unwrap(), b"secret");
}

#[test]
fn forged_records_write_nothing_outside_of_the_new_directory() {
    let place = Place::new();
    let record = place.create().unwrap().record;
    let before = contents(place._root.path());
    for (expect, change) in [
        (
            "record names the file \"../../escaped\"",
            &(|record: &mut Record| record.files[0].name = "../../escaped".into()) as &dyn Fn(&mut Record),
        ),
        ("record names the file \"/tmp/escaped\"", &|record| record.files[0].name = "/tmp/escaped".into()),
        ("record names the file \"tokens\" twice", &|record| {
            record.files.iter_mut().for_each(|file| file.name = "tokens".into());
        }),
        ("record states 18446744073709551615 bytes", &|record| record.files[1].bytes = u64::MAX),
        ("record has the id other", &|record| record.id = "other".parse().unwrap()),
        ("backup repository has version 7", &|record| record.version = 7),
    ] {
        let forged = place.forge(&record, change);
        let error = place.repository().record(&record.id).unwrap_err().to_string();
        assert!(error.starts_with(expect), "{error}");
        assert_eq!(place.verify().unwrap().len(), 1, "{forged:?}");
        let error = place.prune(Keep { last: 1, daily: 0 }).unwrap_err().to_string();
        assert!(error.starts_with(expect), "{error}");
    }
    // An absurd but permitted length: either the disk does not have that much space, or the object has another length.
    let forged = place.forge(&record, |record| {
        record.files.iter_mut().for_each(|file| file.bytes = 1 << 40);
    });
    let read = place.repository().record(&record.id).unwrap();
    assert_eq!(read, forged);
    let error = place.restore(&read).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::Corrupt), "{error}");
    fs::write(place.at.join("backups").join(record.id.as_str()), record.encode().unwrap()).unwrap();
    assert_eq!(contents(place._root.path()), before);
}

#[test]
fn other_directories_and_versions_are_refused() {
    let place = Place::new();
    let message = |result: Result<Created>| result.unwrap_err().to_string();
    fs::create_dir(&place.at).unwrap();
    fs::write(place.at.join("holiday.jpg"), "").unwrap();
    let error = message(place.create());
    assert!(error.ends_with("is not a backup repository and not empty, it has for example \"holiday.jpg\""));
    assert_eq!(contents(&place.at).len(), 1);
    let error = place.repository().check_format().unwrap_err().to_string();
    assert!(error.ends_with("is not a backup repository: it has no repository.json"), "{error}");
    fs::write(place.at.join("repository.json"), "{\"version\":2}").unwrap();
    let error = message(place.create());
    assert!(
        error.starts_with(&format!("backup repository has version 2, this program reads version {VERSION}"))
    );
    fs::write(place.at.join("repository.json"), "{").unwrap();
    assert!(message(place.create()).starts_with("cannot read repository.json of "));
    fs::write(place.at.join("repository.json"), " ".repeat(5_000)).unwrap();
    assert!(message(place.create()).starts_with("file has 5000 bytes, at most 4096 are expected"));
    for address in ["", "ftp://a/b"] {
        assert_eq!(Repository::at(address).err().unwrap().kind(), ErrorKind::Invalid);
    }
}

#[test]
fn a_backup_at_rest_fails_if_a_server_begins_to_use_the_directory() {
    let place = Place::new();
    // As after a restore, which writes no lock files.
    for lock in ["LOCK", "chunks/LOCK"] {
        fs::remove_file(place.data.join(lock)).unwrap();
    }
    place.create().unwrap();
    let lock = place.data.join("chunks/LOCK");
    let start = || {
        fs::write(&lock, "").unwrap();
        Ok(())
    };
    fs::write(place.data.join("tokens"), "changed").unwrap();
    let error = place.create_while(&start).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.to_string().contains("a server has used the directory during the backup"), "{error}");
    assert_eq!(place.repository().ids().unwrap().len(), 1);
}

#[test]
fn symbolic_links_are_not_followed_except_for_the_settings() {
    let place = Place::new();
    let other = place.data.parent().unwrap().join("other");
    fs::write(&other, "other").unwrap();
    symlink(&other, place.data.join("tacho.toml")).unwrap();
    symlink("nowhere", place.data.join("notes")).unwrap();
    symlink("nowhere", place.data.join("probes.json")).unwrap();
    symlink("nowhere", place.data.join("chunks/00000008.segment")).unwrap();
    let mut source = Source::at_rest(&place.data).unwrap();
    source.ignored.sort();
    assert_eq!(source.ignored, ["chunks/00000008.segment", "notes", "probes.json"]);
    drop(source);
    place.restore(&place.create().unwrap().record).unwrap();
    assert_eq!(fs::read(place.out.join("tacho.toml")).unwrap(), b"other");
    for name in ["chunks/00000009.segment", "record_types.json"] {
        let link = place.data.join(name);
        symlink(&other, &link).unwrap();
        let error = place.create().unwrap_err();
        assert!(error.to_string().starts_with("file is a symbolic link"), "{error}");
        // The link may appear after the files were listed.
        let files = vec![SourceFile { name: name.into(), bytes: 5 }];
        let source = Source::snapshot(&place.data, files, (0, 0), Timestamp::UNIX_EPOCH).unwrap();
        let mut progress = |_, _| {};
        let mut work = Work::new(&mut progress, &|| Ok(()));
        create(&place.repository(), &source, &host(), &mut work).unwrap_err();
        fs::remove_file(link).unwrap();
    }
}

#[test]
fn files_changed_in_place_are_read_again_and_permissions_to_start_without_a_file_are_not_copied() {
    let place = Place::new();
    place.create().unwrap();
    let path = place.data.join("chunks/MANIFEST");
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, "MANIFEST").unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    // With these files, an operator permits a start although segment files, or the journal of generation 1, are missing.
    for permission in ["chunks/MANIFEST.lost", "journal/00000000000000000001.lost"] {
        fs::write(place.data.join(permission), "").unwrap();
    }
    assert_eq!(Source::at_rest(&place.data).unwrap().ignored, [""; 0]);
    place.restore(&place.create().unwrap().record).unwrap();
    assert_eq!(fs::read(place.out.join("chunks/MANIFEST")).unwrap(), b"MANIFEST");
    assert!(!contents(&place.out).keys().any(|name| name.ends_with(".lost")));
}

#[test]
fn a_backup_that_is_pruned_after_it_was_chosen_is_not_restored() {
    let place = Place::new();
    let chosen = place.create().unwrap().record;
    place.create().unwrap();
    place.prune(Keep { last: 1, daily: 0 }).unwrap();
    let error = place.restore(&chosen).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().starts_with("backup was removed after it was chosen"), "{error}");
    assert!(!place.out.exists());
}

#[test]
fn unused_objects_are_counted_only_if_all_records_can_be_read() {
    let place = Place::new();
    let record = place.create().unwrap().record;
    fs::write(place.data.join("tokens"), "changed").unwrap();
    place.create().unwrap();
    let unused = || {
        let mut progress = |_, _| {};
        verify(&place.repository(), &[], &mut Work::new(&mut progress, &|| Ok(()))).unwrap().unused
    };
    assert_eq!(unused(), Some(0));
    let path = place.at.join("backups").join(record.id.as_str());
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, b"damaged").unwrap();
    assert_eq!(unused(), None);
    fs::remove_file(&path).unwrap();
    symlink("nowhere", &path).unwrap();
    assert!(place.verify().unwrap()[0].contains("it is a symbolic link"), "the fault does not name the link");
    fs::remove_file(&path).unwrap();
    assert_eq!(unused(), Some(1));
    fs::write(&path, bytes).unwrap();
    assert_eq!(unused(), Some(0));
}

#[test]
fn absurd_lengths_from_a_server_do_not_overflow() {
    let files = ["tokens", "probes.json"].map(|name| SourceFile { name: name.into(), bytes: u64::MAX });
    let source = Source::snapshot(Path::new("/"), files.to_vec(), (0, 0), Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(source.bytes(), u64::MAX);
}

#[test]
fn a_writer_excludes_other_writers_and_readers() {
    let place = Place::new();
    let record = place.create().unwrap().record;
    let repository = place.repository();
    let shared = repository.lock(Lock::Shared).unwrap();
    assert_eq!(place.verify().unwrap(), [""; 0]);
    for error in [place.create().unwrap_err(), place.prune(Keep { last: 1, daily: 0 }).unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Locked);
        assert!(error.to_string().starts_with("another backup, restore, verify or prune uses"), "{error}");
    }
    drop(shared);
    let exclusive = repository.lock(Lock::Exclusive).unwrap();
    assert_eq!(place.verify().unwrap_err().kind(), ErrorKind::Locked);
    assert_eq!(place.restore(&record).unwrap_err().kind(), ErrorKind::Locked);
    drop(exclusive);
    place.restore(&record).unwrap();
}

#[test]
fn a_prune_keeps_what_the_kept_backups_need() {
    let place = Place::new();
    let mut records = Vec::new();
    for round in 0..4 {
        fs::write(place.data.join("tokens"), format!("secret {round}")).unwrap();
        records.push(place.create().unwrap().record);
    }
    fs::write(place.at.join("objects").join("strange"), "kept").unwrap();
    // Backups are chosen by their times, and listed by their ids. Ids of the same second have a random order.
    let mut expect: Vec<Id> = records[..2].iter().map(|record| record.id.clone()).collect();
    expect.sort();
    assert_eq!(place.prune(Keep { last: 2, daily: 0 }).unwrap(), expect);
    assert_eq!(place.verify().unwrap(), [""; 0]);
    let old = records[0].files.iter().find(|file| file.name == "tokens").unwrap();
    assert!(!place.object(old.sha256).exists());
    assert!(place.at.join("objects/strange").exists());
    place.restore(&records[2]).unwrap();
    assert_eq!(fs::read(place.out.join("tokens")).unwrap(), b"secret 2");
    assert_eq!(place.prune(Keep::default()).unwrap_err().kind(), ErrorKind::Invalid);
}

/// An interrupted first backup looks like a repository whose records are lost.
#[test]
fn a_prune_removes_nothing_while_the_repository_has_no_record() {
    let place = Place::new();
    let calls = Cell::new(0);
    let stop = || {
        calls.set(calls.get() + 1);
        if calls.get() > 3 { Err(Error::new(ErrorKind::Closed, "stopped")) } else { Ok(()) }
    };
    place.create_while(&stop).unwrap_err();
    let objects = || place.repository().objects().unwrap();
    let before = objects();
    assert!(!before.is_empty() && !place.at.join("backups").exists());
    let keep = Keep { last: 1, daily: 0 };
    assert_eq!(place.prune(keep).unwrap_err().kind(), ErrorKind::Corrupt);
    assert!(objects() == before);
    let record = place.create().unwrap().record;
    assert_eq!(place.prune(keep).unwrap(), []);
    fs::remove_file(place.at.join("backups").join(record.id.as_str())).unwrap();
    let before = objects();
    assert_eq!(place.prune(keep).unwrap_err().kind(), ErrorKind::Corrupt);
    assert!(objects() == before);
}

#[test]
fn rules_for_days_and_numbers_apply_to_each_directory() {
    let place = Place::new();
    let sample = place.create().unwrap().record;
    let start = Timestamp::UNIX_EPOCH;
    // Three backups a day for ten days, of each of two directories.
    let records: Vec<Record> = (0..60)
        .map(|number| Record {
            time: start + (number / 2 * 8).hours(),
            id: format!("{number:02}").parse().unwrap(),
            data: format!("/data{}", number % 2),
            ..sample.clone()
        })
        .collect();
    let kept = |last, daily| {
        let mut kept: Vec<&str> =
            choose(&records, Keep { last, daily }).into_iter().map(Id::as_str).collect();
        kept.sort_unstable();
        kept.join(" ")
    };
    assert_eq!(kept(2, 0), "56 57 58 59");
    assert_eq!(kept(0, 2), "52 53 58 59");
    assert_eq!(kept(1, 3), "46 47 52 53 58 59");
    assert_eq!(kept(100, 0).split(' ').count(), 60);
    assert_eq!(kept(0, 100).split(' ').count(), 20);
}
