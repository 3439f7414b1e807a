/**
 * Merges a configuration file, the environment and the defaults into one immutable {@link
 * io.tachograph.core.config.Settings}.
 */
package io.tachograph.core.config;
