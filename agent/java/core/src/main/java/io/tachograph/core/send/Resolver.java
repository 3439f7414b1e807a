package io.tachograph.core.send;

import java.io.IOException;
import java.net.InetSocketAddress;

/**
 * Resolves a host name on its own thread, so that an unresponsive name server does not delay the
 * reading of the rings.
 */
final class Resolver {
    private final ServerAddress address;
    private volatile InetSocketAddress found;
    private volatile IOException fault;
    private volatile boolean running;

    Resolver(ServerAddress address) {
        this.address = address;
    }

    ServerAddress address() {
        return address;
    }

    void start() {
        found = null;
        fault = null;
        if (address.isLiteral()) {
            look();
        } else if (!running) {
            running = true;
            Thread thread = new Thread(null, this::look, "tachograph-resolver", 0, false);
            thread.setDaemon(true);
            thread.start();
        }
    }

    private void look() {
        try {
            found = address.resolve();
        } catch (IOException e) {
            fault = new IOException("unknown host name: " + address);
        } finally {
            running = false;
        }
    }

    /** Returns null while the look-up runs. @throws IOException if the name has no address */
    InetSocketAddress result() throws IOException {
        IOException wrong = fault;
        if (wrong != null) {
            throw wrong;
        }
        return found;
    }
}
