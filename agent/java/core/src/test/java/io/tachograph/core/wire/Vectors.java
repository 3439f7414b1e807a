package io.tachograph.core.wire;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The cases of {@code testdata/wire/*.vec}. */
public final class Vectors {
    private static final Path FOLDER = Path.of("../../../testdata/wire");

    /** Keys and values, in order, and the whole frame. */
    public record Case(String name, List<Map.Entry<String, String>> keys, byte[] frame) {
        public String one(String key) {
            return keys.stream()
                    .filter(entry -> entry.getKey().equals(key))
                    .findFirst()
                    .orElseThrow()
                    .getValue();
        }

        public List<String> all(String key) {
            return keys.stream()
                    .filter(entry -> entry.getKey().equals(key))
                    .map(Map.Entry::getValue)
                    .collect(java.util.stream.Collectors.toList());
        }

        boolean has(String key) {
            return keys.stream().anyMatch(entry -> entry.getKey().equals(key));
        }

        long number(String key) {
            return new java.math.BigInteger(one(key))
                    .longValue(); // both signed and unsigned numbers occur
        }
    }

    private Vectors() {}

    public static Map<String, Case> read(String file) throws IOException {
        Map<String, Case> cases = new LinkedHashMap<>();
        String name = null;
        List<Map.Entry<String, String>> keys = new ArrayList<>();
        for (String line : Files.readAllLines(FOLDER.resolve(file))) {
            if (line.startsWith("case ")) {
                name = line.substring("case ".length());
                keys = new ArrayList<>();
            } else if (line.startsWith("hex = ")) {
                cases.put(
                        name,
                        new Case(
                                name,
                                keys,
                                HexFormat.of().parseHex(line.substring("hex = ".length()))));
            } else if (line.contains(" =") && !line.startsWith("#")) {
                int equals = line.indexOf(" =");
                keys.add(
                        Map.entry(
                                line.substring(0, equals),
                                line.substring(Math.min(line.length(), equals + 3))));
            }
        }
        return cases;
    }
}
