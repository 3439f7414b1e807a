package io.tachograph.probes.http;

import io.tachograph.bootstrap.probe.HttpClient;

import net.bytebuddy.asm.Advice;

import java.lang.invoke.MethodHandles;
import java.net.http.HttpRequest;

/**
 * Inlined where the client makes a request that follows another: to where a redirection leads, or
 * with what the server wants to know of the user. Headers that the client itself adds are made
 * anew there, so what {@link HttpRequestAdvice} added would be missing.
 */
final class HttpFollowAdvice {
    private HttpFollowAdvice() {}

    @Advice.OnMethodExit(suppress = Throwable.class)
    static void exit(@Advice.AllArguments Object[] arguments, @Advice.Return HttpRequest sent)
            throws Throwable {
        HttpClient.tellAgain(MethodHandles.lookup(), arguments, sent);
    }
}
