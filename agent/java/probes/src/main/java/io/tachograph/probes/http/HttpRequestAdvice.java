package io.tachograph.probes.http;

import io.tachograph.bootstrap.probe.HttpClient;

import net.bytebuddy.asm.Advice;

import java.lang.invoke.MethodHandles;
import java.net.http.HttpRequest;

/**
 * Inlined into the constructor with which the client makes what it sends out of a request of the
 * program. The header goes among those that the client itself adds: neither the program's request
 * nor the headers of {@code response.request()} have it.
 */
final class HttpRequestAdvice {
    private HttpRequestAdvice() {}

    @Advice.OnMethodExit(suppress = Throwable.class)
    static void exit(@Advice.This HttpRequest sent) throws Throwable {
        HttpClient call = HttpClient.sending();
        if (call != null && sent.headers().firstValue(HttpClient.TRACEPARENT).isEmpty()) {
            call.tell(MethodHandles.lookup(), sent);
        }
    }
}
