package io.tachograph.core.send;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * {@code class: message} of an exception, without running code of the program: {@code getMessage}
 * may be overridden, and may throw, wait or change something. The message is read from the field.
 * The method is asked of exceptions of {@code java.base} only, some of which put their message
 * together, and of those not that which asks what it wraps, as several of other modules do.
 *
 * <p>Messages of databases hold values and statements, and so do those of what wraps them: of an
 * exception that is or was caused by a {@code java.sql.SQLException}, class and code are told only.
 */
final class ExceptionText {
    /** Causes that are looked at; a chain that is longer, or goes round, is told by class only. */
    private static final int CAUSES_MAX = 16;

    private static final String DATABASE = "java.sql.SQLException";
    private static final VarHandle MESSAGE =
            field(Throwable.class, "detailMessage", String.class);
    private static final VarHandle CAUSE = field(Throwable.class, "cause", Throwable.class);
    private static final VarHandle STATE = field(databaseClass(), "SQLState", String.class);
    private static final VarHandle CODE = field(databaseClass(), "vendorCode", int.class);

    private static final ClassValue<Boolean> IS_OF_DATABASE =
            new ClassValue<>() {
                @Override
                protected Boolean computeValue(Class<?> type) {
                    Class<?> at = type;
                    while (at != null && !at.getName().equals(DATABASE)) {
                        at = at.getSuperclass();
                    }
                    return at != null;
                }
            };

    private static final ClassValue<Boolean> ASKED =
            new ClassValue<>() {
                @Override
                protected Boolean computeValue(Class<?> type) {
                    return type.getClassLoader() == null
                            && type.getModule() == Object.class.getModule()
                            && type.getName().startsWith("java.")
                            && !type.getName().equals("java.io.WriteAbortedException");
                }
            };

    /**
     * Classes of the JDK that keep the cause elsewhere: their {@code getCause} returns a field of
     * theirs. That of {@code Throwable} waits for a lock that the program may hold.
     */
    private static final ClassValue<Boolean> HAS_OWN_CAUSE =
            new ClassValue<>() {
                @Override
                protected Boolean computeValue(Class<?> type) {
                    try {
                        return type.getClassLoader() == null
                                && type.getMethod("getCause").getDeclaringClass()
                                        != Throwable.class;
                    } catch (NoSuchMethodException e) {
                        return false;
                    }
                }
            };

    /** The setting {@code database_messages}, of the process. */
    private static volatile boolean tellsDatabaseMessages;

    private ExceptionText() {}

    static void tellDatabaseMessages(boolean tells) {
        tellsDatabaseMessages = tells;
    }

    static String of(Throwable thrown) {
        Class<?> type = thrown.getClass();
        if (!tellsDatabaseMessages) {
            Throwable at = thrown;
            for (int count = 0; at != null; count++) {
                if (count == CAUSES_MAX) {
                    return type.getName();
                }
                if (IS_OF_DATABASE.get(at.getClass())) {
                    return type.getName() + code(at);
                }
                at = cause(at);
            }
        }
        String message = null;
        if (ASKED.get(type)) {
            message = thrown.getMessage();
        } else if (MESSAGE != null) {
            message = (String) MESSAGE.get(thrown);
        }
        return message == null ? type.getName() : type.getName() + ": " + message;
    }

    private static Throwable cause(Throwable thrown) {
        Throwable cause = CAUSE == null ? null : (Throwable) CAUSE.get(thrown);
        if ((cause == null || cause == thrown) && mayAskForCause(thrown.getClass())) {
            cause = thrown.getCause();
        }
        return cause == thrown ? null : cause;
    }

    /** Where the field cannot be read, a message of a database would be worse than a lock. */
    private static boolean mayAskForCause(Class<?> type) {
        return CAUSE == null ? type.getClassLoader() == null : HAS_OWN_CAUSE.get(type);
    }

    /** A state of another form is no state: a program may put any text there. */
    private static String code(Throwable thrown) {
        if (STATE == null || CODE == null || !databaseClass().isInstance(thrown)) {
            return "";
        }
        String state = (String) STATE.get(thrown);
        int code = (int) CODE.get(thrown);
        boolean isState = state != null && state.matches("[0-9A-Z]{5}");
        return isState ? " (SQLState " + state + ", code " + code + ")" : " (code " + code + ")";
    }

    /** The JDK's; null in a JVM without its module. */
    private static Class<?> databaseClass() {
        try {
            return Class.forName(DATABASE, false, ClassLoader.getPlatformClassLoader());
        } catch (ClassNotFoundException | LinkageError e) {
            return null;
        }
    }

    /** Open to us since {@code Agent} asked the JVM to open its package; null where that failed. */
    private static VarHandle field(Class<?> owner, String name, Class<?> type) {
        if (owner == null) {
            return null;
        }
        try {
            return MethodHandles.privateLookupIn(owner, MethodHandles.lookup())
                    .findVarHandle(owner, name, type);
        } catch (ReflectiveOperationException | RuntimeException e) {
            return null;
        }
    }
}
