package io.tachograph.api;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Declares record types.
 *
 * <pre>{@code
 * @Record("shop_order")
 * public interface Orders {
 *     void placed(String customer, int items, @Unit("EUR") double total);   // shop_order_placed
 * }
 *
 * static final Orders ORDERS = OrdersRecords.get();                         // generated
 * ORDERS.placed("ada", 3, 9.5);
 *
 * @Record
 * public record CartEmptied(long cart, Reason reason) {}                    // cart_emptied
 *
 * CartEmptiedRecord.write(17, Reason.GIVEN_UP);                             // generated
 * }</pre>
 *
 * On an interface, each abstract method declares a record type, and its parameters are the fields.
 * On a Java record, the components are the fields. A record type has at most 64 fields. The type of
 * a field is {@code boolean}, {@code byte}, {@code short}, {@code int}, {@code long}, {@code
 * float}, {@code double}, {@link String}, {@link CharSequence}, an enum, {@link java.util.UUID},
 * {@link java.time.Instant} or {@link java.time.Duration} (in ns).
 */
@Retention(RetentionPolicy.SOURCE)
@Target({ElementType.TYPE, ElementType.METHOD})
public @interface Record {
    /**
     * On an interface, the prefix of the names of its types. On a method or a Java record, the
     * whole name of the type. The default is the name in the source, in snake case; for a method,
     * the prefix and {@code _} come first.
     */
    String value() default "";
}
