package io.tachograph.core;

import io.tachograph.core.config.Setting;
import io.tachograph.core.config.Settings;

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Pattern;

/** The identity of this process: the labels of its series and the pairs of HELLO. */
final class Identity {
    static final String VERSION = "0.1.0";

    private Identity() {}

    /**
     * The labels that all series of this process have: {@code service}, {@code host}, {@code
     * instance}.
     */
    static Map<String, String> labels(Settings settings) {
        Map<String, String> labels = new LinkedHashMap<>();
        String host = either(settings.text(Setting.HOST), hostName());
        labels.put(
                "service",
                either(
                        settings.text(Setting.SERVICE),
                        serviceOf(
                                System.getProperty("sun.java.command", ""),
                                System.getProperty("java.class.path", ""))));
        labels.put("host", host);
        labels.put(
                "instance",
                either(
                        settings.text(Setting.INSTANCE),
                        host + ":" + ProcessHandle.current().pid()));
        return labels;
    }

    /** The pairs of HELLO: the labels, and attributes of the runtime. */
    static Map<String, String> pairs(Map<String, String> labels) {
        Map<String, String> pairs = new LinkedHashMap<>(labels);
        pairs.put("runtime", "Java " + System.getProperty("java.version"));
        pairs.put("vm", System.getProperty("java.vm.name", "unknown"));
        pairs.put("os", System.getProperty("os.name") + " " + System.getProperty("os.arch"));
        pairs.put("pid", String.valueOf(ProcessHandle.current().pid()));
        pairs.put("agent", "tachograph-java " + VERSION);
        pairs.put("control", "1"); // the agent supports PROBES (wire.md)
        return pairs;
    }

    /**
     * Returns {@code com.shop.Main} for {@code com.shop.Main --port 1}, {@code shop} for {@code
     * lib/shop.jar}, and the main class for a module. A {@code .jar} among the arguments of the
     * program has no effect.
     *
     * @param classPath with {@code -jar}, begins with the path of the jar; the path may have spaces
     */
    static String serviceOf(String command, String classPath) {
        String main = command.strip();
        String jar = classPath.split(Pattern.quote(File.pathSeparator), 2)[0].strip();
        int space = main.indexOf(' ');
        String name = space < 0 ? main : main.substring(0, space);
        if (!jar.isEmpty() && (main.equals(jar) || main.startsWith(jar + " "))) {
            name = jar;
        }
        if (name.endsWith(".jar")) {
            int slash = Math.max(name.lastIndexOf('/'), name.lastIndexOf('\\'));
            int end = name.length() - ".jar".length();
            return either(name.substring(slash + 1, end), "unknown");
        }
        return either(name.substring(name.indexOf('/') + 1), "unknown");
    }

    /** Finds the host name without a DNS request, which may take seconds. */
    private static String hostName() {
        String name = System.getenv("HOSTNAME");
        if (name != null && !name.isBlank()) {
            return name;
        }
        for (String file : new String[] {"/proc/sys/kernel/hostname", "/etc/hostname"}) {
            try {
                return either(
                        Files.readString(Path.of(file), StandardCharsets.UTF_8).strip(), "unknown");
            } catch (java.io.IOException | RuntimeException e) {
                // Try the next source.
            }
        }
        return either(System.getenv("COMPUTERNAME"), "unknown");
    }

    private static String either(String first, String second) {
        return first == null || first.isBlank() ? second : first;
    }
}
