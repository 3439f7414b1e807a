package io.tachograph.bootstrap.probe;

/** The SQL dialects that {@link Sql} distinguishes. */
enum SqlDialect {
    POSTGRESQL,
    MYSQL,
    SQLITE,
    SQLSERVER,
    /** Standard SQL with Oracle's {@code q'[...]'}: Oracle, H2, HSQLDB, Derby, Db2. */
    STANDARD,
    /** Unknown: the class belongs to a pool, or to a driver that is not listed. */
    OTHER;

    private static final String[] STANDARDS = {
        "oracle.", "org.h2.", "org.hsqldb.", "org.apache.derby.", "com.ibm.db2."
    };

    private static final ClassValue<SqlDialect> OF_CLASSES =
            new ClassValue<>() {
                @Override
                protected SqlDialect computeValue(Class<?> type) {
                    SqlDialect dialect = OTHER;
                    Class<?> at = type;
                    while (at != null && dialect == OTHER) {
                        dialect = ofName(at.getName());
                        at = at.getSuperclass();
                    }
                    return dialect;
                }
            };

    /**
     * Allocates nothing if the class is known.
     *
     * @param type the class of a connection or a statement; the package of the driver determines
     *     the dialect
     */
    static SqlDialect of(Class<?> type) {
        return OF_CLASSES.get(type);
    }

    static SqlDialect ofName(String name) {
        if (isIn(name, "org.postgresql.")) {
            return POSTGRESQL;
        } else if (isIn(name, "com.mysql.", "org.mariadb.")) {
            return MYSQL;
        } else if (isIn(name, "org.sqlite.")) {
            return SQLITE;
        } else if (isIn(name, "com.microsoft.sqlserver.", "net.sourceforge.jtds.")) {
            return SQLSERVER;
        } else if (isIn(name, STANDARDS)) {
            return STANDARD;
        }
        return OTHER;
    }

    private static boolean isIn(String name, String... packages) {
        for (String prefix : packages) {
            if (name.startsWith(prefix)) {
                return true;
            }
        }
        return false;
    }
}
