package io.tachograph.overhead.sink;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Kieker's single-socket stream. {@code int -1, int id, int length, bytes} defines the string
 * {@code id}. {@code int id, long time, fields} is a record; the string {@code id} is the name of
 * its class. Numbers are big endian. There are no frames and no answers.
 */
final class KiekerStream implements Receiver {
    private static final int BUFFER_BYTES = 1 << 18;
    private static final int REGISTRY = -1;
    private static final int HEADER_BYTES = 12;
    private static final int STRING_BYTES_MAX = 1 << 20;
    private static final int IDS_MAX = 1 << 20;

    /**
     * Size of the fields of a record, and the number of half calls (enter or exit) that the record
     * reports.
     */
    record Kind(int bytes, int halves) {}

    private static final String PREFIX = "kieker.common.record.";

    private static final Map<String, Kind> KINDS =
            Map.of(
                    PREFIX + "controlflow.OperationExecutionRecord", new Kind(44, 2),
                    PREFIX + "flow.trace.operation.BeforeOperationEvent", new Kind(28, 1),
                    PREFIX + "flow.trace.operation.AfterOperationEvent", new Kind(28, 1),
                    PREFIX + "flow.trace.TraceMetadata", new Kind(36, 0),
                    PREFIX + "flow.trace.ApplicationTraceMetadata", new Kind(40, 0),
                    PREFIX + "misc.KiekerMetadataRecord", new Kind(37, 0));

    @Override
    public void serve(InputStream socket, OutputStream out, Tally tally) throws IOException {
        DataInputStream in = new DataInputStream(new BufferedInputStream(socket, BUFFER_BYTES));
        List<Kind> kinds = new ArrayList<>();
        while (true) {
            int id = in.readInt();
            if (id == REGISTRY) {
                tally.bytes.addAndGet(define(in, kinds));
            } else {
                take(in, kind(kinds, id), tally);
            }
        }
    }

    private static int define(DataInputStream in, List<Kind> kinds) throws IOException {
        int id = in.readInt();
        int length = in.readInt();
        if (length < 0 || length > STRING_BYTES_MAX || id < 0 || id > IDS_MAX) {
            throw new MalformedException("a string with id " + id + " and length " + length);
        }
        String text = new String(in.readNBytes(length), StandardCharsets.UTF_8);
        while (kinds.size() <= id) {
            kinds.add(null);
        }
        kinds.set(id, kindOf(text));
        return 3 * Integer.BYTES + length;
    }

    static void take(DataInputStream in, Kind kind, Tally tally) throws IOException {
        in.skipNBytes(Long.BYTES + kind.bytes());
        tally.bytes.addAndGet(HEADER_BYTES + kind.bytes());
        tally.halves.addAndGet(kind.halves());
    }

    /**
     * The kind of a record with this class name. The size is -1 if the class is unknown. Null if
     * the text is not the name of a record class.
     */
    static Kind kindOf(String text) {
        Kind known = KINDS.get(text);
        return known == null && text.startsWith(PREFIX) ? new Kind(-1, 0) : known;
    }

    static Kind kind(List<Kind> kinds, int id) throws IOException {
        if (id < 0 || id >= kinds.size() || kinds.get(id) == null) {
            throw new MalformedException("a record of the class " + id + ", which is not defined");
        }
        if (kinds.get(id).bytes() < 0) {
            throw new MalformedException("a record of the class " + id + ", whose size is not known");
        }
        return kinds.get(id);
    }

    static boolean isAtEnd(InputStream in) throws IOException {
        in.mark(1);
        boolean end = in.read() < 0;
        if (!end) {
            in.reset();
        }
        return end;
    }

    /** Counts all records of a file, which must not end inside a record. */
    static void takeAll(DataInputStream in, List<Kind> kinds, Tally tally) throws IOException {
        while (!isAtEnd(in)) {
            try {
                take(in, kind(kinds, in.readInt()), tally);
            } catch (EOFException e) {
                throw new MalformedException("the file ends inside a record");
            }
        }
    }
}
