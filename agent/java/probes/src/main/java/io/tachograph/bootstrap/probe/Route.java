package io.tachograph.bootstrap.probe;

/**
 * Replaces the ids in a raw path, so that many paths have one route: {@code /ads/17/pictures/3}
 * becomes {@code /ads/{id}/pictures/{id}}. Used if the server's own route is unknown.
 */
final class Route {
    private static final String ID = "{id}";
    private static final int SEGMENTS_MAX = 8;
    private static final int SEGMENT_CHARS_MAX = 40;
    private static final int HEX_CHARS_MIN = 16;

    private Route() {}

    /**
     * Appends the route of {@code path}, which may be null. The route ends before a parameter such
     * as {@code ;jsessionid=17}, a query or a fragment.
     */
    static void append(StringBuilder to, String path) {
        int end = path == null ? 0 : end(path);
        if (end == 0) {
            to.append('/');
            return;
        }
        int from = 0;
        for (int segment = 0; from < end; segment++) {
            if (segment == SEGMENTS_MAX) {
                to.append("/...");
                return;
            }
            int begin = path.charAt(from) == '/' ? from + 1 : from;
            int next = path.indexOf('/', begin);
            int stop = next < 0 || next > end ? end : next;
            to.append('/');
            if (isId(path, begin, stop)) {
                to.append(ID);
            } else {
                to.append(path, begin, stop);
            }
            from = stop;
        }
    }

    private static int end(String path) {
        for (int i = 0; i < path.length(); i++) {
            char c = path.charAt(i);
            if (c == '?' || c == ';' || c == '#') {
                return i;
            }
        }
        return path.length();
    }

    /**
     * True for digits and hyphens, such as a number or a date; for a UUID or another long
     * hexadecimal string; and for a segment that is too long to be a word.
     */
    private static boolean isId(String path, int from, int to) {
        int length = to - from;
        if (length == 0) {
            return false;
        }
        if (length > SEGMENT_CHARS_MAX) {
            return true;
        }
        int digits = 0;
        int letters = 0;
        for (int i = from; i < to; i++) {
            char c = path.charAt(i);
            if (c >= '0' && c <= '9') {
                digits++;
            } else if (c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
                letters++;
            } else if (c != '-') {
                return false;
            }
        }
        return digits > 0 && (letters == 0 || digits + letters >= HEX_CHARS_MIN);
    }
}
