package io.tachograph.bootstrap;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Random;

class SessionTest {
    @Test
    void hashesEqualThoseOfTheJdk() throws Exception {
        Random random = new Random(1);
        for (int length = 0; length <= 55; length++) {
            byte[] bytes = new byte[length];
            random.nextBytes(bytes);
            int[] words = SingleBlockHash.sha256("", bytes);
            ByteBuffer hash = ByteBuffer.allocate(32);
            for (int word : words) {
                hash.putInt(word);
            }
            assertArrayEquals(MessageDigest.getInstance("SHA-256").digest(bytes), hash.array());
        }
        assertThrows(IllegalArgumentException.class,
                () -> SingleBlockHash.sha256("", new byte[56]));
    }

    @Test
    void aSessionIsDerivedFromItsSecret() throws Exception {
        byte[] secret = new byte[16];
        new Random(2).nextBytes(secret);
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        digest.update("tachograph session".getBytes(StandardCharsets.US_ASCII));
        ByteBuffer expected = ByteBuffer.allocate(16);
        expected.put("tach".getBytes(StandardCharsets.US_ASCII)).put(digest.digest(secret), 0, 12);
        Session session = Session.of(secret);
        assertEquals(expected.getLong(0), session.high());
        assertEquals(expected.getLong(8), session.low());
        assertArrayEquals(secret, session.secret());
    }

    @Test
    void theSessionOfThisProcessHasItsOwnSecret() {
        Session shared = Session.shared();
        assertEquals(16, shared.secret().length);
        assertEquals(Session.of(shared.secret()).low(), shared.low());
        assertNotEquals(Session.of(new byte[16]).low(), shared.low());
    }
}
