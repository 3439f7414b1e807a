package io.tachograph.core.config;

import io.tachograph.core.log.Messages;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;

/** The parsed text of one setting: the value to use, and a fault if the text is wrong. */
final class ValueText {
    private static final String[] DURATION_UNITS = {"ms", "s", "m", ""};
    private static final long[] DURATION_NANOS = {
        1_000_000, 1_000_000_000, 60_000_000_000L, 1_000_000
    };
    private static final String[] SIZE_UNITS = {"KiB", "MiB", "GiB", ""};
    private static final long[] SIZE_BYTES = {1L << 10, 1L << 20, 1L << 30, 1};
    private static final String[] NO_UNIT = {""};
    private static final long[] ONE = {1};

    final Object value;

    /** Description of valid values; empty if the text is valid. */
    final String fault;

    /** If the text is wrong: the value used instead, in the notation of a configuration file. */
    final String used;

    private ValueText(Object value, String fault, String used) {
        this.value = value;
        this.fault = fault;
        this.used = used;
    }

    static ValueText read(Setting setting, String text) {
        Object value = parse(setting.type, text);
        if (value == null) {
            return fallback(setting, Messages.expected(setting.type.form));
        }
        if (setting.least == null) {
            return new ValueText(value, "", "");
        }
        long given = (Long) value;
        long taken = round(setting.type, given);
        if (taken < (Long) parse(setting.type, setting.least)) {
            return fallback(setting, Messages.neededAtLeast(setting.least));
        }
        if (taken > (Long) parse(setting.type, setting.most)) {
            return fallback(setting, Messages.allowedAtMost(setting.most));
        }
        boolean isRound = taken == given;
        String fault = isRound ? "" : Messages.needed(setting.type.form);
        return new ValueText(taken, fault, isRound ? "" : String.valueOf(taken));
    }

    private static ValueText fallback(Setting setting, String fault) {
        return new ValueText(parse(setting.type, setting.fallback), fault, setting.fallback);
    }

    private static long round(Setting.Type type, long number) {
        switch (type) {
            case POWER_OF_TWO:
                return number <= 1 ? number : Long.highestOneBit(number * 2 - 1);
            case MULTIPLE_OF_64:
                return (number + 63) / 64 * 64;
            default:
                return number;
        }
    }

    /** Returns null if the text does not match the type. */
    private static Object parse(Setting.Type type, String text) {
        switch (type) {
            case FLAG:
                return text.equalsIgnoreCase("true")
                        ? Boolean.TRUE
                        : text.equalsIgnoreCase("false") ? Boolean.FALSE : null;
            case NUMBER:
            case POWER_OF_TWO:
            case MULTIPLE_OF_64:
                return scaled(text, NO_UNIT, ONE);
            case DURATION:
                return scaled(text, DURATION_UNITS, DURATION_NANOS);
            case SIZE:
                return scaled(text, SIZE_UNITS, SIZE_BYTES);
            case SHARE:
                return share(text);
            case LIST:
                return list(text);
            case POLICY:
                return text.equals("drop") || text.equals("block") ? text : null;
            default:
                return text;
        }
    }

    private static List<String> list(String text) {
        List<String> parts = new ArrayList<>();
        for (String part : text.split(",")) {
            if (!part.isBlank()) {
                parts.add(part.trim());
            }
        }
        return List.copyOf(parts);
    }

    private static Long scaled(String text, String[] units, long[] factors) {
        for (int at = 0; at < units.length; at++) {
            if (text.endsWith(units[at])) {
                String number = text.substring(0, text.length() - units[at].length()).trim();
                if (number.matches("[0-9]{1,18}")) {
                    long most = Long.MAX_VALUE / 4 / factors[at];
                    return Math.min(most, Long.parseLong(number)) * factors[at];
                }
            }
        }
        return null;
    }

    /** Returns millionths. */
    private static Long share(String text) {
        if (text.equals("0")) {
            return 0L;
        }
        if (!text.matches("[0-9]{1,2}([.][0-9]{1,4})? ?%|100 ?%")) {
            return null;
        }
        String number = text.substring(0, text.length() - 1).trim();
        return new BigDecimal(number).movePointRight(4).longValueExact();
    }
}
