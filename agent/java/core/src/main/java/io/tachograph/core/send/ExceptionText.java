package io.tachograph.core.send;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * {@code class: message} of an exception, without running code of the program: {@code getMessage}
 * may be overridden, and may throw, wait or change something. The message is read from the field;
 * of the JDK's own exceptions the method is used.
 */
final class ExceptionText {
    private static final VarHandle MESSAGE = messageField();

    private ExceptionText() {}

    static String of(Throwable thrown) {
        Class<?> type = thrown.getClass();
        String message = null;
        if (type.getClassLoader() == null) {
            message = thrown.getMessage();
        } else if (MESSAGE != null) {
            message = (String) MESSAGE.get(thrown);
        }
        return message == null ? type.getName() : type.getName() + ": " + message;
    }

    /**
     * Open to us since {@code Agent} asked the JVM to open {@code java.lang}; null where that
     * failed.
     */
    private static VarHandle messageField() {
        try {
            return MethodHandles.privateLookupIn(Throwable.class, MethodHandles.lookup())
                    .findVarHandle(Throwable.class, "detailMessage", String.class);
        } catch (ReflectiveOperationException | RuntimeException e) {
            return null;
        }
    }
}
