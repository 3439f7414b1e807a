package io.tachograph.core.instrument;

import io.tachograph.bootstrap.Operations;
import io.tachograph.bootstrap.Recorder;

import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.annotation.AnnotationDescription;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.description.method.ParameterDescription;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.implementation.bytecode.assign.Assigner;
import net.bytebuddy.implementation.bytecode.constant.IntegerConstant;

/**
 * Sets a parameter with {@link OperationId} to a constant in the byte code, so that a call of the
 * method needs no look-up.
 */
final class OperationConstant implements Advice.OffsetMapping {
    static final Advice.OffsetMapping.Factory<OperationId> FACTORY = new Factory();

    private OperationConstant() {}

    @Override
    public Target resolve(
            TypeDescription instrumentedType,
            MethodDescription instrumentedMethod,
            Assigner assigner,
            Advice.ArgumentHandler argumentHandler,
            Sort sort) {
        int id =
                Recorder.operation(
                        Operations.METHOD, OperationName.of(instrumentedType, instrumentedMethod));
        return new Target.ForStackManipulation(IntegerConstant.forValue(id));
    }

    private static final class Factory implements Advice.OffsetMapping.Factory<OperationId> {
        @Override
        public Class<OperationId> getAnnotationType() {
            return OperationId.class;
        }

        @Override
        public Advice.OffsetMapping make(
                ParameterDescription.InDefinedShape target,
                AnnotationDescription.Loadable<OperationId> annotation,
                AdviceType adviceType) {
            return new OperationConstant();
        }
    }
}
