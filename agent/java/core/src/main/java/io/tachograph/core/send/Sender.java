package io.tachograph.core.send;

import io.tachograph.bootstrap.Buffers;
import io.tachograph.bootstrap.CoarseClock;
import io.tachograph.bootstrap.Losses;
import io.tachograph.bootstrap.Operations;
import io.tachograph.bootstrap.RecordTypes;
import io.tachograph.bootstrap.Session;
import io.tachograph.bootstrap.ThreadBuffer;
import io.tachograph.core.log.AgentLog;
import io.tachograph.core.log.Messages;
import io.tachograph.core.wire.DeclaredRecord;
import io.tachograph.core.wire.Dictionary;
import io.tachograph.core.wire.SampleBatch;
import io.tachograph.core.wire.Wire;

import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/**
 * The agent's main thread. Its loop empties the rings, fills frames, steps the connection and
 * sleeps. The thread sleeps for 50 ms under low load, and for less time or not at all when rings
 * fill quickly or the connection has pending work. A half-full ring wakes the thread.
 */
public final class Sender implements Runnable {
    private static final long SLEEP_MAX_NANOS = 50_000_000;
    private static final long SLEEP_MIN_NANOS = 500_000;
    private static final long SLEEP_BUSY_NANOS = 2_000_000;
    private static final long FAULT_NANOS = 1_000_000_000;
    private static final int SAMPLE_BATCHES_MAX = 64;
    private static final long REPORT_NANOS_MIN = 100_000_000;

    /** If a read returns more words, the next sleep is shorter. */
    private static final int WORDS_MANY = 4_096;

    private static final int WORDS_FEW = 512;

    private final Buffers buffers;
    private final AgentLog log;
    private final Totals totals = new Totals();
    private final WallClock clock = new WallClock();
    private final Dictionary dictionary;
    private final Outbox outbox;
    private final ProbeMailbox probes = new ProbeMailbox();
    private final Link link;
    private final boolean discards;
    private final Map<ThreadBuffer, RingReader> readers = new IdentityHashMap<>();
    private final HandedCalls handed;
    private final ArrayBlockingQueue<SampleBatch> samples =
            new ArrayBlockingQueue<>(SAMPLE_BATCHES_MAX);
    private final AtomicLong samplesNotQueued = new AtomicLong();
    private volatile CountDownLatch flush;
    /** {@code System.nanoTime()} at which the wait of {@link #flush} ends. */
    private volatile long flushUntil;
    private volatile boolean isFlushed;
    private long flushSeq = -1;
    private long sleepNanos = SLEEP_MAX_NANOS;
    private int fullest;
    private boolean isCrowded;
    private long ringDrops;
    private long ringAttributeDrops;
    private long ringEntryDrops;
    private final FaultLog faultLog;
    private final Set<String> faultsTold = new HashSet<>();
    private final DeclaredRecord declared;
    private final CallCounts calls = new CallCounts();
    private Consumer<SampleBatch> report = batch -> {};
    private volatile Consumer<SampleBatch> lastReport = batch -> {};
    private long reportNanos = Long.MAX_VALUE / 4;
    private long reportedAt = System.nanoTime();
    private long busyNanos;

    /**
     * Value of the setting {@code server} for measurements: all frames are prepared and then
     * discarded instead of sent.
     */
    public static final String DISCARD = "discard";

    public static final class Options {
        /** {@code host:port}, or {@link #DISCARD}. */
        public String server;

        /**
         * Values of the settings {@code tls_...}. If {@code tls_ca} is empty, the connection is not
         * encrypted.
         */
        public String tlsCa = "";

        public String tlsClientCert = "";
        public String tlsClientKey = "";

        /** The settings {@code token}, {@code token_file} and {@code insecure_token}. */
        public String token = "";

        public String tokenFile = "";
        public boolean isTokenInsecure;

        /** Keys and values that describe the process in HELLO. */
        public Map<String, String> process;

        public Map<String, String> labels = Map.of();

        /** Limit on the total size of the frames that are not acknowledged, bytes. */
        public long queueBytes;

        /**
         * If true, the rings are not read while the queue is full, so the rings fill up. If false,
         * the rings are emptied, and their content is dropped and counted.
         */
        public boolean blocks;

        public boolean databaseMessages;
    }

