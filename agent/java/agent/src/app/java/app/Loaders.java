package app;

import java.io.IOException;
import java.io.InputStream;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;

/** Creates short-lived class loaders, each with its own recorded class. */
final class Loaders {
    private static final int COLLECTIONS_MAX = 50;

    private Loaders() {}

    /**
     * Creates loaders until a line arrives on standard input, and prints how many loaders were not
     * garbage-collected.
     */
    static void run() throws Exception {
        List<WeakReference<ClassLoader>> made = new ArrayList<>();
        Steady.tellLater();
        while (!Steady.isTold()) {
            made.add(new WeakReference<>(visit()));
            Thread.sleep(5);
        }
        long alive = made.size();
        for (int at = 0; at < COLLECTIONS_MAX && alive > 0; at++) {
            System.gc();
            Thread.sleep(100);
            alive = made.stream().filter(loader -> loader.get() != null).count();
        }
        System.out.println("made " + made.size() + " alive " + alive);
    }

    private static ClassLoader visit() throws Exception {
        ClassLoader loader = new Own();
        Runnable guest =
                (Runnable) loader.loadClass("app.Loaders$Guest").getConstructor().newInstance();
        try {
            guest.run();
        } catch (RuntimeException e) {
            Work.sink++;
        }
        return loader;
    }

    /** Defines the guest and the guest's exception. */
    private static final class Own extends ClassLoader {
        Own() {
            super(Own.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.startsWith("app.Loaders$Guest")) {
                return super.loadClass(name, resolve);
            }
            String file = name.replace('.', '/') + ".class";
            try (InputStream in = getParent().getResourceAsStream(file)) {
                byte[] bytes = in.readAllBytes();
                return defineClass(name, bytes, 0, bytes.length);
            } catch (IOException e) {
                throw new ClassNotFoundException(name, e);
            }
        }
    }

    /** Throws an exception whose class the same loader defines. */
    public static final class Guest implements Runnable {
        @Override
        public void run() {
            throw new GuestException();
        }
    }

    static final class GuestException extends RuntimeException {
        private static final long serialVersionUID = 1;
    }
}
