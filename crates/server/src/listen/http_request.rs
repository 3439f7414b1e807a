//! Detects HTTP clients on the port of the native protocol, and answers them in HTTP.

use tacho_ingest::Error;

/// The first four bytes of HTTP requests. A frame begins with its length, and each of these values, read as a length,
/// exceeds `FRAME_BODY_BYTES_MAX`.
const METHODS: [&[u8; 4]; 10] = [
    b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC",
    // The preface of HTTP/2.
    b"PRI ",
];

/// Whether the decoder failed because the connection begins with an HTTP request.
pub(super) fn is_request(error: &Error) -> bool {
    matches!(error, Error::FrameTooLong { length, offset: 0 } if METHODS.contains(&&length.to_le_bytes()))
}

/// Whether these first bytes of a connection are the beginning of a request.
pub(super) fn begins_request(first: [u8; 4]) -> bool {
    METHODS.contains(&&first)
}

/// The HTTP response, with one line of text. `http` has the scheme and the port of the HTTP listener, if they are known.
pub(super) fn refusal(http: Option<(&str, u16)>) -> String {
    let place = match http {
        Some((scheme, port)) => format!("{scheme} is served on port {port}"),
        None => "HTTP is served on another port".to_owned(),
    };
    let line = format!("this port takes records of agents in the native protocol; {place}\n");
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
            assert!(!is_request(&Error::FrameTooLong { length, offset: 12 }), "found after a frame");
        }
        for other in [*b"GETX", *b"get ", *b"SSH-", [0x16, 3, 1, 2]] {
            let length = u32::from_le_bytes(other);
            assert!(!is_request(&Error::FrameTooLong { length, offset: 0 }), "{other:?}");
        }
    }
}
