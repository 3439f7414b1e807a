package io.tachograph.agent;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.MalformedURLException;
import java.net.URI;
import java.net.URL;
import java.security.CodeSource;
import java.security.ProtectionDomain;
import java.security.cert.Certificate;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;

/**
 * Loads the agent's own classes, including Byte Buddy, from {@code inst/} in the agent's jar. The
 * parent of this loader is the platform loader. The program and these classes cannot see each
 * other, so both may use different versions of a library.
 */
final class InsideClassLoader extends ClassLoader {
    static {
        registerAsParallelCapable();
    }

    private final JarFile jar;
    private final URI location;
    private final ProtectionDomain domain;

    InsideClassLoader(JarFile jar, URI location) throws MalformedURLException {
        super("tachograph", ClassLoader.getPlatformClassLoader());
        this.jar = jar;
        this.location = location;
        this.domain =
                new ProtectionDomain(
                        new CodeSource(location.toURL(), (Certificate[]) null), null, this, null);
    }

    @Override
    protected Class<?> findClass(String name) throws ClassNotFoundException {
        byte[] bytes;
        try {
            bytes = read(name.replace('.', '/') + ".class");
        } catch (IOException e) {
            throw new ClassNotFoundException(name, e);
        }
        if (bytes == null) {
            throw new ClassNotFoundException(name);
        }
        return defineClass(name, bytes, 0, bytes.length, domain);
    }

    /** Byte Buddy reads the byte code of advice through this method. */
    @Override
    public InputStream getResourceAsStream(String name) {
        try {
            byte[] bytes = read(name);
            return bytes != null
                    ? new ByteArrayInputStream(bytes)
                    : super.getResourceAsStream(name);
        } catch (IOException e) {
            return null;
        }
    }

    @Override
    protected URL findResource(String name) {
        JarEntry entry = jar.getJarEntry(path(name));
        try {
            return entry == null ? null : new URL("jar:" + location + "!/" + entry.getName());
        } catch (MalformedURLException e) {
            return null;
        }
    }

    private byte[] read(String name) throws IOException {
        JarEntry entry = jar.getJarEntry(path(name));
        if (entry == null) {
            return null;
        }
        try (InputStream in = jar.getInputStream(entry)) {
            return in.readAllBytes();
        }
    }

    private static String path(String name) {
        return "inst/" + (name.endsWith(".class") ? name + "data" : name);
    }
}
