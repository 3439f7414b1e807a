package io.tachograph.probes;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.tachograph.testing.Call;
import io.tachograph.testing.Jdks;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

import shop.JdbcShop;

import java.util.List;
import java.util.stream.Collectors;

/**
 * Statements of H2 through HikariCP. Each execution is recorded once, without data, although the
 * pool wraps the statements. Each wait for a connection is recorded.
 */
class JdbcIT {
    private static final String WAIT = "HikariDataSource.getConnection";

    static List<Integer> jdks() {
        return Jdks.VERSIONS;
    }

    @ParameterizedTest
    @MethodSource("jdks")
    void statementsAreRecordedOnce(int jdk) throws Exception {
        try (Watched shop = new Watched(jdk, JdbcShop.class)) {
            shop.end();
            List<String> expected =
                    List.of(
                            "shop.JdbcShop.create()("
                                    + WAIT
                                    + " create table ad (id int, title varchar(?)))",
                            "shop.JdbcShop.insert()(" + WAIT + " insert into ad values (?, ?))",
                            "shop.JdbcShop.read()("
                                    + WAIT
                                    + " select title from ad where id in (?) select title from ad"
                                    + " where id in (?))",
                            "shop.JdbcShop.plain()("
                                    + WAIT
                                    + " select * from ad where id = ? and title = ? update ad set"
                                    + " title = ? where id in (?) delete from ad where id = ?)",
                            "shop.JdbcShop.broken()(" + WAIT + " select ? from nothing! "
                                    + WAIT
                                    + " select cast(? as int)!)");
            List<String> calls =
                    shop.shapes().stream()
                            .filter(shape -> shape.startsWith("shop."))
                            .collect(Collectors.toList());
            assertEquals(expected, calls);
            Call insert = shop.root("shop.JdbcShop.insert()").children.get(1);
            assertEquals("3", insert.attributes.get("db.batch"));
            assertEquals(4, insert.kind);
            assertEquals(5, shop.root("shop.JdbcShop.read()").children.get(0).kind);
            Call broken = shop.root("shop.JdbcShop.broken()").children.get(1);
            assertTrue(
                    broken.attributes
                            .get("exception")
                            .matches("org\\.h2\\.\\S+ \\(SQLState \\w{5}, code \\d+\\)"),
                    broken.attributes::toString);
            Call cast = shop.root("shop.JdbcShop.broken()").children.get(3);
            assertTrue(cast.attributes.get("exception").contains("SQLState 22018"));
            assertFalse(cast.attributes.toString().contains("s3cret"));
        }
    }
}
