//! Tests `tacho backup` and `tacho restore` with real data directories, at rest and while a server uses them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::contents::contents;
use crate::support::filled::{directory, fill, in_runtime};
use crate::support::{self, Server, run};

/// Runs `tacho` with `--json` and returns its output. The command must succeed.
fn json(args: &[&str]) -> Value {
    let (code, stdout, stderr) = run(&[args, &["--json"]].concat());
    assert_eq!(code, Some(0), "{args:?}: {stdout}{stderr}");
    serde_json::from_str(&stdout).unwrap_or_else(|e| panic!("{e}: {stdout}"))
}

/// The exit code and stderr of a command that must fail.
fn failure(args: &[&str]) -> (i32, String) {
    let (code, stdout, stderr) = run(args);
    assert_ne!(code, Some(0), "{args:?}: {stdout}");
    (code.unwrap(), stderr)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Number of samples of the series `line`, over HTTP.
fn count(server: &Server, token: &str) -> String {
    let query = "/api/v1/query?query=sum(count_over_time(line%5B100000d%5D))&time=1800000000";
    let answer = server.request("GET", query, &[("Authorization", token)], b"").json();
    answer["data"]["result"][0]["value"][1].as_str().unwrap_or("0").to_owned()
}

fn write(server: &Server, token: &str, numbers: std::ops::Range<u64>) {
    let line = |n: u64| format!("line,host=a value={n} {}\n", 1_700_000_000_000_000_000 + n * 1_000_000_000);
    let body: String = numbers.map(line).collect();
    let headers = [("Authorization", token)];
    let headers = if token.is_empty() { &[] } else { &headers[..] };
    assert_eq!(server.post("/write", headers, body.as_bytes()).status, 204);
}

#[test]
fn a_directory_at_rest_is_restored_as_it_was_at_each_backup() {
    let place = tempfile::tempdir().unwrap();
    let [data, at, out] = ["data", "repository", "out"].map(|name| place.path().join(name));
    directory(&data);
    fs::write(data.join("notes.txt"), "").unwrap();
    let added = run(&["token", "add", "me", "--role", "admin", "--data", text(&data)]);
    assert_eq!(added.0, Some(0), "{added:?}");
    let mut before = contents(&data);
    let (code, stdout, stderr) = run(&["backup", "create", text(&data), text(&at)]);
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(stderr, "warning: notes.txt is not a file of a data directory, and not in the backup\n");
    assert!(stdout.starts_with("backup 2"), "{stdout}");
    let list = json(&["backup", "list", text(&at)]);
    let first = &list["backups"][0];
    assert_eq!(first["live"], false);
    // `MANIFEST` and `MANIFEST.backup` have the same bytes, so the repository has one object for both.
    let manifest = fs::metadata(data.join("chunks/MANIFEST")).unwrap().len();
    assert_eq!(first["new_bytes"].as_u64().map(|new| new + manifest), first["bytes"].as_u64());
    let id = first["id"].as_str().unwrap();

    let again = json(&["backup", "create", text(&data), text(&at)]);
    assert_eq!(again["new"]["objects"], 0);
    in_runtime(fill(&data, 20..24, false));
    let later = json(&["backup", "create", text(&data), text(&at)]);
    let part = later["new"]["bytes"].as_u64().unwrap();
    assert!(part > 0 && part < later["bytes"].as_u64().unwrap() * 9 / 10, "{later}");

    let others = [&again, &later].map(|backup| backup["id"].as_str().unwrap());
    let is_unique = |beginning: &&str| !others.iter().any(|other| other.starts_with(beginning));
    let beginning = (11..=id.len()).map(|length| &id[..length]).find(is_unique).unwrap();
    for at_flag in [id, beginning, first["time"].as_str().unwrap()] {
        let restored = json(&["restore", text(&at), text(&out), "--at", at_flag]);
        assert_eq!((&restored["id"], &restored["damage"]), (&id.into(), &0.into()), "{at_flag}");
        before.retain(|name, _| !["notes.txt", "audit.log", "tokens.lock"].contains(&name.as_str()));
        assert!(before.contains_key("tokens") && before.contains_key("tokens.used"));
        assert_eq!(contents(&out), before);
        fs::remove_dir_all(&out).unwrap();
    }
    let restored = json(&["restore", text(&at), text(&out)]);
    assert_eq!(restored["id"], later["id"]);
    let mode = |name: &str| fs::metadata(out.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(""), mode("chunks"), mode("tokens")), (0o700, 0o700, 0o600));
    let checked = run(&["check", text(&out)]);
    assert_eq!(checked.0, Some(0), "{checked:?}");

    let (code, stderr) = failure(&["restore", text(&at), text(&out)]);
    assert_eq!(code, 2);
    assert!(stderr.starts_with("error: directory is not empty: restore to a new one"), "{stderr}");
    let (code, stderr) = failure(&["restore", text(&at), "/tmp/never", "--at", "2001-01-01"]);
    assert_eq!(code, 1);
    assert!(
        stderr.starts_with("error: no backup is as old as 2001-01-01\nhint: tacho backup list"),
        "{stderr}"
    );
    assert_eq!(failure(&["restore", text(&at), "/tmp/never", "--at", "soon"]).0, 2);
}

