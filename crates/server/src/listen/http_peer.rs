//! Does a peer of the native protocol speak HTTP, and what does it get?

/// First bytes of requests of HTTP/1 and of the preface of HTTP/2, which are all there is of a frame's length.
const BEGINNINGS: [&[u8; 4]; 10] =
    [b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC", b"PRI "];

/// The answer to any request. Clients show its body, browsers and `tacho` too.
pub(super) const ANSWER: &str = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n\
    Connection: close\r\nContent-Length: 93\r\n\r\n\
    this is the port of the agents (native protocol); the page and HTTP are usually on port 7070\n";

/// Whether the length of a connection's first frame is the beginning of a request.
pub(super) fn is_request(length: u32) -> bool {
    BEGINNINGS.contains(&&length.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_states_its_length() {
        let (head, body) = ANSWER.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())), "{}", body.len());
    }

    #[test]
    fn requests_are_told_from_lengths() {
        let length = |text: &[u8; 4]| u32::from_le_bytes(*text);
        assert!(is_request(length(b"GET ")) && is_request(length(b"PRI ")));
        assert!(!is_request(length(b"SSH-")) && !is_request(tacho_ingest::wire::FRAME_BODY_BYTES_MAX + 1));
    }
}
