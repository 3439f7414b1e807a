package io.tachograph.probes;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.tachograph.testing.Call;

import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import shop.BootShop;
import shop.TomcatShop;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.List;
import java.util.jar.Attributes;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.zip.CRC32;

/** The agent in a program that is a jar of jars, and in a program with a second agent. */
class SurroundingsIT {
    private static final String LOADER = "org/springframework/boot/loader/";

    @TempDir static Path folder;
    private static Path fatJar;

    /** Packs the jar as the build plug-in of Spring Boot does. */
    @BeforeAll
    static void pack() throws IOException {
        fatJar = folder.resolve("shop.jar");
        Manifest manifest = new Manifest();
        Attributes main = manifest.getMainAttributes();
        main.put(Attributes.Name.MANIFEST_VERSION, "1.0");
        main.put(Attributes.Name.MAIN_CLASS, "org.springframework.boot.loader.launch.JarLauncher");
        main.putValue("Start-Class", BootShop.class.getName());
        main.putValue("Spring-Boot-Classes", "BOOT-INF/classes/");
        main.putValue("Spring-Boot-Lib", "BOOT-INF/lib/");
        try (OutputStream file = Files.newOutputStream(fatJar);
                JarOutputStream out = new JarOutputStream(file, manifest);
                JarFile loader = new JarFile(Watched.jars("spring-boot-loader-").get(0).toFile())) {
            for (JarEntry entry : Collections.list(loader.entries())) {
                if (entry.getName().startsWith(LOADER) && !entry.isDirectory()) {
                    try (InputStream in = loader.getInputStream(entry)) {
                        store(out, entry.getName(), in.readAllBytes());
                    }
                }
            }
            for (String directory : List.of("BOOT-INF/", "BOOT-INF/classes/", "BOOT-INF/lib/")) {
                store(out, directory, new byte[0]); // the loader requires these entries
            }
            for (Class<?> type : List.of(BootShop.class, BootShop.Ads.class)) {
                String name = type.getName().replace('.', '/') + ".class";
                try (InputStream in = type.getClassLoader().getResourceAsStream(name)) {
                    store(out, "BOOT-INF/classes/" + name, in.readAllBytes());
                }
            }
            String libraries =
                    "(spring-(?!boot-loader)|tomcat-embed|jackson|micrometer|jakarta|slf4j)";
            for (Path jar : Watched.jars(libraries)) {
                store(out, "BOOT-INF/lib/" + jar.getFileName(), Files.readAllBytes(jar));
            }
        }
    }

    /** Stores an entry without compression, because the loader reads nested jars in place. */
    private static void store(JarOutputStream out, String name, byte[] bytes) throws IOException {
        CRC32 crc = new CRC32();
        crc.update(bytes);
        JarEntry entry = new JarEntry(name);
        entry.setMethod(JarEntry.STORED);
        entry.setSize(bytes.length);
        entry.setCrc(crc.getValue());
        out.putNextEntry(entry);
        out.write(bytes);
        out.closeEntry();
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void aSpringBootJarIsRecorded(int jdk) throws Exception {
        try (Watched boot = Watched.jar(jdk, BootShop.class, fatJar)) {
            assertEquals(200, boot.get("/ads/12345"));
            Call read = boot.root("GET /ads/{id}");
            String ads = "shop.BootShop$Ads.";
            assertEquals(
                    "GET /ads/{id}(" + ads + "ad(String)(" + ads + "price(String)))", read.shape());
            assertFalse(boot.output().contains("cannot watch"), boot.output());
        }
    }

    @ParameterizedTest
    @CsvSource({"17, true", "17, false", "25, true", "25, false"})
    void theAgentOfOpenTelemetryRunsInTheSameProgram(int jdk, boolean first) throws Exception {
        Path other = Watched.jars("opentelemetry-javaagent-").get(0);
        List<String> options =
                List.of(
                        "-javaagent:" + other,
                        "-Dotel.traces.exporter=console",
                        "-Dotel.metrics.exporter=none",
                        "-Dotel.logs.exporter=none");
        try (Watched tomcat = Watched.beside(jdk, TomcatShop.class, options, first)) {
            assertEquals(200, tomcat.get("/shop/ads/7"));
            Call read = tomcat.root("GET /shop/ads/*");
            String filter =
                    "shop.TomcatShop$Pass.doFilter(ServletRequest, ServletResponse, FilterChain)";
            String get = "shop.TomcatShop.doGet(HttpServletRequest, HttpServletResponse)";
            assertEquals("GET /shop/ads/*(" + filter + "(" + get + "))", read.shape());
            assertEquals("200", read.attributes.get("http.status"));
            assertEquals(500, tomcat.get("/shop/broken"));
            assertTrue(tomcat.root("GET /shop/broken").failed);
            assertTrue(tomcat.output().contains("opentelemetry-javaagent - version"));
            assertTrue(tomcat.awaitOutput("'GET /shop/ads/*'"), tomcat.output());
            assertFalse(tomcat.output().contains("tachograph: cannot"), tomcat.output());
        }
    }
}
