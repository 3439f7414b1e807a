package io.tachograph.bootstrap.probe;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.Random;

class SqlTest {
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '\u0001',
            textBlock =
                    """
select 1                                        | select ?
select * from ad where id=17                    | select * from ad where id=?
select * from ad where id = -17                 | select * from ad where id = -?
select 1.5e-3, 0xFF, 1E+6, .5                   | select ?, ?, ?, .?
select t1.a2 from t1 where a2 = 3               | select t1.a2 from t1 where a2 = ?
select 'it''s', E'it\\'s', N'x', '' from t      | select ?, ?, ?, ? from t
select $$a 'b' 1$$, $tag$ x $$ y $tag$, $1      | select ?, ?, ?
select "a 1", `b 2` from "t 3"                  | select "a 1", `b 2` from "t 3"
select a -- 'not a string                       | select a
select /* 1 */ a /* open                        | select a
select a from t where b in (1, 2,3)             | select a from t where b in (?)
select a from t where b IN(?,?,?) and c = ?     | select a from t where b IN(?) and c = ?
select a from t where b in ('x', 'y') or c in(1)| select a from t where b in (?) or c in(?)
select a from t where b in (select c from d)    | select a from t where b in (select c from d)
select min(1, 2, 3)                             | select min(?, ?, ?)
insert into t (a, b) values (1, 'x')            | insert into t (a, b) values (?, ?)
insert into t values (1,2), (3,4), (5,6),(7,8)  | insert into t values (?, ?), ...
insert into t values (?, ?), (?, ?) returning a | insert into t values (?, ?), ... returning a
update t set a = 'x' where b = :name            | update t set a = ? where b = :name
select a ;                                      | select a
select 'open string                             | select ?
SELECT ö, 漢 FROM größe WHERE ä = 'ö'            | SELECT ö, 漢 FROM größe WHERE ä = ?
""")
    void keepsTheShapeAndDropsTheData(String text, String shape) {
        assertEquals(shape, Sql.shape(text));
    }

    @Test
    void foldsWhiteSpace() {
        assertEquals(
                "select a from t where b = ?",
                Sql.shape("\n select a\t\r\n   from t\nwhere b = 1 \n"));
        assertEquals("f(a, b)", Sql.shape("f( a , b )"));
    }

    @Test
    void longTextsAreCut() {
        assertEquals(Sql.NAME_CHARS_MAX, Sql.shape("select " + "a, ".repeat(5_000)).length());
        assertTrue(Sql.shape("select " + "a, ".repeat(5_000)).endsWith("..."));
        StringBuilder bulk = new StringBuilder("insert into t values (0, 'x')");
        for (int i = 1; i < 100_000; i++) {
            bulk.append(", (").append(i).append(", 'x')");
        }
        assertEquals(
                "insert into t values (?, ?), ...",
                Sql.shape(bulk.toString()),
                "read in part only");
    }

    @Test
    void anyTextHasAShape() {
        Random random = new Random(1);
        String signs = "'\"`$-/*?(),;: \n\\ab1Eein.漢\ud83d";
        for (int round = 0; round < 50_000; round++) {
            StringBuilder text = new StringBuilder();
            for (int length = random.nextInt(40); length > 0; length--) {
                text.append(signs.charAt(random.nextInt(signs.length())));
            }
            assertTrue(Sql.shape(text.toString()).length() <= Sql.NAME_CHARS_MAX, text::toString);
        }
        assertEquals("", Sql.shape(null));
        assertEquals("", Sql.shape(""));
    }
}
