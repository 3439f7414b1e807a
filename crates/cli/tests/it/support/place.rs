//! A server, and a directory of files to import.

use std::path::PathBuf;

use serde_json::Value;

use crate::support::{Server, run};

/// The server does not store its own metrics.
pub struct Place {
    pub dir: tempfile::TempDir,
    pub server: Server,
}

impl Place {
    pub fn new() -> Self {
        Self::with(&[])
    }

    pub fn with(flags: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let flags = [&["--selfwatch-seconds", "0"], flags].concat();
        let server = Server::start_with(&dir.path().join("data"), &flags);
        Self { dir, server }
    }

    pub fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    pub fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    /// Exit code, outcome and stderr of `tacho import`.
    pub fn import(&self, args: &[&str]) -> (Option<i32>, Value, String) {
        let url = self.server.url();
        let (code, stdout, stderr) = run(&[&["import", "--json", "--server", &url], args].concat());
        (code, serde_json::from_str(&stdout).unwrap_or(Value::String(stdout)), stderr)
    }

    pub fn export(&self, args: &[&str]) -> String {
        let url = self.server.url();
        let (code, stdout, stderr) = run(&[&["export", "--server", &url], args].concat());
        assert_eq!(code, Some(0), "{args:?}: {stderr}");
        stdout
    }
}
