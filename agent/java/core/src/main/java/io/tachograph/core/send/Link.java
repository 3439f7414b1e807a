package io.tachograph.core.send;

import io.tachograph.core.log.AgentLog;
import io.tachograph.core.wire.BodyReader;
import io.tachograph.core.wire.Bytes;
import io.tachograph.core.wire.Definitions;
import io.tachograph.core.wire.Dictionary;
import io.tachograph.core.wire.Frame;
import io.tachograph.core.wire.FrameReader;
import io.tachograph.core.wire.ProbeRules;
import io.tachograph.core.wire.Wire;

import java.io.EOFException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;

/**
 * One connection after the other to the server. A state machine that is stepped by the sender;
 * nothing in it waits.
 *
 * <pre>
 *   RESTING --(time is up)--> RESOLVING --> CONNECTING --> GREETING --(WELCOME)--> OPEN
 *      ^                                                                             |
 *      +---------------------------(any fault; backs off)----------------------------+
 * </pre>
 *
 * <p>Before: {@link Outbox}. After: {@code crates/server/src/listen/connection.rs}.
 */
final class Link {
    private static final long GREETING_NANOS = 5_000_000_000L;

    /** After an answer that trying again at once cannot change. */
    private static final long REFUSED_NANOS = 60_000_000_000L;

    /** At least so long after any ERROR: a WELCOME before it has reset the back-off. */
    private static final long PAUSE_NANOS = 1_000_000_000;

    private static final long MILLI = 1_000_000;
    private static final int STEP_FRAMES_MAX = 64;

    /** A server that has rules says them at once; one that is silent for so long has none. */
    private static final long RULES_NANOS = 3_000_000_000L;

    enum State {
        RESTING,
        RESOLVING,
        CONNECTING,
        GREETING,
        OPEN
    }

    private final Resolver resolver;
    private final byte[] hello;
    private final Outbox outbox;
    private final Dictionary dictionary;
    private final Totals totals;
    private final ProbeMailbox probes;
    private final AgentLog log;
    private final Outages outages;
    private final Backoff backoff = new Backoff();
    private final ByteBuffer in = ByteBuffer.allocate(8_192);

    private State state = State.RESTING;
    private SocketChannel channel;
    private FrameReader frames;
    private ByteBuffer out;
    private int dictionarySent;
    private int recordTypesSent;
    private boolean takesRecords;
    private long deadline;
    private long heartbeatNanos;
    private long lastHeard;
    private long lastPing;
    private long droppedAtPing;
    private long holdUntil;
    private boolean holding;
    private boolean failedOnce;

    /** PROBES came on this connection, so PROBED is understood. */
    private boolean probesHeard;

    /** Rules of a server hold: another one, or the same after a restart, may have none. */
    private boolean rulesHold;

    private long rulesDue;

    Link(
            ServerAddress address,
            byte[] hello,
            Outbox outbox,
            Dictionary dictionary,
            Totals totals,
            ProbeMailbox probes,
            AgentLog log) {
        this.probes = probes;
        this.resolver = new Resolver(address);
        this.hello = hello;
        this.outbox = outbox;
        this.dictionary = dictionary;
        this.totals = totals;
        this.log = log;
        this.outages = new Outages(log, totals);
        this.deadline = System.nanoTime();
    }

    State state() {
        return state;
    }

    /**
     * A try is under way, and none has failed so far: a program that ends early may wait for it a
     * moment.
     */
    boolean isFirstTry() {
        return !failedOnce && state != State.OPEN;
    }

    /** Something is under way that a look in a few milliseconds would bring forward. */
    boolean isBusy() {
        return out != null || state != State.RESTING && state != State.OPEN;
    }

    /** Does whatever can be done without waiting. */
    void step() {
        long now = System.nanoTime();
        try {
            switch (state) {
                case RESTING:
                    if (now - deadline >= 0) {
                        state = State.RESOLVING;
                        resolver.start();
                    }
                    break;
                case RESOLVING:
                    connect(now);
                    break;
                case CONNECTING:
                    if (channel.finishConnect()) {
                        greet();
                    }
                    expire(now);
                    break;
                default:
                    receive(now);
                    missRules(now);
                    send(now);
                    expire(now);
                    outages.catchUp(resolver.address().toString(), false, now);
            }
        } catch (FrameReader.Damaged e) {
            fail(now, "what answers is not a tacho server: " + e.getMessage(), backoff.next());
        } catch (Refused e) {
            fail(now, e.getMessage(), e.pauseNanos);
            if (e.isFinal) {
                outbox.discard(totals); // after the outage has begun: it counts as dropped in it
            }
        } catch (IOException | RuntimeException e) {
            fail(now, reason(e), backoff.next());
        }
    }