#[test]
fn each_printed_time_of_a_backup_selects_it() {
    let place = tempfile::tempdir().unwrap();
    let [data, at, out] = ["data", "repository", "out"].map(|name| place.path().join(name));
    directory(&data);
    json(&["backup", "create", text(&data), text(&at)]);
    let newest = json(&["backup", "create", text(&data), text(&at)]);
    let id = newest["id"].as_str().unwrap();
    let (_, table, _) = run(&["backup", "list", text(&at)]);
    let row = table.lines().find(|row| row.starts_with(id)).unwrap();
    let listed = json(&["backup", "list", text(&at)]);
    let listed = listed["backups"].as_array().unwrap().iter().find(|backup| backup["id"] == id).unwrap();
    for time in [row.split_whitespace().nth(1).unwrap(), listed["time"].as_str().unwrap()] {
        let restored = json(&["restore", text(&at), text(&out), "--at", time]);
        assert_eq!(restored["id"], id, "--at {time}: {table}");
        fs::remove_dir_all(&out).unwrap();
    }
}

#[test]
fn a_backup_with_a_damaged_file_of_tokens_is_made_with_a_warning() {
    let place = tempfile::tempdir().unwrap();
    let [data, at, out] = ["data", "repository", "out"].map(|name| place.path().join(name));
    directory(&data);
    fs::write(data.join("tokens"), "{").unwrap();
    let (code, _, stderr) = run(&["backup", "create", text(&data), text(&at)]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.starts_with("warning: the tokens in this backup cannot be used: "), "{stderr}");
    let restore = ["restore", text(&at), text(&out)];
    assert_eq!(failure(&restore).0, 1);
    let (code, _, stderr) = run(&[&restore[..], &["--allow-damaged"]].concat());
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(fs::read(out.join("tokens")).unwrap(), b"{");
}

