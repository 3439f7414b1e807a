package io.tachograph.probes;

import io.tachograph.core.instrument.Probe;
import io.tachograph.probes.context.ExecutorProbe;
import io.tachograph.probes.context.ForkJoinProbe;
import io.tachograph.probes.context.ThreadProbe;
import io.tachograph.probes.http.HttpClientProbe;
import io.tachograph.probes.http.JdkServerProbe;
import io.tachograph.probes.http.JerseyProbe;
import io.tachograph.probes.http.JettyProbe;
import io.tachograph.probes.http.ServletProbe;
import io.tachograph.probes.http.SpringProbe;
import io.tachograph.probes.http.UrlConnectionProbe;
import io.tachograph.probes.jdbc.JdbcProbe;

import java.util.List;

public final class Probes {
    private Probes() {}

    public static List<Probe> all() {
        return List.of(
                new JettyProbe(),
                new ServletProbe(),
                new JdkServerProbe(),
                new SpringProbe(),
                new JerseyProbe(),
                new HttpClientProbe(),
                new UrlConnectionProbe(),
                new JdbcProbe(),
                new ExecutorProbe(),
                new ForkJoinProbe(),
                new ThreadProbe());
    }
}
