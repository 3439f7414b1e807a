package io.tachograph.core.send;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import net.bytebuddy.ByteBuddy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.xml.sax.SAXException;

import java.io.WriteAbortedException;
import java.rmi.RemoteException;
import java.sql.SQLException;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;

import javax.naming.NamingException;

class ExceptionTextTest {
    @Test
    void messagesOfDatabasesAndOfWrappersAreNotRecorded() {
        SQLException failed = new SQLException("invalid input: \"s3cret\"", "22P02", 7);
        Throwable wrapped = failed;
        for (int depth = 0; depth < 40; depth++) {
            String text = ExceptionText.of(wrapped);
            assertFalse(text.contains("s3cret"), text);
            assertTrue(text.startsWith(wrapped.getClass().getName()), text);
            wrapped = new IllegalStateException(wrapped);
        }
    }

    /** Exceptions of drivers without {@code java.sql}, and of libraries that wrap drivers. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "io.r2dbc.spi.R2dbcException",
                "com.mongodb.MongoException",
                "redis.clients.jedis.exceptions.JedisException",
                "jakarta.persistence.PersistenceException"
            })
    void messagesOfDriversWithoutJavaSqlAreNotRecorded(String name) throws Exception {
        Class<?> database = made(RuntimeException.class, name, getClass().getClassLoader());
        Class<?> below = made(database, name + "$Below", database.getClassLoader());
        for (Class<?> type : List.of(database, below)) {
            Throwable failed =
                    (Throwable) type.getConstructor(String.class).newInstance("key 's3cret'");
            assertEquals(type.getName(), ExceptionText.of(failed));
            Throwable wrapped = new IllegalStateException("given up: s3cret", failed);
            assertEquals("java.lang.IllegalStateException", ExceptionText.of(wrapped));
        }
        Class<?> other = made(RuntimeException.class, "own." + name, getClass().getClassLoader());
        Throwable failed = (Throwable) other.getConstructor(String.class).newInstance("why");
        assertEquals("own." + name + ": why", ExceptionText.of(failed));
    }

    private static Class<?> made(Class<?> above, String name, ClassLoader loader) {
        return new ByteBuddy().subclass(above).name(name).make().load(loader).getLoaded();
    }

    /** An exception whose overridden methods fail the test if they are called. */
    private static final class Trap extends RuntimeException {
        private static final long serialVersionUID = 1;

        @Override
        public String getMessage() {
            throw new AssertionError("getMessage was run");
        }

        @Override
        public Throwable getCause() {
            throw new AssertionError("getCause was run");
        }

        @Override
        public String toString() {
            throw new AssertionError("toString was run");
        }
    }

    static List<Exception> asking() {
        return List.of(
                new WriteAbortedException("why", new Trap()),
                new RemoteException("why", new Trap()),
                new NamingTrap(),
                saxOf(new Trap()));
    }

    /** {@code SAXException.getMessage} asks the cause, because the exception has no message. */
    private static Exception saxOf(Exception cause) {
        SAXException wrapping = new SAXException();
        wrapping.initCause(cause);
        return wrapping;
    }

    private static final class NamingTrap extends NamingException {
        private static final long serialVersionUID = 1;

        @Override
        public Throwable getRootCause() {
            throw new AssertionError("getRootCause was run");
        }
    }

    @ParameterizedTest
    @MethodSource("asking")
    void noCodeOfTheProgramRuns(Exception wrapping) {
        String text = ExceptionText.of(wrapping);
        assertTrue(text.startsWith(wrapping.getClass().getName()), text);
    }

    /** {@code Throwable.getCause} would wait for the lock. */
    @Test
    void aLockHeldByTheProgramIsNotTaken() throws Exception {
        Throwable thrown = new IllegalStateException("locked");
        FutureTask<String> text = new FutureTask<>(() -> ExceptionText.of(thrown));
        synchronized (thrown) {
            Thread asking = new Thread(text, "asking");
            asking.setDaemon(true);
            asking.start();
            assertEquals(
                    "java.lang.IllegalStateException: locked", text.get(60, TimeUnit.SECONDS));
        }
    }

    @Test
    void otherMessagesAndPermittedDatabaseMessagesAreRecorded() {
        assertEquals(
                "java.lang.IllegalStateException: why",
                ExceptionText.of(new IllegalStateException("why", new RuntimeException())));
        RuntimeException wrapped = new RuntimeException("s3cret", new SQLException());
        ExceptionText.tellDatabaseMessages(true);
        try {
            assertEquals("java.lang.RuntimeException: s3cret", ExceptionText.of(wrapped));
        } finally {
            ExceptionText.tellDatabaseMessages(false);
        }
    }
}
