package shop;

import java.lang.reflect.Proxy;
import java.util.HashMap;
import java.util.Map;

/**
 * Calls servlets one after the other on one thread. The program passes its own implementations of
 * request and response, as a wrapper class would. In each round except the last, one of the methods
 * that the probe needs throws.
 */
public final class WrappingShop {
    private WrappingShop() {}

    public static void main(String[] arguments) throws Exception {
        for (String unknown : new String[] {"getStatus", "isAsyncStarted", "getHeader", ""}) {
            String path = "/" + (unknown.isEmpty() ? "whole" : "without-" + unknown);
            jakarta.servlet.Servlet newer = new Jakarta();
            newer.service(
                    odd(jakarta.servlet.http.HttpServletRequest.class, path, unknown),
                    odd(jakarta.servlet.http.HttpServletResponse.class, path, unknown));
            javax.servlet.Servlet older = new Javax();
            older.service(
                    odd(javax.servlet.http.HttpServletRequest.class, path, unknown),
                    odd(javax.servlet.http.HttpServletResponse.class, path, unknown));
        }
    }

    /**
     * Returns an object that answers the methods that the probe needs, except {@code unknown}. The
     * method {@code unknown} and all methods that the probe does not need throw.
     */
    private static <T> T odd(Class<T> type, String path, String unknown) {
        Map<String, Object> answers = new HashMap<>();
        answers.put("getMethod", "GET");
        answers.put("getRequestURI", "/" + type.getName().split("\\.")[0] + path);
        answers.put("getContextPath", "");
        answers.put("getHeader", null);
        answers.put("isAsyncStarted", false);
        answers.put("getStatus", 200);
        answers.put(
                "getDispatcherType",
                type.getName().startsWith("jakarta.")
                        ? jakarta.servlet.DispatcherType.REQUEST
                        : javax.servlet.DispatcherType.REQUEST);
        answers.remove(unknown);
        return type.cast(
                Proxy.newProxyInstance(
                        WrappingShop.class.getClassLoader(),
                        new Class<?>[] {type},
                        (self, method, given) -> {
                            if (!answers.containsKey(method.getName())) {
                                throw new UnsupportedOperationException(method.getName());
                            }
                            return answers.get(method.getName());
                        }));
    }

    public static final class Jakarta extends jakarta.servlet.http.HttpServlet {
        private static final long serialVersionUID = 1L;

        @Override
        protected void service(
                jakarta.servlet.http.HttpServletRequest request,
                jakarta.servlet.http.HttpServletResponse response) {
            // Empty.
        }
    }

    public static final class Javax extends javax.servlet.http.HttpServlet {
        private static final long serialVersionUID = 1L;

        @Override
        protected void service(
                javax.servlet.http.HttpServletRequest request,
                javax.servlet.http.HttpServletResponse response) {
            // Empty.
        }
    }
}
