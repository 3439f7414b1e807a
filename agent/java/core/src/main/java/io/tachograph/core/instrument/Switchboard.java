package io.tachograph.core.instrument;

import io.tachograph.core.log.AgentLog;
import io.tachograph.core.send.ProbeMailbox;
import io.tachograph.core.wire.ProbeReport;
import io.tachograph.core.wire.ProbeRules;

import java.lang.instrument.Instrumentation;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Switches methods at run time. It applies the rules of the server, retransforms the classes whose
 * decisions changed, and reports the result to the server. Open calls of a method continue in their
 * old byte code. The switchboard has its own daemon thread, because the sender must not wait for
 * retransformation.
 *
 * <p>Before: {@link ProbeMailbox}. After: {@link Retransformer}, {@link MethodProbe}.
 */
public final class Switchboard implements Runnable {
    private static final long FOREVER_NANOS = Long.MAX_VALUE / 4;
    private static final long MILLI = 1_000_000;
    private static final String EXCLUDED = "the setting probes excludes the probe \"methods\"";

    /**
     * Delays of further checks after a change of rules or moves. A class that is loading at the
     * moment of the change may follow the old rules and not yet be in the list of loaded classes.
     */
    private static final long[] REPEAT_NANOS = {300 * MILLI, 3_000 * MILLI};

    private final Selection selection;
    private final WatchedClasses watched;
    private final Moves moves;
    private final ProbeMailbox mailbox;
    private final Retransformer retransformer;
    private final Patterns patterns;
    private final AgentLog log;
    private ProbeRules rules = ProbeRules.NONE;
    private List<Rule> serverRules = List.of();
    private byte[] told;
    private final AnswerPause pause = new AnswerPause();
    private boolean heard;
    private long appliedAt;
    private int repeats = REPEAT_NANOS.length;
    private final long checkAt;
    private volatile boolean checked;

    /** True if there are moves that are not yet applied to the byte code. */
    private volatile boolean moved;

    /** True if there is news to report to the server. */
    private volatile boolean news;

    static final class Patterns {
        final long checkedAfterNanos;
        final boolean methodsProbed;

        Patterns(long checkedAfterNanos, boolean methodsProbed) {
            this.checkedAfterNanos = checkedAfterNanos;
            this.methodsProbed = methodsProbed;
        }
    }

    Switchboard(
            Instrumentation instrumentation,
            Scope scope,
            Selection selection,
            WatchedClasses watched,
            Moves moves,
            ProbeMailbox mailbox,
            Patterns patterns,
            AgentLog log) {
        this.selection = selection;
        this.watched = watched;
        this.moves = moves;
        this.mailbox = mailbox;
        moves.listen(
                () -> {
                    moved = true;
                    mailbox.poke();
                },
                () -> {
                    news = true;
                    mailbox.poke();
                });
        watched.listen(
                () -> {
                    if (!news) { // only the first of many classes needs to wake the thread
                        news = true;
                        mailbox.poke();
                    }
                });
        this.patterns = patterns;
        this.log = log;
        this.retransformer = new Retransformer(instrumentation, scope, selection, watched, log);
        this.checkAt = System.nanoTime() + patterns.checkedAfterNanos;
    }

    public void start() {
        Thread thread = new Thread(null, this, "tachograph-probes", 0, false);
        thread.setDaemon(true);
        thread.setContextClassLoader(null);
        thread.start();
    }

    @Override
    public void run() {
        while (true) {
            try {
                step(mailbox.await(waitNanos(System.nanoTime())));
            } catch (InterruptedException e) {
                log.detail("the switchboard was interrupted and ends");
                return;
            } catch (Throwable e) {
                // Out of memory or an internal error: some methods may keep their old states.
                log.sayOnce("switchboard " + e.getClass(), "switching methods failed: " + e);
            }
        }
    }

    private long waitNanos(long now) {
        long next = heard ? AnswerPause.ROUTINE_NANOS : FOREVER_NANOS;
        if (heard && news) {
            next = Math.max(MILLI, pause.left(true, now));
        }
        if (repeats < REPEAT_NANOS.length) {
            next = Math.min(next, appliedAt + REPEAT_NANOS[repeats] - now);
        }
        return checked ? next : Math.min(next, checkAt - now);
    }

    private void step(ProbeRules came) {
        if (came != null) {
            apply(came);
        } else if (repeats < REPEAT_NANOS.length
                && System.nanoTime() - appliedAt >= REPEAT_NANOS[repeats]) {
            repeats++;
            retransformer.bringUpToDate();
        }
        if (moved) {
            moved = false; // before applyMoves, during which the next move may arrive
            news = true;
            applyMoves();
        }
        if (System.nanoTime() - checkAt >= 0) {
            checkOwnPatterns(false);
        }
        if (heard && pause.left(news, System.nanoTime()) <= 0) {
            news = false;
            answerIfNew();
        }
    }

    // ---- rules of the server ----

