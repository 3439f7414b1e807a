package io.tachograph.core.instrument;

import io.tachograph.api.Record;

/** Actions of the agent itself, as records next to those of the program. */
@Record("tacho_agent")
interface AgentEvents {
    /** {@code tacho_agent_moved}: the operation is aggregated or off from now on, and why. */
    void moved(String operation, String reason);
}
