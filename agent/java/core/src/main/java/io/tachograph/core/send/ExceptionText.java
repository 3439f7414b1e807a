package io.tachograph.core.send;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.Set;

/**
 * Formats an exception as {@code class: message} without running code of the program. A program may
 * override {@code getMessage} with code that throws, waits or changes state. Therefore the message
 * is read from the field of {@code Throwable}. {@code getMessage} is called only on exceptions in
 * the packages {@code java.*} of {@code java.base}, some of which build their message on demand.
 * {@code WriteAbortedException} is excluded, because its {@code getMessage} calls {@code
 * getMessage} of the exception that it wraps. Exceptions in other modules may do the same.
 *
 * <p>Messages of database exceptions, and of exceptions that wrap them, contain values and
 * statements. Unless {@code database_messages} is true, only the class is recorded if the exception
 * or one of its causes is a database exception. The SQLState and the database's error code are
 * added if the first database exception of the chain is a {@code java.sql.SQLException}.
 */
final class ExceptionText {
    /**
     * Maximum number of exceptions of a chain (the exception and its causes) that are searched for
     * a database exception. If none is found and the chain is longer or cyclic, only the class is
     * recorded.
     */
    private static final int CAUSES_MAX = 16;

    private static final String DATABASE = "java.sql.SQLException";

    /** Exceptions of drivers without {@code java.sql}, and of libraries that wrap drivers. */
    private static final Set<String> OTHER_DATABASES =
            Set.of(
                    "io.r2dbc.spi.R2dbcException",
                    "com.mongodb.MongoException",
                    "com.datastax.oss.driver.api.core.DriverException",
                    "com.datastax.driver.core.exceptions.DriverException",
                    "redis.clients.jedis.exceptions.JedisException",
                    "io.lettuce.core.RedisException",
                    "org.redisson.client.RedisException",
                    "org.neo4j.driver.exceptions.Neo4jException",
                    "com.couchbase.client.core.error.CouchbaseException",
                    "com.arangodb.ArangoDBException",
                    "com.influxdb.exceptions.InfluxException",
                    "com.clickhouse.client.api.ClickHouseException",
                    "co.elastic.clients.elasticsearch._types.ElasticsearchException",
                    "org.opensearch.client.opensearch._types.OpenSearchException",
                    "org.springframework.dao.DataAccessException",
                    "jakarta.persistence.PersistenceException",
                    "javax.persistence.PersistenceException",
                    "org.hibernate.HibernateException",
                    "org.jooq.exception.DataAccessException",
                    "org.apache.ibatis.exceptions.PersistenceException");

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
                    while (at != null
                            && !at.getName().equals(DATABASE)
                            && !OTHER_DATABASES.contains(at.getName())) {
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
     * True for a class of the JDK that overrides {@code getCause} and returns the cause from a
     * field of its own. The {@code getCause} of {@code Throwable} must not be called, because it
     * takes a lock that the program may hold.
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

    /**
     * True if {@code getCause} of this class may be called. If the field of {@code Throwable}
     * cannot be read, {@code getCause} is called for every class of the bootstrap loader. The call
     * may wait for a lock, but without the cause, a message of a database might be recorded.
     */
    private static boolean mayAskForCause(Class<?> type) {
        return CAUSE == null ? type.getClassLoader() == null : HAS_OWN_CAUSE.get(type);
    }

    /**
     * Returns the code of a {@code java.sql.SQLException}; empty for other exceptions, or if the
     * code cannot be read. A malformed SQLState is not recorded, because a program may put any text
     * there.
     */
    private static String code(Throwable thrown) {
        if (STATE == null || CODE == null || !databaseClass().isInstance(thrown)) {
            return "";
        }
        String state = (String) STATE.get(thrown);
        int code = (int) CODE.get(thrown);
        boolean isState = state != null && state.matches("[0-9A-Z]{5}");
        return isState ? " (SQLState " + state + ", code " + code + ")" : " (code " + code + ")";
    }

    /** Null in a JVM without the module {@code java.sql}. */
    private static Class<?> databaseClass() {
        try {
            return Class.forName(DATABASE, false, ClassLoader.getPlatformClassLoader());
        } catch (ClassNotFoundException | LinkageError e) {
            return null;
        }
    }

    /** Null if the field is not accessible. {@code Agent} has opened the package of its class. */
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
