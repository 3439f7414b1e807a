package io.tachograph.api;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/** The unit of a field's value, such as {@code EUR}, {@code ms} or {@code B}. At most 64 bytes. */
@Retention(RetentionPolicy.SOURCE)
@Target({ElementType.PARAMETER, ElementType.FIELD})
public @interface Unit {
    String value();
}
