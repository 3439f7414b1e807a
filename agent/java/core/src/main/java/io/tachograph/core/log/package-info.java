/** What the agent says to a person. */
package io.tachograph.core.log;
