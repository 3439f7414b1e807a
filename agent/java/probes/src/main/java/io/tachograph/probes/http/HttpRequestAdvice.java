package io.tachograph.probes.http;

import io.tachograph.bootstrap.probe.HttpClient;

import net.bytebuddy.asm.Advice;

import java.lang.invoke.MethodHandles;
import java.net.http.HttpRequest;

/**
 * Inlined into the constructor of {@code HttpRequestImpl} with which the JDK's {@code HttpClient}
 * copies the program's request. The trace header is added only to this copy, so the program sees
 * the header neither in its own request nor in {@code response.request()}.
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
