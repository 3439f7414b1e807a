//! How large is a call on the wire? At most 12 bytes on average, including the other bytes of its segment (trace context, request
//! id, status) and of the frame.

#[path = "support/request.rs"]
mod request;

use tacho_ingest::wire::DataFrame;

#[test]
fn a_call_takes_at_most_12_bytes() {
    let events = request::events();
    let mut frame = DataFrame::new(1, 1_700_000_000_000_000_000);
    for nth in 1..=100 {
        request::put(&mut frame, nth, &events);
    }
    let bytes = frame.finish().len();
    let calls = 100 * request::CALLS;
    println!("{:.2} bytes per call ({bytes} bytes, {calls} calls)", bytes as f64 / calls as f64);
    assert!(bytes <= 12 * calls, "{bytes} bytes for {calls} calls");
}
