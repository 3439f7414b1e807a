package shop;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.web.context.WebServerInitializedEvent;
import org.springframework.context.ApplicationListener;
import org.springframework.context.annotation.Bean;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;

import java.util.Map;

/** A Spring Boot application; the tests pack it into one jar with its libraries. */
@SpringBootApplication
public class BootShop {
    public static void main(String[] arguments) {
        SpringApplication boot = new SpringApplication(BootShop.class);
        boot.setDefaultProperties(
                Map.of(
                        "server.port",
                        "0",
                        "spring.main.banner-mode",
                        "off",
                        "server.address",
                        "127.0.0.1"));
        boot.run(arguments);
    }

    @Bean
    static ApplicationListener<WebServerInitializedEvent> port() {
        return event -> System.out.println("PORT " + event.getWebServer().getPort());
    }

    @RestController
    public static class Ads {
        @GetMapping("/ads/{id}")
        public String ad(@PathVariable("id") String id) {
            return price(id) + " EUR";
        }

        int price(String id) {
            return id.length();
        }
    }
}
