//! The memory that this process may use: the minimum of the machine's memory, the limits of the process's cgroups, and the
//! resource limit of the process.

use std::path::Path;

use rustix::process::{Resource, getrlimit};

pub fn usable_bytes() -> Option<usize> {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = group_limit(&groups, Path::new("/sys/fs/cgroup"));
    let own = getrlimit(Resource::As).current;
    let least = [machine, group, own].into_iter().flatten().min()?;
    Some(usize::try_from(least).unwrap_or(usize::MAX))
}

pub fn share(shares: usize, bytes_max: usize) -> usize {
    usable_bytes().map_or(bytes_max, |all| all / shares).min(bytes_max)
}

/// The least memory limit of the process's cgroup and the groups above it. For example, `MemoryMax=` of a systemd unit sets such
/// a limit, and a container may have one. `groups` is the text of `/proc/self/cgroup` (cgroups(7)).
fn group_limit(groups: &str, mount: &Path) -> Option<u64> {
    let limits = groups.lines().flat_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        let (root, file) = match controllers {
            "" => (mount.to_owned(), "memory.max"),
            // Version 1.
            all if all.split(',').any(|one| one == "memory") => {
                (mount.join("memory"), "memory.limit_in_bytes")
            }
            _ => return Vec::new(),
        };
        let path = Path::new(path.trim_start_matches('/'));
        // A group without a limit has the text `max`, in version 1 a number above all memory.
        let limit = |group: &Path| {
            let text = std::fs::read_to_string(root.join(group).join(file)).ok()?;
            text.trim().parse::<u64>().ok()
        };
        path.ancestors().filter_map(limit).collect()
    });
    limits.min()
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

    #[test]
    fn the_least_limit_of_all_groups_above_the_process_counts() {
        let mount = tempfile::tempdir().unwrap();
        let limits = [
            ("memory.max", "max\n"),
            ("system.slice/memory.max", "3000\n"),
            ("system.slice/tacho.service/memory.max", "max\n"),
            ("memory/docker/memory.limit_in_bytes", "2000\n"),
            ("memory/docker/1/memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        for (name, text) in limits {
            let path = mount.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        for (groups, limit) in [
            ("0::/system.slice/tacho.service\n", Some(3_000)),
            ("0::/\n", None),
            // The path is outside of the namespace of the process, so only the root of the namespace is known.
            ("0::/../other\n", None),
            ("9:cpu,memory:/docker/1\n0::/\n", Some(2_000)),
            ("9:cpu:/docker/1\n", None),
            ("", None),
        ] {
            assert_eq!(group_limit(groups, mount.path()), limit, "{groups}");
        }
    }
}