#[test]
fn a_generation_selects_the_newest_backup_that_is_not_later() {
    let place = tempfile::tempdir().unwrap();
    let [data, at, out] = ["data", "repository", "out"].map(|name| place.path().join(name));
    let mut backups: Vec<(u64, String)> = Vec::new();
    for round in 0..3 {
        // A killed server leaves its newest journal, and each start begins a generation.
        let server = Server::start(&data);
        write(&server, "", 10 * round..10 * round + 10);
        server.kill();
        // Two backups of each generation: the newer one is selected.
        for _ in 0..2 {
            let made = json(&["backup", "create", text(&data), text(&at)]);
            backups.push((made["generation"].as_u64().unwrap(), made["id"].as_str().unwrap().to_owned()));
        }
    }
    let [_, (first, in_first), _, (second, in_second), _, (third, in_third)] = &backups[..] else {
        panic!("{backups:?}")
    };
    assert!(first < second && second < third, "{backups:?}");
    let (_, table, _) = run(&["backup", "list", text(&at)]);
    assert!(table.lines().next().unwrap().contains("GENERATION"), "{table}");
    for (generation, id) in &backups {
        let row = table.lines().find(|row| row.starts_with(id)).unwrap();
        assert_eq!(row.split_whitespace().nth(3), Some(&*generation.to_string()), "{table}");
    }
    let cases = [
        (*first, in_first),
        (second - 1, in_first),
        (*second, in_second),
        (*third, in_third),
        (u64::MAX, in_third),
    ];
    for (generation, id) in cases {
        let number = generation.to_string();
        let restored = json(&["restore", text(&at), text(&out), "--generation", &number]);
        assert_eq!(restored["id"], **id, "--generation {number}: {table}");
        let files = contents(&out);
        let newest = files.keys().rfind(|name| name.ends_with(".journal")).unwrap();
        assert_eq!(*newest, format!("journal/{:020}.journal", restored["generation"].as_u64().unwrap()));
        fs::remove_dir_all(&out).unwrap();
    }
    let server = Server::start(&data);
    assert!(server.stop().success());
    let without = json(&["backup", "create", text(&data), text(&at)]);
    assert_eq!(without["generation"], 0);
    let (code, _, stderr) = run(&["restore", text(&at), text(&out), "--generation", &u64::MAX.to_string()]);
    let expect = format!(
        "warning: backup {} is later than the restored one, and has no generation",
        without["id"].as_str().unwrap()
    );
    assert!(code == Some(0) && stderr.contains(&expect), "{stderr}");
    fs::remove_dir_all(&out).unwrap();
    // A backup of a later generation is between the selected one and the one without a generation.
    let (code, _, stderr) = run(&["restore", text(&at), text(&out), "--generation", &first.to_string()]);
    assert_eq!((code, stderr.contains("has no generation")), (Some(0), false), "{stderr}");
    fs::remove_dir_all(&out).unwrap();
    let earlier = (first - 1).to_string();
    let (code, stderr) = failure(&["restore", text(&at), text(&out), "--generation", &earlier]);
    assert_eq!(code, 1);
    let expect = format!("error: no backup has a generation up to {earlier}\nhint: tacho backup list");
    assert!(stderr.starts_with(&expect), "{stderr}");
    let both = ["restore", text(&at), text(&out), "--generation", "9", "--at", "-1d"];
    assert_eq!(failure(&both).0, 2);
    assert!(!out.exists());
}

