package io.tachograph.overhead;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The figures of one fork. {@code json} is one line, ready to be kept. */
record Result(Setup setup, String json) {

    /**
     * @return a figure by its name, NaN when the fork did not tell it
     */
    double figure(String name) {
        Matcher found = Pattern.compile('"' + Pattern.quote(name) + "\":(-?[0-9.]+)").matcher(json);
        return found.find() ? Double.parseDouble(found.group(1)) : Double.NaN;
    }
}
