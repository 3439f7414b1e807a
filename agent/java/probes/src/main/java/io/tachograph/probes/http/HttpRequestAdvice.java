package io.tachograph.probes.http;

import io.tachograph.bootstrap.probe.HttpClient;

import net.bytebuddy.asm.Advice;

import java.lang.invoke.MethodHandles;
import java.net.http.HttpRequest;

/**
 * Inlined into the constructor of the client's internal request, which is built from that of the
 * program. The trace header is added to the client's own headers: neither the program's request nor
 * the headers of {@code response.request()} contain it.
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