#[test]
fn verify_and_prune_report_their_results() {
    let place = tempfile::tempdir().unwrap();
    let [data, at, out] = ["data", "repository", "out"].map(|name| place.path().join(name));
    directory(&data);
    let first = json(&["backup", "create", text(&data), text(&at)]);
    in_runtime(fill(&data, 20..22, false));
    let second = json(&["backup", "create", text(&data), text(&at)]);
    let verified = json(&["backup", "verify", text(&at)]);
    assert_eq!((&verified["backups"], &verified["faults"]), (&2.into(), &Value::Array(vec![])));

    let dry = json(&["backup", "prune", text(&at), "--keep-last", "1", "--dry-run"]);
    let (_, shown, _) = run(&["backup", "prune", text(&at), "--keep-last", "1", "--dry-run"]);
    let expect =
        format!("would remove {}\n1 backup would be removed, 1 kept; ", first["id"].as_str().unwrap());
    assert!(shown.starts_with(&expect), "{shown}");
    assert!(shown.ends_with(" would be removed; nothing was changed\n"), "{shown}");
    let pruned = json(&["backup", "prune", text(&at), "--keep-last", "1"]);
    assert_eq!(dry["removed"], serde_json::json!([first["id"]]));
    assert_eq!((&dry["removed"], &dry["bytes"]), (&pruned["removed"], &pruned["bytes"]));
    let list = json(&["backup", "list", text(&at)]);
    assert_eq!(list["backups"].as_array().unwrap().len(), 1);
    let (code, stderr) = failure(&["backup", "prune", text(&at)]);
    assert!(code == 2 && stderr.contains("give --keep-last N, --keep-daily N, or both"), "{stderr}");
    assert_eq!(failure(&["backup", "prune", text(&at), "--keep-last", "0"]).0, 2);

    let object = fs::read_dir(at.join("objects")).unwrap().flatten();
    let object = object.flat_map(|folder| fs::read_dir(folder.path()).unwrap().flatten());
    let object = object.max_by_key(|entry| entry.metadata().unwrap().len()).unwrap().path();
    let mut bytes = fs::read(&object).unwrap();
    bytes[100] ^= 1;
    fs::write(&object, bytes).unwrap();
    let (code, stdout, stderr) = run(&["backup", "verify", text(&at)]);
    assert_eq!(code, Some(1));
    assert!(stderr.starts_with("error: 1 fault in "), "{stderr}");
    assert!(
        stderr.contains("hint: remove the damaged objects: the next backup writes each one again"),
        "{stderr}"
    );
    let id = second["id"].as_str().unwrap();
    let path = format!("(object {})\n", text(object.strip_prefix(&at).unwrap()));
    assert!(stdout.contains("object has other bytes") && stdout.contains(id), "{stdout}");
    assert!(path.starts_with("(object objects/") && stdout.contains(&path), "{path}{stdout}");
    let (code, stderr) = failure(&["restore", text(&at), text(&out)]);
    assert_eq!(code, 1);
    assert!(stderr.contains("object has other bytes"), "{stderr}");
    assert!(!out.exists());
    // An unreadable record has another hint than a damaged object.
    let record = at.join("backups/20260101T000000Z-0000");
    fs::write(&record, "damaged").unwrap();
    fs::remove_file(&object).unwrap();
    let (_, stderr) = failure(&["backup", "verify", text(&at), "20260101T000000Z-0000"]);
    assert!(stderr.contains("hint: move the unreadable record away"), "{stderr}");
    let (_, stderr) = failure(&["backup", "prune", text(&at), "--keep-last", "1"]);
    assert!(stderr.contains("hint: tacho backup verify names all damage"), "{stderr}");
    let only = place.path().join("only");
    fs::create_dir_all(only.join("backups")).unwrap();
    fs::copy(at.join("repository.json"), only.join("repository.json")).unwrap();
    assert_eq!(run(&["backup", "list", text(&only)]).1, "no backups\n");
    fs::copy(&record, only.join("backups/20260101T000000Z-0000")).unwrap();
    let (code, stdout, stderr) = run(&["backup", "list", text(&only)]);
    assert_eq!((code, &*stdout), (Some(1), "no readable backups\n"));
    assert!(stderr.contains("1 backup cannot be read"), "{stderr}");
    fs::remove_file(&record).unwrap();
    let (_, stderr) = failure(&["backup", "verify", text(&at)]);
    assert!(stderr.contains("hint: the next backup writes a missing object again"), "{stderr}");
    json(&["backup", "create", text(&data), text(&at)]);
    json(&["backup", "verify", text(&at)]);
    json(&["restore", text(&at), text(&out)]);
}

