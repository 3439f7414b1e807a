//! Detects HTTP clients on the port of the native protocol, and answers them in HTTP.

use tacho_ingest::Error;

/// The first four bytes of HTTP requests. A frame begins with its length, and each of these values as a length exceeds
/// `FRAME_BODY_BYTES_MAX`.
const METHODS: [&[u8; 4]; 10] = [
    b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC",
    // The preface of HTTP/2.
    b"PRI ",
];

/// Whether the decoder failed because the connection begins with an HTTP request.
pub(super) fn is_request(error: &Error) -> bool {
    matches!(error, Error::FrameTooLong { length, offset: 0 } if METHODS.contains(&&length.to_le_bytes()))
}

/// The HTTP response, with one line of text. `port` is the port of the HTTP listener, if it is known.
pub(super) fn refusal(port: Option<u16>) -> String {
    let place = port.map_or_else(|| "another port".to_owned(), |port| format!("port {port}"));
    let line =
        format!("this port takes records of agents in the native protocol; HTTP is served on {place}\n");
    let length = line.len();
    format!(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{line}"
    )
}

#[cfg(test)]
mod tests {
    use tacho_ingest::wire::FRAME_BODY_BYTES_MAX;

    use super::*;

    #[test]
    fn http_requests_are_detected_by_their_first_bytes() {
        for method in METHODS {
            let length = u32::from_le_bytes(*method);
            assert!(length > FRAME_BODY_BYTES_MAX, "{method:?}");
            assert!(is_request(&Error::FrameTooLong { length, offset: 0 }));
            assert!(!is_request(&Error::FrameTooLong { length, offset: 12 }), "after a frame");
        }
        for other in [*b"GETX", *b"get ", *b"SSH-", [0x16, 3, 1, 2]] {
            let length = u32::from_le_bytes(other);
            assert!(!is_request(&Error::FrameTooLong { length, offset: 0 }), "{other:?}");
        }
    }
}
