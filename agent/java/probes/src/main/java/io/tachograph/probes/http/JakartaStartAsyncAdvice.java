package io.tachograph.probes.http;

import io.tachograph.bootstrap.probe.AsyncListening;
import io.tachograph.bootstrap.probe.HttpServer;
import io.tachograph.bootstrap.probe.LaterAnswer;

import jakarta.servlet.AsyncContext;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.ServletRequestWrapper;
import jakarta.servlet.http.HttpServletResponse;

import net.bytebuddy.asm.Advice;

import java.lang.reflect.Proxy;

/**
 * Inlined into {@code ServletRequest.startAsync} of the package {@code jakarta.servlet}. The build
 * creates the class for the older package name from this file (pom.xml). The
 * advice adds a listener. When the server reports the completion to it, the recorded request ends.
 */
final class JakartaStartAsyncAdvice {
    private JakartaStartAsyncAdvice() {}

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
