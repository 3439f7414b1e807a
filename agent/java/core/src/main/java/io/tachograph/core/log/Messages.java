package io.tachograph.core.log;

/**
 * Log lines and faults that the agents report in the same words. {@code agent/messages.toml}
 * defines them for all languages; this agent may use only some.
 */
public final class Messages {
    private Messages() {}

    // generated: messages (cargo xtask generate, from agent/messages.toml)
    public static String allowedAtMost(Object most) {
        return "at most " + most + " is allowed";
    }

    public static String callsDropped(Object calls, Object remedy) {
        return calls + " calls were dropped so far, usually because a buffer was full: " + remedy;
    }

    public static String connected(Object server) {
        return "connected to " + server;
    }

    public static String connectedAfter(Object server, Object seconds, Object dropped) {
        return "connected to " + server + " after " + seconds + " s; " + dropped;
    }

    public static final String DROPPED_NOTHING = "nothing was dropped in the meantime";

    public static String droppedSome(Object calls, Object samples, Object entries) {
        return calls
                + " calls, "
                + samples
                + " samples and "
                + entries
                + " entries were dropped in the meantime";
    }

    public static String endUnacknowledged(Object unsent) {
        return "the program ends before the server has everything: "
                + unsent
                + " bytes of records are not acknowledged";
    }

    public static String expected(Object form) {
        return "expected " + form;
    }

    public static final String FORM_ADDRESS = "host:port";

    public static final String FORM_DURATION = "a duration such as 100ms or 5s";

    public static final String FORM_FLAG = "true or false";

    public static final String FORM_LIST = "a list";

    public static final String FORM_MULTIPLE_OF_64 = "a multiple of 64";

    public static final String FORM_NUMBER = "a whole number";

    public static final String FORM_POLICY = "drop or block";

    public static final String FORM_POWER_OF_TWO = "a power of two";

    public static final String FORM_SHARE = "a share such as 1% or 0.5%";

    public static final String FORM_SIZE = "a size such as 16MiB";

    public static final String FORM_TEXT = "a text";

    public static String frameEarly(Object frame) {
        return "frame type " + frame + " came before WELCOME";
    }

    public static String needed(Object form) {
        return form + " is needed";
    }

    public static String neededAtLeast(Object least) {
        return "at least " + least + " is needed";
    }

    public static final String ONCE = "once";

    public static String patternCharacter(Object character, Object pattern) {
        return "'" + character + "' cannot be part of a pattern: " + pattern;
    }

    public static String patternDot(Object pattern) {
        return "a dot is out of place in the pattern: " + pattern;
    }

    public static String probesExpected(Object names) {
        return "expected * or names, each with or without a leading -; the names are " + names;
    }

    public static String reconnected(Object server, Object times, Object dropped) {
        return "connected to "
                + server
                + " again; the connection failed "
                + times
                + " since the last message about it; "
                + dropped;
    }

    public static String reconnectedAfter(Object server, Object seconds, Object dropped) {
        return "connected again to " + server + " after " + seconds + " s; " + dropped;
    }

    public static String recordRefused(Object frame, Object record, Object why) {
        return "the server refused a record (frame " + frame + ", record " + record + "): " + why;
    }

    public static String ruleStateUnknown(Object state) {
        return "state " + state + " is not known here";
    }

    public static final String SERVER_CLOSED = "the server closed the connection";

    public static final String SERVER_IS_FULL = "the server is full and asked to wait";

    public static final String SERVER_IS_HTTP = "it answers with HTTP; agents connect to a different port, usually 7071";

    public static String serverIsOther(Object why) {
        return "this is not the agent port of a tacho server: " + why;
    }

    public static String serverLost(Object server, Object why) {
        return "lost the server "
                + server
                + ": "
                + why
                + "; the program goes on, the agent keeps trying";
    }

    public static String serverRefuses(Object message, Object code) {
        return "the server refuses: " + message + " (error " + code + ")";
    }

