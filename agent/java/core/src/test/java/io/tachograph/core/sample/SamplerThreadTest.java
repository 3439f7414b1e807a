package io.tachograph.core.sample;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.tachograph.bootstrap.Buffers;
import io.tachograph.bootstrap.Session;
import io.tachograph.core.log.AgentLog;
import io.tachograph.core.send.Sender;

import org.junit.jupiter.api.Test;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

class SamplerThreadTest {
    private final ByteArrayOutputStream said = new ByteArrayOutputStream();
    private final SamplerThread thread;

    SamplerThreadTest() {
        AgentLog log = AgentLog.to(new PrintStream(said), false);
        Session session = new Session(1, 2);
        Buffers buffers = new Buffers(session, new Buffers.Options());
        Sender.Options options = new Sender.Options();
        options.server = Sender.DISCARD;
        options.process = Map.of("service", "test");
        options.queueBytes = 1 << 20;
        Sender sender = new Sender(buffers, session, options, log);
        thread = new SamplerThread(sender, Map.of(), 1, log);
    }

    private static List<String> names(List<Sampler> samplers) {
        return samplers.stream()
                .map(sampler -> sampler.getClass().getSimpleName())
                .collect(Collectors.toList());
    }

    @Test
    void withoutTheModuleJavaManagementTheAgentIsStillSampled() {
        List<Sampler> samplers =
                thread.samplers(
                        () -> {
                            throw new NoClassDefFoundError("java/lang/management");
                        });
        assertEquals(List.of("AgentSampler"), names(samplers));
        assertTrue(said.toString().contains("java.management"), said.toString());
    }

    @Test
    void theJvmAndTheAgentAreSampled() {
        List<Sampler> samplers = thread.samplers(() -> new JvmSampler(new SeriesMaker(Map.of())));
        assertEquals(List.of("JvmSampler", "AgentSampler"), names(samplers));
    }
}
