package io.tachograph.core;

import io.tachograph.bootstrap.Buffers;
import io.tachograph.bootstrap.Recorder;
import io.tachograph.core.config.Setting;
import io.tachograph.core.config.Settings;
import io.tachograph.core.instrument.Instrumenter;
import io.tachograph.core.instrument.Probe;
import io.tachograph.core.log.AgentLog;
import java.io.IOException;
import java.lang.instrument.Instrumentation;
import java.nio.file.Path;
import java.util.List;

/** The agent's start, in the order in which things happen. */
public final class Agent {
    private Agent() {}

    /**
     * @param arguments path of the configuration file, or null
     * @param probes those for libraries; the method probe is always there
     */
    public static void start(String arguments, Instrumentation instrumentation, List<Probe> probes) {
        Settings settings = Settings.load(arguments, System.getenv());
        AgentLog log = openLog(settings);
        settings.warnings().forEach(log::say);
        if (!settings.flag(Setting.ENABLED)) {
            log.say("switched off by the setting enabled");
            return;
        }
        Buffers buffers = Recorder.start(bufferOptions(settings));
        Instrumenter.install(instrumentation, settings, log, probes);
    }

    private static Buffers.Options bufferOptions(Settings settings) {
        Buffers.Options options = new Buffers.Options();
        options.words = settings.count(Setting.BUFFER);
        options.threadsMax = settings.count(Setting.THREADS_MAX);
        options.virtualWords = settings.count(Setting.VIRTUAL_BUFFER);
        options.virtualMax = settings.count(Setting.VIRTUAL_THREADS_MAX);
        options.blockNanos = settings.text(Setting.WHEN_FULL).equals("block") ? settings.number(Setting.BLOCK_MAX) : 0;
        return options;
    }

    private static AgentLog openLog(Settings settings) {
        boolean detail = settings.flag(Setting.LOG_DETAIL);
        String file = settings.text(Setting.LOG);
        if (!file.isEmpty()) {
            try {
                return AgentLog.toFile(Path.of(file), detail);
            } catch (IOException | RuntimeException e) {
                System.err.println("tachograph: cannot write the log " + file + ", using standard error: " + e);
            }
        }
        return AgentLog.to(System.err, detail);
    }
}
