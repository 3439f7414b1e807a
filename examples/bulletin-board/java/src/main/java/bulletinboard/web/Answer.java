package bulletinboard.web;

import java.util.Map;

record Answer(int status, String text, Map<String, String> headers) {

    static Answer ok(String text) {
        return new Answer(200, text, Map.of());
    }

    static Answer error(int status, String message) {
        return new Answer(status, message + "\n", Map.of());
    }
}
