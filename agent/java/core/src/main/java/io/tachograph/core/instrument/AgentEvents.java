package io.tachograph.core.instrument;

import io.tachograph.api.Record;

/** Actions of the agent, written as declared records. */
@Record("tacho_agent")
interface AgentEvents {
    /**
     * Writes {@code tacho_agent_moved}: the agent aggregates the operation from now on, or
     * switches it off. For {@link Moves#ALL} and {@link Moves#TRACES} nothing is moved.
     */
    void moved(String operation, String reason);
}
