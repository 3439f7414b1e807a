package io.tachograph.core;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.File;

class IdentityTest {
    @ParameterizedTest
    @CsvSource({
        "com.shop.Main, classes, com.shop.Main",
        "com.shop.Main --port 1, classes, com.shop.Main",
        "com.shop.Main --lib x.jar, classes, com.shop.Main",
        "com.shop.Main lib/x.jar --port 1, lib/x.jar, com.shop.Main",
        "com.shop/com.shop.Main x.jar, '', com.shop.Main",
        "lib/shop.jar, lib/shop.jar, shop",
        "lib/shop.jar --lib x.jar, lib/shop.jar, shop",
        "C:\\lib\\shop.jar --lib x.jar, C:\\lib\\shop.jar, shop",
        "my lib/a shop.jar --lib x.jar, my lib/a shop.jar, a shop",
        "my lib/x.jar files/a shop.jar, my lib/x.jar files/a shop.jar, a shop",
        "lib/shop.jar --port 1, other.jar, shop",
        "'', '', unknown",
        ".jar, .jar, unknown",
    })
    void theServiceIsTheMainClassOrTheJar(String command, String classPath, String service) {
        assertEquals(service, Identity.serviceOf(command, classPath));
    }

    @ParameterizedTest
    @CsvSource({"my lib/shop.jar --lib x.jar, my lib/shop.jar, shop"})
    void anAgentMayExtendTheClassPath(String command, String jar, String service) {
        String classPath = jar + File.pathSeparator + "agent.jar";
        assertEquals(service, Identity.serviceOf(command, classPath));
    }
}
