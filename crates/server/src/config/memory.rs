//! The memory that this process may use: the minimum of the machine's memory, the cgroup limit, and the resource limit of the
//! process.

use rustix::process::{Resource, getrlimit};

pub fn usable_bytes() -> Option<usize> {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let group = group.and_then(|text| text.trim().parse().ok());
    let own = getrlimit(Resource::As).current;
    let least = [machine, group, own].into_iter().flatten().min()?;
    Some(usize::try_from(least).unwrap_or(usize::MAX))
}

pub fn share(shares: usize, bytes_max: usize) -> usize {
    usable_bytes().map_or(bytes_max, |all| all / shares).min(bytes_max)
}

/// Parses the line `MemTotal:  16384 kB` of `/proc/meminfo`.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn total_memory_is_read_from_meminfo() {
        assert_eq!(total("MemTotal:       16384 kB\nMemFree: 1 kB\n"), Some(16 << 20));
        assert_eq!(total("MemFree: 1 kB\n"), None);
        assert!(usable_bytes().is_none_or(|bytes| bytes > 1 << 20));
    }
}
