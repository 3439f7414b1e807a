package io.tachograph.core.instrument;

import io.tachograph.api.Record;

/** What the agent does of itself, as records beside those of the program. */
@Record("tacho_agent")
interface AgentEvents {
    /** {@code tacho_agent_moved}: calls of the operation are counted from now on, and why. */
    void moved(String operation, String reason);
}