    private static String reason(Exception e) {
        String message = e.getMessage();
        return message == null || message.isBlank() ? e.getClass().getSimpleName() : message;
    }

    private void connect(long now) throws IOException {
        InetSocketAddress address = resolver.result();
        if (address == null) {
            return;
        }
        channel = SocketChannel.open();
        channel.configureBlocking(false);
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        state = State.CONNECTING;
        deadline = now + GREETING_NANOS;
        if (channel.connect(address)) {
            greet();
        }
    }

    private void greet() {
        state = State.GREETING;
        frames = new FrameReader();
        out = ByteBuffer.wrap(hello);
        dictionarySent = 0;
        recordTypesSent = 0;
    }

    /** Too long without a word. */
    private void expire(long now) throws IOException {
        if (state == State.OPEN) {
            if (now - lastHeard > 3 * heartbeatNanos) {
                throw new IOException(
                        "the server has not answered for " + 3 * heartbeatNanos / MILLI + " ms");
            }
        } else if (now - deadline > 0) {
            throw new IOException("no answer within " + GREETING_NANOS / MILLI + " ms");
        }
    }

    // ---- from the server ----

    private void receive(long now) throws IOException, FrameReader.Damaged, Refused {
        int count;
        while ((count = channel.read(in.clear())) > 0) {
            frames.push(in.flip());
            while (frames.next()) {
                take(frames.type(), frames.body(), now);
            }
        }
        if (count < 0) {
            throw new EOFException("the server closed the connection");
        }
    }

    private void take(int type, BodyReader body, long now) throws FrameReader.Damaged, Refused {
        lastHeard = now;
        if (state == State.GREETING && type != Wire.WELCOME && type != Wire.ERROR) {
            throw new FrameReader.Damaged("frame type " + type + " came before WELCOME");
        }
        switch (type) {
            case Wire.WELCOME:
                welcome(body, now);
                break;
            case Wire.ACK:
                outbox.acknowledge(body.varint());
                break;
            case Wire.WAIT:
                holding = true;
                holdUntil = now + Math.min(body.varint(), 600_000) * MILLI;
                lastHeard = holdUntil; // it has announced its silence
                log.sayOnce("wait", "the server is full and asked to wait");
                break;
            case Wire.ERROR:
                throw refusal((int) body.varint(), body.string());
            case Wire.REJECT:
                totals.recordsRejected++;
                String where = "frame " + body.varint() + ", record " + body.varint();
                log.sayOnce(
                        "reject", "the server refused a record (" + where + "): " + body.string());
                break;
            case Wire.PROBES:
                takeRules(body);
                break;
            default:
                // PONG has done its work by arriving; a type of a later version is none of our
                // business.
        }
    }

    /** Rules that cannot be read are no reason to lose the connection. */
    private void takeRules(BodyReader body) {
        probesHeard = true;
        try {
            probes.put(ProbeRules.read(body));
            rulesHold = true;
        } catch (FrameReader.Damaged e) {
            log.sayOnce("probes", "the server's rules are not followed: " + e.getMessage());
        }
    }

    private void missRules(long now) {
        if (state == State.OPEN && rulesHold && !probesHeard && now - rulesDue > 0) {
            rulesHold = false;
            probes.put(ProbeRules.NONE);
        }
    }

    private void welcome(BodyReader body, long now) throws FrameReader.Damaged {
        if (state != State.GREETING) {
            return;
        }
        body.u8();
        long acknowledged = body.varint();
        body.varint(); // our frames are far below any limit a server may name
        heartbeatNanos = Math.max(100, Math.min(body.varint(), 600_000)) * MILLI;
        takesRecords = !body.atEnd() && (body.varint() & Wire.FEATURE_RECORDS) != 0;
        outbox.acknowledge(acknowledged);
        state = State.OPEN;
        lastPing = now - heartbeatNanos; // the first one goes out at once: it tells what was
        // dropped meanwhile
        probesHeard = false;
        rulesDue = now + RULES_NANOS;
        holding = false;
        totals.connects++;
        totals.connected = true;
        backoff.reset();
        outages.connected(resolver.address().toString(), now);
    }

