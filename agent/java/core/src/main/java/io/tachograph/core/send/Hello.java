package io.tachograph.core.send;

import io.tachograph.bootstrap.Session;
import io.tachograph.core.wire.Bytes;
import io.tachograph.core.wire.Frame;
import io.tachograph.core.wire.Wire;

import java.util.Map;

/** The first frame of every connection. */
final class Hello {
    private Hello() {}

    /**
     * @param pairs attributes of the process; at most {@link Wire#HELLO_PAIRS_MAX} are sent
     * @param token authenticates this program; empty for none
     */
    static byte[] frame(Session session, Map<String, String> pairs, byte[] token) {
        Bytes frame = Frame.begin(new Bytes(256));
        for (char c : "tacho".toCharArray()) {
            frame.u8(c);
        }
        frame.u8(Wire.VERSION).u8(Wire.VERSION).id8(session.high()).id8(session.low());
        int count = Math.min(pairs.size(), Wire.HELLO_PAIRS_MAX);
        frame.varint(count);
        pairs.entrySet().stream()
                .limit(count)
                .forEach(pair -> frame.string(pair.getKey()).string(pair.getValue()));
        byte[] secret = session.secret();
        // A token comes after a secret; zeros stand for no secret.
        byte[] proof = secret.length == 0 && token.length > 0 ? new byte[16] : secret;
        frame.raw(proof, 0, proof.length);
        if (token.length > 0) {
            frame.varint(token.length).raw(token, 0, token.length);
        }
        Frame.finish(frame, Wire.HELLO);
        return frame.copy();
    }
}