    /**
     * @throws IllegalArgumentException if the server address is invalid
     */
    public Sender(Buffers buffers, Session session, Options options, AgentLog log) {
        this.buffers = buffers;
        this.log = log;
        this.faultLog = new FaultLog(log);
        this.dictionary = new Dictionary(Operations.shared());
        this.declared = new DeclaredRecord(dictionary, options.labels);
        this.outbox = new Outbox(dictionary, options.queueBytes, options.blocks);
        this.handed = new HandedCalls(outbox, totals, dictionary);
        ExceptionText.tellDatabaseMessages(options.databaseMessages);
        this.discards = options.server.equals(DISCARD);
        this.link =
                new Link(
                        ServerAddress.parse(options.server),
                        tls(options),
                        new Token(options.token, options.tokenFile, options.isTokenInsecure),
                        token -> Hello.frame(session, options.process, token),
                        outbox,
                        dictionary,
                        totals,
                        probes,
                        log);
    }

    private static TlsFiles tls(Options options) {
        return options.tlsCa.isEmpty()
                ? null
                : new TlsFiles(options.tlsCa, options.tlsClientCert, options.tlsClientKey);
    }

    public Totals totals() {
        return totals;
    }

    public ProbeMailbox probes() {
        return probes;
    }

    /** For use on the sender's thread. */
    public CallCounts calls() {
        return calls;
    }

    /** Time since the start in which the sender did not sleep; for use on the sender's thread. */
    public long busyNanos() {
        return busyNanos;
    }

    /**
     * Sets the source of samples. The sender calls it on its own thread: at this interval, but at
     * most ten times per second, and before the program ends. Must be set before {@link #start}.
     */
    public void report(Consumer<SampleBatch> samples, long intervalNanos) {
        report = samples;
        reportNanos = Math.max(REPORT_NANOS_MIN, intervalNanos);
    }

    /**
     * Sets the source of the final samples. May be called at any time. The sender calls the source
     * before the program ends, when everything else is ready to be sent.
     */
    public void lastReport(Consumer<SampleBatch> samples) {
        lastReport = samples;
    }

    /**
     * Queues samples without waiting. If the queue is full, the sender has stalled for 64
     * intervals, and the batch is dropped.
     */
    public void offer(SampleBatch batch) {
        if (!samples.offer(batch)) {
            samplesNotQueued.addAndGet(batch.size());
        }
    }

    public void start() {
        Thread thread = new Thread(null, this, "tachograph-sender", 0, false);
        thread.setDaemon(true);
        // Otherwise, the thread would keep the program's class loader in memory.
        thread.setContextClassLoader(null);
        thread.start();
    }

