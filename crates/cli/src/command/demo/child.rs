//! A child process of the demo, which ends with the demo.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{ChildStdout, Command};

use crate::failure::Failure;

/// The destination of a program's stdout.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// The program prints its addresses to stdout. [`Child::address`] reads them.
    Addresses,
    /// Stdout goes to the log file, as stderr does.
    Log,
}

pub struct Child {
    name: &'static str,
    process: tokio::process::Child,
    /// The stdout of the process, from which [`Child::address`] reads. `None` if stdout goes to the log file.
    stdout: Option<Lines<BufReader<ChildStdout>>>,
    log: PathBuf,
    /// The line with the listen addresses of a server, once it was read.
    listening: Option<String>,
}

impl Child {
    /// Stderr of the program goes to the file `log`.
    pub fn start<S: AsRef<std::ffi::OsStr>>(
        name: &'static str,
        program: &Path,
        args: &[S],
        environment: &[(&str, &str)],
        output: Output,
        log: &Path,
    ) -> Result<Self, Failure> {
        let cannot_write = |e| Failure::new(format!("cannot write {}: {e}", log.display()));
        let file = std::fs::File::create(log).map_err(cannot_write)?;
        let stdout = match output {
            Output::Addresses => Stdio::piped(),
            Output::Log => file.try_clone().map_err(cannot_write)?.into(),
        };
        let mut process = Command::new(program)
            .args(args)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(file)
            .kill_on_drop(true)
            .spawn()
            .map_err(|e| Failure::new(format!("cannot start the {name} ({}): {e}", program.display())))?;
        let stdout = process.stdout.take().map(|stdout| BufReader::new(stdout).lines());
        Ok(Self { name, process, stdout, log: log.to_owned(), listening: None })
    }

    /// The address with the name `key` in the line `listening http=ADDR records=ADDR`.
    pub async fn address(&mut self, key: &str) -> Result<String, Failure> {
        while self.listening.is_none() {
            let Some(stdout) = self.stdout.as_mut() else { return Err(self.ended()) };
            match stdout.next_line().await {
                Ok(Some(line)) if line.starts_with("listening ") => self.listening = Some(line),
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return Err(self.ended()),
            }
        }
        let line = self.listening.as_deref().unwrap_or_default();
        let pair = line.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        pair.map(str::to_owned)
            .ok_or_else(|| Failure::new(format!("the {} does not print its {key} address", self.name)))
    }

    pub fn check(&mut self) -> Result<(), Failure> {
        match self.process.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(_)) | Err(_) => Err(self.ended()),
        }
    }

    fn ended(&self) -> Failure {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let last: Vec<&str> = text.lines().rev().take(5).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        Failure::new(format!(
            "the {} ended unexpectedly; the end of its log:\n  {}",
            self.name,
            last.join("\n  ")
        ))
    }

    pub fn log_hint(&self) -> String {
        format!("its log is {}", self.log.display())
    }

    /// Sends SIGTERM, and SIGKILL if the program still runs after ten seconds.
    pub async fn stop(&mut self) {
        if let Some(id) = self.process.id() {
            // A failure is ignored: either the program has ended already, or the kill below ends it.
            let _ = Command::new("kill").args(["-TERM", &id.to_string()]).status().await;
        }
        if tokio::time::timeout(Duration::from_secs(10), self.process.wait()).await.is_err() {
            let _ = self.process.kill().await;
        }
    }
}
