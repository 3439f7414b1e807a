//! Bytes of a protocol in, a batch out: native frames, remote write, line protocol. No sockets.
