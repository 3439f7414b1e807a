package io.tachograph.agent;

import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * Kills the programs that a failed test has left. Some run, and load the machine, until they get a
 * line on standard input.
 */
public final class ProgramKiller implements AfterEachCallback {
    @Override
    public void afterEach(ExtensionContext context) {
        Program.killStarted();
    }
}
