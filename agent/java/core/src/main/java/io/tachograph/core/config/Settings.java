package io.tachograph.core.config;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/**
 * The settings of this process: environment over file over defaults. A wrong value is named, with
 * its place, and the default is used: a monitoring agent must not keep a program from starting.
 */
public final class Settings {
    private final Map<Setting, Object> values = new EnumMap<>(Setting.class);
    private final List<String> warnings = new ArrayList<>();

    private Settings() {}

    /**
     * @param file path of the file from the agent's argument; null or empty for none
     * @param environment the variables; those that begin with {@code TACHO_} are looked at
     */
    public static Settings load(String file, Map<String, String> environment) {
        Settings settings = new Settings();
        for (Setting setting : Setting.values()) {
            settings.values.put(setting, settings.read(setting, setting.fallback));
        }
        if (file != null && !file.isBlank()) {
            settings.takeFile(file.trim());
        }
        environment.forEach(
                (name, value) -> {
                    if (name.startsWith("TACHO_")) {
                        settings.take(
                                name.substring("TACHO_".length()),
                                value,
                                "environment " + name,
                                name);
                    }
                });
        return settings;
    }

    /** What was wrong, one line each. */
    public List<String> warnings() {
        return warnings;
    }

    public String text(Setting setting) {
        return (String) values.get(setting);
    }

    public boolean flag(Setting setting) {
        return (Boolean) values.get(setting);
    }

    /** Numbers as they are, durations in ns, sizes in bytes, shares in millionths. */
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
            return;
        }
        ConfigFile file = ConfigFile.parse(text);
        file.faults().forEach(fault -> warnings.add(path + " " + fault));
        file.values().forEach((key, value) -> take(key, value, path + " key " + key, key));
    }

    private void take(String name, String text, String place, String asWritten) {
        Setting setting = find(name);
        if (setting == null) {
            String nearest = nearest(name, asWritten.startsWith("TACHO_"));
            warnings.add(
                    place
                            + ": there is no such setting"
                            + (nearest == null ? "" : ", did you mean " + nearest + "?"));
            return;
        }
        Object value = read(setting, text.trim());
        if (value == null) {
            warnings.add(
                    place
                            + ": "
                            + expected(setting)
                            + " was expected, not \""
                            + text
                            + "\"; using "
                            + (setting.fallback.isEmpty() ? "the default" : setting.fallback));
        } else {
            values.put(setting, value);
        }
    }

    private static Setting find(String name) {
        for (Setting setting : Setting.values()) {
            if (setting.name().equalsIgnoreCase(name)) {
                return setting;
            }
        }
        return null;
    }

    /** Null if the text is not of the setting's type. */
    private Object read(Setting setting, String text) {
        switch (setting.type) {
            case FLAG:
                return text.equalsIgnoreCase("true")
                        ? Boolean.TRUE
                        : text.equalsIgnoreCase("false") ? Boolean.FALSE : null;
            case NUMBER:
                return scaled(text, new String[] {""}, new long[] {1});
            case DURATION:
                return scaled(
                        text,
                        new String[] {"ms", "s", "m", ""},
                        new long[] {1_000_000, 1_000_000_000, 60_000_000_000L, 1_000_000});
            case SIZE:
                return scaled(
                        text,
                        new String[] {"KiB", "MiB", "GiB", ""},
                        new long[] {1L << 10, 1L << 20, 1L << 30, 1});
            case SHARE:
                return share(text);
            case LIST:
                List<String> parts = new ArrayList<>();
                for (String part : text.split(",")) {
                    if (!part.isBlank()) {
                        parts.add(part.trim());
                    }
                }
                return List.copyOf(parts);
            default:
                return setting != Setting.WHEN_FULL || text.equals("drop") || text.equals("block")
                        ? text
                        : null;
        }
    }

    private static Long scaled(String text, String[] units, long[] factors) {
        for (int at = 0; at < units.length; at++) {
            String unit = units[at];
            String number =
                    text.endsWith(unit)
                            ? text.substring(0, text.length() - unit.length()).trim()
                            : "";
            if (number.matches("[0-9]{1,9}")) {
                return Long.parseLong(number) * factors[at];
            }
        }
        return null;
    }

    /** Millionths. */
    private static Long share(String text) {
        if (text.equals("0")) {
            return 0L;
        }
        if (!text.matches("[0-9]{1,2}([.][0-9]{1,4})? ?%|100 ?%")) {
            return null;
        }
        String number = text.substring(0, text.length() - 1).trim();
        return new java.math.BigDecimal(number).movePointRight(4).longValueExact();
    }

    private static String expected(Setting setting) {
        switch (setting.type) {
            case SHARE:
                return "a share such as 1% or 0.5%";
            case FLAG:
                return "true or false";
            case NUMBER:
                return "a whole number";
            case DURATION:
                return "a duration such as 100ms or 5s";
            case SIZE:
                return "a size such as 16MiB";
            default:
                return setting == Setting.WHEN_FULL ? "drop or block" : "another value";
        }
    }

    private static String nearest(String name, boolean variable) {
        Setting best = null;
        int distance = 4;
        for (Setting setting : Setting.values()) {
            int here = distance(setting.key(), name.toLowerCase(java.util.Locale.ROOT));
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
