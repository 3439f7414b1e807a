package io.tachograph.bootstrap;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * SHA-256 of a short input. The implementation in the JDK loads all security providers, which adds
 * 50 ms to the start-up time.
 */
final class SingleBlockHash {
    /**
     * A block of 64 bytes also has the byte with the terminating bit, and the length in eight
     * bytes.
     */
    private static final int BYTES_MAX = 55;

    /** The fractional parts of the cube roots of the first 64 primes (FIPS 180-4). */
    private static final int[] ROUNDS = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
        0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
        0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
        0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
        0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
        0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2
    };

    private static final int[] BEGIN = {
        0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19
    };

    private SingleBlockHash() {}

    /** Returns the hash of a text followed by bytes, as eight words. */
    static int[] sha256(String text, byte[] rest) {
        byte[] first = text.getBytes(StandardCharsets.US_ASCII);
        int length = first.length + rest.length;
        if (length > BYTES_MAX) {
            throw new IllegalArgumentException(length + " bytes do not fit into one block");
        }
        ByteBuffer block = ByteBuffer.allocate(64).put(first).put(rest).put((byte) 0x80);
        block.putInt(60, 8 * length);
        int[] words = new int[64];
        for (int n = 0; n < 16; n++) {
            words[n] = block.getInt(4 * n);
        }
        for (int n = 16; n < 64; n++) {
            int early = words[n - 15];
            int late = words[n - 2];
            words[n] = words[n - 16]
                    + (Integer.rotateRight(early, 7) ^ Integer.rotateRight(early, 18) ^ early >>> 3)
                    + words[n - 7]
                    + (Integer.rotateRight(late, 17) ^ Integer.rotateRight(late, 19) ^ late >>> 10);
        }
        return compressed(words);
    }

    private static int[] compressed(int[] words) {
        int[] state = BEGIN.clone();
        for (int n = 0; n < 64; n++) {
            int a = state[0];
            int e = state[4];
            int choice = e & state[5] ^ ~e & state[6];
            int sum = Integer.rotateRight(e, 6) ^ Integer.rotateRight(e, 11) ^ Integer.rotateRight(e, 25);
            int one = state[7] + sum + choice + ROUNDS[n] + words[n];
            int majority = a & state[1] ^ a & state[2] ^ state[1] & state[2];
            int two = (Integer.rotateRight(a, 2) ^ Integer.rotateRight(a, 13) ^ Integer.rotateRight(a, 22)) + majority;
            System.arraycopy(state, 0, state, 1, 7);
            state[4] += one;
            state[0] = one + two;
        }
        for (int n = 0; n < state.length; n++) {
            state[n] += BEGIN[n];
        }
        return state;
    }
}