#[test]
fn a_repository_with_objects_but_without_records_is_damaged_and_a_new_one_is_not() {
    let place = tempfile::tempdir().unwrap();
    let [data, at, new] = ["data", "repository", "new"].map(|name| place.path().join(name));
    directory(&data);
    json(&["backup", "create", text(&data), text(&at)]);
    let records = || fs::read_dir(at.join("backups")).unwrap().map(|entry| entry.unwrap().path());
    let record = records().next().unwrap();
    let bytes = fs::read(&record).unwrap();
    let is_damaged = |case: &str| {
        let (code, stdout, stderr) = run(&["backup", "verify", text(&at)]);
        assert_eq!((code, &*stdout), (Some(1), "no backups\n"), "{case}: {stderr}");
        assert!(
            stderr.contains(", but no record of a backup: nothing can be restored\n"),
            "{case}: {stderr}"
        );
        assert!(stderr.contains("hint: bring back the files of backups/"), "{case}: {stderr}");
        let (code, shown, _) = run(&["backup", "verify", text(&at), "--json"]);
        let shown: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!((code, shown["backups"].as_u64()), (Some(1), Some(0)), "{case}");
        assert!(shown["unused"].as_u64() > Some(0), "{case}");
        let (_, stderr) = failure(&["backup", "prune", text(&at), "--keep-last", "1"]);
        assert!(stderr.contains("nothing is removed, because the records may be lost"), "{case}: {stderr}");
    };
    fs::remove_file(&record).unwrap();
    is_damaged("all records are removed");
    fs::create_dir(&record).unwrap();
    is_damaged("a directory is in place of the record");
    fs::remove_dir(&record).unwrap();
    fs::remove_dir(at.join("backups")).unwrap();
    is_damaged("the directory of the records is removed");
    fs::create_dir(at.join("backups")).unwrap();
    fs::write(&record, bytes).unwrap();
    json(&["backup", "verify", text(&at)]);

    fs::create_dir(&new).unwrap();
    fs::copy(at.join("repository.json"), new.join("repository.json")).unwrap();
    assert_eq!(run(&["backup", "verify", text(&new)]), (Some(0), "no backups\n".into(), String::new()));
}

#[test]
fn a_backup_that_lacks_an_object_is_removed_by_deleting_its_record() {
    let place = tempfile::tempdir().unwrap();
    let [data, at, out] = ["data", "repository", "out"].map(|name| place.path().join(name));
    directory(&data);
    let first = json(&["backup", "create", text(&data), text(&at)]);
    in_runtime(fill(&data, 20..22, false));
    let second = json(&["backup", "create", text(&data), text(&at)]);
    let [id, later] = [&first, &second].map(|backup| backup["id"].as_str().unwrap());
    let hashes = |id: &str| -> Vec<String> {
        let record = fs::read_to_string(at.join("backups").join(id)).unwrap();
        let record: Value = serde_json::from_str(record.lines().next().unwrap()).unwrap();
        let files = record["files"].as_array().unwrap();
        files.iter().map(|file| file["sha256"].as_str().unwrap().to_owned()).collect()
    };
    let (of_first, of_second) = (hashes(id), hashes(later));
    let changed = of_first.iter().find(|hash| !of_second.contains(hash)).expect("a file has changed");
    fs::remove_file(at.join("objects").join(&changed[..2]).join(changed)).unwrap();
    json(&["backup", "verify", text(&at), later]);
    json(&["backup", "create", text(&data), text(&at)]);
    let (code, stdout, _) = run(&["backup", "verify", text(&at)]);
    assert!(code == Some(1) && stdout.contains(&format!("cannot be restored: {id}\n")), "{stdout}");
    fs::remove_file(at.join("backups").join(id)).unwrap();
    json(&["backup", "prune", text(&at), "--keep-last", "2"]);
    assert_eq!(json(&["backup", "verify", text(&at)])["unused"], 0);
    json(&["restore", text(&at), text(&out)]);
}

#[test]
fn wrong_places_are_refused_before_anything_is_written() {
    let place = tempfile::tempdir().unwrap();
    let [data, at] = ["data", "repository"].map(|name| place.path().join(name));
    directory(&data);
    symlink(&data, place.path().join("link")).unwrap();
    for inside in ["data/backups", "data", "link/backups", "."] {
        let inside = place.path().join(inside);
        let (code, stderr) = failure(&["backup", "create", text(&data), text(&inside)]);
        assert_eq!(code, 2);
        assert!(stderr.contains("are not separate"), "{stderr}");
    }
    assert!(!data.join("backups").exists());
    assert_eq!(failure(&["backup", "create", text(place.path()), text(&at)]).0, 2);
    for command in [&["backup", "list"][..], &["backup", "verify"], &["backup", "prune", "--keep-last", "1"]]
    {
        let (code, stderr) = failure(&[command, &[text(&at)]].concat());
        assert_eq!(code, 2);
        assert!(stderr.contains("is not a backup repository: it has no repository.json"), "{stderr}");
    }
    assert!(!at.exists());
    json(&["backup", "create", text(&data), text(&at)]);
    symlink(&at, place.path().join("also")).unwrap();
    for (inside, of) in [
        ("data/drill", "the data directory "),
        ("data/chunks/a/b", "the data directory "),
        ("link/drill", "the data directory "),
        ("repository/drill", "the repository "),
        ("also/objects/drill", "the repository "),
    ] {
        let inside = place.path().join(inside);
        let (code, stderr) = failure(&["restore", text(&at), text(&inside)]);
        assert_eq!(code, 2);
        let expected = format!("error: {} is inside of {of}{}", text(&inside), text(place.path()));
        assert!(stderr.starts_with(&expected), "{stderr}");
        assert!(!inside.exists());
    }
    assert!(!data.join("chunks/a").exists());
}

