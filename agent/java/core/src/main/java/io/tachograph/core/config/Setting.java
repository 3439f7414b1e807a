package io.tachograph.core.config;

import io.tachograph.core.log.Messages;

import java.util.Locale;

/**
 * {@code agent/settings.toml} defines the settings of the agents for all languages. The key in a
 * file is the name in lower case; the environment variable is {@code TACHO_} and the name. For
 * example, {@code WHEN_FULL} is {@code when_full} and {@code TACHO_WHEN_FULL}. agent/java/README.md
 * describes each setting and its cost.
 */
public enum Setting {
    // generated: settings (cargo xtask generate, from agent/settings.toml)
    ENABLED(Type.FLAG, "true"),
    SERVER(Type.TEXT, "127.0.0.1:7071"),
    TLS_CA(Type.TEXT, ""),
    TLS_CLIENT_CERT(Type.TEXT, ""),
    TLS_CLIENT_KEY(Type.TEXT, ""),
    TOKEN(Type.SECRET, ""),
    TOKEN_FILE(Type.TEXT, ""),
    INSECURE_TOKEN(Type.FLAG, "false"),
    SERVICE(Type.TEXT, ""),
    HOST(Type.TEXT, ""),
    INSTANCE(Type.TEXT, ""),
    INCLUDE(Type.LIST, ""),
    AGGREGATE(Type.LIST, ""),
    AGGREGATE_ABOVE(Type.NUMBER, "0", "0", "1000000000"),
    OVERHEAD_MAX(Type.SHARE, "0"),
    TRACES_MAX(Type.NUMBER, "0", "0", "1000000000"),
    EXCLUDE(Type.LIST, ""),
    PROBES(Type.LIST, "*"),
    PATTERNS_CHECKED_AFTER(Type.DURATION, "30s", "0", "1440m"),
    REQUEST_ID_HEADERS(Type.LIST, "X-Request-Id,X-Correlation-ID"),
    DATABASE_MESSAGES(Type.FLAG, "false"),
    WHEN_FULL(Type.POLICY, "drop"),
    BLOCK_MAX(Type.DURATION, "100ms", "0", "1440m"),
    BUFFER(Type.POWER_OF_TWO, "32768", "64", "16777216"),
    THREADS_MAX(Type.MULTIPLE_OF_64, "1024", "64", "1048576"),
    VIRTUAL_BUFFER(Type.POWER_OF_TWO, "2048", "64", "16777216"),
    VIRTUAL_THREADS_MAX(Type.MULTIPLE_OF_64, "1024", "64", "1048576"),
    QUEUE(Type.SIZE, "16MiB", "64KiB", "1024GiB"),
    FLUSH_MAX(Type.DURATION, "1500ms", "0", "1440m"),
    SAMPLERS(Type.FLAG, "true"),
    SAMPLE_INTERVAL(Type.DURATION, "5s", "100ms", "1440m"),
    LOG(Type.TEXT, ""),
    LOG_DETAIL(Type.FLAG, "false");
    // generated: end

    /** Defines how the text of a value is parsed. */
    enum Type {
        /** Any text. */
        TEXT(Messages.FORM_TEXT),
        /** A text that is never logged. */
        SECRET(Messages.FORM_TEXT),
        FLAG(Messages.FORM_FLAG),
        /** The action when a buffer is full. */
        POLICY(Messages.FORM_POLICY),
        NUMBER(Messages.FORM_NUMBER),
        POWER_OF_TWO(Messages.FORM_POWER_OF_TWO),
        /** A number of buffers. A pool has a bit for each of its buffers, in words of 64 bits. */
        MULTIPLE_OF_64(Messages.FORM_MULTIPLE_OF_64),
        /** A number of milliseconds, or a number followed by {@code ms}, {@code s} or {@code m}. */
        DURATION(Messages.FORM_DURATION),
        /** A number of bytes, or a number followed by {@code KiB}, {@code MiB} or {@code GiB}. */
        SIZE(Messages.FORM_SIZE),
        /** A number followed by {@code %}, or 0. */
        SHARE(Messages.FORM_SHARE),
        /** Values separated by commas. A file may have an array of strings instead. */
        LIST(Messages.FORM_LIST);

        final String form;

        Type(String form) {
            this.form = form;
        }
    }

    final Type type;
    final String fallback;

    /** Bounds of a number, a duration or a size, inclusive; null for other types. */
    final String least;

    final String most;

    Setting(Type type, String fallback) {
        this(type, fallback, null, null);
    }

    Setting(Type type, String fallback, String least, String most) {
        this.type = type;
        this.fallback = fallback;
        this.least = least;
        this.most = most;
    }

    public String fallback() {
        return fallback;
    }

    public String key() {
        return name().toLowerCase(Locale.ROOT);
    }

    public String variable() {
        return "TACHO_" + name();
    }
}