    /** What an ERROR means for us (wire.md, table of codes). */
    private Refused refusal(int code, String message) {
        String text = "the server refuses: " + message + " (error " + code + ")";
        switch (code) {
            case 1:
            case 7:
            case 8:
            case 9:
                return new Refused(text, Math.max(PAUSE_NANOS, backoff.next()), false);
            case 3:
            case 4:
            case 5:
                return new Refused(text, Math.max(PAUSE_NANOS, backoff.next()), true);
            default:
                return new Refused(text, REFUSED_NANOS, false);
        }
    }

    private static final class Refused extends Exception {
        private static final long serialVersionUID = 1;
        final long pauseNanos;

        /** The same frames would fail in the same way again. */
        final boolean isFinal;

        Refused(String message, long pauseNanos, boolean isFinal) {
            super(message, null, false, false);
            this.pauseNanos = pauseNanos;
            this.isFinal = isFinal;
        }
    }

    // ---- to the server ----

    private void send(long now) throws IOException, FrameReader.Damaged, Refused {
        for (int frame = 0; frame < STEP_FRAMES_MAX; frame++) {
            if (out == null && !prepare(now)) {
                return;
            }
            totals.bytesSent += write(now);
            if (out.hasRemaining()) {
                return;
            }
            out = null;
        }
    }

    /**
     * A server that refuses says why and closes; if that comes between reading and writing, the
     * write fails first, and the reason still lies in the socket.
     */
    private int write(long now) throws IOException, FrameReader.Damaged, Refused {
        try {
            return channel.write(out);
        } catch (IOException e) {
            receive(now);
            throw e;
        }
    }

    /** Chooses what goes out next. @return false if there is nothing */
    private boolean prepare(long now) {
        if (state != State.OPEN) {
            return false;
        }
        if (pingIsDue(now)) {
            out = ByteBuffer.wrap(ping(now));
            return true;
        }
        byte[] answer = probesHeard ? probes.takeAnswer() : null;
        if (answer != null) {
            out = ByteBuffer.wrap(answer);
            return true;
        }
        if (holding && now - holdUntil < 0) {
            return false;
        }
        holding = false;
        Outbox.Sent next = nextForServer();
        if (next == null) {
            return false;
        }
        Definitions types = dictionary.recordTypes();
        byte[] bytes = dictionary.frame(dictionarySent, next.dictionarySize);
        if (bytes != null) {
            dictionarySent = dictionary.end(dictionarySent, next.dictionarySize);
        } else if ((bytes = types.frame(recordTypesSent, next.recordTypesSize)) != null) {
            recordTypesSent = types.end(recordTypesSent, next.recordTypesSize);
        } else {
            bytes = next.frame;
            outbox.sent();
        }
        out = ByteBuffer.wrap(bytes);
        return true;
    }

    /** An older server takes a definition of a record type for a malformed one, and closes. */
    private Outbox.Sent nextForServer() {
        Outbox.Sent next = outbox.next();
        while (next != null && next.entries > 0 && !takesRecords) {
            outbox.leaveOut(totals);
            log.sayOnce(
                    "records",
                    "the server is too old for records of declared types: they are left out");
            next = outbox.next();
        }
        return next;
    }

    private boolean pingIsDue(long now) {
        boolean news = dropped() != droppedAtPing && now - lastPing > heartbeatNanos / 5;
        return news || now - lastPing >= heartbeatNanos;
    }

    private byte[] ping(long now) {
        lastPing = now;
        droppedAtPing = dropped();
        Bytes frame = Frame.begin(new Bytes(64));
        frame.varint(totals.callsDropped()).varint(totals.samplesDropped);
        frame.varint(totals.entriesDropped()).varint(outbox.bytes());
        Frame.finish(frame, Wire.PING);
        return frame.copy();
    }

    private long dropped() {
        return totals.callsDropped() + totals.entriesDropped();
    }

    /**
     * Makes the next step tell the server the counts, whatever the time.
     *
     * @return false if it knows them
     */
    boolean pingSoon() {
        if (dropped() == droppedAtPing) {
            return false;
        }
        lastPing = System.nanoTime() - heartbeatNanos;
        return true;
    }

    /** The program ends: outages that were not told are. */
    void tellOutages() {
        outages.catchUp(resolver.address().toString(), true, System.nanoTime());
    }

    private void fail(long now, String why, long pauseNanos) {
        boolean wasOpen = state == State.OPEN;
        if (channel != null) {
            try {
                channel.close();
            } catch (IOException ignored) {
                // It is gone, which is what was wanted.
            }
        }
        channel = null;
        out = null;
        state = State.RESTING;
        deadline = now + pauseNanos;
        failedOnce = true;
        totals.connected = false;
        outbox.rewind();
        outages.failed(resolver.address().toString(), why, wasOpen, now);
    }
}
