//! The web page: the files of `ui/dist`, which are part of this binary.

use std::sync::Arc;

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::app::App;
use super::error::ApiError;

/// One embedded file.
struct File {
    /// Path below `ui/dist`, for example `assets/index-4f2a.js`.
    path: &'static str,
    bytes: &'static [u8],
}

// `const FILES: &[File]`, written by `build.rs` from what lies in `ui/dist`, sorted by path.
include!(concat!(env!("OUT_DIR"), "/page_files.rs"));

/// Under this prefix a file's name contains a hash of its bytes, so that it never changes.
const HASHED: &str = "assets/";

pub fn routes() -> Router<Arc<App>> {
    Router::new().route("/", get(|headers: HeaderMap| async move { file("index.html", &headers) })).route(
        "/assets/{*path}",
        get(|Path(path): Path<String>, headers: HeaderMap| async move {
            file(&format!("{HASHED}{path}"), &headers)
        }),
    )
}

/// A file at the root of `ui/dist` (an icon), else 404.
pub async fn not_found(uri: Uri, headers: HeaderMap) -> Response {
    file(uri.path().trim_start_matches('/'), &headers)
}

fn file(path: &str, headers: &HeaderMap) -> Response {
    let Ok(at) = FILES.binary_search_by(|file| file.path.cmp(path)) else {
        return ApiError::not_found(format!("there is nothing at /{path}")).into_response();
    };
    let File { path, bytes } = FILES[at];
    let etag = format!("\"{:016x}\"", fingerprint(bytes));
    let caching = if path.starts_with(HASHED) { "public, max-age=31536000, immutable" } else { "no-cache" };
    let common = [(header::CACHE_CONTROL, caching.to_owned()), (header::ETAG, etag.clone())];
    if headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == etag.as_bytes()) {
        return (StatusCode::NOT_MODIFIED, common).into_response();
    }
    (common, [(header::CONTENT_TYPE, content_type(path))], bytes).into_response()
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo): enough to tell two builds apart.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, end)| end) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}
