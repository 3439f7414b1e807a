package io.tachograph.core.send;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;

/**
 * The address of the server, {@code host:port}. The name is resolved at each attempt to connect,
 * because its address may change.
 */
final class ServerAddress {
    static final int PORT = 7071;

    /** Host names and IPv4 addresses. */
    private static final String NAME = "[\\p{L}\\p{N}._-]+";

    /** IPv6 addresses, with or without a zone. */
    private static final String LITERAL6 = "[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(%[\\p{L}\\p{N}._-]+)?";

    private final String host;
    private final int port;

    private ServerAddress(String host, int port) {
        this.host = host;
        this.port = port;
    }

    /**
     * @param text {@code host:port}; without a port, {@link #PORT} is used
     * @throws IllegalArgumentException with the expected form, if the text is not an address
     */
    static ServerAddress parse(String text) {
        int colon = text.lastIndexOf(':');
        boolean bracketed = text.startsWith("[");
        boolean bare6 = !bracketed && text.indexOf(':') != colon;
        boolean portless = colon < 0 || bare6 || text.endsWith("]");
        String host = portless ? text : text.substring(0, colon);
        String port = portless ? String.valueOf(PORT) : text.substring(colon + 1);
        boolean isHost =
                bracketed
                        ? host.matches("\\[" + LITERAL6 + "\\]")
                        : host.matches(bare6 ? LITERAL6 : NAME);
        if (!isHost
                || !port.matches("[0-9]{1,5}")
                || Integer.parseInt(port) > 65_535
                || Integer.parseInt(port) == 0) {
            throw new IllegalArgumentException("expected host:port");
        }
        return new ServerAddress(host, Integer.parseInt(port));
    }

    /**
     * Takes seconds if a name server does not answer. The sender's thread therefore calls this
     * method only for a literal address ({@link #isLiteral}).
     */
    InetSocketAddress resolve() throws UnknownHostException {
        return new InetSocketAddress(InetAddress.getByName(host), port);
    }

    /** The host as in a certificate: without brackets, and without the zone of an address. */
    String name() {
        String bare = host.startsWith("[") ? host.substring(1, host.length() - 1) : host;
        int zone = bare.indexOf('%');
        return zone < 0 ? bare : bare.substring(0, zone);
    }

    int port() {
        return port;
    }

    /** True if the address can be resolved without a name server. */
    boolean isLiteral() {
        return host.matches("[0-9.]+") || host.contains(":") || host.equals("localhost");
    }

    @Override
    public String toString() {
        return host + ":" + port;
    }
}
