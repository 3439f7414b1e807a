/**
 * The probes for HTTP requests that come in and go out. Each probe says where, each advice what.
 */
package io.tachograph.probes.http;
