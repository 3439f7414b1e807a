package io.tachograph.probes.http;

import io.tachograph.bootstrap.probe.AsyncListening;
import io.tachograph.bootstrap.probe.HttpServer;
import io.tachograph.bootstrap.probe.LaterAnswer;

import net.bytebuddy.asm.Advice;

import java.lang.reflect.Proxy;

import javax.servlet.AsyncContext;
import javax.servlet.AsyncListener;
import javax.servlet.ServletRequestWrapper;
import javax.servlet.http.HttpServletResponse;

/**
 * Inlined into {@code ServletRequest.startAsync} of the package {@code javax.servlet}; the other
 * package has the same advice. From here on the server signals the end of the request.
 */
final class JavaxStartAsyncAdvice {
    private JavaxStartAsyncAdvice() {}

    @Advice.OnMethodExit(suppress = Throwable.class)
    static void exit(@Advice.This Object self, @Advice.Return Object started) {
        LaterAnswer answer = self instanceof ServletRequestWrapper ? null : HttpServer.later();
        if (answer != null && started != null && answer.comesBackAs(self)) {
            AsyncContext context = (AsyncContext) started;
            answer.answeredBy(HttpServletResponse.class, context.getResponse());
            context.addListener(
                    (AsyncListener)
                            Proxy.newProxyInstance(
                                    AsyncListener.class.getClassLoader(),
                                    new Class<?>[] {AsyncListener.class},
                                    new AsyncListening(answer)));
        }
    }
}
