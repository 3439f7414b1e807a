package io.tachograph.core;

import io.tachograph.bootstrap.Buffers;
import io.tachograph.bootstrap.Recorder;
import io.tachograph.bootstrap.Session;
import io.tachograph.core.config.Setting;
import io.tachograph.core.config.Settings;
import io.tachograph.core.cost.Calibration;
import io.tachograph.core.cost.Limits;
import io.tachograph.core.cost.TraceKeeper;
import io.tachograph.core.instrument.Instrumenter;
import io.tachograph.core.instrument.Moves;
import io.tachograph.core.instrument.Probe;
import io.tachograph.core.instrument.Switchboard;
import io.tachograph.core.instrument.Unwatched;
import io.tachograph.core.log.AgentLog;
import io.tachograph.core.sample.AgentReport;
import io.tachograph.core.sample.SamplerThread;
import io.tachograph.core.send.Sender;

import java.io.IOException;
import java.lang.instrument.Instrumentation;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Starts the parts of the agent. */
public final class Agent {
    private Agent() {}

    /**
     * @param arguments path of the configuration file, or null
     * @param probes the probes for libraries; the method probe is always added
     */
    public static void start(
            String arguments, Instrumentation instrumentation, List<Probe> probes) {
        Settings settings = Settings.load(arguments, System.getenv());
        AgentLog log = openLog(settings);
        settings.warnings().forEach(log::say);
        if (!settings.flag(Setting.ENABLED)) {
            log.say("switched off: the setting enabled is false");
            return;
        }
        open(instrumentation, Object.class.getModule(), "java.lang");
        ModuleLayer.boot()
                .findModule("java.sql")
                .ifPresent(module -> open(instrumentation, module, "java.sql"));
        Buffers buffers = Recorder.start(bufferOptions(settings));
        Map<String, String> labels = Identity.labels(settings);
        Sender sender = newSender(buffers, settings, labels, log);
        Moves moves = new Moves(log);
        Instrumenter instrumenter = new Instrumenter(instrumentation, settings, moves, log);
        instrumenter.install(probes);
        report(sender, buffers, settings, labels, moves, instrumenter.unwatched(), log);
        sender.start();
        Switchboard switchboard = instrumenter.switchboard(sender.probes());
        switchboard.start();
        Declarations.tell(instrumentation);
        if (settings.flag(Setting.SAMPLERS)) {
            new SamplerThread(sender, labels, settings.number(Setting.SAMPLE_INTERVAL), log)
                    .start();
        }
        long flushNanos = settings.number(Setting.FLUSH_MAX);
        Runtime.getRuntime()
                .addShutdownHook(
                        new Thread(() -> end(switchboard, sender, flushNanos, log),
                                "tachograph-flush"));
        log.detail("started: " + Identity.pairs(labels));
    }

    private static void end(
            Switchboard switchboard, Sender sender, long flushNanos, AgentLog log) {
        try {
            switchboard.end();
        } catch (Throwable e) { // an exception would be printed by the JVM
            log.sayOnce("end", "reporting unmatched patterns failed: " + e);
        }
        sender.flush(flushNanos);
    }

    /**
     * Registers the samples that the sender takes itself: counts of aggregated calls and unrecorded
     * traces, internal errors, and the overhead. Starts the threads that limit the traces and
     * measure the cost of a call, if the settings need them.
     */
    private static void report(
            Sender sender,
            Buffers buffers,
            Settings settings,
            Map<String, String> labels,
            Moves moves,
            Unwatched unwatched,
            AgentLog log) {
        long interval = settings.number(Setting.SAMPLE_INTERVAL);
        boolean isSampling = buffers.traces() != null;
        Calibration calibration = new Calibration(interval / 1_000_000, isSampling, log);
        Limits limits =
                new Limits(
                        settings.number(Setting.AGGREGATE_ABOVE),
                        settings.number(Setting.OVERHEAD_MAX));
        sender.report(
                new AgentReport(labels, buffers, sender, calibration, limits, moves, unwatched),
                interval);
        if (isSampling) {
            new TraceKeeper(buffers, moves, log).start();
        }
        if (settings.flag(Setting.SAMPLERS) || settings.number(Setting.OVERHEAD_MAX) > 0) {
            calibration.start();
        }
    }

    private static Sender newSender(
            Buffers buffers, Settings settings, Map<String, String> labels, AgentLog log) {
        Sender.Options options = new Sender.Options();
        options.server = settings.text(Setting.SERVER);
        if (options.server.equals(Sender.DISCARD)) {
            log.say("server is \"discard\": records are not sent");
        }
        options.tlsCa = settings.text(Setting.TLS_CA);
        options.tlsClientCert = settings.text(Setting.TLS_CLIENT_CERT);
        options.tlsClientKey = settings.text(Setting.TLS_CLIENT_KEY);
        options.token = settings.text(Setting.TOKEN);
        options.tokenFile = settings.text(Setting.TOKEN_FILE);
        options.isTokenInsecure = settings.flag(Setting.INSECURE_TOKEN);
        options.process = Identity.pairs(labels);
        options.labels = labels;
        options.queueBytes = settings.number(Setting.QUEUE);
        options.blocks = settings.text(Setting.WHEN_FULL).equals("block");
        options.databaseMessages = settings.flag(Setting.DATABASE_MESSAGES);
        try {
            return new Sender(buffers, Session.shared(), options, log);
        } catch (IllegalArgumentException e) {
            String used = Setting.SERVER.fallback();
            log.say(settings.wrong(Setting.SERVER, options.server, e.getMessage(), used));
            options.server = used;
            return new Sender(buffers, Session.shared(), options, log);
        }
    }

    private static Buffers.Options bufferOptions(Settings settings) {
        Buffers.Options options = new Buffers.Options();
        options.words = settings.count(Setting.BUFFER);
        options.threadsMax = settings.count(Setting.THREADS_MAX);
        options.virtualWords = settings.count(Setting.VIRTUAL_BUFFER);
        options.tracesMax = settings.number(Setting.TRACES_MAX);
        options.virtualMax = settings.count(Setting.VIRTUAL_THREADS_MAX);
        options.blockNanos =
                settings.text(Setting.WHEN_FULL).equals("block")
                        ? settings.number(Setting.BLOCK_MAX)
                        : 0;
        return options;
    }

    /**
     * Opens a package, so that the agent can read messages and codes of exceptions without running
     * code of the program.
     */
    private static void open(Instrumentation instrumentation, Module module, String name) {
        Map<String, Set<Module>> opens = Map.of(name, Set.of(Agent.class.getModule()));
        instrumentation.redefineModule(module, Set.of(), Map.of(), opens, Set.of(), Map.of());
    }

    private static AgentLog openLog(Settings settings) {
        boolean detail = settings.flag(Setting.LOG_DETAIL);
        String file = settings.text(Setting.LOG);
        if (!file.isEmpty()) {
            try {
                return AgentLog.toFile(Path.of(file), detail);
            } catch (IOException | RuntimeException e) {
                System.err.println(
                        "tachograph: cannot write the log "
                                + file
                                + ", using standard error: "
                                + e);
            }
        }
        return AgentLog.to(System.err, detail);
    }
}
