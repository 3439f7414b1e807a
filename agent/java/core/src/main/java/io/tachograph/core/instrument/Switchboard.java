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
 * Switches methods on and off while the program runs: rules come from the server, the classes whose
 * methods they decide otherwise than before are retransformed, and the server is told what became
 * of it. Calls that are open in a method go on in the byte code they began with, so each is ended
 * as it was entered. A daemon thread of its own: retransforming takes its time, and the sender has
 * none.
 *
 * <p>Before: {@link ProbeMailbox}. After: {@link Retransformer}, {@link MethodProbe}.
 */
public final class Switchboard implements Runnable {
    private static final long FOREVER_NANOS = Long.MAX_VALUE / 4;
    private static final long MILLI = 1_000_000;

    /**
     * When to look again after a change of rules: a class that was being loaded at that moment was
     * decided by the old ones, and was not to be found among the loaded ones yet.
     */
    private static final long[] AGAIN_NANOS = {300 * MILLI, 3_000 * MILLI};

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
    private int looks = AGAIN_NANOS.length;
    private final long checkAt;
    private boolean checked;

    /** There are moves that the byte code does not follow yet. */
    private volatile boolean moved;

    /** There is something that the server was not told. */
    private volatile boolean news;

    /** What concerns the patterns of the settings. */
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
                    if (!news) { // of many classes the first
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
                // No memory, or a fault of ours: what is switched stays as it is.
                log.sayOnce("switchboard " + e.getClass(), "switching methods failed: " + e);
            }
        }
    }

    private long waitNanos(long now) {
        long next = heard ? AnswerPause.ROUTINE_NANOS : FOREVER_NANOS;
        if (heard && news) {
            next = Math.max(MILLI, pause.left(true, now));
        }
        if (looks < AGAIN_NANOS.length) {
            next = Math.min(next, appliedAt + AGAIN_NANOS[looks] - now);
        }
        return checked ? next : Math.min(next, checkAt - now);
    }

    private void step(ProbeRules came) {
        if (came != null) {
            apply(came);
        } else if (looks < AGAIN_NANOS.length
                && System.nanoTime() - appliedAt >= AGAIN_NANOS[looks]) {
            looks++;
            retransformer.bringUpToDate();
        }
        if (moved) {
            moved = false; // first: one that comes meanwhile is not missed
            news = true;
            applyMoves();
        }
        if (!checked && System.nanoTime() - checkAt >= 0) {
            checked = true;
            checkOwnPatterns();
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
        told = null; // every PROBES is answered, also one that changes nothing
        if (!changes || !patterns.methodsProbed) {
            serverRules = fresh;
            return;
        }
        serverRules = fresh;
        int changed = decideAnew();
        sayApplied(changed, (appliedAt - begin) / MILLI);
    }

    /** The rules are the same, what they decide is not. */
    private void applyMoves() {
        int changed = decideAnew();
        log.detail(changed + " classes changed for what is aggregated");
    }

    /**
     * @return how many classes were changed
     */
    private int decideAnew() {
        selection.replace(serverRules);
        appliedAt = System.nanoTime();
        looks = 0; // first: what fails now is tried again then
        int changed = retransformer.bringUpToDate();
        appliedAt = System.nanoTime();
        return changed;
    }

    /** A rule that was there before is as old as it was: it is no answer to what came since. */
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
                log.sayOnce("rule " + rule, "the rule \"" + rule + "\" is left out: " + rule.fault);
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
                report.rule(0, "the setting probes leaves out methods");
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

    // ---- patterns that do nothing, or too much ----

    private void checkOwnPatterns() {
        RuleList list = selection.list();
        WatchedClasses.Totals totals = watched.totals(list);
        for (int at = 0; at < selection.ownCount(); at++) {
            Rule rule = list.rule(at);
            warn(rule.setting().key() + ": the pattern " + rule.text, rule, totals, at);
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
            log.sayOnce(name, name + " fits no method of the classes that are loaded so far");
        }
    }
}
