package io.tachograph.core.instrument;

import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.description.method.ParameterDescription;
import net.bytebuddy.description.type.TypeDescription;

/**
 * The name of a method's operation: {@code com.shop.Board.post(String, int[])}. The method name of
 * a constructor is {@code <init>}.
 */
final class OperationName {
    private OperationName() {}

    static String of(TypeDescription type, MethodDescription method) {
        StringBuilder name = new StringBuilder(96);
        name.append(type.getName()).append('.').append(method.getInternalName()).append('(');
        boolean first = true;
        for (ParameterDescription parameter : method.getParameters()) {
            if (!first) {
                name.append(", ");
            }
            first = false;
            name.append(simple(parameter.getType().asErasure()));
        }
        return name.append(')').toString();
    }

    /**
     * The name without the package. An inner class keeps the name of its outer class: {@code
     * Map$Entry[]}.
     */
    private static String simple(TypeDescription type) {
        String name = type.getActualName();
        return name.substring(name.lastIndexOf('.') + 1);
    }
}
