package io.tachograph.bootstrap.probe;

/** SQL dialects, as far as {@link Sql} distinguishes them. */
enum SqlDialect {
    POSTGRESQL,
    MYSQL,
    SQLITE,
    SQLSERVER,
    /** Standard SQL and Oracle's {@code q'[...]'}: Oracle, H2, HSQLDB, Derby, Db2. */
    STANDARD,
    /** Unknown: a class of a pool, or a driver that is not listed. */
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
     * Allocates nothing for a known class.
     *
     * @param type of a connection or a statement: the package of the driver determines the dialect
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
