package io.tachograph.probes.jdbc;

import static net.bytebuddy.matcher.ElementMatchers.isAbstract;
import static net.bytebuddy.matcher.ElementMatchers.isInterface;
import static net.bytebuddy.matcher.ElementMatchers.isPublic;
import static net.bytebuddy.matcher.ElementMatchers.nameContains;
import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.namedOneOf;
import static net.bytebuddy.matcher.ElementMatchers.not;
import static net.bytebuddy.matcher.ElementMatchers.takesArgument;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import io.tachograph.core.instrument.Probe;
import io.tachograph.core.instrument.ProbeSetup;
import io.tachograph.probes.Inherits;

import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.matcher.ElementMatcher;

/**
 * Records statements, batches, and the wait for a connection, for every driver and pool whose
 * classes have likely names ({@link #implementing}).
 */
public final class JdbcProbe implements Probe {
    @Override
    public String name() {
        return "jdbc";
    }

    @Override
    public AgentBuilder install(AgentBuilder builder, ProbeSetup setup) {
        ElementMatcher.Junction<MethodDescription> body = isPublic().and(not(isAbstract()));
        return builder.type(implementing("java.sql.Statement", nameContains("Statement")))
                .transform(
                        setup.advice(
                                StatementAdvice.class,
                                body.and(
                                        namedOneOf(
                                                "execute",
                                                "executeQuery",
                                                "executeUpdate",
                                                "executeLargeUpdate"))))
                .transform(
                        setup.advice(
                                BatchAdvice.class,
                                body.and(namedOneOf("executeBatch", "executeLargeBatch"))
                                        .and(takesArguments(0))))
                .transform(
                        setup.advice(
                                AddBatchAdvice.class,
                                body.and(named("addBatch")).and(takesArgument(0, String.class))))
                .transform(
                        setup.advice(
                                CloseAdvice.class, body.and(named("close")).and(takesArguments(0))))
                .type(implementing("java.sql.Connection", nameContains("Connection")))
                .transform(
                        setup.advice(
                                PrepareAdvice.class,
                                body.and(namedOneOf("prepareStatement", "prepareCall"))
                                        .and(takesArgument(0, String.class))))
                .type(
                        implementing(
                                        "javax.sql.DataSource",
                                        nameContains("DataSource").or(nameContains("Pool")))
                                // Hikari opens connections through this class in the background; no
                                // caller waits.
                                .and(not(named("com.zaxxer.hikari.util.DriverDataSource"))))
                .transform(
                        setup.advice(GetConnectionAdvice.class, body.and(named("getConnection"))));
    }

    /**
     * Matches classes that implement an interface. The search reads the class files of all
     * ancestors, so it is limited to classes with likely names. The classes of the supported
     * drivers and pools have such names.
     */
    private static ElementMatcher.Junction<TypeDescription> implementing(
            String type, ElementMatcher.Junction<? super TypeDescription> likely) {
        return new ElementMatcher.Junction.Conjunction<TypeDescription>(
                likely, not(isInterface()), new Inherits(type));
    }
}
