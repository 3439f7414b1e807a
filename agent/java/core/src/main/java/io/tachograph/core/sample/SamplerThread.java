package io.tachograph.core.sample;

import io.tachograph.core.log.AgentLog;
import io.tachograph.core.send.Sender;
import io.tachograph.core.wire.SampleBatch;

import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

/**
 * Runs the samplers of the JVM and of the counts of the agent at a fixed interval, on a separate
 * daemon thread, so that a slow MXBean does not delay the sender. The sender itself takes the
 * samples of {@link AgentReport}.
 */
public final class SamplerThread implements Runnable {
    private static final long INTERVAL_NANOS_MIN = 100_000_000;

    /**
     * Delay before the first samples, unless the interval is shorter. Loading the MXBeans takes
     * about 50 ms of processor time, which the program needs in its first second.
     */
    private static final long FIRST_NANOS = 1_000_000_000;

    private final Sender sender;
    private final Map<String, String> labels;
    private final long intervalNanos;
    private final AgentLog log;
    private final AgentSampler own;

    /**
     * @param labels the labels of every series
     * @param intervalNanos time between two samples; a shorter time than 100 ms counts as 100 ms
     */
    public SamplerThread(
            Sender sender, Map<String, String> labels, long intervalNanos, AgentLog log) {
        this.sender = sender;
        this.labels = labels;
        this.intervalNanos = Math.max(INTERVAL_NANOS_MIN, intervalNanos);
        this.log = log;
        this.own = new AgentSampler(new SeriesMaker(labels), sender.totals());
    }

    public void start() {
        sender.lastReport(own::sample);
        Thread thread = new Thread(null, this, "tachograph-sampler", 0, false);
        thread.setDaemon(true);
        thread.setContextClassLoader(null);
        thread.start();
    }

    @Override
    public void run() {
        try {
            long due = System.nanoTime() + Math.min(FIRST_NANOS, intervalNanos);
            pauseUntil(due);
            List<Sampler> samplers = samplers(() -> new JvmSampler(new SeriesMaker(labels)));
            while (true) {
                sender.offer(sample(samplers));
                due += intervalNanos;
                pauseUntil(due);
            }
        } catch (InterruptedException e) {
            log.detail("the sampler was interrupted and ends");
        } catch (Throwable e) {
            log.say("the samplers failed and end: " + e);
        }
    }

    /** The counts of the agent are sampled even if the JVM cannot be sampled. */
    List<Sampler> samplers(Supplier<Sampler> jvm) {
        try {
            return List.of(jvm.get(), own);
        } catch (LinkageError e) {
            log.say(
                    "no samples of the JVM: the program lacks the module java.management"
                            + " (--add-modules java.management,jdk.management)");
            return List.of(own);
        }
    }

    private SampleBatch sample(List<Sampler> samplers) {
        Instant now = Instant.now();
        SampleBatch batch = new SampleBatch(now.getEpochSecond() * 1_000_000_000L + now.getNano());
        for (Sampler sampler : samplers) {
            try {
                sampler.sample(batch);
            } catch (RuntimeException | LinkageError e) {
                log.sayOnce("sampler " + sampler.getClass(), "a sampler failed: " + e);
            }
        }
        return batch;
    }

    private static void pauseUntil(long due) throws InterruptedException {
        long nanos = due - System.nanoTime();
        if (nanos > 0) {
            Thread.sleep(nanos / 1_000_000, (int) (nanos % 1_000_000));
        }
    }
}
