package io.tachograph.core.send;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.tachograph.bootstrap.Operations;
import io.tachograph.bootstrap.Session;
import io.tachograph.core.log.AgentLog;
import io.tachograph.core.wire.Bytes;
import io.tachograph.core.wire.Dictionary;
import io.tachograph.core.wire.Frame;
import io.tachograph.core.wire.FrameReader;
import io.tachograph.core.wire.Wire;

import org.junit.jupiter.api.Test;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.Map;

/** The test plays the server, and steps the link. */
class LinkTest {
    private static final int BEAT_MS = 100;
    private static final int WAIT_MS = 600_000;
    private static final int STEPS_MAX = 100_000;

    private final FrameReader frames = new FrameReader();
    private final ByteBuffer in = ByteBuffer.allocate(65_536);

    private static Link link(int port) {
        Dictionary dictionary = new Dictionary(Operations.shared());
        return new Link(
                ServerAddress.parse("127.0.0.1:" + port),
                null,
                new Token("", "", false),
                token -> Hello.frame(new Session(1, 2), Map.of("service", "test"), token),
                new Outbox(dictionary, 1 << 20),
                dictionary,
                new Totals(),
                new ProbeMailbox(),
                AgentLog.to(System.err, false));
    }

    private static ByteBuffer frame(int type, int... varints) {
        Bytes frame = Frame.begin(new Bytes(64));
        if (type == Wire.WELCOME) {
            frame.u8(1);
        }
        for (int varint : varints) {
            frame.varint(varint);
        }
        Frame.finish(frame, type);
        return ByteBuffer.wrap(frame.copy());
    }

    private int pings(SocketChannel server) throws Exception {
        int pings = 0;
        while (server.read(in.clear()) > 0) {
            frames.push(in.flip());
            while (frames.next()) {
                pings += frames.type() == Wire.PING ? 1 : 0;
            }
        }
        return pings;
    }

    private static void stepUntil(Link link, Link.State state) throws Exception {
        for (int step = 0; step < STEPS_MAX && link.state() != state; step++) {
            link.step();
            Thread.sleep(1);
        }
        assertEquals(state, link.state());
    }

    /** The PINGs show that the link is open for longer than three heartbeats. */
    @Test
    void aServerThatAskedToWaitMayBeSilentAfterAnotherFrame() throws Exception {
        InetSocketAddress here = new InetSocketAddress(InetAddress.getByName("127.0.0.1"), 0);
        try (ServerSocketChannel listener = ServerSocketChannel.open().bind(here)) {
            Link link = link(((InetSocketAddress) listener.getLocalAddress()).getPort());
            stepUntil(link, Link.State.GREETING);
            try (SocketChannel server = listener.accept()) {
                server.configureBlocking(false);
                server.write(frame(Wire.WELCOME, 0, 1 << 20, BEAT_MS));
                server.write(frame(Wire.WAIT, WAIT_MS));
                server.write(frame(Wire.PONG, 0, 0, 0, 0, 0, 0, 0, 0));
                stepUntil(link, Link.State.OPEN);
                for (int pings = 0; pings < 10 && link.state() == Link.State.OPEN; ) {
                    link.step();
                    pings += pings(server);
                    Thread.sleep(1);
                }
                assertEquals(Link.State.OPEN, link.state());
            }
        }
    }
}