#[test]
fn a_directory_that_was_damaged_before_its_backup_is_restored_only_on_request() {
    let place = tempfile::tempdir().unwrap();
    let [data, at, out] = ["data", "repository", "out"].map(|name| place.path().join(name));
    directory(&data);
    let chunks = fs::read_dir(data.join("chunks")).unwrap().map(|entry| entry.unwrap().path());
    let segment = chunks.filter(|path| path.extension().is_some_and(|e| e == "segment")).min().unwrap();
    let mut bytes = fs::read(&segment).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&segment, bytes).unwrap();
    json(&["backup", "create", text(&data), text(&at)]);
    let (code, stderr) = failure(&["restore", text(&at), text(&out)]);
    assert_eq!(code, 1);
    assert!(
        stderr.contains(text(segment.strip_prefix(&data).unwrap())) && stderr.contains("--allow-damaged"),
        "{stderr}"
    );
    assert!(!out.exists() && !place.path().join("out.restoring").exists());
    let restored = json(&["restore", text(&at), text(&out), "--allow-damaged"]);
    assert!(restored["damage"].as_u64() > Some(0), "{restored}");
    assert_eq!(contents(&out), contents(&data));
}

#[test]
fn a_running_server_is_backed_up_without_a_stop() {
    let place = tempfile::tempdir().unwrap();
    let [data, at, out] = ["data", "repository", "out"].map(|name| place.path().join(name));
    let server = Server::start(&data);
    let [admin, reader] = ["admin", "read"].map(|role| {
        let (code, token, stderr) = run(&["token", "add", role, "--role", role, "--data", text(&data)]);
        assert_eq!(code, Some(0), "{stderr}");
        let path = place.path().join(role);
        fs::write(&path, &token).unwrap();
        (path, format!("Bearer {}", token.trim()))
    });
    support::wait_for("the server to require tokens", || {
        (server.get("/api/v1/labels").status == 401).then_some(())
    });
    let token = &*admin.1;
    let post = |path: &str| server.post(path, &[("Authorization", token)], b"").status;
    write(&server, token, 0..1_000);
    let url = server.url();
    let base = ["backup", "create", text(&data), text(&at), "--server", &url];
    let create = [&base[..], &["--token-file", text(&admin.0)]].concat();
    let (code, stderr) = failure(&[&base[..], &["--token-file", text(&reader.0)]].concat());
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains("a server uses") && stderr.contains("admin"), "{stderr}");
    let first = json(&create);
    assert_eq!(first["live"], true);
    assert!(first["generation"].as_u64() > Some(0) && first["offset"].as_u64() > Some(0), "{first}");
    let listed = server.request("GET", "/api/v1/admin/snapshots", &[("Authorization", token)], b"").json();
    assert_eq!(listed["data"]["snapshots"], Value::Array(vec![]));
    assert_eq!(fs::read_dir(data.join("snapshots")).unwrap().count(), 0);
    write(&server, token, 1_000..1_500);
    json(&create);
    // The server deletes and merges between two backups.
    assert_eq!(post("/api/v1/admin/tsdb/delete_series?match[]=line&end=1700000099"), 204);
    assert_eq!(post("/api/v1/admin/merge"), 200);
    json(&create);
    assert_eq!(run(&["check", text(&data)]).0, Some(0));
    let ids: Vec<String> = json(&["backup", "list", text(&at)])["backups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|backup| backup["id"].as_str().unwrap().to_owned())
        .collect();
    for (id, expect) in ids.iter().zip(["1000", "1500", "1400"]) {
        json(&["restore", text(&at), text(&out), "--at", id]);
        let restored = Server::start(&out);
        assert_eq!(restored.get("/api/v1/labels").status, 401);
        assert_eq!(count(&restored, token), expect);
        write(&restored, token, 5_000..5_001);
        assert_eq!(restored.stop().code(), Some(0));
        fs::remove_dir_all(&out).unwrap();
    }
    let (code, stderr) = failure(&["backup", "create", text(&data), text(&at), "--server", "127.0.0.1:1"]);
    assert_eq!(code, 1);
    assert!(stderr.contains("a server uses") && stderr.contains("hint: "), "{stderr}");
    // The audit log has the snapshots, but not their renewals.
    let snapshots = "/api/v1/admin/snapshots";
    let made = server.post(snapshots, &[("Authorization", token)], b"").json();
    assert_eq!(post(&format!("{snapshots}/{}/renew", made["data"]["id"].as_str().unwrap())), 200);
    assert_eq!(post(&format!("{snapshots}/absent/renew")), 404);
    let audit = fs::read_to_string(data.join("audit.log")).unwrap();
    assert!(audit.contains(snapshots) && !audit.contains("/renew"), "{audit}");
    let other = tempfile::tempdir().unwrap();
    let second = Server::start(other.path());
    let (code, stderr) = failure(&["backup", "create", text(&data), text(&at), "--server", &second.url()]);
    assert_eq!(code, 1);
    assert!(stderr.contains("the server uses another data directory"), "{stderr}");
    assert_eq!(second.get("/api/v1/admin/snapshots").json()["data"]["snapshots"], Value::Array(vec![]));
}