    /**
     * Sends all records up to now, including open calls, and waits for the acknowledgement. If the
     * server is reached but the connection fails, further attempts follow. The wait ends early if
     * no attempt is likely to succeed, for example because no program listens at the address. The
     * sender continues afterwards, because other shutdown hooks may still run.
     *
     * @param waitNanos longest wait, ns
     */
    public void flush(long waitNanos) {
        CountDownLatch done = new CountDownLatch(1);
        isFlushed = false;
        flushUntil = System.nanoTime() + waitNanos;
        flush = done;
        buffers.wake();
        try {
            done.await(waitNanos, TimeUnit.NANOSECONDS);
            // After a successful flush, later records of other threads may be queued.
            if (!isFlushed && totals.bytesQueued > 0) {
                log.say(Messages.endUnacknowledged(totals.bytesQueued));
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public void run() {
        while (true) {
            try {
                long begin = System.nanoTime();
                CoarseClock.set(begin);
                step();
                busyNanos += System.nanoTime() - begin;
                long pause = pause();
                if (!isCrowded) {
                    buffers.sleep(pause);
                }
            } catch (Throwable e) {
                // Out of memory or an internal error: the program must not be affected.
                complain(e);
                buffers.sleep(FAULT_NANOS);
            }
        }
    }

    private void complain(Throwable e) {
        try {
            log.sayOnce("sender " + e.getClass(), "the sender failed and continues: " + e);
        } catch (Throwable ignored) {
            // There is no memory for a log line.
        }
    }

    private void step() {
        clock.update();
        CountDownLatch flushing = flush;
        fullest = 0;
        isCrowded = false;
        buffers.forEach(this::read);
        handed.write(buffers);
        boolean ends = flushing != null && flushSeq < 0;
        if (ends) {
            readers.values().forEach(RingReader::flush);
        }
        count();
        takeSamples();
        if (ends || System.nanoTime() - reportedAt >= reportNanos) {
            report(report);
        }
        if (ends) {
            report(lastReport);
        }
        outbox.close();
        if (ends) {
            flushSeq = outbox.lastSeq();
            link.pingSoon();
        }
        if (discards) {
            outbox.acknowledge(Long.MAX_VALUE);
        } else {
            link.ending(flushing != null);
            link.step();
        }
        totals.bytesQueued = outbox.bytes();
        if (flushing != null) {
            endFlush(flushing);
        }
    }

    private void read(ThreadBuffer buffer) {
        RingReader reader = readers.get(buffer);
        if (reader == null) {
            reader = new RingReader(buffer, outbox, clock, totals, calls, dictionary, declared);
            readers.put(buffer, reader);
        }
        int words = reader.read();
        fullest = Math.max(fullest, words);
        // The ring might be full at the end of a sleep, so the sender does not sleep.
        isCrowded |= words > buffer.capacity() / 4;
        if (hasEnded(buffer) && !outbox.mustWait()) {
            reader.finish();
            buffers.reclaim(buffer);
        }
    }

    private static boolean hasEnded(ThreadBuffer buffer) {
        return buffer.hasLostOwner() && buffer.published() == buffer.consumed();
    }

    private void report(Consumer<SampleBatch> from) {
        long now = System.nanoTime();
        reportedAt = now;
        SampleBatch batch = new SampleBatch(now + clock.offset());
        from.accept(batch);
        take(batch);
    }

    private void takeSamples() {
        // Only this thread changes the totals.
        totals.samplesDropped += samplesNotQueued.getAndSet(0);
        SampleBatch batch;
        while ((batch = samples.poll()) != null) {
            take(batch);
        }
    }

    private void take(SampleBatch batch) {
        for (int index = 0; index < batch.size(); index++) {
            if (outbox.isFull() || !batch.isDefined(index, dictionary)) {
                totals.samplesDropped++;
            } else {
                var out = outbox.begin(batch.at());
                batch.write(index, outbox.base(), dictionary, out);
                outbox.end(Wire.TAG_SAMPLES, 0, 1);
                totals.samplesSent++;
            }
        }
    }

    private void count() {
        ringDrops = buffers.callsDroppedWithoutBuffer() + Losses.calls();
        ringAttributeDrops = 0;
        ringEntryDrops = buffers.recordsDroppedWithoutBuffer();
        buffers.forEach(this::countDrops);
        totals.callsDroppedInRings = ringDrops;
        totals.attributesDroppedInRings = ringAttributeDrops;
        totals.entriesDroppedInRings = ringEntryDrops;
        faultLog.tell();
        long failed = RecordTypes.shared().failed();
        if (failed != totals.entriesFailed) {
            totals.entriesFailed = failed;
            RecordTypes.shared().faults().forEach(this::tellFault);
        }
    }

    private void tellFault(String type, String thrown) {
        if (faultsTold.add(type)) {
            log.say(
                    "a record of "
                            + type
                            + " is dropped (later faults of this type are not logged): "
                            + thrown
                            + " while reading a value");
        }
    }

    private void countDrops(ThreadBuffer buffer) {
        ringDrops += buffer.callsDropped();
        ringAttributeDrops += buffer.attributesDropped();
        ringEntryDrops += buffer.records().dropped();
    }

    private void endFlush(CountDownLatch flushing) {
        boolean hopeless = discards || !link.mayOpen(flushUntil);
        boolean acknowledged =
                link.state() == Link.State.OPEN
                        && outbox.isAcknowledged(flushSeq)
                        && !link.isBusy();
        // pingSoon makes the next step send the counts of dropped records, unless the server already has them.
        if (hopeless || acknowledged && !link.pingSoon()) {
            totals.bytesQueued = outbox.bytes();
            isFlushed = !hopeless;
            link.tellOutages();
            flush = null;
            flushSeq = -1;
            flushing.countDown();
        }
    }

    /** Returns the time to sleep, ns. */
    private long pause() {
        if (fullest > WORDS_MANY) {
            sleepNanos = Math.max(SLEEP_MIN_NANOS, sleepNanos / 4);
        } else if (fullest < WORDS_FEW) {
            sleepNanos = Math.min(SLEEP_MAX_NANOS, sleepNanos * 2);
        }
        boolean hurry =
                flush != null
                        || link.isBusy()
                        || link.state() == Link.State.OPEN && outbox.next() != null;
        return hurry ? Math.min(sleepNanos, SLEEP_BUSY_NANOS) : sleepNanos;
    }
}
