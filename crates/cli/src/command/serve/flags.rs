//! The flags of `tacho serve`: one for each setting that is not a table of `tacho.toml`.

use std::path::PathBuf;

use tacho_server::config::{Address, Settings};

#[derive(clap::Args)]
pub struct Flags {
    /// Directory that keeps everything [default: ./tacho-data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Address of the page, the query API and every HTTP protocol [default: 127.0.0.1:7070]
    #[arg(long, value_name = "ADDR")]
    http: Option<Address>,
    /// Address for native records (agents) [default: 127.0.0.1:7071]
    #[arg(long, value_name = "ADDR")]
    records: Option<Address>,
    /// Listen beyond this machine without TLS and tokens, which this version does not have yet
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    insecure_listen: Option<bool>,
    /// Names that HTTP requests may be addressed to beside this machine's own, separated by commas: those of a proxy or in DNS
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    allowed_hosts: Option<Vec<String>>,
    /// Largest HTTP request body, bytes, before and after decompression [default: 33554432]
    #[arg(long, value_name = "BYTES")]
    body_bytes_max: Option<usize>,
    /// Memory for the records of all HTTP writes that are decoded or wait for the disk, bytes; at least what one of the
    /// largest may take is used, 48 times body-bytes-max and 16 MiB [default: 1073741824]
    #[arg(long, value_name = "BYTES")]
    decoding_bytes_max: Option<usize>,
    /// HTTP requests served at the same time, each from the end of its body to that of its answer; more are told to come
    /// again [default: 64]
    #[arg(long, value_name = "N")]
    requests_max: Option<usize>,
    /// HTTP connections open at the same time [default: 1024]
    #[arg(long, value_name = "N")]
    connections_max: Option<usize>,
    /// Time a request may take, and its client to take the answer, seconds [default: 60]
    #[arg(long, value_name = "SECONDS")]
    request_seconds_max: Option<u64>,
    /// Seconds between two readings of the server's own metrics into the store; 0 for never [default: 10]
    #[arg(long, value_name = "SECONDS")]
    selfwatch_seconds: Option<u64>,
    /// Series kept at most; new ones past it are refused by name [default: 10000000]
    #[arg(long, value_name = "N")]
    series_max: Option<usize>,
    /// Memory for the index of all series with their labels, bytes; new series past it are refused by name [default: a
    /// quarter of the memory, at most 4294967296]
    #[arg(long, value_name = "BYTES")]
    index_bytes_max: Option<usize>,
    /// Different values of one label at most; new series past it are refused by name [default: 500000]
    #[arg(long, value_name = "N")]
    label_values_max: Option<usize>,
    /// Bytes a second that merging in the background may read and write [default: 33554432]
    #[arg(long, value_name = "BYTES")]
    merge_bytes_per_second: Option<u64>,
    /// What merging in the background may take of one processor, percent [default: 25]
    #[arg(long, value_name = "PERCENT")]
    merge_cpu_percent: Option<u32>,
    /// Chunks of like size side by side that are worth a merge [default: 8]
    #[arg(long, value_name = "N")]
    merge_rows: Option<usize>,
    /// Bytes kept free on the disk: new records are refused before they are touched, deletion goes on [default: 268435456]
    #[arg(long, value_name = "BYTES")]
    disk_reserve_bytes: Option<u64>,
    /// Seconds between two looks for what has grown too old; 0 for as often as it goes [default: 3600]
    #[arg(long, value_name = "SECONDS")]
    sweep_seconds: Option<u64>,
}

impl From<Flags> for Settings {
    fn from(flags: Flags) -> Self {
        let Flags {
            data,
            http,
            records,
            insecure_listen,
            allowed_hosts,
            body_bytes_max,
            decoding_bytes_max,
            requests_max,
            connections_max,
            request_seconds_max,
            selfwatch_seconds,
            series_max,
            index_bytes_max,
            label_values_max,
            merge_bytes_per_second,
            merge_cpu_percent,
            merge_rows,
            disk_reserve_bytes,
            sweep_seconds,
        } = flags;
        Self {
            data,
            http,
            records,
            insecure_listen,
            allowed_hosts,
            body_bytes_max,
            decoding_bytes_max,
            requests_max,
            connections_max,
            request_seconds_max,
            selfwatch_seconds,
            series_max,
            index_bytes_max,
            label_values_max,
            merge_bytes_per_second,
            merge_cpu_percent,
            merge_rows,
            disk_reserve_bytes,
            sweep_seconds,
            retention: None,
            downsampling: None,
            semantic: None,
            chunks: None,
        }
    }
}