#[test]
fn a_running_server_is_backed_up_like_a_directory_at_rest() {
    let place = tempfile::tempdir().unwrap();
    let [data, at, outside] = ["data", "repository", "outside"].map(|name| place.path().join(name));
    let server = Server::start(&data);
    write(&server, "", 0..10);
    let url = server.url();
    let create = ["backup", "create", text(&data), text(&at), "--server", &url];
    fs::write(&outside, "secret").unwrap();
    fs::write(data.join("foo.txt"), "").unwrap();
    fs::create_dir(data.join("sub")).unwrap();
    symlink(&outside, data.join("link")).unwrap();
    let warnings = |stderr: &str| -> Vec<String> {
        let mut warnings: Vec<String> = stderr.lines().map(str::to_owned).collect();
        warnings.sort();
        warnings
    };
    let (code, _, stderr) = run(&create);
    assert_eq!(code, Some(0), "{stderr}");
    let expected = ["foo.txt", "link", "sub"];
    let expected = expected
        .map(|name| format!("warning: {name} is not a file of a data directory, and not in the backup"));
    let live = warnings(&stderr);
    assert_eq!(live, expected);
    // The command and the server refuse a symbolic link.
    symlink(&outside, data.join("probes.json")).unwrap();
    let (code, refused) = failure(&create);
    assert_eq!(code, 1);
    assert!(refused.contains("file is a symbolic link: replace it by a copy"), "{refused}");
    let answer = server.post("/api/v1/admin/snapshots", &[], b"");
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("file is a symbolic link: replace it by a copy"), "{}", answer.text());
    assert_eq!(fs::read_dir(data.join("snapshots")).unwrap().count(), 0);
    // At rest, the messages are the same.
    assert_eq!(server.stop().code(), Some(0));
    let create = ["backup", "create", text(&data), text(&at)];
    assert_eq!(failure(&create), (code, refused));
    fs::remove_file(data.join("probes.json")).unwrap();
    assert_eq!(warnings(&run(&create).2), live);
}

