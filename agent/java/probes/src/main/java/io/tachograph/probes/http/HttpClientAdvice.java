package io.tachograph.probes.http;

import io.tachograph.bootstrap.probe.HttpClient;

import net.bytebuddy.asm.Advice;
import net.bytebuddy.implementation.bytecode.assign.Assigner;

import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.concurrent.CompletionStage;

/** Inlined into {@code HttpClientImpl.send} and {@code sendAsync}. */
final class HttpClientAdvice {
    private HttpClientAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class)
    static HttpClient enter(
            @Advice.Origin("#m") String method, @Advice.Argument(0) HttpRequest request) {
        return HttpClient.begin(
                method.equals("sendAsync"),
                request.method(),
                request.uri().getAuthority(),
                request.uri().getPath());
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
