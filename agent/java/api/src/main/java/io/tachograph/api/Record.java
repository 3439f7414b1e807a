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
 * On an interface, each abstract method declares a record type, and its parameters are the fields;
 * on a Java record, the components are the fields. A field is a {@code boolean}, a {@code byte},
 * {@code short}, {@code int}, {@code long}, {@code float} or {@code double}, a {@link String}, a
 * {@link CharSequence}, an enum, a {@link java.util.UUID}, an {@link java.time.Instant} or a {@link
 * java.time.Duration} (in ns); at most 64 fields.
 */
@Retention(RetentionPolicy.SOURCE)
@Target({ElementType.TYPE, ElementType.METHOD})
public @interface Record {
    /**
     * On an interface, the prefix of its type names; on a method or a Java record, the type name.
     * By default names are those of the source, in snake case.
     */
    String value() default "";
}