#[test]
fn a_backup_that_waits_for_other_snapshots_says_so() {
    let place = tempfile::tempdir().unwrap();
    let [data, at] = ["data", "repository"].map(|name| place.path().join(name));
    let server = Server::start(&data);
    let path = "/api/v1/admin/snapshots";
    let [id, _] = [(), ()].map(|()| {
        let made = server.post(path, &[], b"").json();
        made["data"]["id"].as_str().unwrap().to_owned()
    });
    let left = server.get(path).json()["data"]["snapshots"][0]["lease_seconds"].as_u64();
    assert!(left <= Some(60) && left.is_some(), "{left:?}");
    let mut waiting = Command::new(env!("CARGO_BIN_EXE_tacho"))
        .args(["backup", "create", text(&data), text(&at), "--server", &server.url()])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // If the command printed nothing, the read would end when the command ends, after the leases of the snapshots.
    let mut line = String::new();
    let mut stderr = BufReader::new(waiting.stderr.take().unwrap());
    stderr.read_line(&mut line).unwrap();
    assert!(line.starts_with("waiting until 2") && line.contains(": 2 snapshots exist"), "{line:?}");
    assert!(line.contains("if their backups were killed, the first snapshot ends at 2"), "{line:?}");
    server.request("DELETE", &format!("{path}/{id}"), &[], b"");
    assert_eq!(waiting.wait().unwrap().code(), Some(0));
}

#[test]
fn snapshots_are_bounded_keep_removed_files_and_are_removed_at_the_next_start() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let server = Server::start(&data);
    write(&server, "", 0..10);
    let path = "/api/v1/admin/snapshots";
    let first = server.post(path, &[], b"").json()["data"].clone();
    let id = first["id"].as_str().unwrap().to_owned();
    assert_eq!(first["lease_seconds"], 60);
    let pinned = |data: &Path| {
        let files = first["files"].as_array().unwrap().iter();
        let exists = |file: &Value| {
            let path = data.join("snapshots").join(&id).join(file["name"].as_str().unwrap());
            fs::metadata(path).is_ok_and(|found| found.len() >= file["bytes"].as_u64().unwrap())
        };
        files.filter(|file| exists(file)).count()
    };
    let count = first["files"].as_array().unwrap().len();
    assert!(count >= 3, "{first}");
    assert_eq!(pinned(&data), count);
    // A merge begins with a flush, which removes the journal. The hard link in the snapshot remains.
    assert_eq!(server.post("/api/v1/admin/merge", &[], b"").status, 200);
    assert_eq!(pinned(&data), count);
    assert_eq!(run(&["check", text(&data)]).0, Some(0));

    assert_eq!(server.post(path, &[], b"").status, 200);
    let refused = server.post(path, &[], b"");
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("5")));
    assert_eq!(server.get(path).json()["data"]["snapshots"].as_array().unwrap().len(), 2);
    let one = format!("{path}/{id}");
    assert_eq!(server.post(&format!("{one}/renew"), &[], b"").status, 200);
    for (method, path) in [("POST", path), ("POST", &*format!("{one}/renew")), ("DELETE", &*one)] {
        let headers = [("Origin", "https://evil.example")];
        assert_eq!(server.request(method, path, &headers, b"").status, 403, "{method} {path}");
    }
    assert_eq!(server.request("DELETE", &one, &[], b"").status, 204);
    assert_eq!(pinned(&data), 0);
    assert_eq!(server.request("DELETE", &one, &[], b"").status, 404);
    assert_eq!(server.post(&format!("{one}/renew"), &[], b"").status, 404);
    assert_eq!(server.request("DELETE", "/api/v1/admin/snapshots/..%2F..%2Fchunks", &[], b"").status, 404);
    assert_eq!(server.post(&format!("{path}?x=1"), &[], b"").status, 400);

    assert_eq!(fs::read_dir(data.join("snapshots")).unwrap().count(), 1);
    server.kill();
    assert_eq!(run(&["check", text(&data)]).0, Some(0));
    let server = Server::start(&data);
    assert!(!data.join("snapshots").exists());
    server.wait_for_log("snapshot of an earlier process removed");
}
