package io.tachograph.core.instrument;

import io.tachograph.core.config.Setting;
import io.tachograph.core.config.Settings;
import io.tachograph.core.log.AgentLog;
import io.tachograph.core.log.Messages;
import io.tachograph.core.send.ProbeMailbox;

import net.bytebuddy.ByteBuddy;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.dynamic.scaffold.MethodGraph;
import net.bytebuddy.dynamic.scaffold.TypeValidation;
import net.bytebuddy.pool.TypePool;
import net.bytebuddy.utility.JavaModule;

import java.lang.instrument.Instrumentation;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * Installs the probes that the settings select, as one class file transformer. The step after is
 * {@link Switchboard}, which switches methods at run time.
 */
public final class Instrumenter {
    /**
     * Property that keeps Byte Buddy from using the JDK's Unsafe. JDK 24 and later print a warning
     * about Unsafe into the output of the program. Byte Buddy reads the property once, when its
     * classes are initialised.
     */
    private static final String SAFE = "net.bytebuddy.safe";

    private final Instrumentation instrumentation;
    private final Settings settings;
    private final AgentLog log;
    private final Scope scope;
    private final Selection selection;
    private final Unwatched unwatched = new Unwatched();
    private final WatchedClasses watched = new WatchedClasses(unwatched);
    private final Moves moves;
    private boolean methodsProbed;

    public Instrumenter(
            Instrumentation instrumentation, Settings settings, Moves moves, AgentLog log) {
        this.moves = moves;
        this.instrumentation = instrumentation;
        this.settings = settings;
        this.log = log;
        this.scope = new Scope(log);
        this.selection = new Selection(settings, moves, log);
    }

    /** @return number of installed probes */
    public int install(List<Probe> probes) {
        String before = System.setProperty(SAFE, "true");
        try {
            Class.forName("net.bytebuddy.dynamic.loading.ClassInjector$UsingUnsafe");
            return installAll(probes);
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

    public Unwatched unwatched() {
        return unwatched;
    }

    public Switchboard switchboard(ProbeMailbox mailbox) {
        Switchboard.Patterns patterns =
                new Switchboard.Patterns(
                        settings.number(Setting.PATTERNS_CHECKED_AFTER), methodsProbed);
        return new Switchboard(
                instrumentation, scope, selection, watched, moves, mailbox, patterns, log);
    }

    private int installAll(List<Probe> probes) {
        Set<String> jdkTypes = new HashSet<>();
        AgentBuilder builder = builder(jdkTypes);
        ProbeSetup setup = new ProbeSetup(settings, log, selection, watched);
        int installed = 0;
        Probe methods = new MethodProbe();
        List<Probe> all = new ArrayList<>(probes);
        all.add(methods); // last: its call is the innermost if several probes match a method
        for (Probe probe : wanted(all)) {
            try {
                setup.of(probe.name());
                builder = probe.install(builder, setup);
                jdkTypes.addAll(probe.jdkTypes());
                installed++;
                methodsProbed |= probe == methods;
            } catch (LinkageError e) {
                // The JVM may lack the module of the JDK whose classes the probe needs.
                log.detail("the probe " + probe.name() + " is not installed: " + e);
            }
        }
        builder.installOn(instrumentation);
        return installed;
    }

    /** Returns the probes that the setting selects. Unknown names are logged. */
    List<Probe> wanted(List<Probe> all) {
        List<String> names = all.stream().map(Probe::name).collect(Collectors.toList());
        List<String> given = settings.list(Setting.PROBES);
        List<String> known = new ArrayList<>(given);
        known.removeIf(
                entry -> !entry.equals("*") && !names.contains(entry.replaceFirst("^-", "")));
        if (known.size() < given.size()) {
            String used = known.isEmpty() ? Setting.PROBES.fallback() : String.join(",", known);
            String allowed = Messages.probesExpected(String.join(", ", names));
            log.say(settings.wrong(Setting.PROBES, String.join(",", given), allowed, used));
            known = List.of(used.split(","));
        }
        List<String> entries = known;
        return all.stream()
                .filter(probe -> isWanted(probe.name(), entries))
                .collect(Collectors.toList());
    }

    /**
     * True if the setting selects the probe: {@code *} selects all probes, a name selects one, and
     * {@code -name} excludes one. A setting with only exclusions selects all other probes, and an
     * empty setting selects none.
     */
    private static boolean isWanted(String name, List<String> wanted) {
        boolean isExcluding = wanted.stream().allMatch(entry -> entry.startsWith("-"));
        boolean others = wanted.contains("*") || isExcluding && !wanted.isEmpty();
        return !wanted.contains("-" + name) && (others || wanted.contains(name));
    }

    private AgentBuilder builder(Set<String> jdkTypes) {
        // Advice needs neither the validation of generated types nor the graph of inherited
        // methods. Both would cost start-up time.
        ByteBuddy byteBuddy =
                new ByteBuddy()
                        .with(TypeValidation.DISABLED)
                        .with(MethodGraph.Compiler.ForDeclaredMethods.INSTANCE);
        return new AgentBuilder.Default(byteBuddy)
                .with(AgentBuilder.TypeStrategy.Default.DECORATE)
                .disableClassFormatChanges()
                .with(AgentBuilder.RedefinitionStrategy.RETRANSFORMATION)
                .with(new Description(selection))
                .with(new FaultListener(log, watched))
                .ignore(
                        (type, loader, module, redefined, domain) ->
                                isIgnored(type.getName(), loader, jdkTypes));
    }

    private boolean isIgnored(String name, ClassLoader loader, Set<String> jdkTypes) {
        return scope.isOwn(name, loader)
                || Scope.isJdk(name) && !jdkTypes.contains(name)
                || !scope.isVisibleIn(loader);
    }

    /**
     * For a loaded class that a rule may match, the description comes from the class file.
     * Reflection would load all parameter and return types, or fail if one of them is missing.
     */
    private static final class Description implements AgentBuilder.DescriptionStrategy {
        private final Selection selection;

        Description(Selection selection) {
            this.selection = selection;
        }

        @Override
        public boolean isLoadedFirst() {
            return false;
        }

        @Override
        public TypeDescription apply(
                String name,
                Class<?> type,
                TypePool pool,
                AgentBuilder.CircularityLock lock,
                ClassLoader loader,
                JavaModule module) {
            boolean byFile =
                    type != null && !Scope.isJdk(name) && selection.list().mayConcern(name);
            return (byFile ? Default.POOL_FIRST : Default.HYBRID)
                    .apply(name, type, pool, lock, loader, module);
        }
    }

    /** Logs which classes are changed, and which cannot be changed. */
    private static final class FaultListener extends AgentBuilder.Listener.Adapter {
        private final AgentLog log;
        private final WatchedClasses watched;

        FaultListener(AgentLog log, WatchedClasses watched) {
            this.log = log;
            this.watched = watched;
        }

        @Override
        public void onTransformation(
                TypeDescription type,
                ClassLoader loader,
                JavaModule module,
                boolean loaded,
                net.bytebuddy.dynamic.DynamicType dynamicType) {
            log.detail("instrumenting " + type.getName());
        }

        @Override
        public void onError(
                String typeName,
                ClassLoader loader,
                JavaModule module,
                boolean loaded,
                Throwable fault) {
            watched.giveUp(loader, typeName, null, fault);
            log.sayOnce("class " + typeName, "cannot watch " + typeName + ": " + fault);
        }
    }
}