    public static String serverSilent(Object time) {
        return "the server has not answered for " + time;
    }

    public static String serverUnreachable(Object server, Object why) {
        return "cannot reach the server "
                + server
                + ": "
                + why
                + "; the program goes on, the agent keeps trying";
    }

    public static final String SETTING_DEFAULT = "the default";

    public static String settingElsewhere(Object setting, Object agent) {
        return setting + ": not a setting of the " + agent + " agent";
    }

    public static String settingNear(Object setting, Object near) {
        return setting + ": there is no such setting, did you mean " + near + "?";
    }

    public static String settingUnknown(Object setting) {
        return setting + ": there is no such setting";
    }

    public static String settingWrong(Object setting, Object value, Object allowed, Object used) {
        return setting + "=" + value + ": " + allowed + "; using " + used;
    }

    public static String times(Object count) {
        return count + " times";
    }

    public static String tlsClientCertNeeded(Object why) {
        return "the server requires a client certificate: set tls_client_cert and tls_client_key ("
                + why
                + ")";
    }

    public static String tlsClientCertRefused(Object why) {
        return "the server refuses the certificate in tls_client_cert (" + why + ")";
    }

    public static String tlsFailed(Object why) {
        return "the TLS handshake failed: " + why;
    }

    public static String tlsHalf(Object setting, Object other) {
        return setting + " is set without " + other;
    }

    public static String tlsInvalid(Object why) {
        return "the server's certificate is not valid (" + why + ")";
    }

    public static final String TLS_KEY_ENCRYPTED = "the key is encrypted with a password";

    public static final String TLS_KEY_OTHER = "it is not the key of the certificate in tls_client_cert";

    public static final String TLS_NO_CERTIFICATE = "it holds no certificate in PEM";

    public static final String TLS_NO_KEY = "it holds no private key in PEM";

    public static final String TLS_NOT_A_FILE = "it is not a regular file";

    public static String tlsNotThere(Object why) {
        return "the server does not use TLS, but tls_ca is set (" + why + ")";
    }

    public static String tlsOtherName(Object host, Object why) {
        return "the server's certificate is not for " + host + " (" + why + ")";
    }

    public static String tlsRequired(Object code) {
        return "the server requires TLS: set tls_ca (error " + code + ")";
    }

    public static String tlsTooLarge(Object most) {
        return "it has more than " + most + " bytes";
    }

    public static String tlsUntrusted(Object why) {
        return "no authority of tls_ca has signed the server's certificate (" + why + ")";
    }

    public static String tlsUnusable(Object setting, Object value, Object why) {
        return setting + "=" + value + ": " + why;
    }

    public static String tlsUseless(Object setting) {
        return setting + " has no effect without tls_ca: the connection is not encrypted";
    }

    public static String tokenForbids(Object message, Object code, Object setting) {
        return "the token does not permit this: "
                + message
                + " (error "
                + code
                + "); change its role or selector, or the token in "
                + setting;
    }

    public static String tokenForm(Object most) {
        return "a token has 1 to "
                + most
                + " visible ASCII characters, no blanks and no line breaks";
    }

    public static final String TOKEN_IN_CLEAR = "no token is sent to another machine without TLS: set tls_ca or insecure_token";

    public static String tokenNeeded(Object code) {
        return "the server requires a token: set token_file or token (error " + code + ")";
    }

    public static String tokenRefused(Object message, Object code, Object setting) {
        return "the server refuses the token: "
                + message
                + " (error "
                + code
                + "); put a valid one into "
                + setting;
    }

    public static String tokenSentInClear(Object server) {
        return "the token is sent to "
                + server
                + " without TLS, because insecure_token is true: others on the network can read it";
    }

    public static final String TOKEN_TWICE = "token and token_file are both set, set only one of them";

    public static String tokenUnusable(Object setting, Object why) {
        return setting + ": " + why;
    }
    // generated: end
}
