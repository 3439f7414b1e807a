package io.tachograph.core.config;

import java.util.Locale;

/**
 * Every setting, once. The key in the file is the name in lower case, the environment variable is
 * {@code TACHO_} and the name: {@code WHEN_FULL} is {@code when_full} and {@code TACHO_WHEN_FULL}.
 * What each costs is told in README.md.
 */
public enum Setting {
    ENABLED(Type.FLAG, "true"),
    SERVER(Type.TEXT, "127.0.0.1:7071"),
    SERVICE(Type.TEXT, ""),
    HOST(Type.TEXT, ""),
    INSTANCE(Type.TEXT, ""),
    INCLUDE(Type.LIST, ""),
    AGGREGATE(Type.LIST, ""),
    AGGREGATE_ABOVE(Type.NUMBER, "0"),
    OVERHEAD_MAX(Type.SHARE, "0"),
    TRACES_MAX(Type.NUMBER, "0"),
    EXCLUDE(Type.LIST, ""),
    PROBES(Type.LIST, "*"),
    PATTERNS_CHECKED_AFTER(Type.DURATION, "30s"),
    WHEN_FULL(Type.TEXT, "drop"),
    BLOCK_MAX(Type.DURATION, "100ms"),
    BUFFER(Type.NUMBER, "32768"),
    THREADS_MAX(Type.NUMBER, "1024"),
    VIRTUAL_BUFFER(Type.NUMBER, "2048"),
    VIRTUAL_THREADS_MAX(Type.NUMBER, "1024"),
    QUEUE(Type.SIZE, "16MiB"),
    FLUSH_MAX(Type.DURATION, "1500ms"),
    SAMPLERS(Type.FLAG, "true"),
    SAMPLE_INTERVAL(Type.DURATION, "5s"),
    REQUEST_ID_HEADERS(Type.LIST, "X-Request-Id,X-Correlation-ID"),
    LOG(Type.TEXT, ""),
    LOG_DETAIL(Type.FLAG, "false");

    /** How the text of a value is read. */
    enum Type {
        /** As it is. */
        TEXT,
        /** {@code true} or {@code false}. */
        FLAG,
        /** A whole number from 0. */
        NUMBER,
        /** A number of milliseconds, or a number with {@code ms}, {@code s} or {@code m}. */
        DURATION,
        /** A number of bytes, or a number with {@code KiB}, {@code MiB} or {@code GiB}. */
        SIZE,
        /** A number with {@code %}, or 0. */
        SHARE,
        /** Values with commas between; in the file also an array of strings. */
        LIST
    }

    final Type type;
    final String fallback;

    Setting(Type type, String fallback) {
        this.type = type;
        this.fallback = fallback;
    }

    /** What counts where nothing is set. */
    public String fallback() {
        return fallback;
    }

    /** Name in the file. */
    public String key() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** Name in the environment. */
    public String variable() {
        return "TACHO_" + name();
    }
}
