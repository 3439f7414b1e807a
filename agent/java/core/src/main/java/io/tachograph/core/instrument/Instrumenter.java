package io.tachograph.core.instrument;

import io.tachograph.core.config.Setting;
import io.tachograph.core.config.Settings;
import io.tachograph.core.log.AgentLog;

import net.bytebuddy.ByteBuddy;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.dynamic.scaffold.MethodGraph;
import net.bytebuddy.dynamic.scaffold.TypeValidation;
import net.bytebuddy.utility.JavaModule;

import java.lang.instrument.Instrumentation;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** Installs all probes as one transformer. */
public final class Instrumenter {
    /** Never looked at: ourselves, and code that is generated to be thrown away. */
    private static final List<String> OWN =
            List.of("io.tachograph.bootstrap.", "io.tachograph.agent.");

    private static final List<String> JDK =
            List.of(
                    "java.",
                    "javax.management.",
                    "javax.crypto.",
                    "javax.net.",
                    "javax.security.",
                    "jdk.",
                    "sun.",
                    "com.sun.",
                    "org.graalvm.",
                    "org.jcp.xml.");

    /**
     * Keeps Byte Buddy from trying the JDK's Unsafe, at which JDK 24 and later print a warning into
     * the program's output. It is read once, when Byte Buddy's classes are initialised, and is not
     * left behind.
     */
    private static final String SAFE = "net.bytebuddy.safe";

    private Instrumenter() {}

    /**
     * @return how many probes were installed
     */
    public static int install(
            Instrumentation instrumentation, Settings settings, AgentLog log, List<Probe> probes) {
        String before = System.setProperty(SAFE, "true");
        try {
            Class.forName("net.bytebuddy.dynamic.loading.ClassInjector$UsingUnsafe");
            return installAll(instrumentation, settings, log, probes);
        } catch (ClassNotFoundException e) {
            throw new IllegalStateException(e);
        } finally {
            if (before == null) {
                System.clearProperty(SAFE);
            } else {
                System.setProperty(SAFE, before);
            }
        }
    }

    private static int installAll(
            Instrumentation instrumentation, Settings settings, AgentLog log, List<Probe> probes) {
        List<String> wanted = settings.list(Setting.PROBES);
        Set<String> jdkTypes = new HashSet<>();
        AgentBuilder builder = builder(log, jdkTypes);
        ProbeSetup setup = new ProbeSetup(settings, log);
        int installed = 0;
        List<Probe> all = new ArrayList<>(probes);
        all.add(new MethodProbe()); // last, so it lies outermost where two probes meet in a method
        for (Probe probe : all) {
            if (!isWanted(probe.name(), wanted)) {
                continue;
            }
            try {
                builder = probe.install(builder, setup);
                jdkTypes.addAll(probe.jdkTypes());
                installed++;
            } catch (LinkageError e) {
                // A program of modules may leave out the part of the JDK that the probe is about.
                log.detail("the probe " + probe.name() + " is not installed: " + e);
            }
        }
        builder.installOn(instrumentation);
        return installed;
    }

    /**
     * {@code *} is all, a name one, {@code -name} not that one; with nothing but the latter all
     * others are meant.
     */
    private static boolean isWanted(String name, List<String> wanted) {
        boolean others =
                wanted.contains("*") || wanted.stream().allMatch(entry -> entry.startsWith("-"));
        return !wanted.contains("-" + name) && (others || wanted.contains(name));
    }

    private static AgentBuilder builder(AgentLog log, Set<String> jdkTypes) {
        Visibility visibility = new Visibility(log);
        // Advice needs neither checks of generated types nor the graph of inherited methods: both
        // cost start-up time.
        ByteBuddy byteBuddy =
                new ByteBuddy()
                        .with(TypeValidation.DISABLED)
                        .with(MethodGraph.Compiler.ForDeclaredMethods.INSTANCE);
        return new AgentBuilder.Default(byteBuddy)
                .with(AgentBuilder.TypeStrategy.Default.DECORATE)
                .disableClassFormatChanges()
                .with(AgentBuilder.RedefinitionStrategy.RETRANSFORMATION)
                .with(new FaultListener(log))
                .ignore(
                        (type, loader, module, redefined, domain) ->
                                isIgnored(type, loader, jdkTypes) || !visibility.of(loader));
    }

    private static boolean isIgnored(
            TypeDescription type, ClassLoader loader, Set<String> jdkTypes) {
        String name = type.getName();
        if (loader == Instrumenter.class.getClassLoader() || startsWithAny(name, OWN)) {
            return true;
        }
        return startsWithAny(name, JDK) && !jdkTypes.contains(name);
    }

    private static boolean startsWithAny(String name, List<String> prefixes) {
        for (String prefix : prefixes) {
            if (name.startsWith(prefix)) {
                return true;
            }
        }
        return false;
    }

    /** A class that cannot be changed stays as it is, and is named once. */
    private static final class FaultListener extends AgentBuilder.Listener.Adapter {
        private final AgentLog log;

        FaultListener(AgentLog log) {
            this.log = log;
        }

        @Override
        public void onTransformation(
                TypeDescription type,
                ClassLoader loader,
                JavaModule module,
                boolean loaded,
                net.bytebuddy.dynamic.DynamicType dynamicType) {
            log.detail("watching " + type.getName());
        }

        @Override
        public void onError(
                String typeName,
                ClassLoader loader,
                JavaModule module,
                boolean loaded,
                Throwable fault) {
            log.sayOnce("class " + typeName, "cannot watch " + typeName + ": " + fault);
        }
    }
}
