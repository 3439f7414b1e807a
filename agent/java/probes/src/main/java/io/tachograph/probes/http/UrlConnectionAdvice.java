package io.tachograph.probes.http;

import io.tachograph.bootstrap.probe.HttpClient;

import net.bytebuddy.asm.Advice;

import java.io.FileNotFoundException;
import java.io.InputStream;
import java.net.HttpURLConnection;

/** Inlined into {@code HttpURLConnection.getInputStream}. */
final class UrlConnectionAdvice {
    private UrlConnectionAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class)
    static HttpClient enter(
            @Advice.This HttpURLConnection connection,
            @Advice.FieldValue("inputStream") InputStream answer,
            @Advice.FieldValue("connected") boolean connected) {
        // The connection has its answer, perhaps with an error status, and sends nothing more.
        if (answer != null) {
            return null;
        }
        HttpClient call =
                HttpClient.begin(
                        false,
                        connection.getRequestMethod(),
                        connection.getURL().getAuthority(),
                        connection.getURL().getPath());
        try {
            if (call != null
                    && !connected
                    && connection.getRequestProperty(HttpClient.TRACEPARENT) == null) {
                String traceparent = call.traceparent();
                if (traceparent != null) {
                    connection.setRequestProperty(HttpClient.TRACEPARENT, traceparent);
                }
            }
        } catch (Throwable e) {
            // After a failed connect, no header can be set.
        }
        return call;
    }

    @Advice.OnMethodExit(suppress = Throwable.class, onThrowable = Throwable.class)
    static void exit(
            @Advice.Enter HttpClient call,
            @Advice.This HttpURLConnection connection,
            @Advice.Thrown Throwable thrown) {
        if (call == null) {
            return;
        }
        int status = 0;
        // The method throws this exception for the answers 404 and 410.
        boolean isAnswer = thrown == null || thrown instanceof FileNotFoundException;
        try {
            status = isAnswer ? connection.getResponseCode() : 0;
        } catch (Throwable e) {
            // The status is unknown.
        }
        call.end(Math.max(status, 0), isAnswer && status > 0 ? null : thrown);
    }
}
