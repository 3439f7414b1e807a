"""Log lines and faults that the agents report in the same words; agent/messages.toml defines them."""

from __future__ import annotations

# generated: messages (cargo xtask generate, from agent/messages.toml)


def allowed_at_most(most: object) -> str:
    return f"at most {most} is allowed"


def calls_dropped(calls: object, remedy: object) -> str:
    return f"{calls} calls were dropped so far, usually because a buffer was full: {remedy}"


def connected(server: object) -> str:
    return f"connected to {server}"


def connected_after(server: object, seconds: object, dropped: object) -> str:
    return f"connected to {server} after {seconds} s; {dropped}"


DROPPED_NOTHING = "nothing was dropped in the meantime"


def dropped_some(calls: object, samples: object, entries: object) -> str:
    return f"{calls} calls, {samples} samples and {entries} entries were dropped in the meantime"


def end_unacknowledged(unsent: object) -> str:
    return f"the program ends before the server has everything: {unsent} bytes of records are not acknowledged"


def expected(form: object) -> str:
    return f"expected {form}"


FORM_ADDRESS = "host:port"
FORM_DURATION = "a duration such as 100ms or 5s"
FORM_FLAG = "true or false"
FORM_LIST = "a list"
FORM_MULTIPLE_OF_64 = "a multiple of 64"
FORM_NUMBER = "a whole number"
FORM_POLICY = "drop or block"
FORM_POWER_OF_TWO = "a power of two"
FORM_SHARE = "a share such as 1% or 0.5%"
FORM_SIZE = "a size such as 16MiB"
FORM_TEXT = "a text"


def frame_early(frame: object) -> str:
    return f"frame type {frame} came before WELCOME"


def needed(form: object) -> str:
    return f"{form} is needed"


def needed_at_least(least: object) -> str:
    return f"at least {least} is needed"


ONCE = "once"


def pattern_character(character: object, pattern: object) -> str:
    return f"'{character}' cannot be part of a pattern: {pattern}"


def pattern_dot(pattern: object) -> str:
    return f"a dot is out of place in the pattern: {pattern}"


def probes_expected(names: object) -> str:
    return f"expected * or names, each with or without a leading -; the names are {names}"


def reconnected(server: object, times: object, dropped: object) -> str:
    return f"connected to {server} again; the connection failed {times} since the last message about it; {dropped}"


def reconnected_after(server: object, seconds: object, dropped: object) -> str:
    return f"connected again to {server} after {seconds} s; {dropped}"


def record_refused(frame: object, record: object, why: object) -> str:
    return f"the server refused a record (frame {frame}, record {record}): {why}"


def rule_state_unknown(state: object) -> str:
    return f"state {state} is not known here"


SERVER_CLOSED = "the server closed the connection"
SERVER_IS_FULL = "the server is full and asked to wait"
SERVER_IS_HTTP = "it answers with HTTP; agents connect to a different port, usually 7071"


def server_is_other(why: object) -> str:
    return f"this is not the agent port of a tacho server: {why}"


def server_lost(server: object, why: object) -> str:
    return f"lost the server {server}: {why}; the program goes on, the agent keeps trying"


def server_refuses(message: object, code: object) -> str:
    return f"the server refuses: {message} (error {code})"


def server_silent(time: object) -> str:
    return f"the server has not answered for {time}"


def server_unreachable(server: object, why: object) -> str:
    return f"cannot reach the server {server}: {why}; the program goes on, the agent keeps trying"


SETTING_DEFAULT = "the default"


def setting_elsewhere(setting: object, agent: object) -> str:
    return f"{setting}: not a setting of the {agent} agent"


def setting_near(setting: object, near: object) -> str:
    return f"{setting}: there is no such setting, did you mean {near}?"


def setting_unknown(setting: object) -> str:
    return f"{setting}: there is no such setting"


def setting_wrong(setting: object, value: object, allowed: object, used: object) -> str:
    return f"{setting}={value}: {allowed}; using {used}"


def times(count: object) -> str:
    return f"{count} times"


def tls_client_cert_needed(why: object) -> str:
    return f"the server requires a client certificate: set tls_client_cert and tls_client_key ({why})"


def tls_client_cert_refused(why: object) -> str:
    return f"the server refuses the certificate in tls_client_cert ({why})"


def tls_failed(why: object) -> str:
    return f"the TLS handshake failed: {why}"


def tls_half(setting: object, other: object) -> str:
    return f"{setting} is set without {other}"


def tls_invalid(why: object) -> str:
    return f"the server's certificate is not valid ({why})"


TLS_KEY_ENCRYPTED = "the key is encrypted with a password"
TLS_KEY_OTHER = "it is not the key of the certificate in tls_client_cert"
TLS_NO_CERTIFICATE = "it holds no certificate in PEM"
TLS_NO_KEY = "it holds no private key in PEM"
TLS_NOT_A_FILE = "it is not a regular file"


def tls_not_there(why: object) -> str:
    return f"the server does not use TLS, but tls_ca is set ({why})"


def tls_other_name(host: object, why: object) -> str:
    return f"the server's certificate is not for {host} ({why})"


def tls_required(code: object) -> str:
    return f"the server requires TLS: set tls_ca (error {code})"


def tls_too_large(most: object) -> str:
    return f"it has more than {most} bytes"


def tls_untrusted(why: object) -> str:
    return f"no authority of tls_ca has signed the server's certificate ({why})"


def tls_unusable(setting: object, value: object, why: object) -> str:
    return f"{setting}={value}: {why}"


def tls_useless(setting: object) -> str:
    return f"{setting} has no effect without tls_ca: the connection is not encrypted"


def token_forbids(message: object, code: object, setting: object) -> str:
    return f"the token does not permit this: {message} (error {code}); change its role or selector, or the token in {setting}"


def token_form(most: object) -> str:
    return f"a token has 1 to {most} visible ASCII characters, no blanks and no line breaks"


TOKEN_IN_CLEAR = "no token is sent to another machine without TLS: set tls_ca or insecure_token"


def token_needed(code: object) -> str:
    return f"the server requires a token: set token_file or token (error {code})"


def token_refused(message: object, code: object, setting: object) -> str:
    return f"the server refuses the token: {message} (error {code}); put a valid one into {setting}"


def token_sent_in_clear(server: object) -> str:
    return f"the token is sent to {server} without TLS, because insecure_token is true: others on the network can read it"


TOKEN_TWICE = "token and token_file are both set, set only one of them"


def token_unusable(setting: object, why: object) -> str:
    return f"{setting}: {why}"
# generated: end
