// Log lines and faults that the agents report in the same words; `agent/messages.toml` defines them.

/** @typedef {string | number | bigint} Value */

// generated: messages (cargo xtask generate, from agent/messages.toml)

/** @param {Value} most */
export function allowedAtMost(most) {
  return `at most ${most} is allowed`;
}

/** @param {Value} calls @param {Value} remedy */
export function callsDropped(calls, remedy) {
  return `${calls} calls were dropped so far, usually because a buffer was full: ${remedy}`;
}

/** @param {Value} server */
export function connected(server) {
  return `connected to ${server}`;
}

/** @param {Value} server @param {Value} seconds @param {Value} dropped */
export function connectedAfter(server, seconds, dropped) {
  return `connected to ${server} after ${seconds} s; ${dropped}`;
}

export const DROPPED_NOTHING = 'nothing was dropped in the meantime';

/** @param {Value} calls @param {Value} samples @param {Value} entries */
export function droppedSome(calls, samples, entries) {
  return `${calls} calls, ${samples} samples and ${entries} entries were dropped in the meantime`;
}

/** @param {Value} unsent */
export function endUnacknowledged(unsent) {
  return `the program ends before the server has everything: ${unsent} bytes of records are not acknowledged`;
}

/** @param {Value} form */
export function expected(form) {
  return `expected ${form}`;
}

export const FORM_ADDRESS = 'host:port';

export const FORM_DURATION = 'a duration such as 100ms or 5s';

export const FORM_FLAG = 'true or false';

export const FORM_LIST = 'a list';

export const FORM_MULTIPLE_OF_64 = 'a multiple of 64';

export const FORM_NUMBER = 'a whole number';

export const FORM_POLICY = 'drop or block';

export const FORM_POWER_OF_TWO = 'a power of two';

export const FORM_SHARE = 'a share such as 1% or 0.5%';

export const FORM_SIZE = 'a size such as 16MiB';

export const FORM_TEXT = 'a text';

/** @param {Value} frame */
export function frameEarly(frame) {
  return `frame type ${frame} came before WELCOME`;
}

/** @param {Value} form */
export function needed(form) {
  return `${form} is needed`;
}

/** @param {Value} least */
export function neededAtLeast(least) {
  return `at least ${least} is needed`;
}

export const ONCE = 'once';

/** @param {Value} character @param {Value} pattern */
export function patternCharacter(character, pattern) {
  return `'${character}' cannot be part of a pattern: ${pattern}`;
}

/** @param {Value} pattern */
export function patternDot(pattern) {
  return `a dot is out of place in the pattern: ${pattern}`;
}

/** @param {Value} names */
export function probesExpected(names) {
  return `expected * or names, each with or without a leading -; the names are ${names}`;
}

/** @param {Value} server @param {Value} times @param {Value} dropped */
export function reconnected(server, times, dropped) {
  return `connected to ${server} again; the connection failed ${times} since the last message about it; ${dropped}`;
}

/** @param {Value} server @param {Value} seconds @param {Value} dropped */
export function reconnectedAfter(server, seconds, dropped) {
  return `connected again to ${server} after ${seconds} s; ${dropped}`;
}

/** @param {Value} frame @param {Value} record @param {Value} why */
export function recordRefused(frame, record, why) {
  return `the server refused a record (frame ${frame}, record ${record}): ${why}`;
}

/** @param {Value} state */
export function ruleStateUnknown(state) {
  return `state ${state} is not known here`;
}

export const SERVER_CLOSED = 'the server closed the connection';

export const SERVER_IS_FULL = 'the server is full and asked to wait';

export const SERVER_IS_HTTP = 'it answers with HTTP; agents connect to a different port, usually 7071';

/** @param {Value} why */
export function serverIsOther(why) {
  return `this is not the agent port of a tacho server: ${why}`;
}

/** @param {Value} server @param {Value} why */
export function serverLost(server, why) {
  return `lost the server ${server}: ${why}; the program goes on, the agent keeps trying`;
}

/** @param {Value} message @param {Value} code */
export function serverRefuses(message, code) {
  return `the server refuses: ${message} (error ${code})`;
}

/** @param {Value} time */
export function serverSilent(time) {
  return `the server has not answered for ${time}`;
}

