package io.tachograph.core.send;

import io.tachograph.core.log.AgentLog;
import io.tachograph.core.log.Messages;
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
import java.nio.channels.ByteChannel;
import java.nio.channels.SocketChannel;
import java.util.function.Function;

/**
 * The connection to the server, established again after each failure. It is a non-blocking state
 * machine; the sender calls {@link #step}.
 *
 * <pre>
 *   RESTING --(time is up)--> RESOLVING --> CONNECTING --> GREETING --(WELCOME)--> OPEN
 *      ^                                    (HANDSHAKE: TLS)                         |
 *      +---------------------------(any fault; backs off)----------------------------+
 * </pre>
 *
 * Before: {@link Outbox}. After: {@code crates/server/src/listen/connection.rs}.
 */
final class Link {
    /** Pause after an answer that would be the same after an immediate retry. */
    private static final long REFUSED_NANOS = 60_000_000_000L;

    /**
     * Minimum pause after an ERROR that does not concern the token, and first step of the back-off
     * after a refused token. Without the minimum, the pause would be short after a WELCOME, which
     * resets the back-off.
     */
    private static final long PAUSE_NANOS = 1_000_000_000;

    private static final long MILLI = 1_000_000;
    private static final int STEP_FRAMES_MAX = 64;

    /** Code of an ERROR: the server requires TLS. */
    private static final int NEEDS_TLS = 11;

    /** Code of an ERROR: the token is missing or invalid. */
    private static final int UNAUTHORIZED = 12;

    /** Code of an ERROR: the token does not permit what this agent sends. */
    private static final int FORBIDDEN = 13;

    private static final long TOKEN_NANOS_MAX = 60_000_000_000L;

    /**
     * A server sends PROBES soon after WELCOME, even if it has no rules. If no PROBES has arrived
     * after this time, the server is too old for rules.
     */
    private static final long RULES_NANOS = 3_000_000_000L;

    enum State {
        RESTING,
        RESOLVING,
        CONNECTING,
        HANDSHAKE,
        GREETING,
        OPEN
    }

    private final Resolver resolver;
    /** Null if the connection is not encrypted. */
    private final TlsFiles tls;

    private final Token token;

    /** Makes HELLO from the token. */
    private final Function<byte[], byte[]> hello;

    private final Outbox outbox;
    private final Dictionary dictionary;
    private final Totals totals;
    private final ProbeMailbox probes;
    private final AgentLog log;
    private final Outages outages;
    private final Attempts attempts = new Attempts(System.nanoTime());
    private final Backoff backoff = new Backoff();
    private final Backoff tokenBackoff = new Backoff(PAUSE_NANOS, TOKEN_NANOS_MAX);

    private byte[] tokenRead = {};

    private boolean isClearTold;
    private final ByteBuffer in = ByteBuffer.allocate(8_192);

    private State state = State.RESTING;
    private SocketChannel socket;

    /** The socket itself, or the channel that encrypts its data. */
    private ByteChannel channel;

    private FrameReader frames;
    private ByteBuffer out;
    private int dictionarySent;
    private int recordTypesSent;
    private boolean takesRecords;
    private long heartbeatNanos;
    private long lastHeard;
    private long lastPing;
    private long droppedAtPing;
    private long holdUntil;
    private boolean holding;

    /** True if PROBES arrived on this connection, so that the server supports PROBED. */
    private boolean probesHeard;

    /**
     * True if rules of a server apply, perhaps from an earlier connection. They end if the server
     * sends no PROBES on this connection ({@link #missRules}).
     */
    private boolean rulesHold;

    private long rulesDue;

    Link(
            ServerAddress address,
            TlsFiles tls,
            Token token,
            Function<byte[], byte[]> hello,
            Outbox outbox,
            Dictionary dictionary,
            Totals totals,
            ProbeMailbox probes,
            AgentLog log) {
        this.probes = probes;
        this.resolver = new Resolver(address);
        this.tls = tls;
        this.token = token;
        this.hello = hello;
        this.outbox = outbox;
        this.dictionary = dictionary;
        this.totals = totals;
        this.log = log;
        this.outages = new Outages(log, totals);
    }

    State state() {
        return state;
    }

    /**
     * @param isEnding true while the program ends and waits for the server. Then the next attempt
     *     follows soon after a failure of the kind {@code SILENT}.
     */
    void ending(boolean isEnding) {
        attempts.ending(isEnding);
    }

    /** True if the connection is open, or may open before this time. */
    boolean mayOpen(long until) {
        return state == State.OPEN || attempts.mayOpen(until, state == State.RESTING);
    }

    /** True while connecting or sending a frame: the sender then calls {@link #step} soon. */
    boolean isBusy() {
        return out != null || state != State.RESTING && state != State.OPEN;
    }

