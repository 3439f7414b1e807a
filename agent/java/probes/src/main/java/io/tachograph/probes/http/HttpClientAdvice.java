package io.tachograph.probes.http;

import io.tachograph.bootstrap.probe.HttpClient;

import net.bytebuddy.asm.Advice;
import net.bytebuddy.implementation.bytecode.assign.Assigner;

import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionStage;

/**
 * Inlined into {@code HttpClientImpl.send} and {@code sendAsync}. A request cannot be changed, so a
 * copy with the header goes out instead.
 */
final class HttpClientAdvice {
    private HttpClientAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class)
    static HttpClient enter(
            @Advice.Origin("#m") String method,
            @Advice.Argument(value = 0, readOnly = false) HttpRequest request) {
        HttpClient call =
                HttpClient.begin(
                        method.equals("sendAsync"),
                        request.method(),
                        request.uri().getAuthority(),
                        request.uri().getPath());
        try {
            String traceparent = call == null ? null : call.traceparent();
            if (traceparent == null
                    || request.headers().firstValue(HttpClient.TRACEPARENT).isPresent()) {
                return call;
            }
            HttpRequest.Builder copy =
                    HttpRequest.newBuilder(request.uri()).expectContinue(request.expectContinue());
            copy.method(
                    request.method(),
                    request.bodyPublisher().isPresent()
                            ? request.bodyPublisher().get()
                            : HttpRequest.BodyPublishers.noBody());
            for (Map.Entry<String, List<String>> header : request.headers().map().entrySet()) {
                for (String value : header.getValue()) {
                    copy.header(header.getKey(), value);
                }
            }
            if (request.timeout().isPresent()) {
                copy.timeout(request.timeout().get());
            }
            if (request.version().isPresent()) {
                copy.version(request.version().get());
            }
            request = copy.header(HttpClient.TRACEPARENT, traceparent).build();
        } catch (Throwable e) {
            // A request of an unusual make goes out as it is.
        }
        return call;
    }

    @Advice.OnMethodExit(suppress = Throwable.class, onThrowable = Throwable.class)
    static void exit(
            @Advice.Enter HttpClient call,
            @Advice.Return(typing = Assigner.Typing.DYNAMIC) Object answer,
            @Advice.Thrown Throwable thrown) {
        if (call == null) {
            return;
        }
        if (answer instanceof CompletionStage) {
            call.endWith((CompletionStage<?>) answer);
        } else {
            call.end(
                    answer instanceof HttpResponse ? ((HttpResponse<?>) answer).statusCode() : 0,
                    thrown);
        }
    }
}
