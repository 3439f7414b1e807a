/**
 * Merges a file, the environment and defaults to one immutable {@link
 * io.tachograph.core.config.Settings}.
 */
package io.tachograph.core.config;
