package io.tachograph.core.config;

import io.tachograph.core.log.Messages;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * The settings of this process. The environment overrides the file, and the file overrides the
 * defaults. A wrong value is reported with its place, and the default applies, because a monitoring
 * agent must not keep a program from starting. A number that should be a power of two or a multiple
 * of 64 is rounded up. If {@code tls_ca} or the token cannot be read, the agent does not connect.
 */
public final class Settings {
    private static final String PREFIX = "TACHO_";

    /** Variables of the command line and the server. The environment may contain them too. */
    private static final Set<String> FOREIGN =
            Set.of(
                    "TACHO_AGENT_JAR",
                    "TACHO_CONFIG",
                    "TACHO_DATA",
                    "TACHO_HTTP",
                    "TACHO_RECORDS",
                    "TACHO_URL");

    /**
     * Used as {@code tls_ca} or {@code token_file} if the given value cannot be read. No file has
     * this path, so the agent does not connect. With an empty value, the agent would connect
     * without encryption or without a token.
     */
    static final String UNREADABLE = "<unreadable>";

    /**
     * Used as {@code token} if the given value cannot be read. It is not a valid token. An
     * environment variable cannot contain this character, so no value of {@code TACHO_TOKEN} equals
     * it.
     */
    static final String UNREADABLE_TOKEN = "\0";

    /** If one of these settings cannot be read, the agent must not connect. */
    private static final Set<Setting> REQUIRED =
            EnumSet.of(Setting.TLS_CA, Setting.TOKEN, Setting.TOKEN_FILE);

    // generated: others (cargo xtask generate, from agent/settings.toml)
    private static final Set<String> OTHERS =
            Set.of("strands_max", "pending", "signals", "children");
    // generated: end

    private final Map<Setting, Object> values = new EnumMap<>(Setting.class);
    private final List<String> warnings = new ArrayList<>();

    /** The source of each given setting: the file and the key, or the variable. */
    private final Map<Setting, String> places = new EnumMap<>(Setting.class);

    private Settings() {}

    /**
     * @param file path of the file from the agent's argument; null or empty for none
     * @param environment the variables; only those that begin with {@code TACHO_} are read
     */
    public static Settings load(String file, Map<String, String> environment) {
        Settings settings = new Settings();
        for (Setting setting : Setting.values()) {
            settings.values.put(setting, ValueText.read(setting, setting.fallback).value);
        }
        if (file != null && !file.isBlank()) {
            settings.takeFile(file.trim());
        }
        environment.forEach(
                (name, value) -> {
                    if (name.startsWith(PREFIX) && !FOREIGN.contains(name)) {
                        settings.take("", name, value);
                    }
                });
        if (!environment.getOrDefault(Setting.TOKEN_FILE.variable(), "").isEmpty()
                && settings.text(Setting.TOKEN).equals(UNREADABLE_TOKEN)) {
            // TACHO_TOKEN_FILE overrides an unreadable token of the configuration file.
            settings.values.put(Setting.TOKEN, "");
        }
        for (Setting setting : List.of(Setting.TLS_CLIENT_CERT, Setting.TLS_CLIENT_KEY)) {
            if (settings.text(Setting.TLS_CA).isEmpty() && !settings.text(setting).isEmpty()) {
                settings.warnings.add(Messages.tlsUseless(setting.key()));
            }
        }
        return settings;
    }

    public List<String> warnings() {
        return warnings;
    }

    public String text(Setting setting) {
        return (String) values.get(setting);
    }

    public boolean flag(Setting setting) {
        return (Boolean) values.get(setting);
    }

    /** Durations in ns, sizes in bytes, shares in millionths. */
    public long number(Setting setting) {
        return (Long) values.get(setting);
    }

    public int count(Setting setting) {
        return (int) Math.min(Integer.MAX_VALUE, number(setting));
    }

    @SuppressWarnings("unchecked")
    public List<String> list(Setting setting) {
        return (List<String>) values.get(setting);
    }

