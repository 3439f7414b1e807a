package io.tachograph.core.instrument;

import io.tachograph.api.Record;

/** Actions of the agent, written as declared records. */
@Record("tacho_agent")
interface AgentEvents {
    /**
     * Writes {@code tacho_agent_moved}: the agent aggregates the operation from now on, or
     * switches it off. With {@link Moves#ALL} or {@link Moves#TRACES} in place of an operation, the
     * record reports that a limit is exceeded, and no operation changes.
     */
    void moved(String operation, String reason);
}
