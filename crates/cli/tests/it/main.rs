//! The tests of the binary `tacho`, against real processes. They are modules of one test binary, because each test binary takes
//! seconds to link.

mod agent_token;
mod attach;
mod backup;
mod backup_kill;
#[cfg(feature = "s3")]
mod backup_s3;
#[cfg(feature = "s3")]
mod backup_s3_signed;
mod busy;
mod calls;
mod check;
mod cli;
mod clock;
mod confined;
mod damage;
mod doors;
mod entries;
mod executions;
mod flips;
mod graph;
mod hints;
mod hostile;
mod import;
mod import_token;
mod import_told;
mod inexact;
mod intruder;
mod irregular;
mod kept;
mod kill;
mod limits;
mod memory;
#[cfg(feature = "parquet")]
mod parquet;
mod probes;
mod prometheus_api;
mod prometheus_binary;
mod records;
mod remedies;
mod rescue;
mod salvage;
mod serve;
mod small_disk;
mod support;
mod tls;
mod trace_search;
mod tune;
mod upgrade;
mod write;
