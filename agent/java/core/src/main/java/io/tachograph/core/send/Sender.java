package io.tachograph.core.send;

import io.tachograph.bootstrap.Buffers;
import io.tachograph.bootstrap.CoarseClock;
import io.tachograph.bootstrap.Losses;
import io.tachograph.bootstrap.Operations;
import io.tachograph.bootstrap.RecordTypes;
import io.tachograph.bootstrap.Session;
import io.tachograph.bootstrap.ThreadBuffer;
import io.tachograph.core.log.AgentLog;
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
import java.util.function.Consumer;

/**
 * The agent's own thread: again and again it empties the rings, fills frames, steps the connection
 * and sleeps. It sleeps 50 ms when little happens and less when rings fill quickly; a ring that is
 * half full wakes it.
 */
public final class Sender implements Runnable {
    private static final long SLEEP_MAX_NANOS = 50_000_000;
    private static final long SLEEP_MIN_NANOS = 500_000;
    private static final long SLEEP_BUSY_NANOS = 2_000_000;
    private static final long FAULT_NANOS = 1_000_000_000;
    private static final int SAMPLE_BATCHES_MAX = 64;
    private static final long REPORT_NANOS_MIN = 100_000_000;

    /** Words in one ring at which the next look comes sooner. */
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
    private volatile CountDownLatch flush;
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

    /** Instead of a server: all is made ready to be sent, and thrown away. To measure that much. */
    public static final String DISCARD = "discard";

    /** What a sender needs to know. */
    public static final class Options {
        /** {@code host:port}, or {@link #DISCARD}. */
        public String server;

        /** Pairs of HELLO. */
        public Map<String, String> process;

        /** Labels of its series. */
        public Map<String, String> labels = Map.of();

        /** Bytes of unacknowledged frames. */
        public long queueBytes;

        /**
         * When the queue is full the rings are left alone and fill up, instead of being emptied and
         * counted.
         */
        public boolean blocks;

        /** Whether messages of exceptions of databases are sent. */
        public boolean databaseMessages;
    }

    /**
     * @throws IllegalArgumentException if the server's address is none
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
                        Hello.frame(session, options.process),
                        outbox,
                        dictionary,
                        totals,
                        probes,
                        log);
    }

    public Totals totals() {
        return totals;
    }

    /** Where rules of the server arrive, and answers go out. */
    public ProbeMailbox probes() {
        return probes;
    }

    /** To be read on the sender's thread. */
    public CallCounts calls() {
        return calls;
    }

    /** Time that the sender was not asleep, since the start; to be read on its thread. */
    public long busyNanos() {
        return busyNanos;
    }

    /**
     * On its own thread the sender asks for these samples so often, and once more before the
     * program ends. To be set before the start.
     */
    public void report(Consumer<SampleBatch> samples, long intervalNanos) {
        report = samples;
        reportNanos = Math.max(REPORT_NANOS_MIN, intervalNanos);
    }

    /**
     * Asked for on the sender's thread when everything else is ready to be sent, before the program
     * ends. May be set at any time.
     */
    public void lastReport(Consumer<SampleBatch> samples) {
        lastReport = samples;
    }

    /** Hands over what a sampler saw. Never waits; counts what finds no room. */
    public void offer(SampleBatch batch) {
        samples.offer(
                batch); // 64 batches are minutes; past that the sender itself is stuck and could
        // not count either
    }

    /** Starts the thread. */
    public void start() {
        Thread thread = new Thread(null, this, "tachograph-sender", 0, false);
        thread.setDaemon(true);
        thread.setContextClassLoader(null); // or it would hold on to the program's
        thread.start();
    }

    /**
     * Sends everything that was recorded so far, open calls included, and waits for the
     * acknowledgement; not at all where there is no server. The sender goes on afterwards: other
     * shutdown hooks may still be at work.
     */
    public void flush(long waitNanos) {
        CountDownLatch done = new CountDownLatch(1);
        isFlushed = false;
        flush = done;
        buffers.wake();
        try {
            done.await(waitNanos, TimeUnit.NANOSECONDS);
            // What other threads record meanwhile is not what was waited for.
            if (!isFlushed && totals.bytesQueued > 0) {
                log.say(
                        "the program ends before the server has everything: "
                                + totals.bytesQueued
                                + " bytes of records are not acknowledged");
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
                // No memory, or a fault of ours: the program must not feel it, and one line tells
                // of it.
                complain(e);
                buffers.sleep(FAULT_NANOS);
            }
        }
    }

    private void complain(Throwable e) {
        try {
            log.sayOnce("sender " + e.getClass(), "the sender failed and goes on: " + e);
        } catch (Throwable ignored) {
            // Not even memory for a line.
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
        // While so much was read about half as much came again: a sleep now would end too late.
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
                            + " is left out, as others will be: "
                            + thrown
                            + " where a value was read");
        }
    }

    private void countDrops(ThreadBuffer buffer) {
        ringDrops += buffer.callsDropped();
        ringAttributeDrops += buffer.attributesDropped();
        ringEntryDrops += buffer.records().dropped();
    }

    private void endFlush(CountDownLatch flushing) {
        boolean hopeless = discards || link.state() != Link.State.OPEN && !link.isFirstTry();
        boolean acknowledged =
                link.state() == Link.State.OPEN
                        && outbox.isAcknowledged(flushSeq)
                        && !link.isBusy();
        // What was left out on the way is said, too.
        if (hopeless || acknowledged && !link.pingSoon()) {
            totals.bytesQueued = outbox.bytes();
            isFlushed = !hopeless;
            link.tellOutages();
            flush = null;
            flushSeq = -1;
            flushing.countDown();
        }
    }

    /**
     * How long to sleep: less while rings fill quickly or the connection has something under way.
     */
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
