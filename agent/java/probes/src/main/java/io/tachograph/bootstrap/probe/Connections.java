package io.tachograph.bootstrap.probe;

import io.tachograph.bootstrap.Operations;
import io.tachograph.bootstrap.Recorder;

/** The wait for a connection: the outermost {@code DataSource.getConnection}. */
public final class Connections {
    private static final ClassValue<Integer> OPERATIONS =
            new ClassValue<>() {
                @Override
                protected Integer computeValue(Class<?> type) {
                    return Recorder.operation(
                            Operations.CONNECTION_WAIT, type.getSimpleName() + ".getConnection");
                }
            };

    private Connections() {}

    /** @return the token of the call */
    public static int enter(Class<?> source) {
        if (!Outermost.enter(Outermost.CONNECTION)) {
            return Outermost.INSIDE;
        }
        return Recorder.enter(OPERATIONS.get(source));
    }

    public static void exit(int call, Throwable thrown) {
        if (call == Outermost.INSIDE) {
            return;
        }
        Outermost.leave(Outermost.CONNECTION);
        if (thrown == null) {
            Recorder.exit(call);
        } else {
            Recorder.exitFailed(call, thrown);
        }
    }
}
