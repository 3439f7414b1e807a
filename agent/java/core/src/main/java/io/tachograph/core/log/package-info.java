/** The agent's log. */
package io.tachograph.core.log;
