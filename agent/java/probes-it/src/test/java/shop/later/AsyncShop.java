package shop.later;

import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.PathParam;
import jakarta.ws.rs.container.AsyncResponse;
import jakarta.ws.rs.container.Suspended;

import org.glassfish.jersey.server.ResourceConfig;
import org.glassfish.jersey.servlet.ServletContainer;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.web.context.WebServerInitializedEvent;
import org.springframework.boot.web.servlet.ServletRegistrationBean;
import org.springframework.context.ApplicationListener;
import org.springframework.context.annotation.Bean;
import org.springframework.http.HttpStatus;
import org.springframework.http.MediaType;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.context.request.async.DeferredResult;
import org.springframework.web.context.request.async.WebAsyncTask;
import org.springframework.web.servlet.mvc.method.annotation.StreamingResponseBody;

import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

import shop.LaterJakarta;

import java.time.Duration;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/** Endpoints of Spring MVC, Jersey and a plain servlet in one Tomcat; some of them answer later. */
@SpringBootApplication
public class AsyncShop {
    private static final int LATER_MS = 250;

    public static void main(String[] arguments) {
        SpringApplication boot = new SpringApplication(AsyncShop.class);
        boot.setDefaultProperties(
                Map.of(
                        "server.port",
                        "0",
                        "spring.main.banner-mode",
                        "off",
                        "spring.mvc.servlet.path",
                        arguments.length == 0 ? "/" : arguments[0],
                        "server.address",
                        "127.0.0.1"));
        boot.run();
    }

    @Bean
    static ApplicationListener<WebServerInitializedEvent> port() {
        return event -> System.out.println("PORT " + event.getWebServer().getPort());
    }

    @Bean
    static ServletRegistrationBean<LaterJakarta> later() {
        return new ServletRegistrationBean<>(new LaterJakarta(), "/later/*");
    }

    @Bean
    static ServletRegistrationBean<ServletContainer> jersey() {
        ServletContainer jersey = new ServletContainer(new ResourceConfig(Rest.class));
        return new ServletRegistrationBean<>(jersey, "/rest/*");
    }

    private static void pause() {
        try {
            Thread.sleep(LATER_MS);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static String find(String id) {
        pause();
        if (id.equals("bad")) {
            throw new IllegalStateException("no stock");
        }
        if (id.equals("gone")) {
            throw new Gone();
        }
        return "found " + id;
    }

    /** An exception with a status that is not a failure. */
    @ResponseStatus(HttpStatus.GONE)
    static final class Gone extends RuntimeException {
        private static final long serialVersionUID = 1L;
    }

    /** The endpoints of Spring MVC. */
    @RestController
    public static class Ads {
        @GetMapping("/users/{name}")
        public String user(@PathVariable("name") String name) {
            return name;
        }

        @GetMapping("/callable/{id}")
        public Callable<String> callable(@PathVariable("id") String id) {
            return () -> find(id);
        }

        @GetMapping("/deferred/{id}")
        public DeferredResult<String> deferred(@PathVariable("id") String id) {
            DeferredResult<String> result = new DeferredResult<>((long) LATER_MS);
            if (id.equals("now")) {
                result.setResult("now");
            } else if (!id.equals("late")) {
                result.setErrorResult(new IllegalStateException("no stock"));
            }
            return result;
        }

        @GetMapping("/future/{id}")
        public CompletableFuture<String> future(@PathVariable("id") String id) {
            return CompletableFuture.supplyAsync(() -> find(id));
        }

        @GetMapping("/mono/{id}")
        public Mono<String> mono(@PathVariable("id") String id) {
            return Mono.fromCallable(() -> find(id)).subscribeOn(Schedulers.boundedElastic());
        }

        @GetMapping(path = "/flux/{id}", produces = MediaType.TEXT_EVENT_STREAM_VALUE)
        public Flux<String> flux(@PathVariable("id") String id) {
            return Flux.just("first", id).delayElements(Duration.ofMillis(LATER_MS));
        }

        @GetMapping("/task/{id}")
        public WebAsyncTask<String> task(@PathVariable("id") String id) {
            return new WebAsyncTask<>(60_000L, () -> find(id));
        }

        @GetMapping("/stream/{id}")
        public StreamingResponseBody stream(@PathVariable("id") String id) {
            return out -> out.write(find(id).getBytes());
        }
    }

    /** The endpoints of JAX-RS. */
    @Path("/goods")
    public static final class Rest {
        @GET
        @Path("{id}/price")
        public String price(@PathParam("id") String id) {
            return id;
        }

        @GET
        @Path("later/{id}")
        public void later(@PathParam("id") String id, @Suspended AsyncResponse answer) {
            new Thread(
                            () -> {
                                try {
                                    answer.resume(find(id));
                                } catch (IllegalStateException e) {
                                    answer.resume(e);
                                }
                            })
                    .start();
        }

        @GET
        @Path("stage/{id}")
        public CompletionStage<String> stage(@PathParam("id") String id) {
            return CompletableFuture.supplyAsync(() -> find(id));
        }
    }
}
