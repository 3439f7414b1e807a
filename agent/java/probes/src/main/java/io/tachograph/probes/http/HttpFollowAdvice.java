package io.tachograph.probes.http;

import io.tachograph.bootstrap.probe.HttpClient;

import net.bytebuddy.asm.Advice;

import java.lang.invoke.MethodHandles;
import java.net.http.HttpRequest;

/**
 * Inlined where the JDK's {@code HttpClient} creates a follow-up request: for a redirection, or to
 * send the credentials that the server asked for. The client builds its own headers again, so the
 * header of {@link HttpRequestAdvice} would be lost.
 */
final class HttpFollowAdvice {
    private HttpFollowAdvice() {}

    @Advice.OnMethodExit(suppress = Throwable.class)
    static void exit(@Advice.AllArguments Object[] arguments, @Advice.Return HttpRequest sent)
            throws Throwable {
        HttpClient.tellAgain(MethodHandles.lookup(), arguments, sent);
    }
}
