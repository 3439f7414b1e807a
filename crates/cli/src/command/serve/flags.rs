//! The flags of `tacho serve`. Each setting has a flag, except for tables of rules in `tacho.toml`.

use std::path::PathBuf;

use tacho_server::config::{Address, Settings};

#[derive(clap::Args)]
pub struct Flags {
    /// Data directory [default: ./tacho-data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Address of the page, the query API and every HTTP protocol [default: 127.0.0.1:7070]
    #[arg(long, value_name = "ADDR")]
    http: Option<Address>,
    /// Address for native records (agents) [default: 127.0.0.1:7071]
    #[arg(long, value_name = "ADDR")]
    records: Option<Address>,
    /// Allow listen addresses that other machines can reach, even without TLS, or without authentication of clients (tokens
    /// or tls-client-ca)
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    insecure_listen: Option<bool>,
    /// Start without tokens, although tokens were in use and their file was deleted
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    without_tokens: Option<bool>,
    /// Additional host names accepted in HTTP requests, such as DNS names or the name of a proxy; separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    allowed_hosts: Option<Vec<String>>,
    /// PEM file with the TLS certificate of both addresses, followed by intermediate certificates; read again when it changes
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// PEM file with the private key of the certificate
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// PEM file with certificate authorities; clients then need a certificate of one of these authorities
    #[arg(long, value_name = "FILE")]
    tls_client_ca: Option<PathBuf>,
    /// Largest HTTP request body, bytes, before and after decompression [default: 1/256 of the memory, at most 33554432]
    #[arg(long, value_name = "BYTES")]
    body_bytes_max: Option<usize>,
    /// Memory for records of HTTP writes that are being decoded or wait for the disk, bytes; at least
    /// 48 * body-bytes-max + 16 MiB, the need of the largest body [default: a quarter of the memory, at most 1073741824]
    #[arg(long, value_name = "BYTES")]
    decoding_bytes_max: Option<usize>,
    /// Memory for answers that are being sent and for the lists of series of exports, bytes; above it requests get 503 with
    /// Retry-After [default: 1/16 of the memory, at most 536870912]
    #[arg(long, value_name = "BYTES")]
    answer_bytes_max: Option<usize>,
    /// Limit on concurrent HTTP requests; above it requests get 503 with Retry-After. A request counts from the end of its
    /// body to the beginning of its answer [default: 64]
    #[arg(long, value_name = "N")]
    requests_max: Option<usize>,
    /// Limit on open connections, separately for HTTP and for agents [default: 1024]
    #[arg(long, value_name = "N")]
    connections_max: Option<usize>,
    /// Time limit of a request, and of sending each 64 KiB of its answer, seconds [default: 60]
    #[arg(long, value_name = "SECONDS")]
    request_seconds_max: Option<u64>,
    /// Memory limit of the results of range queries that are kept for repeated queries, bytes; 0 for none [default: 1/64 of the
    /// memory, at most 67108864]
    #[arg(long, value_name = "BYTES")]
    query_cache_bytes_max: Option<usize>,
    /// Interval at which the server stores its own metrics, seconds; 0 for never [default: 10]
    #[arg(long, value_name = "SECONDS")]
    selfwatch_seconds: Option<u64>,
    /// Limit on the number of series; above it new series are refused, and the response names them [default: 10000000]
    #[arg(long, value_name = "N")]
    series_max: Option<usize>,
    /// Memory limit of the index of series with their labels, bytes; above it new series are refused [default: a quarter of
    /// the memory, at most 4294967296]
    #[arg(long, value_name = "BYTES")]
    index_bytes_max: Option<usize>,
    /// Limit on the number of values of one label; above it series with new values are refused [default: 500000]
    #[arg(long, value_name = "N")]
    label_values_max: Option<usize>,
    /// Limit on the number of chunks; at the limit only records at most two days before or after now are accepted [default: a
    /// quarter of the memory / 400 bytes, at most 20000000]
    #[arg(long, value_name = "N")]
    chunks_max: Option<usize>,
    /// I/O limit of background merges, bytes per second [default: 33554432]
    #[arg(long, value_name = "BYTES")]
    merge_bytes_per_second: Option<u64>,
    /// CPU limit of background merges, % of one core [default: 25]
    #[arg(long, value_name = "PERCENT")]
    merge_cpu_percent: Option<u32>,
    /// Number of adjacent chunks of similar size that starts a merge [default: 8]
    #[arg(long, value_name = "N")]
    merge_rows: Option<usize>,
    /// Bytes kept free on the disk; with less free space new records are refused, and deletion continues [default: 268435456]
    #[arg(long, value_name = "BYTES")]
    disk_reserve_bytes: Option<u64>,
    /// Largest journal that a stop leaves to the next start, bytes; 0 to flush all records at a stop [default: 67108864]
    #[arg(long, value_name = "BYTES")]
    stop_journal_bytes: Option<u64>,
    /// Retention sweep interval, seconds; 0 means continuously [default: 3600]
    #[arg(long, value_name = "SECONDS")]
    sweep_seconds: Option<u64>,
}

impl From<Flags> for Settings {
    fn from(flags: Flags) -> Self {
        Self {
            data: flags.data,
            http: flags.http,
            records: flags.records,
            insecure_listen: flags.insecure_listen,
            without_tokens: flags.without_tokens,
            allowed_hosts: flags.allowed_hosts,
            tls_cert: flags.tls_cert,
            tls_key: flags.tls_key,
            tls_client_ca: flags.tls_client_ca,
            body_bytes_max: flags.body_bytes_max,
            decoding_bytes_max: flags.decoding_bytes_max,
            answer_bytes_max: flags.answer_bytes_max,
            requests_max: flags.requests_max,
            connections_max: flags.connections_max,
            request_seconds_max: flags.request_seconds_max,
            query_cache_bytes_max: flags.query_cache_bytes_max,
            selfwatch_seconds: flags.selfwatch_seconds,
            series_max: flags.series_max,
            index_bytes_max: flags.index_bytes_max,
            label_values_max: flags.label_values_max,
            chunks_max: flags.chunks_max,
            merge_bytes_per_second: flags.merge_bytes_per_second,
            merge_cpu_percent: flags.merge_cpu_percent,
            merge_rows: flags.merge_rows,
            disk_reserve_bytes: flags.disk_reserve_bytes,
            stop_journal_bytes: flags.stop_journal_bytes,
            sweep_seconds: flags.sweep_seconds,
            // Only the file has rules.
            ..Self::default()
        }
    }
}