/** @param {Value} server @param {Value} why */
export function serverUnreachable(server, why) {
  return `cannot reach the server ${server}: ${why}; the program goes on, the agent keeps trying`;
}

export const SETTING_DEFAULT = 'the default';

/** @param {Value} setting @param {Value} agent */
export function settingElsewhere(setting, agent) {
  return `${setting}: not a setting of the ${agent} agent`;
}

/** @param {Value} setting @param {Value} near */
export function settingNear(setting, near) {
  return `${setting}: there is no such setting, did you mean ${near}?`;
}

/** @param {Value} setting */
export function settingUnknown(setting) {
  return `${setting}: there is no such setting`;
}

/** @param {Value} setting @param {Value} value @param {Value} allowed @param {Value} used */
export function settingWrong(setting, value, allowed, used) {
  return `${setting}=${value}: ${allowed}; using ${used}`;
}

/** @param {Value} count */
export function times(count) {
  return `${count} times`;
}

/** @param {Value} why */
export function tlsClientCertNeeded(why) {
  return `the server requires a client certificate: set tls_client_cert and tls_client_key (${why})`;
}

/** @param {Value} why */
export function tlsClientCertRefused(why) {
  return `the server refuses the certificate in tls_client_cert (${why})`;
}

/** @param {Value} why */
export function tlsFailed(why) {
  return `the TLS handshake failed: ${why}`;
}

/** @param {Value} setting @param {Value} other */
export function tlsHalf(setting, other) {
  return `${setting} is set without ${other}`;
}

/** @param {Value} why */
export function tlsInvalid(why) {
  return `the server's certificate is not valid (${why})`;
}

export const TLS_KEY_ENCRYPTED = 'the key is encrypted with a password';

export const TLS_KEY_OTHER = 'it is not the key of the certificate in tls_client_cert';

export const TLS_NO_CERTIFICATE = 'it holds no certificate in PEM';

export const TLS_NO_KEY = 'it holds no private key in PEM';

export const TLS_NOT_A_FILE = 'it is not a regular file';

/** @param {Value} why */
export function tlsNotThere(why) {
  return `the server does not use TLS, but tls_ca is set (${why})`;
}

/** @param {Value} host @param {Value} why */
export function tlsOtherName(host, why) {
  return `the server's certificate is not for ${host} (${why})`;
}

/** @param {Value} code */
export function tlsRequired(code) {
  return `the server requires TLS: set tls_ca (error ${code})`;
}

/** @param {Value} most */
export function tlsTooLarge(most) {
  return `it has more than ${most} bytes`;
}

/** @param {Value} why */
export function tlsUntrusted(why) {
  return `no authority of tls_ca has signed the server's certificate (${why})`;
}

/** @param {Value} setting @param {Value} value @param {Value} why */
export function tlsUnusable(setting, value, why) {
  return `${setting}=${value}: ${why}`;
}

/** @param {Value} setting */
export function tlsUseless(setting) {
  return `${setting} has no effect without tls_ca: the connection is not encrypted`;
}

/** @param {Value} message @param {Value} code @param {Value} setting */
export function tokenForbids(message, code, setting) {
  return `the token does not permit this: ${message} (error ${code}); change its role or selector, or the token in ${setting}`;
}

/** @param {Value} most */
export function tokenForm(most) {
  return `a token has 1 to ${most} visible ASCII characters, no blanks and no line breaks`;
}

export const TOKEN_IN_CLEAR = 'no token is sent to another machine without TLS: set tls_ca or insecure_token';

/** @param {Value} code */
export function tokenNeeded(code) {
  return `the server requires a token: set token_file or token (error ${code})`;
}

/** @param {Value} message @param {Value} code @param {Value} setting */
export function tokenRefused(message, code, setting) {
  return `the server refuses the token: ${message} (error ${code}); put a valid one into ${setting}`;
}

/** @param {Value} server */
export function tokenSentInClear(server) {
  return `the token is sent to ${server} without TLS, because insecure_token is true: others on the network can read it`;
}

export const TOKEN_TWICE = 'token and token_file are both set, set only one of them';

/** @param {Value} setting @param {Value} why */
export function tokenUnusable(setting, why) {
  return `${setting}: ${why}`;
}
// generated: end