    private void apply(ProbeRules came) {
        long begin = System.nanoTime();
        List<Rule> fresh = parse(came, begin);
        boolean changes = !sayTheSame(fresh, serverRules);
        rules = came;
        heard = true;
        pause.restart();
        told = null; // every PROBES is answered
        if (!changes || !patterns.methodsProbed) {
            serverRules = fresh;
            return;
        }
        serverRules = fresh;
        int changed = applyRules();
        sayApplied(changed, (appliedAt - begin) / MILLI);
    }

    private void applyMoves() {
        int changed = applyRules();
        log.detail(changed + " classes changed, because methods were aggregated or switched off");
    }

    /**
     * @return number of changed classes
     */
    private int applyRules() {
        selection.replace(serverRules);
        appliedAt = System.nanoTime();
        repeats = 0; // set first: the checks must follow even if retransformation fails
        int changed = retransformer.bringUpToDate();
        appliedAt = System.nanoTime();
        return changed;
    }

    /** A known rule keeps its time of arrival, so it does not override later moves. */
    private List<Rule> parse(ProbeRules came, long now) {
        List<Rule> parsed = new ArrayList<>();
        for (ProbeRules.Rule rule : came.rules()) {
            Rule fresh = Rule.ofServer(rule.state, rule.pattern, now);
            parsed.add(
                    serverRules.stream()
                            .filter(before -> before.saysTheSameAs(fresh))
                            .findFirst()
                            .orElse(fresh));
        }
        return parsed;
    }

    private static boolean sayTheSame(List<Rule> some, List<Rule> others) {
        boolean same = some.size() == others.size();
        for (int at = 0; same && at < some.size(); at++) {
            same = some.get(at).saysTheSameAs(others.get(at));
        }
        return same;
    }

    private void sayApplied(int changed, long millis) {
        WatchedClasses.Totals totals = watched.totals(selection.list());
        log.say(
                (serverRules.isEmpty()
                                ? "no rules of the server: "
                                : "rules of the server: " + serverRules.size() + "; ")
                        + totals.recorded
                        + " methods are recorded, "
                        + totals.aggregated
                        + " aggregated, "
                        + totals.off
                        + " switched off; "
                        + changed
                        + " classes changed in "
                        + millis
                        + " ms");
        for (int at = 0; at < serverRules.size(); at++) {
            Rule rule = serverRules.get(at);
            if (rule.isFaulty()) {
                log.sayOnce("rule " + rule, "the rule \"" + rule + "\" is ignored: " + rule.fault);
            } else {
                warn("the rule \"" + rule + "\"", rule, totals, selection.ownCount() + at);
            }
        }
    }

    // ---- answers ----

    private void answerIfNew() {
        ProbeReport report = new ProbeReport();
        WatchedClasses.Totals totals = watched.totals(selection.list());
        report.revision = rules.revision();
        report.on = totals.recorded;
        report.aggregated = totals.aggregated;
        report.off = totals.off;
        for (int at = 0; at < serverRules.size(); at++) {
            if (patterns.methodsProbed) {
                report.rule(totals.decides[selection.ownCount() + at], serverRules.get(at).fault);
            } else {
                report.rule(0, EXCLUDED);
            }
        }
        for (Moves.Move move : moves.all()) {
            report.moved(move.operation, move.reason, move.since);
        }
        byte[] frame = report.frame();
        if (told == null || !Arrays.equals(frame, told)) {
            told = frame;
            pause.answered(System.nanoTime());
            mailbox.answer(frame);
        }
    }

    // ---- patterns that match nothing or everything ----

    /** Called by the shutdown hook of the agent, possibly before the patterns were checked. */
    public void end() {
        checkOwnPatterns(true);
    }

    /**
     * Warns once about patterns of the settings that match no method or everything.
     *
     * @param isEnd true if the program ends; then only patterns of {@code include} and {@code
     *     aggregate} without a match are logged
     */
    private synchronized void checkOwnPatterns(boolean isEnd) {
        if (checked) {
            return;
        }
        checked = true;
        RuleList list = selection.list();
        WatchedClasses.Totals totals = watched.totals(list);
        for (int at = 0; at < selection.ownCount(); at++) {
            Rule rule = list.rule(at);
            if (!patterns.methodsProbed) {
                sayUseless(rule);
                continue;
            }
            if (isEnd && (rule.state == State.OFF || totals.fits[at] > 0)) {
                continue;
            }
            warn(rule.setting().key() + ": the pattern " + rule.text, rule, totals, at);
        }
    }

    private void sayUseless(Rule rule) {
        String key = rule.setting().key();
        if (rule.state != State.OFF) {
            log.sayOnce(key, key + " has no effect: " + EXCLUDED);
        }
    }

    private void warn(String name, Rule rule, WatchedClasses.Totals totals, int at) {
        if (rule.isEverything()) {
            log.sayOnce(
                    name,
                    name
                            + " fits everything: "
                            + totals.fits[at]
                            + " methods of "
                            + totals.classes
                            + " classes so far");
        } else if (totals.fits[at] == 0) {
            log.sayOnce(name, name + " fits no method of the classes loaded so far");
        }
    }
}
