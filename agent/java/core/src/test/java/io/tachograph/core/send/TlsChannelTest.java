package io.tachograph.core.send;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.tachograph.core.log.Messages;

import org.junit.jupiter.api.Test;

import java.io.EOFException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.HexFormat;

class TlsChannelTest {
    /** Two alerts of RFC 8446, section 6.1, each in its own record: user_canceled, close_notify. */
    private static final byte[] CANCELED = HexFormat.of().parseHex("1503030002015a15030300020100");

    @Test
    void aServerThatClosesDuringTheHandshakeIsNotConnected() throws Exception {
        InetSocketAddress here = new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
        try (ServerSocketChannel listener = ServerSocketChannel.open().bind(here);
                SocketChannel client = SocketChannel.open(listener.getLocalAddress());
                SocketChannel server = listener.accept()) {
            client.configureBlocking(false);
            TlsFiles files = new TlsFiles("system", "", "");
            TlsChannel channel = new TlsChannel(client, files, "localhost", 1);
            server.write(ByteBuffer.wrap(CANCELED));
            EOFException closed = assertThrows(EOFException.class, () -> shakeHands(channel));
            assertEquals(Messages.SERVER_CLOSED, closed.getMessage());
        }
    }

    private static void shakeHands(TlsChannel channel) throws Exception {
        while (!channel.handshake()) {
            Thread.sleep(1);
        }
    }
}
