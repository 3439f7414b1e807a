package io.tachograph.core.send;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;

/** {@code host:port}, looked up again at each try: a name may get another address. */
final class ServerAddress {
    static final int PORT = 7071;

    private final String host;
    private final int port;

    private ServerAddress(String host, int port) {
        this.host = host;
        this.port = port;
    }

    /**
     * @throws IllegalArgumentException with a sentence, if the text is no address
     */
    static ServerAddress parse(String text) {
        int colon = text.lastIndexOf(':');
        boolean literal6 =
                text.indexOf(':') != colon && !text.endsWith("]") && !text.contains("]:");
        String host = colon < 0 || literal6 || text.endsWith("]") ? text : text.substring(0, colon);
        String port =
                host.length() == text.length() ? String.valueOf(PORT) : text.substring(colon + 1);
        if (host.isBlank()
                || !port.matches("[0-9]{1,5}")
                || Integer.parseInt(port) > 65_535
                || Integer.parseInt(port) == 0) {
            throw new IllegalArgumentException("host:port was expected, not \"" + text + "\"");
        }
        return new ServerAddress(host, Integer.parseInt(port));
    }

    /**
     * May take seconds where a name server does not answer; never called on a thread that anybody
     * waits for.
     */
    InetSocketAddress resolve() throws UnknownHostException {
        return new InetSocketAddress(InetAddress.getByName(host), port);
    }

    /** Looking it up asks nobody. */
    boolean isLiteral() {
        return host.matches("[0-9.]+") || host.contains(":") || host.equals("localhost");
    }

    @Override
    public String toString() {
        return host + ":" + port;
    }
}