    /** Does the next work that is possible without waiting. */
    void step() {
        long now = System.nanoTime();
        try {
            switch (state) {
                case RESTING:
                    if (attempts.isDue(now)) {
                        tokenRead = token.read();
                        state = State.RESOLVING;
                        resolver.start();
                    }
                    break;
                case RESOLVING:
                    connect(now);
                    break;
                case CONNECTING:
                    if (socket.finishConnect()) {
                        secure();
                    }
                    expire(now);
                    break;
                case HANDSHAKE:
                    shakeHands();
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
            attempts.failed(Attempts.Failure.LASTING, now, backoff.next());
            fail(now, Messages.serverIsOther(e.getMessage()), false);
        } catch (Refused e) {
            attempts.failed(e.failure(), now, e.pauseNanos);
            fail(now, e.getMessage(), e.isOfToken);
            if (e.isFinal) {
                // After outages.failed, so that the line about the outage includes these records.
                outbox.discard(totals);
            }
        } catch (IOException | RuntimeException e) {
            attempts.failed(failure(e), now, backoff.next());
            fail(now, reason(e), false);
        }
    }

    private static String reason(Exception e) {
        String message = e.getMessage();
        return message == null || message.isBlank() ? e.getClass().getSimpleName() : message;
    }

    /** An IOException with a cause is a TLS fault ({@link TlsCause}) and is never SILENT. */
    private Attempts.Failure failure(Exception e) {
        boolean isReached = state.compareTo(State.CONNECTING) > 0;
        boolean isOfConnection = e instanceof IOException && e.getCause() == null;
        return isReached && isOfConnection ? Attempts.Failure.SILENT : Attempts.Failure.LASTING;
    }

    private void connect(long now) throws IOException {
        InetSocketAddress address = resolver.result();
        if (address == null) {
            return;
        }
        checkSecrecy(address);
        socket = SocketChannel.open();
        channel = socket;
        socket.configureBlocking(false);
        socket.setOption(StandardSocketOptions.TCP_NODELAY, true);
        state = State.CONNECTING;
        attempts.begin(now);
        if (socket.connect(address)) {
            secure();
        }
    }

    /**
     * @throws IOException if others could read the token on the network and {@code insecure_token}
     *     is false
     */
    private void checkSecrecy(InetSocketAddress address) throws IOException {
        boolean isLocal = address.getAddress().isLoopbackAddress();
        if (tokenRead.length == 0 || tls != null || isLocal) {
            return;
        }
        if (!token.isInsecure) {
            throw new IOException(Messages.TOKEN_IN_CLEAR);
        }
        if (!isClearTold) {
            isClearTold = true;
            log.say(Messages.tokenSentInClear(resolver.address().toString()));
        }
    }

    private void secure() throws IOException {
        attempts.reached();
        if (tls == null) {
            greet();
            return;
        }
        ServerAddress address = resolver.address();
        channel = new TlsChannel(socket, tls, address.name(), address.port());
        state = State.HANDSHAKE;
        shakeHands();
    }

    private void shakeHands() throws IOException {
        if (((TlsChannel) channel).handshake()) {
            greet();
        }
    }

    private void greet() {
        state = State.GREETING;
        frames = new FrameReader();
        out = ByteBuffer.wrap(hello.apply(tokenRead));
        dictionarySent = 0;
        recordTypesSent = 0;
    }

    private void expire(long now) throws IOException {
        if (state == State.OPEN) {
            // The server may be silent until holdUntil, even if a frame arrives before.
            long silentSince = lastHeard - holdUntil > 0 ? lastHeard : holdUntil;
            if (now - silentSince > 3 * heartbeatNanos) {
                throw new IOException(
                        Messages.serverSilent(3 * heartbeatNanos / MILLI + " ms"));
            }
        } else if (attempts.isTooSlow(now)) {
            throw new IOException(
                    "no answer within " + Attempts.GREETING_NANOS / MILLI + " ms");
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
            throw new EOFException(Messages.SERVER_CLOSED);
        }
    }

    private void take(int type, BodyReader body, long now) throws FrameReader.Damaged, Refused {
        lastHeard = now;
        if (state == State.GREETING && type != Wire.WELCOME && type != Wire.ERROR) {
            throw new FrameReader.Damaged(Messages.frameEarly(type));
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
                log.sayOnce("wait", Messages.SERVER_IS_FULL);
                break;
            case Wire.ERROR:
                throw refusal((int) body.varint(), body.string());
            case Wire.REJECT:
                totals.recordsRejected++;
                long frame = body.varint();
                long record = body.varint();
                log.sayOnce("reject", Messages.recordRefused(frame, record, body.string()));
                break;
            case Wire.PROBES:
                takeRules(body);
                break;
            default:
                // PONG needs no action. Frame types of later versions are ignored.
        }
    }

    /** If the rules are unreadable, the connection stays open. */
    private void takeRules(BodyReader body) {
        probesHeard = true;
        try {
            probes.put(ProbeRules.read(body));
            rulesHold = true;
        } catch (FrameReader.Damaged e) {
            log.sayOnce("probes", "the server's rules are ignored: " + e.getMessage());
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
        body.varint(); // the server's limit for frames; frames of this agent are far below it
        heartbeatNanos = Math.max(100, Math.min(body.varint(), 600_000)) * MILLI;
        takesRecords = !body.atEnd() && (body.varint() & Wire.FEATURE_RECORDS) != 0;
        outbox.acknowledge(acknowledged);
        state = State.OPEN;
        // The first PING, with the counts of dropped records, is sent at once.
        lastPing = now - heartbeatNanos;
        probesHeard = false;
        rulesDue = now + RULES_NANOS;
        holding = false;
        holdUntil = now;
        totals.connects++;
        totals.connected = true;
        backoff.reset();
        tokenBackoff.reset();
        outages.connected(resolver.address().toString(), now);
    }

    /** The codes are in a table of wire.md. */
    private Refused refusal(int code, String message) {
        String text =
                code == NEEDS_TLS
                        ? Messages.tlsRequired(code)
                        : Messages.serverRefuses(message, code);
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
            case UNAUTHORIZED:
            case FORBIDDEN:
                return new Refused(tokenRefusal(code, message), tokenBackoff.next());
            default:
                return new Refused(text, REFUSED_NANOS, false);
        }
    }

    private String tokenRefusal(int code, String message) {
        if (tokenRead.length == 0) {
            return Messages.tokenNeeded(code);
        }
        return code == UNAUTHORIZED
                ? Messages.tokenRefused(message, code, token.setting())
                : Messages.tokenForbids(message, code, token.setting());
    }

    private static final class Refused extends Exception {
        private static final long serialVersionUID = 1;
        final long pauseNanos;

        /** True if the same frames would be refused again. */
        final boolean isFinal;

        final boolean isOfToken;

        Refused(String message, long pauseNanos, boolean isFinal) {
            this(message, pauseNanos, isFinal, false);
        }

        Refused(String message, long pauseNanos) {
            this(message, pauseNanos, false, true);
        }

        private Refused(String message, long pauseNanos, boolean isFinal, boolean isOfToken) {
            super(message, null, false, false);
            this.pauseNanos = pauseNanos;
            this.isFinal = isFinal;
            this.isOfToken = isOfToken;
        }

        Attempts.Failure failure() {
            boolean isLasting = isFinal || isOfToken || pauseNanos == REFUSED_NANOS;
            return isLasting ? Attempts.Failure.LASTING : Attempts.Failure.BUSY;
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
     * A server that refuses a connection sends the reason and closes. If the close comes between a
     * read and a write, the write fails, and the reason in the socket buffer is read here.
     */
    private int write(long now) throws IOException, FrameReader.Damaged, Refused {
        try {
            return channel.write(out);
        } catch (IOException e) {
            receive(now);
            throw e;
        }
    }

    /** @return false if there is no frame to send */
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

    /**
     * Returns the next frame that the server supports, and drops the frames before it. An older
     * server would refuse the definition of a record type as malformed and close the connection.
     */
    private Outbox.Sent nextForServer() {
        Outbox.Sent next = outbox.next();
        while (next != null && next.entries > 0 && !takesRecords) {
            outbox.dropUnsupported(totals);
            log.sayOnce(
                    "records",
                    "the server is too old for records of declared types: they are dropped");
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
        return totals.callsDropped() + totals.samplesDropped + totals.entriesDropped();
    }

    /**
     * Makes the next step send a PING if records were dropped since the last PING.
     *
     * @return false if none were dropped
     */
    boolean pingSoon() {
        if (dropped() == droppedAtPing) {
            return false;
        }
        lastPing = System.nanoTime() - heartbeatNanos;
        return true;
    }

    /** Logs pending outages and dropped calls at the end of the program. */
    void tellOutages() {
        outages.catchUp(resolver.address().toString(), true, System.nanoTime());
    }

    private void fail(long now, String why, boolean isOfToken) {
        boolean wasOpen = state == State.OPEN;
        if (channel != null) {
            try {
                channel.close();
            } catch (IOException ignored) {
                // The connection is closed in any case.
            }
        }
        channel = null;
        socket = null;
        out = null;
        state = State.RESTING;
        totals.connected = false;
        outbox.rewind();
        outages.failed(resolver.address().toString(), why, wasOpen, isOfToken, now);
    }
}
