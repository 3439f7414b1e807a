package io.tachograph.core.instrument;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class PatternTest {
    @ParameterizedTest
    @CsvSource({
        "com.shop..*, com.shop.Board, true",
        "com.shop..*, com.shop.deep.er.Board, true",
        "com.shop..*, com.shop.Board$Entry, true",
        "com.shop..*, com.shopping.Board, false",
        "com.shop..*, com.shop, false",
        "com.shop.*, com.shop.Board, true",
        "com.shop.*, com.shop.deep.Board, false",
        "com.shop.Board, com.shop.Board, true",
        "com.shop.Board, com.shop.Board2, false",
        "com.shop.Board, com.shop.Board.post, false",
        "com.shop.Board.post, com.shop.Board.post, true",
        "com.shop.Board.p*t, com.shop.Board.print, true",
        "com.shop.Board.<init>, com.shop.Board.<init>, true",
        "com.shop..*Service.find*, com.shop.a.b.UserService.findAll, true",
        "com.shop..*Service.find*, com.shop.UserService.findAll, true",
        "com.shop..*Service.find*, com.shop.UserServices.findAll, false",
        "..*Service, a.b.UserService, true",
        "..*Service, UserService, true",
        "..Board.*, com.shop.Board.post, true",
        "*, Main, true",
        "*, a.Main, true",
        "..*, a.Main, true",
        "com..shop..*, com.a.shop.b.Main, true",
        "com..shop..*, com.shop.Main, true",
        "com.größe.漢*, com.größe.漢字, true",
    })
    void fits(String pattern, String name, boolean expected) {
        assertEquals(expected, Pattern.parse(pattern).fits(name));
    }

    @ParameterizedTest
    @CsvSource({
        "com.shop.Board.post, com.shop.Board, true",
        "com.shop.Board.post, com.shop.Other, false",
        "com.shop..*Service.find*, com.shop.x.UserService, true",
        "com.shop..*, com.shop, false",
        "com.shop..get*, com.shop.Board, false",
    })
    void mayFitMethods(String pattern, String type, boolean expected) {
        assertEquals(expected, Pattern.parse(pattern).mayFitMethodsOf(type));
    }

    @ParameterizedTest
    @CsvSource({
        "com.shop..*.get*, com.shop.Board, getName, true",
        "com.shop..*.get*, com.shop.Board, setName, false",
        "com.shop.Board.<init>, com.shop.Board, <init>, true",
        "..*Service, com.shop.Board, someService, false",
        "com.shop.Board, com.shop, Board, true",
    })
    void fitsMethods(String pattern, String type, String method, boolean expected) {
        assertEquals(expected, Pattern.parse(pattern).fits(type, method));
    }

    @ParameterizedTest
    @CsvSource({
        "*, true",
        "..*, true",
        "..*.*, true",
        "com..*, false",
        "com.shop..*, false",
        "..*.get*, false",
        "@..*, false",
    })
    void everything(String pattern, boolean expected) {
        assertEquals(expected, Pattern.parse(pattern).isEverything());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "@",
                "com.shop.",
                ".com",
                "com...shop",
                "com shop",
                "com/shop/*",
                "com.shop.Board(int)"
            })
    void refuses(String pattern) {
        assertThrows(IllegalArgumentException.class, () -> Pattern.parse(pattern));
    }
}