    private void takeFile(String path) {
        String text;
        try {
            text = Files.readString(Path.of(path), StandardCharsets.UTF_8);
        } catch (IOException | RuntimeException e) {
            warnings.add("cannot read the configuration " + path + ": " + e);
            // The file may contain these settings.
            values.put(Setting.TLS_CA, UNREADABLE);
            values.put(Setting.TOKEN, UNREADABLE_TOKEN);
            return;
        }
        ConfigFile file = ConfigFile.parse(text);
        file.faults().forEach(fault -> warnings.add(path + " " + fault));
        Set<Setting> unreadable = EnumSet.noneOf(Setting.class);
        REQUIRED.stream()
                .filter(setting -> names(file.skipped(), setting))
                .forEach(unreadable::add);
        for (Map.Entry<String, String> value : file.values().entrySet()) {
            String key = value.getKey();
            Setting setting = find(key);
            if (REQUIRED.contains(setting) && file.arrays().contains(key)) {
                places.put(setting, path + " " + key);
                unreadable.add(setting);
            } else {
                take(path + " ", key, value.getValue());
            }
        }
        for (Setting setting : unreadable) {
            if (text(setting).isEmpty()) {
                places.putIfAbsent(setting, path + " " + setting.key());
                refuse(setting, "?");
            }
        }
    }

    private void refuse(Setting setting, String text) {
        if (setting == Setting.TOKEN) {
            values.put(setting, UNREADABLE_TOKEN);
            String allowed = Messages.expected(setting.type.form);
            warnings.add(Messages.tokenUnusable(places.get(setting), allowed));
            return;
        }
        values.put(setting, UNREADABLE);
        String allowed = Messages.expected("the path of a file");
        warnings.add(wrong(setting, text, allowed, UNREADABLE));
    }

    /** True if the text contains the key of the setting as a whole word. */
    private static boolean names(String text, Setting setting) {
        return Pattern.compile("(?i)(?<![a-z0-9_])" + setting.key() + "(?![a-z0-9_])")
                .matcher(text)
                .find();
    }

    /**
     * @param place prefix of the name in messages: the file; empty for a variable
     */
    private void take(String place, String name, String text) {
        boolean isVariable = place.isEmpty();
        String bare = isVariable ? name.substring(PREFIX.length()) : name;
        Setting setting = find(bare);
        if (setting == null) {
            warnings.add(unknown(place + name, bare, isVariable));
            return;
        }
        places.put(setting, place + name);
        boolean isSecret = setting.type == Setting.Type.SECRET;
        if (REQUIRED.contains(setting) && !isSecret && !text.isEmpty() && text.isBlank()) {
            refuse(setting, text);
            return;
        }
        // A secret is not trimmed: a token with blanks is refused later.
        ValueText value = ValueText.read(setting, isSecret ? text : text.trim());
        if (!value.fault.isEmpty()) {
            warnings.add(wrong(setting, text, value.fault, value.used));
        }
        values.put(setting, value.value);
    }

    private static String unknown(String given, String bare, boolean isVariable) {
        if (OTHERS.contains(bare.toLowerCase(Locale.ROOT))) {
            return Messages.settingElsewhere(given, "Java");
        }
        String nearest = nearest(bare, isVariable);
        return nearest == null
                ? Messages.settingUnknown(given)
                : Messages.settingNear(given, nearest);
    }

    /**
     * @param allowed description of valid values
     * @param used the value used instead
     */
    public String wrong(Setting setting, String value, String allowed, String used) {
        String place = places.getOrDefault(setting, setting.variable());
        String instead = used.isEmpty() ? Messages.SETTING_DEFAULT : used;
        return Messages.settingWrong(place, value, allowed, instead);
    }

    private static Setting find(String name) {
        for (Setting setting : Setting.values()) {
            if (setting.name().equalsIgnoreCase(name)) {
                return setting;
            }
        }
        return null;
    }

    private static String nearest(String name, boolean variable) {
        Setting best = null;
        int distance = 4;
        for (Setting setting : Setting.values()) {
            int here = distance(setting.key(), name.toLowerCase(Locale.ROOT));
            if (here < distance) {
                distance = here;
                best = setting;
            }
        }
        return best == null ? null : variable ? best.variable() : best.key();
    }

    /** Levenshtein (1966): insertions, deletions and replacements between two short strings. */
    private static int distance(String a, String b) {
        int[] row = new int[b.length() + 1];
        for (int j = 0; j <= b.length(); j++) {
            row[j] = j;
        }
        for (int i = 1; i <= a.length(); i++) {
            int diagonal = row[0];
            row[0] = i;
            for (int j = 1; j <= b.length(); j++) {
                int replaced = diagonal + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
                diagonal = row[j];
                row[j] = Math.min(replaced, Math.min(row[j], row[j - 1]) + 1);
            }
        }
        return row[b.length()];
    }
}
