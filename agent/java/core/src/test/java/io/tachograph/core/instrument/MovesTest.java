package io.tachograph.core.instrument;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.tachograph.bootstrap.Operations;
import io.tachograph.core.log.AgentLog;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.util.stream.Collectors;

class MovesTest {
    private final Moves moves =
            new Moves(AgentLog.to(new PrintStream(new ByteArrayOutputStream()), false));
    private final StringBuilder done = new StringBuilder();

    private void act(String action) {
        int operation = Operations.shared().id(Operations.METHOD, "a.B.c()");
        switch (action) {
            case "move" -> moves.aggregate(operation, "rate");
            case "off" -> moves.switchOff(operation, "budget");
            case "leave" -> moves.excludeTraces("rate");
            case "keep" -> moves.keepTraces();
            case "exhausted" -> moves.exhausted("budget");
            default -> moves.relieved();
        }
        done.append('|');
    }

    @ParameterizedTest
    @CsvSource({
        "move, follow|, a.B.c()",
        "move move, follow||, a.B.c()",
        "off, follow|, a.B.c()",
        "off off, follow||, a.B.c()",
        "move off, follow|follow|, a.B.c()",
        "leave, tell|, (traces)",
        "leave leave, tell||, (traces)",
        "leave keep keep, tell|tell||, ''",
        "exhausted, tell|, (all)",
        "exhausted exhausted relieved relieved, tell||tell||, ''",
        "keep relieved, ||, ''",
    })
    void eachChangeIsAppliedOnce(String actions, String expected, String left) {
        moves.listen(() -> done.append("follow"), () -> done.append("tell"));
        for (String action : actions.split(" ")) {
            act(action);
        }
        assertEquals(expected, done.toString());
        assertEquals(
                left,
                moves.all().stream().map(move -> move.operation).collect(Collectors.joining(" ")));
    }
}
