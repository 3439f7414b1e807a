package io.tachograph.probes.http;

import io.tachograph.bootstrap.probe.HttpClient;
import io.tachograph.bootstrap.probe.Outermost;

import net.bytebuddy.asm.Advice;

import java.net.HttpURLConnection;

/**
 * Inlined into {@code HttpURLConnection.connect} and {@code getOutputStream}. After these methods,
 * no header can be added.
 */
final class UrlConnectionEarlyAdvice {
    private UrlConnectionEarlyAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class)
    static void enter(
            @Advice.This HttpURLConnection connection,
            @Advice.FieldValue("connected") boolean connected) {
        if (connected
                || Outermost.isInside(Outermost.HTTP_CLIENT)
                || connection.getRequestProperty(HttpClient.TRACEPARENT) != null) {
            return;
        }
        String traceparent = HttpClient.traceparentOfCaller();
        if (traceparent != null) {
            connection.setRequestProperty(HttpClient.TRACEPARENT, traceparent);
        }
    }
}
