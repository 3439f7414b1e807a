//! Tests `tacho attach` with real JVMs. The agent is loaded and records, or the reason of the failure is reported. The program is
//! not disturbed.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::java::{self, Java, Program};
use crate::support::{Server, run, tacho, wait_for};

const NOBODY: u32 = 65_534;

fn attach(java: &Java, pid: &str, args: &[&str]) -> (Option<i32>, String, String) {
    run(&[&["attach", pid, "--jar", java.agent.to_str().unwrap()], args].concat())
}

/// The program's entry in the list of `tacho attach`.
fn listed(program: &Program) -> Value {
    let (code, stdout, stderr) = run(&["attach", "--json"]);
    assert_eq!(code, Some(0), "{stderr}");
    let list: Value = serde_json::from_str(&stdout).unwrap();
    let is_it = |jvm: &&Value| jvm["pid"] == program.number();
    list["jvms"].as_array().unwrap().iter().find(is_it).expect("the program is listed").clone()
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

#[test]
fn the_agent_is_loaded_into_a_running_program_and_records() {
    let Some(java) = Java::new() else { return };
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_with(dir.path(), &["--selfwatch-seconds", "0"]);
    let to = format!("server={}", server.records);
    // With -Xrs the JVM does not handle SIGQUIT, and listens for attaching from the start.
    for (version, option) in
        [(17, "-Xshare:auto"), (25, "-Xshare:auto"), (17, "-XX:-UsePerfData"), (25, "-Xrs")]
    {
        let mut program = java.start(version, &[option], &[]);
        let before = listed(&program);
        assert_eq!(
            (&before["state"], &before["program"]),
            (&json!("can be attached to"), &json!("late.Loop"))
        );
        assert_eq!(before["java"].as_str().map(|java| java[..2].parse().unwrap()), Some(version));

        let service = format!("late{version}{option}");
        let settings = [&format!("service={service}"), "include=late..*", "exclude=late.Loop.main", &to];
        let (code, stdout, stderr) = attach(&java, &program.pid(), &settings);
        let name = before["java"].as_str().map_or_else(String::new, |java| format!(", Java {java}"));
        let said = format!("the agent is in process {} (late.Loop{name})\n", program.pid());
        assert_eq!((code, stdout, stderr.as_str()), (Some(0), said, ""), "{}", program.errors());
        let path = format!("/api/operations?service={service}");
        let operations = wait_for("calls", || {
            let operations = server.get(&path).json()["operations"].take();
            (!operations.as_array().unwrap().is_empty()).then_some(operations)
        });
        assert_eq!(operations[0]["operation"], "late.Loop.step(long)");

        let (code, stdout, stderr) = attach(&java, &program.pid(), &settings);
        let said = format!("error: process {} has the agent already\nhint: ", program.pid());
        assert!((code, stdout.as_str()) == (Some(1), "") && stderr.starts_with(&said), "{stderr}");
        assert_eq!(listed(&program)["state"], "has the agent");
        program.check();
    }
}

#[test]
fn one_of_two_concurrent_attaches_loads_the_agent() {
    let Some(java) = Java::new() else { return };
    let mut program = java.start(17, &[], &[]);
    let pid = program.pid();
    let mut ended = std::thread::scope(|scope| {
        let both = [(); 2].map(|()| scope.spawn(|| attach(&java, &pid, &["samplers=false"])));
        both.map(|one| one.join().unwrap())
    });
    ended.sort();
    let [(first, said, nothing), (second, none, refused)] = &ended;
    let taken = format!("the agent is in process {pid} ");
    assert!(*first == Some(0) && said.starts_with(&taken) && nothing.is_empty(), "{ended:?}");
    let has_it = format!("error: process {pid} has the agent already\nhint: ");
    assert!(*second == Some(1) && none.is_empty() && refused.starts_with(&has_it), "{ended:?}");
    let errors = program.errors();
    assert!(!errors.contains("agent already loaded"), "{errors}");
    program.check();
}

#[test]
fn a_program_that_is_starting_gets_the_agent() {
    let Some(java) = Java::new() else { return };
    for version in [17, 25] {
        let mut program = java.spawn(None, version, &[], &[]);
        let maps = format!("/proc/{}/maps", program.pid());
        let has_machine = || std::fs::read_to_string(&maps).is_ok_and(|maps| maps.contains("libjvm.so"));
        wait_for("the JVM", || has_machine().then_some(()));
        let (code, _, stderr) = attach(&java, &program.pid(), &["samplers=false"]);
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{}", program.errors());
        wait_for("the program", || (!program.output().is_empty()).then_some(()));
        program.check();
    }
}

#[test]
fn a_failed_attach_reports_the_reason() {
    let Some(java) = Java::new() else { return };
    let disabled = "-XX:+DisableAttachMechanism";
    let takes_none =
        "accepts no agents: it was started with -XX:+DisableAttachMechanism\nhint: start the program with";
    let tools = |options| ("JAVA_TOOL_OPTIONS", options);
    let (options, none) = ("-XX:-UsePerfData -XX:+DisableAttachMechanism", ("NO_SUCH", ""));
    for (version, options, variable, settings, expect) in [
        (17, &[disabled][..], none, "samplers=false", takes_none),
        (25, &[disabled, "-XX:-UsePerfData"], none, "samplers=false", takes_none),
        (17, &[], tools(options), "samplers=false", takes_none),
        (
            25,
            &["-XX:-EnableDynamicAgentLoading"],
            none,
            "samplers=false",
            "rejects the agent: Dynamic agent loading is not enabled.",
        ),
        (
            25,
            &[],
            none,
            "enabled=false",
            "has loaded the agent, but the agent does not run\nhint: the program's standard error says why, ",
        ),
    ] {
        let mut program = java.start(version, options, &[variable]);
        let (code, stdout, stderr) = attach(&java, &program.pid(), &[settings]);
        assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
        let said = stderr.strip_prefix(&format!("error: process {} ", program.pid()));
        assert!(said.is_some_and(|said| said.starts_with(expect)), "{stderr}");
        assert!(!settings.starts_with("enabled") || stderr.contains(program.error_file().to_str().unwrap()));
        program.check();
    }
    let mut program = java.start(17, &[], &[]);
    program.stop();
    let (code, _, stderr) = attach(&java, &program.pid(), &[]);
    program.resume();
    let said = format!("error: process {0} is stopped (SIGSTOP)\nhint: `kill -CONT {0}`", program.pid());
    assert!(code == Some(1) && stderr.starts_with(&said), "{stderr}");
    program.check();
}

#[test]
fn wrong_arguments_are_refused_and_the_help_has_examples() {
    let Some(java) = Java::new() else { return };
    let this = std::process::id().to_string();
    let (jar, api) = (java.agent.to_str().unwrap(), concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
    for (args, code, expect) in [
        (
            &["999999999", "--jar", jar][..],
            1,
            "error: there is no process 999999999\nhint: `tacho attach` lists",
        ),
        (&[&this, "--jar", jar], 1, "error: process "),
        (&["shop"], 2, "error: invalid value 'shop' for '[PID]'"),
        (
            &[&this, "shop"],
            2,
            "error: invalid value 'shop' for '[KEY=VALUE]...': give KEY=VALUE, for example",
        ),
        (
            &[&this, "servise=shop"],
            2,
            "error: invalid value 'servise=shop' for '[KEY=VALUE]...': the agent has no",
        ),
        (&["--config", "a.toml"], 2, "error: the following required arguments were not provided: <PID>"),
        (
            &[&this, "--jar", "/no/such.jar"],
            2,
            "error: there is no agent at /no/such.jar\nhint: `make build`",
        ),
        (&[&this, "--jar", api], 2, "error: /"),
        (&[&this, "--jar", jar, "--config", "/no/such.toml"], 2, "error: /no/such.toml: No such file"),
    ] {
        let (ended, stdout, stderr) = run(&[&["attach"], args].concat());
        assert_eq!((ended, stdout.as_str()), (Some(code), ""), "{args:?}: {stderr}");
        assert!(stderr.starts_with(expect), "{args:?}: {stderr}");
    }
    let (_, help, _) = run(&["attach", "--help"]);
    assert!(help.contains("Examples:\n  tacho attach ") && help.contains("TACHO_AGENT_JAR"), "{help}");
}

#[test]
fn root_attaches_to_programs_of_other_users() {
    let Some(java) = Java::new() else { return };
    if !Java::starts_as(NOBODY) {
        eprintln!("not tested: Java cannot be started as user {NOBODY} from here");
        return;
    }
    let mut theirs = java.start_as(Some(NOBODY), 17, &[], &[("TACHO_SERVICE", "env")]);
    // Other users cannot read the agent, because it is in a directory of root.
    let closed = tempfile::tempdir().unwrap();
    std::fs::set_permissions(closed.path(), Permissions::from_mode(0o700)).unwrap();
    let jar = closed.path().join("agent.jar");
    std::fs::copy(&java.agent, &jar).unwrap();
    let hash = xxhash_rust::xxh3::xxh3_64(&std::fs::read(&jar).unwrap());
    let copy = format!("/tmp/tachograph-agent-{hash:016x}.jar");
    // An earlier run of this or another test may have left a copy.
    let _ = std::fs::remove_file(&copy);
    let args = ["attach", &theirs.pid(), "--jar", jar.to_str().unwrap(), "--json", "service=late"];
    let (code, stdout, stderr) = run(&args);
    if std::fs::read(format!("/proc/{}/maps", theirs.pid())).is_err() {
        let said = format!(
            "error: this user may not inspect process {} (late.Loop)\nhint: root needs the capability CAP_SYS_PTRACE\n",
            theirs.pid()
        );
        assert_eq!((code, stdout.as_str(), stderr), (Some(1), "", said));
        theirs.check();
        return;
    }
    assert_eq!(code, Some(0), "{stderr}{}", theirs.errors());
    let told: Value = serde_json::from_str(&stdout).unwrap();
    let warning = "TACHO_SERVICE=env in the program's environment overrides service=late";
    assert_eq!((&told["warnings"], stderr), (&json!([warning]), format!("warning: {warning}\n")));
    assert_eq!((&told["jvm"]["user"], &told["jvm"]["state"]), (&json!(NOBODY), &json!("has the agent")));
    assert_eq!(told["jar"], copy);
    theirs.check();
    let _ = std::fs::remove_file(&copy);
    assert_eq!(listed(&theirs)["state"], "has the agent");
}

#[test]
fn a_user_cannot_attach_to_programs_of_other_users() {
    let Some(java) = Java::new() else { return };
    if !is_root() {
        let owner = std::fs::metadata("/proc/1").map(|process| process.uid());
        let this = std::fs::metadata("/proc/self").unwrap().uid();
        let Some(owner) = owner.ok().filter(|owner| *owner != this) else {
            eprintln!("not tested: no process of another user is seen here");
            return;
        };
        let (code, _, stderr) = attach(&java, "1", &[]);
        let said = format!("belongs to user {owner}\nhint: run it as that user");
        assert!(code == Some(1) && stderr.contains(&said), "{stderr}");
        return;
    }
    let mut ours = java.start(17, &[], &[]);
    let folder = java::for_all();
    let (binary, agent) = (folder.path().join("tacho"), folder.path().join("agent.jar"));
    for (from, to) in [(Path::new(tacho()), &binary), (&java.agent, &agent)] {
        // A file that is open for writing cannot be executed. If this process wrote the copy, a child process of another test
        // could inherit the open file.
        let copied = Command::new("cp").arg(from).arg(to).status().expect("cp runs");
        assert!(copied.success(), "{} could not be copied", from.display());
        std::fs::set_permissions(to, Permissions::from_mode(0o755)).unwrap();
    }
    let as_nobody = |args: &[&str]| {
        let mut tacho = Command::new(&binary);
        let output = tacho.arg("attach").args(args).current_dir("/").uid(NOBODY).gid(NOBODY).output();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        output.map(|output| (output.status.code(), text(&output.stdout), text(&output.stderr)))
    };
    let Ok((code, _, stderr)) = as_nobody(&[&ours.pid(), "--jar", agent.to_str().unwrap()]) else {
        eprintln!("not tested: nothing can be started as user {NOBODY} from here");
        return;
    };
    let said =
        format!("error: process {} (late.Loop) belongs to user 0\nhint: run it as that user", ours.pid());
    assert!(code == Some(1) && stderr.starts_with(&said), "{stderr}");
    let (code, table, stderr) = as_nobody(&[]).unwrap();
    assert_eq!(code, Some(0), "{stderr}");
    let line = table.lines().find(|line| line.split_whitespace().next() == Some(&ours.pid()));
    let line = line.unwrap_or_else(|| panic!("{} in {table}", ours.pid()));
    assert!(line.contains("another user's") && line.ends_with("late.Loop"), "{table}");
    ours.check();
}
