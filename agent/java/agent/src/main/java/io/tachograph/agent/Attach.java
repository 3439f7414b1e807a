package io.tachograph.agent;

import com.sun.tools.attach.AgentInitializationException;
import com.sun.tools.attach.AgentLoadException;
import com.sun.tools.attach.AttachNotSupportedException;
import com.sun.tools.attach.VirtualMachine;

import java.io.File;
import java.io.IOException;
import java.net.URISyntaxException;

/**
 * {@code java -jar tachograph-agent.jar PID [agent.toml]}: loads the agent into a running program
 * with the attach API of a JDK. This command is for programs on Eclipse OpenJ9, macOS and Windows,
 * because {@code tacho attach} implements only the protocol of HotSpot on Linux. The settings come
 * from the environment of the running program and from the file.
 */
public final class Attach {
    private static final String USAGE =
            "usage: java -jar tachograph-agent.jar PID [agent.toml]\n"
                    + "  PID         process id of a running Java program; jps -l lists them\n"
                    + "  agent.toml  settings; that program's TACHO_ variables take precedence";

    private Attach() {}

    public static void main(String[] arguments) throws URISyntaxException {
        if (arguments.length < 1 || arguments.length > 2 || !arguments[0].matches("[0-9]{1,10}")) {
            System.err.println(USAGE);
            System.exit(2);
        }
        String pid = arguments[0];
        String file = arguments.length > 1 ? new File(arguments[1]).getAbsolutePath() : null;
        try {
            attach(pid, file);
            System.err.println("the agent is in process " + pid);
        } catch (NoClassDefFoundError e) {
            fail("this Java runtime cannot attach: a JDK is needed (module jdk.attach)");
        } catch (AttachNotSupportedException | IOException e) {
            fail("cannot attach to process " + pid + ": " + e.getMessage());
        } catch (AgentLoadException | AgentInitializationException e) {
            fail("process " + pid + " rejected the agent: " + e.getMessage());
        }
    }

    private static void attach(String pid, String file)
            throws URISyntaxException,
                    AttachNotSupportedException,
                    IOException,
                    AgentLoadException,
                    AgentInitializationException {
        File jar =
                new File(Attach.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        VirtualMachine machine = VirtualMachine.attach(pid);
        try {
            machine.loadAgent(jar.getAbsolutePath(), file);
        } finally {
            machine.detach();
        }
    }

    private static void fail(String why) {
        System.err.println(why);
        System.exit(1);
    }
}
