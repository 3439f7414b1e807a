//! Metrics of this process: its version, and its memory, processor time and open files from the operating system.

use std::fs;
use std::time::Duration;

use super::registry::{Collect, Family, Gauge, Seconds};

/// Ticks a second in `/proc/self/stat`: `USER_HZ`, 100 on all usual Linux platforms (see proc(5)).
const TICKS_PER_SECOND: u64 = 100;
/// Bytes of a page in `/proc/self/statm`, on x86-64 and on arm64 with the usual page size.
const PAGE_BYTES: i64 = 4_096;

pub struct Process {
    resident: Family<Gauge, 0>,
    cpu: Family<Seconds, 0>,
    open_files: Family<Gauge, 0>,
    build: Family<Gauge, 1>,
}

impl Default for Process {
    fn default() -> Self {
        let build: Family<Gauge, 1> =
            Family::new("tacho_build_info", ["version"], "Version of the server; the value is 1.");
        build.with([env!("CARGO_PKG_VERSION")]).set(1);
        Self {
            resident: Family::new("process_resident_memory_bytes", [], "Resident memory."),
            cpu: Family::new("process_cpu_seconds_total", [], "Processor time used, user and system."),
            open_files: Family::new("process_open_fds", [], "Open file descriptors."),
            build,
        }
    }
}

impl Process {
    /// Reads the current figures. Figures that the system does not report stay absent.
    pub fn read(&self) {
        if let Some(pages) = resident_pages() {
            self.resident.with([]).set(pages.saturating_mul(PAGE_BYTES));
        }
        if let Some(ticks) = cpu_ticks() {
            self.cpu.with([]).raise_to(Duration::from_millis(ticks.saturating_mul(1_000 / TICKS_PER_SECOND)));
        }
        if let Ok(list) = fs::read_dir("/proc/self/fd") {
            self.open_files.with([]).set(i64::try_from(list.count()).unwrap_or(i64::MAX));
        }
    }

    pub fn families(&self) -> [&dyn Collect; 4] {
        [&self.resident, &self.cpu, &self.open_files, &self.build]
    }
}

fn resident_pages() -> Option<i64> {
    fs::read_to_string("/proc/self/statm").ok()?.split(' ').nth(1)?.parse().ok()
}

/// Sum of fields 14 and 15 of `/proc/self/stat`. They are counted from the end of the command's name, which may contain blanks.
fn cpu_ticks() -> Option<u64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let (_, behind) = stat.rsplit_once(") ")?;
    let mut fields = behind.split(' ').skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}
