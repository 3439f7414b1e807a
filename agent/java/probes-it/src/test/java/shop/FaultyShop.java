package shop;

import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;

import java.lang.reflect.Proxy;

/**
 * Passes requests to a servlet. All methods of a request or response throw, except {@code
 * getAttribute}.
 */
public final class FaultyShop {
    private static int served;

    private FaultyShop() {}

    static final class Front extends HttpServlet {
        private static final long serialVersionUID = 1;

        @Override
        public void service(ServletRequest request, ServletResponse response) {
            served += request.getAttribute("item") == null ? 0 : 1;
        }
    }

    private static <T> T made(Class<T> type) {
        return type.cast(
                Proxy.newProxyInstance(
                        FaultyShop.class.getClassLoader(),
                        new Class<?>[] {type},
                        (proxy, method, arguments) -> {
                            if (method.getName().equals("getAttribute")) {
                                return arguments[0];
                            }
                            throw new IllegalStateException("no " + method.getName() + " here");
                        }));
    }

    /**
     * @param arguments number of requests
     */
    public static void main(String[] arguments) {
        Front front = new Front();
        int count = Integer.parseInt(arguments[0]);
        for (int at = 0; at < count; at++) {
            front.service(made(HttpServletRequest.class), made(HttpServletResponse.class));
        }
        System.out.println("served " + served);
    }
}
